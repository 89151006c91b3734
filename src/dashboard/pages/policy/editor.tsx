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
        <h2 id="editor">Editor</h2>
        <Field
          label="Policy (JSON)"
          hint="The first matching rule decides. See config/README.md for all conditions and actions."
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
            Test against{' '}
            <select value={window} onChange={({ currentTarget }) => setWindow(currentTarget.value as Window)}>
              {WINDOWS.map((each) => (
                <option key={each} value={each}>
                  the last {each}
                </option>
              ))}
            </select>
          </label>
          <button type="button" disabled={policy === null || doing.isDoing} onClick={() => void tryIt()}>
            Validate and test
          </button>
          <button
            type="button"
            class="main"
            disabled={policy === null || !isChanged || doing.isDoing || isFile}
            onClick={() => setAsks(true)}
          >
            Apply…
          </button>
          {isChanged && (
            <button type="button" onClick={() => setText(current)}>
              Discard changes
            </button>
          )}
        </p>
        {isFile && (
          <p class="note">
            The policy comes from the file <code>{inForce.file}</code>. To apply a policy that you tested
            here, edit that file, or remove the setting policy.file.
          </p>
        )}
        {isChanged && (
          <>
            <h3>Changes from the policy in force</h3>
            <Difference before={current} after={text} />
          </>
        )}
        {tried !== null && (
          <section aria-label="Effect on recorded requests">
            <h3>Effect on recorded requests</h3>
            {tried.text !== text && <p class="note warn">The policy was edited after this test.</p>}
            <p class="note good" role="status">
              Valid policy.
            </p>
            <Warnings warnings={tried.preview.warnings} />
            <WhatIf preview={tried.preview} />
          </section>
        )}
        {asks && (
          <Confirm
            title="Apply this policy?"
            doing="Apply"
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
              Every proxy applies it within a second. You can roll back to an earlier version in the list of
              versions.
            </p>
            {tried?.text !== text && (
              <p class="note warn">This policy was not tested against recorded requests.</p>
            )}
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
      if (confirm('Your changes are not applied and will be lost. Leave this page?')) return
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
