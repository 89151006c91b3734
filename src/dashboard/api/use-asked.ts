import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type OperationAnswer, type OperationInput, askTagged, type OperationId, type Tagged } from './ask.ts'
import { ApiProblem } from './problem.ts'

export interface UsedAnswer<Value> {
  /** The last answer. It stays while a new one is loading. */
  readonly answer: Value | null
  readonly tag: string | null
  readonly problem: ApiProblem | null
  readonly isAsking: boolean
  again(): void
}

/**
 * An API answer for a component. It reloads when the parameters change and every `everyMs`, but not while the
 * page is hidden.
 */
export function useAsked<Id extends OperationId>(
  id: Id,
  asked: OperationInput<Id>,
  options: { readonly everyMs?: number } = {},
): UsedAnswer<OperationAnswer<Id>> {
  return useLoaded(JSON.stringify([id, asked]), (signal) => askTagged(id, asked, { signal }), options)
}

/** The same of anything that is loaded; `key` stands for its parameters. */
export function useLoaded<Value>(
  key: string,
  load: (signal: AbortSignal) => Promise<Tagged<Value>>,
  { everyMs }: { readonly everyMs?: number } = {},
): UsedAnswer<Value> {
  const [state, setState] = useState<Omit<UsedAnswer<Value>, 'again'>>(NOTHING)
  const [turn, setTurn] = useState(0)
  const again = useCallback(() => setTurn((before) => before + 1), [])
  const current = useRef(load)
  current.current = load
  const loaded = useRef(key)
  // `turn` stands for a reload.
  useEffect(() => {
    const stop = new AbortController()
    const isOther = loaded.current !== key
    loaded.current = key
    // A problem stays during a reload, but not when something else is loaded.
    setState((before) => ({ ...before, isAsking: true, ...(isOther && { problem: null }) }))
    current
      .current(stop.signal)
      .then(({ value, tag }) => setState({ answer: value, tag, problem: null, isAsking: false }))
      .catch((error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof ApiProblem)) throw error
        setState((before) => ({ ...before, problem: error, isAsking: false }))
      })
    return () => stop.abort()
  }, [key, turn])
  const pauseMs = state.problem?.status === 0 ? RETRY_MS : everyMs
  useEffect(() => {
    if (pauseMs === undefined) return
    const timer = setInterval(() => document.hidden || again(), pauseMs)
    return () => clearInterval(timer)
  }, [pauseMs, again])
  return { ...state, again }
}

/** For different parameters the old answer is useless: give such a component a `key`. */
const NOTHING = { answer: null, tag: null, problem: null, isAsking: true }
const RETRY_MS = 5_000
