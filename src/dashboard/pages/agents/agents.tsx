import { useLocation } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { Agent, AgentCategory } from '../../api/operations.ts'
import { Download } from '../../parts/download.tsx'
import { ChoiceFilter, Filters, TextFilter, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { categoryOf, CATEGORIES, PURPOSES, purposesText } from '../live/names.ts'

/** The directory of known agents. */
export function Agents() {
  const { values, set } = useFilters(['q', 'category', 'purpose', 'seen'])
  const { route } = useLocation()
  const query = queryOf(values)
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
      about="Known agents, with their category, their published purpose and when each was last seen here."
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
      <Filters>
        <TextFilter label="Name or description" value={values.q} set={(value) => set('q', value)} />
        <ChoiceFilter
          label="Category"
          value={values.category}
          choices={CATEGORIES.map(({ category }) => category).filter((category) => category !== 'unnamed')}
          set={(value) => set('category', value)}
        />
        <ChoiceFilter
          label="Purpose"
          value={values.purpose}
          choices={PURPOSES.map(({ purpose }) => purpose)}
          set={(value) => set('purpose', value)}
        />
        <ChoiceFilter
          label="Last seen"
          value={values.seen}
          all="any time"
          choices={Object.keys(SINCE_MS)}
          set={(value) => set('seen', value)}
        />
      </Filters>
      <LongTable
        label="Agents"
        columns={COLUMNS}
        listKey={JSON.stringify(values)}
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/agents/${encodeURIComponent(id)}`}
        empty={
          <Empty title="No matching agents">
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

type Values = Readonly<Record<'q' | 'category' | 'purpose' | 'seen', string>>

function queryOf({ q, category, purpose, seen }: Values) {
  const sinceMs = SINCE_MS[seen]
  return {
    ...(q !== '' && { q }),
    ...(category !== '' && { category: category as AgentCategory }),
    ...(purpose !== '' && { purpose: purpose as Agent['purpose'][number] }),
    // Rounded to the minute, so that the query stays the same a moment later.
    ...(sinceMs !== undefined && {
      seen_since: new Date(Math.floor((Date.now() - sinceMs) / 60_000) * 60_000).toISOString(),
    }),
  }
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
const DAY_MS = 86_400_000
const SINCE_MS: Readonly<Record<string, number>> = {
  'within an hour': 3_600_000,
  'within a day': DAY_MS,
  'within a week': 7 * DAY_MS,
  'within a month': 30 * DAY_MS,
}
/** The API's maximum page size. */
const EXPORTED_MAX = 200
