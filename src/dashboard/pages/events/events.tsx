import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { Event, Operations } from '../../api/operations.ts'
import { Download } from '../../parts/download.tsx'
import { Badge } from '../../parts/badge.tsx'
import { useChosen } from '../../parts/chosen/app.ts'
import { useSince } from '../../parts/chosen/window.ts'
import { FilterFields, filterQuery, Fresh, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { useFresh } from '../../parts/use-fresh.ts'
import { PURPOSES } from '../live/names.ts'
import { subjectOf, TITLES } from './event-words.ts'

export function Events() {
  const { values, set } = useFilters(FIELDS.map(({ name }) => name))
  // A time of the filters wins over the time range.
  const query = { ...useSince(), ...filterQuery<EventQuery>(FIELDS, values), ...useChosen() }
  const [turn, setTurn] = useState(0)
  const listKey = JSON.stringify([query, turn])
  const { since: _, ...heard } = query
  const fresh = useFresh('listEvents', heard, listKey, ({ event }) => Number(event in TITLES))
  const load = async (page: number, signal: AbortSignal) => {
    const { events, total } = await ask(
      'listEvents',
      { query: { ...query, page, limit: PART_LENGTH } },
      { signal },
    )
    return { rows: events, total }
  }
  const exported = async () => (await ask('listEvents', { query: { ...query, limit: EXPORTED_MAX } })).events
  return (
    <Page
      title="Events"
      help="events"
      about="New agents, new signatures, threats and payments. Webhooks receive the same events."
      actions={
        <Download
          name="events"
          columns={['id', 'type', 'timestamp', 'data']}
          rows={async () =>
            (await exported()).map(({ id, type, timestamp, data }) => [
              id,
              type,
              timestamp,
              JSON.stringify(data),
            ])
          }
          json={exported}
        />
      }
    >
      <FilterFields fields={FIELDS} values={values} set={set}>
        <Fresh count={fresh} of="event" show={() => setTurn(turn + 1)} />
      </FilterFields>
      <LongTable
        label="Events"
        columns={COLUMNS}
        listKey={listKey}
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/events/${id}`}
        empty={
          <Empty title="No matching events">
            <p>Events are recorded and shown here as they happen.</p>
          </Empty>
        }
      />
    </Page>
  )
}

const COLUMNS: readonly LongColumn<Event>[] = [
  {
    title: 'Event',
    width: 'minmax(8rem, 3fr)',
    cell: (event) => `${TITLES[event.type]}: ${subjectOf(event)}`,
  },
  {
    title: 'Severity',
    width: '6rem',
    isExtra: true,
    cell: ({ data }) => (typeof data['severity'] === 'string' ? <Badge of={data['severity']} /> : ''),
  },
  { title: 'When', width: '9rem', cell: ({ timestamp }) => <Time at={timestamp} /> },
]
const CATEGORIES = ['llm-sdk', 'browser-agent', 'orchestrator', 'crawler', 'mcp-client', 'custom']
const FIELDS = [
  { name: 'types', label: 'Type', choices: Object.keys(TITLES) },
  { name: 'category', label: 'Category', choices: CATEGORIES },
  { name: 'purpose', label: 'Purpose', choices: PURPOSES.map(({ purpose }) => purpose) },
  { name: 'min_severity', label: 'Minimum severity', choices: ['low', 'medium', 'high', 'critical'] },
  { name: 'agent', label: 'Agent' },
  { name: 'since', label: 'Since', isTime: true },
] as const
type EventQuery = Operations['listEvents']['query']
const EXPORTED_MAX = 200
