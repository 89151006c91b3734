import { ask } from '../../api/ask.ts'
import type { Case, Operations } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { useChosen } from '../../parts/chosen/app.ts'
import { FilterFields, filterQuery, useFilters } from '../../parts/filters.tsx'
import { whole } from '../../parts/format.ts'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { titleOf } from './case-words.ts'
import { Receivers } from './receivers.tsx'
import { ThreatTabs } from './threat-tabs.tsx'

type CaseQuery = Operations['listCases']['query']

/** The cases of one status. Without one in the address: the open ones. */
export function Threats() {
  const { values, set } = useFilters(['status', ...FIELDS.map(({ name }) => name)])
  const status = values['status'] || 'open'
  const query = {
    ...filterQuery<CaseQuery>(FIELDS, values),
    ...useChosen(),
    status: status as Case['status'],
  }
  const load = async (page: number, signal: AbortSignal) => {
    const { cases, total } = await ask(
      'listCases',
      { query: { ...query, page, limit: PART_LENGTH } },
      { signal },
    )
    return { rows: cases, total }
  }
  return (
    <Page
      title="Threats"
      help="events#cases"
      about="Threats that belong together are a case. Accept what is known, and close false alarms: they correct later verdicts."
    >
      <ThreatTabs current={status} />
      <FilterFields fields={FIELDS} values={values} set={set} />
      <div class="beside">
        <LongTable
          label="Cases"
          columns={COLUMNS}
          listKey={JSON.stringify(query)}
          keyOf={({ id }) => id}
          load={load}
          hrefOf={({ id }) => `/dashboard/threats/${id}`}
          empty={
            <Empty title={status === 'open' ? 'No open cases' : 'No matching cases'}>
              <p>A case opens with the first threat of its kind.</p>
            </Empty>
          }
        />
        <Receivers />
      </div>
    </Page>
  )
}

const COLUMNS: readonly LongColumn<Case>[] = [
  { title: 'Case', width: 'minmax(8rem, 3fr)', cell: titleOf },
  { title: 'Severity', width: '6rem', cell: ({ severity }) => <Badge of={severity} /> },
  { title: 'App', width: '7rem', isExtra: true, cell: ({ app }) => app ?? '–' },
  {
    title: 'Requests',
    width: '6rem',
    isExtra: true,
    isNumber: true,
    cell: ({ requests }) => whole(requests),
  },
  { title: 'First', width: '9rem', isExtra: true, cell: ({ first_at }) => <Time at={first_at} /> },
  { title: 'Latest', width: '9rem', isExtra: true, cell: ({ last_at }) => <Time at={last_at} /> },
]
const REASONS = [
  ...['spoofed_browser', 'foreign_address', 'proof_failed', 'proof_contradicted', 'forged_headers'],
  ...['blocked', 'rate_limited', 'rate_anomaly', 'robots_violation', 'crawl_campaign'],
]
const FIELDS = [
  { name: 'reason', label: 'Reason', choices: REASONS },
  { name: 'since', label: 'Since', isTime: true },
] as const
