import type { FingerprintType, FoundSignature } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { percent, whole } from '../../parts/format.ts'
import { Answered, Empty } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { ja4Words } from './ja4-words.ts'
import { hrefOf } from './signatures.tsx'
import { Table } from '../../parts/table.tsx'

export interface Which {
  readonly type: FingerprintType
  readonly fingerprint: string
}

/** What the fingerprint itself tells. */
export function Words({ type, fingerprint }: Which) {
  const words = type === 'ja4' ? ja4Words(fingerprint) : null
  return words === null ? <p class="soft">{ABOUT[type]}</p> : <Facts of={words} />
}

/** The owner of the fingerprint, and similar ones. */
export function Found({ type, fingerprint }: Which) {
  // A pattern (`…_*_*`) cannot be looked up as a fingerprint: search it in the list.
  const isPattern = fingerprint.includes('*')
  return isPattern ? <OfPattern {...{ type, fingerprint }} /> : <OfFingerprint {...{ type, fingerprint }} />
}

function OfPattern({ type, fingerprint }: Which) {
  const used = useAsked('listSignatures', { query: { type, q: fingerprint, limit: 50 } })
  return <Answered used={used}>{({ signatures }) => <Whose found={signatures} />}</Answered>
}

function OfFingerprint({ type, fingerprint }: Which) {
  const used = useAsked('lookupFingerprint', { query: { [type]: fingerprint, match: 'partial' } })
  return (
    <Answered used={used}>
      {(found) => (
        <>
          <Whose found={found.filter(({ fingerprint: other }) => other === fingerprint)} />
          <LookAlikes found={found.filter(({ fingerprint: other }) => other !== fingerprint)} />
        </>
      )}
    </Answered>
  )
}

function Whose({ found }: { readonly found: readonly FoundSignature[] }) {
  return (
    <section class="card" aria-labelledby="whose">
      <h2 id="whose">Software</h2>
      {found.length === 0 && (
        <Empty title="No known software">
          <p>If you know which software sends it, propose it on the page of this fingerprint.</p>
        </Empty>
      )}
      {found.map((each) => (
        <Facts
          key={`${each.agent_id}`}
          of={[
            [
              'Software',
              each.agent_id === null ? (
                <Badge of="unknown" />
              ) : (
                <a href={`/dashboard/agents/${encodeURIComponent(each.agent_id)}`}>{each.agent_name}</a>
              ),
            ],
            ['Kind', each.kind],
            [
              'Confidence',
              `${percent(each.confidence)}${each.decisive ? ', decisive on its own' : ', one piece of evidence'}`,
            ],
            ['Observations', whole(each.observations)],
            ['Requests', whole(each.requests_seen)],
            ['State', `${each.status}, ${each.source}`],
            ['Known since', <FullTime key="first" at={each.first_seen} />],
            ['Last seen', <Time key="last" at={each.last_seen} />],
          ]}
        />
      ))}
    </section>
  )
}

function LookAlikes({ found }: { readonly found: readonly FoundSignature[] }) {
  return (
    <section class="card" aria-labelledby="alike">
      <h2 id="alike">Similar fingerprints</h2>
      {found.length === 0 ? (
        <Empty title="No similar fingerprints" />
      ) : (
        <Table
          label="Similar fingerprints"
          rows={found.slice(0, SHOWN_MAX)}
          keyOf={({ fingerprint, agent_id }) => `${fingerprint} ${agent_id}`}
          columns={[
            {
              title: 'Fingerprint',
              cell: (each) => (
                <a href={hrefOf(each)}>
                  <code>{each.fingerprint}</code>
                </a>
              ),
            },
            { title: 'Software', cell: ({ agent_name }) => agent_name ?? 'unknown' },
            {
              title: 'Similarity',
              isNumber: true,
              cell: ({ score }) => (score === undefined ? '' : percent(score)),
            },
          ]}
        />
      )}
    </section>
  )
}

const ABOUT: Readonly<Record<FingerprintType, string>> = {
  ja4: 'This is not a valid JA4.',
  ja4s: 'What a server chose from the client’s offer.',
  ja4h: 'A request: its method, version, cookies, language and header order.',
  ja4x: 'How a certificate is built: its issuer, subject and extensions.',
}
const SHOWN_MAX = 50
