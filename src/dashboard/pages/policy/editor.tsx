import { useEffect, useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { PolicyInForce, PolicyPreview } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { Field } from '../../parts/field.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { type Window, WINDOWS } from '../live/window-choice.tsx'
import { Difference } from './difference.tsx'
import { Explain } from './explain.tsx'
import { Warnings } from './warnings.tsx'
import { WhatIf } from './what-if.tsx'
import { readWritten, writtenAs } from './written.ts'

interface Props {
  readonly inForce: PolicyInForce
  readonly tag: string | null
  put(): void
}

/** Edits a policy: it is tried on recorded requests and compared before it is put in force. */
export function Editor({ inForce, tag, put }: Props) {
  const current = writtenAs(inForce.policy)
  const [text, setText] = useState(current)
  const [tried, setTried] = useState<{ readonly text: string; readonly preview: PolicyPreview } | null>(null)
  const [window, setWindow] = useState<Window>('24h')
  const [asks, setAsks] = useState(false)
  const doing = useDoing()
  const written = readWritten(text)
  const isChanged = text !== current
  useLeaving(isChanged)
  const isFile = inForce.source === 'file'
  const policy = written.kind === 'policy' ? written.policy : null
  const tryIt = () =>
    doing.run(async () => {
      setTried({
        text,
        preview: await ask('previewPolicy', { body: { policy: policy!, window, against: 'current' } }),
      })
    })
  return (
    <>
      <section class="card" aria-labelledby="editor">
        <h2 id="editor">Write</h2>
        <Field
          label="Policy, as JSON"
          hint="The first rule that holds decides. config/README.md has all that rules can ask for."
          error={
            written.kind === 'wrong'
              ? `${written.line === null ? '' : `Line ${written.line}: `}${written.why}`
              : null
          }
        >
          {(tied) => (
            <textarea
              {...tied}
              rows={18}
              spellcheck={false}
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          )}
        </Field>
        {doing.problem !== null && <ProblemNote problem={doing.problem} />}
        <p class="actions">
          <label>
            Try it on{' '}
            <select value={window} onChange={({ currentTarget }) => setWindow(currentTarget.value as Window)}>
              {WINDOWS.map((each) => (
                <option key={each} value={each}>
                  the last {each}
                </option>
              ))}
            </select>
          </label>
          <button type="button" disabled={policy === null || doing.isDoing} onClick={() => void tryIt()}>
            Check and try
          </button>
          <button
            type="button"
            class="main"
            disabled={policy === null || !isChanged || doing.isDoing || isFile}
            onClick={() => setAsks(true)}
          >
            Put in force…
          </button>
          {isChanged && (
            <button type="button" onClick={() => setText(current)}>
              Back to the one in force
            </button>
          )}
        </p>
        {isFile && (
          <p class="note">
            The policy is in the file <code>{inForce.file}</code>, which has the last word: what is tried here
            is put there by hand, or the setting policy.file is taken away.
          </p>
        )}
        {isChanged && (
          <>
            <h3>What is different from the one in force</h3>
            <Difference before={current} after={text} />
          </>
        )}
        {tried !== null && (
          <section aria-label="What it would have changed">
            <h3>What it would have changed</h3>
            {tried.text !== text && <p class="note warn">It was changed since it was tried.</p>}
            <p class="note good" role="status">
              Valid policy.
            </p>
            <Warnings warnings={tried.preview.warnings} />
            <WhatIf preview={tried.preview} />
          </section>
        )}
        {asks && (
          <Confirm
            title="Put this policy in force?"
            doing="Put it in force"
            cancel={() => setAsks(false)}
            done={() => {
              setAsks(false)
              void doing.run(async () => {
                await ask('putPolicy', { body: policy! }, tag === null ? {} : { ifMatch: tag })
                put()
              })
            }}
          >
            <p>
              Every proxy judges by it within a second. The one before can be put again, from the list of
              versions.
            </p>
            {tried?.text !== text && <p class="note warn">It was not tried on what is recorded.</p>}
            <Difference before={current} after={text} />
          </Confirm>
        )}
      </section>
      <Explain policy={isChanged ? policy : null} />
    </>
  )
}

/** Asks before the user leaves with unsaved changes. */
function useLeaving(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return
    const unload = (event: BeforeUnloadEvent) => event.preventDefault()
    const click = (event: MouseEvent) => {
      const link = (event.target as Element).closest('a')
      if (link === null || link.target !== '' || event.ctrlKey || event.metaKey) return
      if (confirm('What you have written is not in force, and is lost. Go away?')) return
      event.preventDefault()
      event.stopPropagation()
    }
    addEventListener('beforeunload', unload)
    // In the capture phase, before the router handles the click.
    addEventListener('click', click, true)
    return () => {
      removeEventListener('beforeunload', unload)
      removeEventListener('click', click, true)
    }
  }, [isChanged])
}
