import { ask } from '../../api/ask.ts'
import type { Operations, Submission } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { ChoiceFilter, Filters, TextFilter, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { SignatureTabs } from './signature-tabs.tsx'
import { TYPES } from './signatures.tsx'

/** Submitted proposals and their status. */
export function Submissions() {
  const { values, set } = useFilters(['status', 'type', 'q'])
  const query = Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== ''),
  ) as Operations['listSubmissions']['query']
  const load = async (page: number, signal: AbortSignal) => {
    const found = await ask('listSubmissions', { query: { ...query, page, limit: PART_LENGTH } }, { signal })
    return { rows: found.submissions, total: found.total }
  }
  return (
    <Page
      title="Submissions"
      about="Proposed signatures. They are counted on live traffic, but decide nothing until an administrator accepts them."
    >
      <SignatureTabs current="submissions" />
      <Filters>
        <ChoiceFilter
          label="State"
          value={values.status}
          choices={Object.keys(COLOUR_OF)}
          set={(value) => set('status', value)}
        />
        <ChoiceFilter label="Type" value={values.type} choices={TYPES} set={(value) => set('type', value)} />
        <TextFilter label="Contains" value={values.q} set={(value) => set('q', value)} />
      </Filters>
      <LongTable
        label="Submissions"
        columns={COLUMNS}
        listKey={JSON.stringify(values)}
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/signatures/submissions/${id}`}
        empty={
          <Empty title="No matching submissions">
            <p>To propose the software of a fingerprint, open its page or use POST /v1/signatures/submit.</p>
          </Empty>
        }
      />
    </Page>
  )
}

export const COLOUR_OF: Readonly<Record<Submission['status'], string>> = {
  ...{ pending: 'warn', accepted: 'good', rejected: 'bad', duplicate: 'plain' },
}

const COLUMNS: readonly LongColumn<Submission>[] = [
  { title: 'Fingerprint', width: 'minmax(9rem, 3fr)', cell: ({ fingerprint }) => <code>{fingerprint}</code> },
  {
    title: 'Software',
    width: 'minmax(6rem, 2fr)',
    isExtra: true,
    cell: ({ agent_name }) => agent_name ?? 'not given',
  },
  {
    title: 'State',
    width: '7rem',
    cell: ({ status, trial }) => (
      <Badge of={COLOUR_OF[status]} text={trial?.is_counting ? 'on trial' : status} />
    ),
  },
  { title: 'Submitted by', width: '8rem', isExtra: true, cell: ({ submitted_by }) => submitted_by },
  { title: 'When', width: '9rem', isExtra: true, cell: ({ created_at }) => <Time at={created_at} /> },
]
