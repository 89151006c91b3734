import type { AgentFingerprints } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { useChosen, withQuery } from '../../parts/chosen/app.ts'
import { useWindow, WINDOW_WORDS } from '../../parts/chosen/window.ts'
import { counted, short } from '../../parts/format.ts'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { FullTime, Time } from '../../parts/time.tsx'

/** The fingerprints of the agent's requests here, and which of them are new. */
export function AgentFingerprintsSection({ id }: { readonly id: string }) {
  const window = useWindow()
  const chosen = useChosen()
  const used = useAsked('getAgentFingerprints', { path: { agent_id: id }, query: { window, ...chosen } })
  return (
    <section class="card" aria-labelledby="seen-fingerprints">
      <h2 id="seen-fingerprints">Fingerprints seen here</h2>
      <Answered used={used}>
        {(found) =>
          found.fingerprints.length === 0 ? (
            <Empty title="No recorded requests" />
          ) : (
            <>
              <Summary found={found} />
              <Table
                label="Fingerprints of its requests"
                rows={found.fingerprints}
                keyOf={({ type, value }) => `${type} ${value}`}
                columns={[
                  {
                    title: 'Fingerprint',
                    cell: (each) => (
                      <>
                        <Badge of="plain" text={NAMES[each.type]} /> <Value of={each} />{' '}
                        {each.new === true && <Badge of="warn" text="new" />}
                      </>
                    ),
                  },
                  {
                    title: 'Requests',
                    isNumber: true,
                    cell: ({ type, value, estimated }) =>
                      type === 'http2' ? (
                        short(estimated)
                      ) : (
                        <a href={withQuery('/dashboard/traffic', { ...chosen, agent_id: id, [type]: value })}>
                          {short(estimated)}
                        </a>
                      ),
                  },
                  { title: 'First seen', isExtra: true, cell: ({ first_seen }) => <Time at={first_seen} /> },
                  { title: 'Last seen', isExtra: true, cell: ({ last_seen }) => <Time at={last_seen} /> },
                ]}
              />
              {found.others > 0 && <p>{counted(found.others, 'more fingerprint')} with fewer requests.</p>}
            </>
          )
        }
      </Answered>
    </section>
  )
}

function Summary({ found }: { readonly found: AgentFingerprints }) {
  const { fingerprints, requests, stopped_at, window } = found
  const fresh = fingerprints.filter((each) => each.new === true).length
  const isUnknown = fingerprints.some((each) => each.new === null)
  return (
    <p>
      Of {counted(requests, 'recorded request')}
      {stopped_at !== null && (
        <>
          , the newest, back to <FullTime at={stopped_at} />
        </>
      )}
      .{' '}
      {isUnknown
        ? `No request from before the last ${WINDOW_WORDS[window]} was read, so nothing is marked as new.`
        : `${fresh === 0 ? 'No fingerprint is' : `${counted(fresh, 'fingerprint')} ${fresh === 1 ? 'is' : 'are'}`} new in the last ${WINDOW_WORDS[window]}.`}{' '}
      Clients that only claim to be this agent are counted, too.
    </p>
  )
}

function Value({ of: { type, value } }: { readonly of: AgentFingerprints['fingerprints'][number] }) {
  const text = <code class="break">{value}</code>
  if (type === 'http2') return text
  return <a href={`/dashboard/signatures/${type}/${encodeURIComponent(value)}`}>{text}</a>
}

const NAMES = { ja4: 'ja4', ja4h: 'ja4h', http2: 'http/2' } as const
