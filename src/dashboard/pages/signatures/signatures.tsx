import { useLocation } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { FingerprintType, Operations, Signature } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { Download } from '../../parts/download.tsx'
import { ChoiceFilter, Filters, TextFilter, useFilters } from '../../parts/filters.tsx'
import { percent, short } from '../../parts/format.ts'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { SignatureTabs } from './signature-tabs.tsx'

type Query = Operations['listSignatures']['query']

/** All known fingerprints, or only those without a known owner. */
export function Signatures() {
  return (
    <SignatureList
      title="Signatures"
      tab="all"
      about="Known fingerprints and the software that sends them."
    />
  )
}

export function UnknownSignatures() {
  return (
    <SignatureList
      title="Unknown fingerprints"
      tab="unknown"
      about="Fingerprints in traffic from several addresses, with no known software. Open one to see similar fingerprints or to propose its software."
      isUnknown
    />
  )
}

interface Props {
  readonly title: string
  readonly about: string
  readonly tab: string
  readonly isUnknown?: boolean
}

function SignatureList({ title, about, tab, isUnknown = false }: Props) {
  const { values, set } = useFilters(['q', 'type', 'agent_id', 'min_confidence', 'sort'])
  const { route, path } = useLocation()
  const query: Query = {
    ...(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')) as Query),
    ...(isUnknown && { unknown_only: true }),
  }
  const load = async (page: number, signal: AbortSignal) => {
    const found = await ask('listSignatures', { query: { ...query, page, limit: PART_LENGTH } }, { signal })
    return { rows: found.signatures, total: found.total }
  }
  const exported = async () =>
    (await ask('listSignatures', { query: { ...query, limit: EXPORTED_MAX } })).signatures
  return (
    <Page
      title={title}
      help="verdicts"
      about={about}
      actions={
        <Download
          name="signatures"
          columns={[
            'type',
            'fingerprint',
            'agent_id',
            'kind',
            'confidence',
            'observations',
            'requests_seen',
            'source',
            'status',
          ]}
          rows={async () =>
            (await exported()).map((each) => [
              ...[each.type, each.fingerprint, each.agent_id, each.kind, each.confidence],
              ...[each.observations, each.requests_seen, each.source, each.status],
            ])
          }
          json={exported}
        />
      }
    >
      <SignatureTabs current={tab} />
      <Filters>
        <TextFilter label="Contains" value={values.q} set={(value) => set('q', value)} />
        <ChoiceFilter label="Type" value={values.type} choices={TYPES} set={(value) => set('type', value)} />
        {!isUnknown && (
          <TextFilter label="Agent ID" value={values.agent_id} set={(value) => set('agent_id', value)} />
        )}
        {!isUnknown && (
          <ChoiceFilter
            label="Minimum confidence"
            value={values.min_confidence}
            choices={['0.25', '0.5', '0.75', '0.9']}
            set={(value) => set('min_confidence', value)}
          />
        )}
        <ChoiceFilter
          label="Sort by"
          value={values.sort}
          all="default"
          choices={SORTS}
          set={(value) => set('sort', value)}
        />
      </Filters>
      <LongTable<Signature>
        label={title}
        columns={COLUMNS}
        listKey={JSON.stringify([values, isUnknown])}
        keyOf={({ type, fingerprint, agent_id }: Signature) => `${type} ${fingerprint} ${agent_id}`}
        load={load}
        hrefOf={hrefOf}
        empty={
          <Empty title={isUnknown ? 'No unknown fingerprints' : 'No matching signatures'}>
            <p>
              <button type="button" onClick={() => route(path)}>
                Clear filters
              </button>
            </p>
          </Empty>
        }
      />
    </Page>
  )
}

export function hrefOf({ type, fingerprint }: Pick<Signature, 'type' | 'fingerprint'>): string {
  return `/dashboard/signatures/${type}/${encodeURIComponent(fingerprint)}`
}

const COLUMNS: readonly LongColumn<Signature>[] = [
  { title: 'Fingerprint', width: 'minmax(9rem, 3fr)', cell: ({ fingerprint }) => <code>{fingerprint}</code> },
  { title: 'Type', width: '4rem', isExtra: true, cell: ({ type }) => type },
  {
    title: 'Software',
    width: 'minmax(6rem, 2fr)',
    cell: ({ agent_name, status }) =>
      agent_name === null ? (
        <Badge of="unknown" />
      ) : (
        `${agent_name}${status === 'trial' ? ' (on trial)' : ''}`
      ),
  },
  {
    title: 'Confidence',
    width: '6rem',
    isExtra: true,
    isNumber: true,
    cell: ({ confidence }) => percent(confidence),
  },
  {
    title: 'Requests',
    width: '5rem',
    isExtra: true,
    isNumber: true,
    cell: ({ requests_seen }) => short(requests_seen),
  },
  { title: 'Last seen', width: '9rem', isExtra: true, cell: ({ last_seen }) => <Time at={last_seen} /> },
]
export const TYPES = ['ja4', 'ja4s', 'ja4h', 'ja4x'] as const satisfies readonly FingerprintType[]
const SORTS = [
  'fingerprint',
  '-first_seen',
  'first_seen',
  '-confidence',
  'confidence',
  '-observations',
  'observations',
]
const EXPORTED_MAX = 200
