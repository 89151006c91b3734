import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import { listen } from '../../api/listen.ts'
import type { Event } from '../../api/operations.ts'
import { Download } from '../../parts/download.tsx'
import { Badge } from '../../parts/badge.tsx'
import { ChoiceFilter, Filters, TextFilter, TimeFilter, useFilters } from '../../parts/filters.tsx'
import { counted } from '../../parts/format.ts'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { PURPOSES } from '../live/names.ts'
import { subjectOf, TITLES } from './event-words.ts'

export function Events() {
  const { values, set } = useFilters(['types', 'category', 'purpose', 'agent', 'min_severity', 'since'])
  const query = queryOf(values)
  const [turn, setTurn] = useState(0)
  const fresh = useFresh(query, turn)
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
      about="New agents, new signatures and threats. Webhooks receive the same events."
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
      <Filters>
        <ChoiceFilter
          label="Type"
          value={values.types}
          choices={Object.keys(TITLES)}
          set={(value) => set('types', value)}
        />
        <ChoiceFilter
          label="Category"
          value={values.category}
          choices={CATEGORIES}
          set={(value) => set('category', value)}
        />
        <ChoiceFilter
          label="Purpose"
          value={values.purpose}
          choices={PURPOSES.map(({ purpose }) => purpose)}
          set={(value) => set('purpose', value)}
        />
        <ChoiceFilter
          label="Minimum severity"
          value={values.min_severity}
          choices={SEVERITIES}
          set={(value) => set('min_severity', value)}
        />
        <TextFilter label="Agent" value={values.agent} set={(value) => set('agent', value)} />
        <TimeFilter label="Since" value={values.since} set={(value) => set('since', value)} />
        {fresh > 0 && (
          <button type="button" class="main" onClick={() => setTurn(turn + 1)}>
            Show {counted(fresh, 'new event')}
          </button>
        )}
      </Filters>
      <p class="hidden" role="status">
        {fresh > 0 ? counted(fresh, 'new event') : ''}
      </p>
      <LongTable
        label="Events"
        columns={COLUMNS}
        listKey={JSON.stringify([query, turn])}
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

type Values = Readonly<Record<'types' | 'category' | 'purpose' | 'agent' | 'min_severity' | 'since', string>>

/** Converts the reader's local time to UTC for the API. */
function queryOf({ since, min_severity, ...rest }: Values) {
  const at = new Date(since)
  const severity = SEVERITIES.find((each) => each === min_severity)
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== '')),
    ...(severity !== undefined && { min_severity: severity }),
    ...(since !== '' && !Number.isNaN(at.getTime()) && { since: at.toISOString() }),
  }
}

/** Number of events since the list was loaded: the list does not move while it is read. */
function useFresh(query: ReturnType<typeof queryOf>, turn: number): number {
  const [count, setCount] = useState(0)
  const key = JSON.stringify([query, turn])
  const current = useRef(query)
  current.current = query
  // `key` stands for the query.
  useEffect(() => {
    setCount(0)
    const stop = new AbortController()
    const { since: _, ...heard } = current.current
    const event = (told: { event: string }) => {
      if (told.event in TITLES) setCount((before) => before + 1)
    }
    void listen('listEvents', heard, { event, state: () => undefined }, stop.signal)
    return () => stop.abort()
  }, [key])
  return count
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
const SEVERITIES = ['low', 'medium', 'high', 'critical'] as const
const EXPORTED_MAX = 200
