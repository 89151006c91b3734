import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../../../api/ask.ts'
import { Field } from '../../../parts/field.tsx'
import type { PolicyPageOwner } from '../owner.ts'
import type { Code } from './code.ts'
import { summaryOf, type TextProblem } from './problems.ts'

interface Props {
  readonly owner: PolicyPageOwner
  readonly text: string
  readonly problems: readonly TextProblem[]
  set(text: string): void
}

/** The policy as text. A plain field until the editor is loaded, and if it cannot be. */
export function PolicyText({ owner, text, problems, set }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const plain = useRef<HTMLTextAreaElement>(null)
  const [code, setCode] = useState<Code | null>(null)
  const [isFailed, setFailed] = useState(false)
  // The editor is opened once, and then uses the newest of these.
  const now = useRef({ text, set })
  now.current = { text, set }
  useEffect(() => {
    let isGone = false
    let opened: Code | null = null
    import('./code.ts').then(
      ({ openCode }) => {
        if (isGone || host.current === null) return
        const { text } = now.current
        const changed = (next: string) => now.current.set(next)
        const field = document.activeElement === plain.current ? plain.current : null
        opened = openCode({
          host: host.current,
          text,
          label: LABEL_WITH_KEYS,
          isOfApp: owner !== null,
          changed,
          ids,
        })
        setCode(opened)
        if (field !== null) opened.focus(field.selectionStart, field.selectionEnd)
      },
      () => setFailed(true),
    )
    return () => {
      isGone = true
      opened?.close()
    }
  }, [])
  // Before the next key is pressed: it must not be taken back.
  useLayoutEffect(() => code?.set(text), [code, text])
  useEffect(() => code?.show(problems), [code, problems])
  const [errors, warnings] = ['error', 'warning'].map((each) =>
    summaryOf(problems.filter(({ severity }) => severity === each)),
  )
  return (
    <Field
      label={LABEL}
      hint={
        <>
          {warnings != null && (
            <>
              <strong class="warn">Warning: {warnings}</strong>
              <br />
            </>
          )}
          Rules and text are the same policy: a change of one changes the other. Comments are not kept.{' '}
          {code !== null && KEYS}
          {isFailed && 'The editor could not be loaded, so this is a plain field.'}
        </>
      }
      error={errors ?? null}
    >
      {(tied) => (
        <>
          <div ref={host} class="code" />
          {code === null && (
            <textarea
              {...tied}
              ref={plain}
              rows={18}
              spellcheck={false}
              value={text}
              onInput={({ currentTarget }) => set(currentTarget.value)}
            />
          )}
        </>
      )}
    </Field>
  )
}

/** Agents that have this text in their id or name. */
async function ids(like: string, signal: AbortSignal) {
  const query = { ...(like !== '' && { q: like }), limit: IDS_MAX }
  const { agents } = await ask('listAgents', { query }, { signal })
  return agents.map(({ id, name }) => [id, name] as const)
}

const LABEL = 'Policy (YAML)'
const KEYS =
  'Ctrl+Space completes, Ctrl+F searches, F8 goes to the next problem. Tab indents: press Escape, then Tab, to leave.'
const LABEL_WITH_KEYS = `${LABEL}. ${KEYS}`
const IDS_MAX = 20
