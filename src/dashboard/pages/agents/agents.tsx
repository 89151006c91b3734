import { useLocation } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { Agent, Operations } from '../../api/operations.ts'
import { Download } from '../../parts/download.tsx'
import { useChosen } from '../../parts/chosen/app.ts'
import { useSince } from '../../parts/chosen/window.ts'
import { FilterFields, filterQuery, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { SeenAgents } from './seen-agents.tsx'
import { categoryOf, CATEGORIES, PURPOSES, purposesText } from '../live/names.ts'

/** The agents that were here, and the directory of all known agents. */
export function Agents() {
  const { values, set } = useFilters(FIELDS.map(({ name }) => name))
  const { route } = useLocation()
  const { since } = useSince()
  const filters = filterQuery<AgentQuery>(FIELDS, values)
  const chosen = useChosen()
  const query = { ...filters, ...(since !== undefined && { seen_since: since }), ...chosen }
  const load = async (page: number, signal: AbortSignal) => {
    const { agents, total } = await ask(
      'listAgents',
      { query: { ...query, page, limit: PART_LENGTH } },
      { signal },
    )
    return { rows: agents, total }
  }
  const exported = async () => (await ask('listAgents', { query: { ...query, limit: EXPORTED_MAX } })).agents
  return (
    <Page
      title="Agents"
      help="verified-agents"
      about="The agents that were here, with their requests in the time range, and all known agents below."
      actions={
        <Download
          name="agents"
          columns={['id', 'name', 'category', 'purpose', 'first_seen', 'last_seen', 'description']}
          rows={async () =>
            (await exported()).map(({ id, name, category, purpose, first_seen, last_seen, description }) => [
              ...[id, name, category, purpose.join(' '), first_seen, last_seen, description],
            ])
          }
          json={exported}
        />
      }
    >
      <FilterFields fields={FIELDS} values={values} set={set} />
      <SeenAgents key={JSON.stringify(filters)} filters={filters} chosen={chosen} />
      <h2>{since === undefined ? 'All known agents' : 'All of them, by id'}</h2>
      <LongTable
        label="Agents"
        columns={COLUMNS}
        listKey={JSON.stringify(query)}
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/agents/${encodeURIComponent(id)}`}
        empty={
          <Empty title="No matching agents">
            {since !== undefined && (
              <p>These are agents that were seen in the time range. Choose “all” for the whole directory.</p>
            )}
            <p>
              <button type="button" onClick={() => route('/dashboard/agents')}>
                Clear filters
              </button>
            </p>
          </Empty>
        }
      />
    </Page>
  )
}

const COLUMNS: readonly LongColumn<Agent>[] = [
  { title: 'Name', width: 'minmax(8rem, 2fr)', cell: ({ name }) => name },
  { title: 'Category', width: '8rem', isExtra: true, cell: ({ category }) => categoryOf(category) },
  { title: 'Purpose', width: '8rem', isExtra: true, cell: ({ purpose }) => purposesText(purpose) },
  { title: 'Last seen', width: '9rem', cell: ({ last_seen }) => <Time at={last_seen} /> },
  {
    title: 'Description',
    width: 'minmax(8rem, 4fr)',
    isExtra: true,
    cell: ({ description }) => description,
  },
]
const FIELDS = [
  { name: 'q', label: 'Name or description' },
  {
    name: 'category',
    label: 'Category',
    choices: CATEGORIES.map(({ category }) => category).filter((category) => category !== 'unnamed'),
  },
  { name: 'purpose', label: 'Purpose', choices: PURPOSES.map(({ purpose }) => purpose) },
] as const
type AgentQuery = Operations['listAgents']['query']
/** The API's maximum page size. */
const EXPORTED_MAX = 200
