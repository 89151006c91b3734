import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { PolicyInForce, PolicyVersion } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Facts } from '../../parts/facts.tsx'
import { LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty, ProblemNote } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { Difference } from './difference.tsx'
import { Editor } from './editor.tsx'
import { Warnings } from './warnings.tsx'
import { writtenAs } from './written.ts'

/** The policy in force and its editor. */
export function PolicyPage() {
  const used = useAsked('getPolicy', {})
  const [turn, setTurn] = useState(0)
  const [said, setSaid] = useState<string | null>(null)
  const changed = (text: string) => {
    setSaid(text)
    setTurn((before) => before + 1)
    used.again()
  }
  return (
    <Page
      title="Policy"
      help="policy"
      about="What Gatehouse does with each request. The first matching rule decides."
    >
      {said !== null && (
        <p class="note good" role="status">
          {said}
        </p>
      )}
      <Answered used={used}>
        {(inForce) => (
          <>
            <InForce inForce={inForce} />
            <Editor
              key={inForce.hash}
              inForce={inForce}
              tag={used.tag}
              put={() => changed('The policy is in force.')}
            />
            {inForce.source !== 'file' && (
              <Versions
                turn={turn}
                inForce={inForce}
                tag={used.tag}
                restored={(version) => changed(`Version ${version} is in force again.`)}
              />
            )}
          </>
        )}
      </Answered>
    </Page>
  )
}

function InForce({ inForce }: { readonly inForce: PolicyInForce }) {
  const { source, file, version, author, created_at, restored_version, warnings, problems, hash } = inForce
  return (
    <section class="card" aria-labelledby="in-force">
      <h2 id="in-force">In force</h2>
      <Facts
        of={[
          ['From', FROM[source]],
          ['File', file],
          ['Version', version === null ? null : String(version)],
          ['Author', author],
          ['Saved', created_at === null ? null : <FullTime key="put" at={created_at} />],
          ['Restored from', restored_version === null ? null : `version ${restored_version}`],
          ['In force since', <Time key="since" at={inForce.in_force_since} />],
          ['SHA-256', <code key="hash">{hash.slice(0, 16)}</code>],
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
  readonly turn: number
  readonly inForce: PolicyInForce
  readonly tag: string | null
  restored(version: number): void
}

function Versions({ turn, inForce, tag, restored }: VersionsProps) {
  const doing = useDoing()
  const [asked, setAsked] = useState<{ readonly version: number; readonly text: string } | null>(null)
  const look = (version: number) =>
    doing.run(async () => {
      const { policy } = await ask('getPolicyVersion', { path: { version } })
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
          const found = await ask('listPolicyVersions', { query: { page, limit: PART_LENGTH } }, { signal })
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
            <p>Without a policy every request is tagged and none is blocked.</p>
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
              await ask('restorePolicy', { path: { version } }, tag === null ? {} : { ifMatch: tag })
              restored(version)
            })
          }}
        >
          <Difference before={writtenAs(inForce.policy)} after={asked.text} />
        </Confirm>
      )}
    </section>
  )
}

const FROM: Readonly<Record<PolicyInForce['source'], string>> = {
  file: 'a file',
  api: 'the dashboard or the API',
  default: 'the built-in default: every request is tagged, none is blocked',
}
