import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { DEFAULT_APP, useChosenApp } from '../../parts/chosen/app.ts'
import type { PolicyInForce, PolicyVersion } from '../../api/operations.ts'
import type { Tagged } from '../../api/ask.ts'
import { useAsked, useLoaded } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Facts } from '../../parts/facts.tsx'
import { LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty, ProblemNote } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { CommentField } from './comment-field.tsx'
import { Difference } from './difference.tsx'
import { Editor } from './editor.tsx'
import { policyOf, type PolicyPageOwner, undone as undo } from './owner.ts'
import { Warnings } from './warnings.tsx'
import { writtenAs } from './written.ts'

/** The policy of the organisation, or of the app in the address. */
export function PolicyPage() {
  const app = useChosenApp()
  const { path, query, route } = useLocation()
  const { answer: me } = useAsked('getMe', {})
  const own = me === null || me.apps === '*' ? null : me.apps
  // Users of some apps do not see the policy of the organisation.
  useEffect(() => {
    const first = own?.includes(DEFAULT_APP) ? DEFAULT_APP : own?.[0]
    if (app === null && first !== undefined)
      route(`${path}?${new URLSearchParams({ ...query, app: first })}`, true)
  }, [app, own])
  if (app !== null || me?.apps === '*') return <PolicyOf key={app} owner={app} />
  return (
    <Page title="Policy" help="policy">
      {own?.length === 0 && (
        <Empty title="No apps">
          <p>You have no apps.</p>
        </Empty>
      )}
    </Page>
  )
}

/** A policy in force and its editor. */
function PolicyOf({ owner }: { readonly owner: PolicyPageOwner }) {
  const used = useLoaded(`policy of ${owner}`, policyOf(owner).load)
  const [turn, setTurn] = useState(0)
  const [done, setDone] = useState<Done | null>(null)
  const changed = (done: Done) => {
    setDone(done)
    setTurn((before) => before + 1)
    used.again()
  }
  if (owner !== null && used.problem?.status === 404) return <NoApp id={owner} />
  return (
    <Page
      title={owner === null ? 'Policy' : `Policy of ${owner}`}
      help={owner === null ? 'policy' : 'apps#the-policy-of-an-app'}
      about={
        owner === null
          ? 'What Gatehouse does with each request. The first matching rule decides.'
          : 'The rules for requests to this app. They are tried after the first rules of the organisation and before its last ones.'
      }
    >
      {done !== null && (
        <DoneNote
          key={turn}
          owner={owner}
          done={done}
          undone={() => changed({ text: 'Undone: the policy of before is in force again.', undo: null })}
        />
      )}
      <Answered used={used}>
        {(inForce) => (
          <>
            <InForce owner={owner} inForce={inForce} />
            <Editor
              key={inForce.hash}
              owner={owner}
              inForce={inForce}
              tag={used.tag}
              put={(after) => changed({ text: 'The policy is in force.', undo: { before: inForce, after } })}
            />
            {inForce.source !== 'file' && (
              <Versions
                owner={owner}
                turn={turn}
                inForce={inForce}
                tag={used.tag}
                restored={(version, after) =>
                  changed({
                    text: `Version ${version} is in force again.`,
                    undo: { before: inForce, after },
                  })
                }
              />
            )}
          </>
        )}
      </Answered>
    </Page>
  )
}

/** What was just done. */
interface Done {
  readonly text: string
  /** The policies to go back with; `null`: it was an undo. */
  readonly undo: { readonly before: PolicyInForce; readonly after: Tagged<PolicyInForce> } | null
}

function DoneNote({
  owner,
  done,
  undone,
}: {
  readonly owner: PolicyPageOwner
  readonly done: Done
  readonly undone: () => void
}) {
  const doing = useDoing()
  const given = done.undo
  return (
    <>
      <div class="note good actions" role="status">
        <span>{done.text}</span>
        {given !== null && (
          <button
            type="button"
            disabled={doing.isDoing}
            onClick={() =>
              void doing.run(async () => {
                await undo(owner, given.before, given.after)
                undone()
              })
            }
          >
            Undo
          </button>
        )}
      </div>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
    </>
  )
}

/** The address may name an app that was deleted, like the link of a recorded request. */
function NoApp({ id }: { readonly id: string }) {
  const { query } = useLocation()
  const request = query['request']
  return (
    <Page title={`Policy of ${id}`} help="apps#the-policy-of-an-app">
      <Empty title={`App ${id} not found`}>
        <p>It was deleted together with its policy, or it is not one of your apps.</p>
        {request !== undefined && (
          <p>
            The decision cannot be explained without it.{' '}
            <a href={`/dashboard/traffic/${encodeURIComponent(request)}`}>The recorded request</a> still has
            the rule that decided.
          </p>
        )}
      </Empty>
    </Page>
  )
}

function InForce({ owner, inForce }: { readonly owner: PolicyPageOwner; readonly inForce: PolicyInForce }) {
  const hasNone = owner !== null && inForce.source === 'default'
  const { source, file, version, author, comment, created_at, restored_version } = inForce
  const { warnings, problems, hash } = inForce
  return (
    <section class="card" aria-labelledby="in-force">
      <h2 id="in-force">In force</h2>
      <Facts
        of={[
          ['From', hasNone ? NO_OWN : FROM[source]],
          ['File', file],
          ['Version', version === null ? null : String(version)],
          ['Author', author],
          ['Comment', comment],
          ['Saved', created_at === null ? null : <FullTime key="put" at={created_at} />],
          ['Restored from', restored_version === null ? null : `version ${restored_version}`],
          ['In force since', hasNone ? null : <Time key="since" at={inForce.in_force_since} />],
          ['SHA-256', hasNone ? null : <code key="hash">{hash.slice(0, 16)}</code>],
        ]}
      />
      <Warnings warnings={warnings} />
      {problems.length > 0 && (
        <div class="note bad" role="alert">
          <p>A newer policy is not in force:</p>
          <ul>
            {problems.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </div>
      )}
    </section>
  )
}

interface VersionsProps {
  readonly owner: PolicyPageOwner
  readonly turn: number
  readonly inForce: PolicyInForce
  readonly tag: string | null
  restored(version: number, after: Tagged<PolicyInForce>): void
}

function Versions({ owner, turn, inForce, tag, restored }: VersionsProps) {
  const operations = policyOf(owner)
  const doing = useDoing()
  const [asked, setAsked] = useState<{ readonly version: number; readonly text: string } | null>(null)
  const [comment, setComment] = useState('')
  const look = (version: number) =>
    doing.run(async () => {
      const { policy } = await operations.version(version)
      setAsked({ version, text: writtenAs(policy) })
    })
  return (
    <section aria-labelledby="versions">
      <h2 id="versions">Versions</h2>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      <LongTable<PolicyVersion>
        label="Versions"
        listKey={String(turn)}
        keyOf={({ version }) => String(version)}
        load={async (page, signal) => {
          const found = await operations.versions({ page, limit: PART_LENGTH }, { signal })
          return { rows: found.versions, total: found.total }
        }}
        columns={[
          {
            title: 'Version',
            width: 'minmax(7rem, 1fr)',
            cell: ({ version, in_force, restored_version }) => (
              <>
                {version} {in_force && <Badge of="good" text="in force" />}
                {restored_version !== null && <small> restored from {restored_version}</small>}
              </>
            ),
          },
          {
            title: 'Comment',
            width: 'minmax(8rem, 2fr)',
            isExtra: true,
            cell: ({ comment }) => comment !== null && <span title={comment}>{comment}</span>,
          },
          { title: 'Author', width: 'minmax(8rem, 1fr)', isExtra: true, cell: ({ author }) => author },
          {
            title: 'When',
            width: '15rem',
            isExtra: true,
            cell: ({ created_at }) => <FullTime at={created_at} />,
          },
          {
            title: 'Action',
            width: '9rem',
            cell: ({ version, in_force }) =>
              !in_force && (
                <button
                  type="button"
                  aria-label={`Roll back to version ${version}`}
                  onClick={() => void look(version)}
                >
                  Roll back…
                </button>
              ),
          },
        ]}
        empty={
          <Empty title="No policy saved yet">
            <p>
              {owner === null
                ? 'Without a policy every request is tagged and none is blocked.'
                : 'Without a policy of this app, the rules of the organisation alone decide.'}
            </p>
          </Empty>
        }
      />
      {asked !== null && (
        <Confirm
          title={`Roll back to version ${asked.version}?`}
          doing="Roll back"
          cancel={() => setAsked(null)}
          done={() => {
            const { version } = asked
            setAsked(null)
            void doing.run(async () => {
              restored(version, await operations.restore(version, { tag, comment: comment.trim() }))
            })
          }}
        >
          <CommentField value={comment} set={setComment} />
          <Difference before={writtenAs(inForce.policy)} after={asked.text} />
        </Confirm>
      )}
    </section>
  )
}

const NO_OWN = 'no policy yet: the rules of the organisation alone decide'
const FROM: Readonly<Record<PolicyInForce['source'], string>> = {
  file: 'a file',
  api: 'the dashboard or the API',
  default: 'the built-in default: every request is tagged, none is blocked',
}
