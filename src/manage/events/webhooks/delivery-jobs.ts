import type { EventsContext } from '../context.ts'
import { forgetting, type PeriodicJob } from '../../jobs/periodic.ts'
import type { DeliveryMetrics } from './delivery-metrics.ts'

/** The periodic jobs for webhook deliveries. */
export function deliveryJobs(
  { store, deliveries }: Pick<EventsContext, 'store' | 'deliveries'>,
  retentionMs: number,
  { counted }: DeliveryMetrics,
): readonly PeriodicJob[] {
  return [
    forgetting('old deliveries to webhooks', TEN_MINUTES_MS, (nowMs, rows) =>
      store.deliveryLog.forget(nowMs - retentionMs, rows),
    ),
    {
      name: 'call what waits behind a delivery that is gone',
      everyMs: TEN_MINUTES_MS,
      isOnce: true,
      run: async (nowMs) => {
        const left = await store.deliveries.leftLines(SLICE_LINES)
        if (left.length === 0) return 'done'
        const webhooks = [...new Set(left.map(({ webhookId }) => webhookId))]
        await store.transaction(async (queries) => {
          await store.webhookHealth.lock(webhooks, queries)
          await store.deliveries.callNext(left, nowMs, queries)
        })
        deliveries.wake()
        return left.length < SLICE_LINES ? 'done' : 'more'
      },
    },
    {
      name: 'count deliveries to webhooks',
      everyMs: COUNT_MS,
      run: async () => {
        const { count, oldestMs } = await store.deliveries.countPending()
        counted.pending = count
        counted.oldestMs = oldestMs
        counted.disabled = await store.webhookHealth.countDisabled()
        return 'done'
      },
    },
  ]
}

const TEN_MINUTES_MS = 600_000
const COUNT_MS = 10_000
const SLICE_LINES = 100
