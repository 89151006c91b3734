import { useEffect, useMemo, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { Tagged } from '../../api/ask.ts'
import type { PolicyInForce, PolicyPreview } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { withApp } from '../../parts/chosen/app.ts'
import { withMadeRule, withoutTrial } from '../../parts/made-rule.ts'
import { ProblemNote } from '../../parts/states.tsx'
import { WINDOWS, type Window } from '../../parts/chosen/window.ts'
import { CommentField } from './comment-field.tsx'
import { Difference } from './difference.tsx'
import { effectOf } from './effect.ts'
import { CrawlerTerms } from './crawler-terms.tsx'
import { Explain } from './explain.tsx'
import { policyOf, type PolicyPageOwner } from './owner.ts'
import { Rules } from './rules/rules.tsx'
import { PolicyText } from './text/policy-text.tsx'
import { useCheck } from './text/use-check.ts'
import { useTest } from './use-test.ts'
import { Warnings } from './warnings.tsx'
import { WhatIf } from './what-if.tsx'
import { readWritten, writtenAs } from './written.ts'

interface Props {
  readonly owner: PolicyPageOwner
  readonly inForce: PolicyInForce
  readonly tag: string | null
  put(after: Tagged<PolicyInForce>): void
}

/** Edits a policy: it is tried on recorded requests and compared before it is put in force. */
export function Editor({ owner, inForce, tag, put }: Props) {
  const operations = policyOf(owner)
  const current = useMemo(() => writtenAs(inForce.policy), [inForce.policy])
  const { query, path, route } = useLocation()
  // A rule that another page has made.
  const made = useMemo(
    () => (query['rule'] === undefined ? null : withMadeRule(inForce.policy, query['rule'])),
    [query['rule']],
  )
  const [text, setText] = useState(made === null ? current : writtenAs(made.policy))
  const { tried, test } = useTest(owner)
  const [window, setWindow] = useState<Window>('24h')
  const [asks, setAsks] = useState(false)
  const [comment, setComment] = useState('')
  const doing = useDoing()
  const written = useMemo(() => readWritten(text), [text])
  const isChanged = text !== current
  const problems = useCheck(owner, written, isChanged, inForce.warnings)
  useLeaving(isChanged, owner)
  const isFile = inForce.source === 'file'
  const policy = written.kind === 'policy' ? written.policy : null
  // The problems are of what was sent last: as a policy, or as its member.
  const problemAt = (pointer: string) => doing.errorAt(`/policy${pointer}`) ?? doing.errorAt(pointer)
  const tryIt = () =>
    doing.run(() => test(text, made === null ? policy! : withoutTrial(policy!, made.name), window))
  useEffect(() => {
    if (made !== null) void tryIt()
  }, [])
  return (
    <>
      <section class="card" aria-labelledby="editor">
        <h2 id="editor">Editor</h2>
        <div class="editor">
          {policy === null ? (
            <p class="note bad">The rules are shown again once the text is valid YAML.</p>
          ) : (
            <Rules
              owner={owner}
              policy={policy}
              inForce={inForce.policy}
              errorAt={problemAt}
              set={(next) => setText(writtenAs(next))}
            />
          )}
          <PolicyText owner={owner} text={text} problems={problems} set={setText} />
        </div>
        {made !== null && (
          <p class="note">
            The rule “{made.name}” is new and on trial: it is counted and has no effect. The test shows what
            it would do without <code>dry_run</code>.
          </p>
        )}
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
            <Tested preview={tried.preview} />
            <Warnings warnings={tried.preview.warnings} />
            <WhatIf preview={tried.preview} isReading={tried.isReading} />
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
                const after = await operations.put(policy!, { tag, comment: comment.trim() })
                // The rule is not made again.
                if (made !== null) route(withApp(path, owner), true)
                put(after)
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
            <CommentField value={comment} set={setComment} />
            <Difference before={current} after={text} />
          </Confirm>
        )}
      </section>
      <Explain owner={owner} policy={isChanged ? policy : null} />
      <CrawlerTerms owner={owner} policy={isChanged ? policy : null} />
    </>
  )
}

function Tested({ preview }: { readonly preview: PolicyPreview }) {
  const { look, text } = effectOf(preview)
  return (
    <p class={`note ${look}`} role="status">
      {text}
    </p>
  )
}

/** Asks before the user leaves with unsaved changes. */
function useLeaving(isChanged: boolean, owner: PolicyPageOwner): void {
  useEffect(() => {
    if (!isChanged) return
    const unload = (event: BeforeUnloadEvent) => event.preventDefault()
    const click = (event: MouseEvent) => {
      const link = (event.target as Element).closest('a')
      if (link === null || link.target !== '' || event.ctrlKey || event.metaKey) return
      if (confirm(LEAVING)) return
      event.preventDefault()
      event.stopPropagation()
    }
    const change = (event: Event) => {
      const select = (event.target as Element).closest<HTMLSelectElement>('.app-choice select')
      if (select === null || confirm(LEAVING)) return
      select.value = owner ?? ''
      event.stopPropagation()
    }
    addEventListener('beforeunload', unload)
    // In the capture phase, before the router handles the click.
    addEventListener('click', click, true)
    addEventListener('change', change, true)
    return () => {
      removeEventListener('beforeunload', unload)
      removeEventListener('click', click, true)
      removeEventListener('change', change, true)
    }
  }, [isChanged, owner])
}

const LEAVING = 'Your changes are not applied and will be lost. Leave this page?'
