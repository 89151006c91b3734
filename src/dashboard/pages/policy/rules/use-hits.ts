import { useEffect, useMemo, useState } from 'preact/hooks'
import { ask, askTagged, type OperationAnswer, type Tagged } from '../../../api/ask.ts'
import { ApiProblem } from '../../../api/problem.ts'
import { useLoaded } from '../../../api/use-asked.ts'
import { sinceOf } from '../../../parts/chosen/window.ts'
import type { PolicyPageOwner } from '../owner.ts'

/** What the rules of a policy have decided, by their names. */
export interface Hits {
  /** In the last 24 hours. `null`: not known. */
  countOf(name: string): number | null
  /** `undefined`: not known; `null`: none is recorded. */
  lastOf(name: string): string | null | undefined
}

/** `names`: of the rules in force. Counts recorded requests. */
export function useHits(owner: PolicyPageOwner, names: readonly string[]): Hits {
  const since = useMemo(() => sinceOf('24h'), [])
  const app = owner === null ? {} : { app: owner }
  const query = { ...app, since, facets: 'rule', limit: RULES_MAX }
  const { answer } = useLoaded(JSON.stringify([query, names.length > 0]), async (signal) =>
    // Counting takes the server half a second.
    names.length === 0 ? NO_COUNTS : askTagged('getRequestFacets', { query }, { signal }),
  )
  const [last, setLast] = useState<ReadonlyMap<string, string | null>>(NONE)
  const key = JSON.stringify([owner, names])
  useEffect(() => {
    const stop = new AbortController()
    void lastHits(names.slice(0, LAST_MAX), app, stop.signal, (name, at) =>
      setLast((before) => new Map([...before, [name, at]])),
    )
    return () => stop.abort()
  }, [key])
  const counts = useMemo(() => {
    const values = answer?.facets.find(({ facet }) => facet === 'rule')?.values ?? []
    return new Map(values.map(({ value, estimated }) => [value, estimated]))
  }, [answer])
  return {
    countOf: (name) => {
      if (answer === null || !names.includes(name)) return null
      // Of more rules than are counted, one without a count may have some.
      return counts.get(name) ?? (counts.size < RULES_MAX ? 0 : null)
    },
    lastOf: (name) => last.get(name),
  }
}

/** One after another: each is a search. Ends at the first that fails. */
async function lastHits(
  names: readonly string[],
  app: { readonly app?: string },
  signal: AbortSignal,
  found: (name: string, at: string | null) => void,
): Promise<void> {
  try {
    for (const rule of names) {
      const { requests, stopped_at } = await ask(
        'listRequests',
        { query: { ...app, rule, limit: 1 } },
        { signal },
      )
      const [newest] = requests
      // A search that has stopped may have missed the last one.
      if (newest !== undefined || stopped_at === null) found(rule, newest?.seen_at ?? null)
    }
  } catch (error) {
    if (!signal.aborted && !(error instanceof ApiProblem)) throw error
  }
}

const NO_COUNTS: Tagged<OperationAnswer<'getRequestFacets'> | null> = { value: null, tag: null }
const NONE: ReadonlyMap<string, string | null> = new Map()
const RULES_MAX = 100
/** A search each. */
const LAST_MAX = 30
