import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { Delivery } from '../../api/operations.ts'
import { Badge } from '../../parts/badge.tsx'
import { ChoiceFilter, Filters, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'

/** Deliveries of a webhook; a new `turn` reloads them. */
export function Deliveries({ webhookId, turn }: { readonly webhookId: string; readonly turn: number }) {
  const { values, set } = useFilters(['status'])
  const [own, setOwn] = useState(0)
  const status = STATES.find((each) => each === values.status)
  const load = async (page: number, signal: AbortSignal) => {
    const query = { ...(status !== undefined && { status }), page, limit: PART_LENGTH }
    const { deliveries, total } = await ask('listDeliveries', { path: { id: webhookId }, query }, { signal })
    return { rows: deliveries, total }
  }
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <Filters>
        <ChoiceFilter
          label="State"
          value={values.status}
          choices={STATES}
          set={(value) => set('status', value)}
        />
        <button type="button" onClick={() => setOwn(own + 1)}>
          Refresh
        </button>
      </Filters>
      <LongTable
        label="Deliveries"
        columns={COLUMNS}
        listKey={`${values.status} ${turn} ${own}`}
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/webhooks/deliveries/${id}`}
        empty={
          <Empty title="No matching deliveries">
            <p>Use “Send test” to check the receiver.</p>
          </Empty>
        }
      />
    </section>
  )
}

export const COLOUR_OF = { delivered: 'good', pending: 'warn', failed: 'bad' } as const

const COLUMNS: readonly LongColumn<Delivery>[] = [
  { title: 'Event', width: 'minmax(8rem, 2fr)', cell: ({ event_type }) => event_type },
  { title: 'State', width: '7rem', cell: ({ status }) => <Badge of={COLOUR_OF[status]} text={status} /> },
  { title: 'Attempts', width: '6rem', isExtra: true, isNumber: true, cell: ({ attempts }) => attempts },
  {
    title: 'Last response',
    width: 'minmax(6rem, 2fr)',
    isExtra: true,
    cell: ({ log }) => log.at(-1)?.error ?? log.at(-1)?.status ?? 'none yet',
  },
  { title: 'Event time', width: '9rem', isExtra: true, cell: ({ event_at }) => <Time at={event_at} /> },
]
const STATES = ['pending', 'delivered', 'failed'] as const
