import type { SoftwareNames } from '../../../classify/known/software-names.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import type { Store } from '../../../store/store.ts'
import { newId } from '../../http/ids.ts'
import { wants } from './event-filter.ts'

/** Adds the webhook deliveries of these events, in the transaction that adds the events. */
export async function fanOut(
  store: Store,
  events: readonly EventRecord[],
  nowMs: number,
  names: SoftwareNames | null,
  queries: Queries,
): Promise<void> {
  const enabled = await store.webhookHealth.enabled(queries)
  const told = enabled.filter((webhook) => events.some((event) => wants(webhook, event, names)))
  if (told.length === 0) return
  // A webhook that is changed at the same time is changed before this lock or after this transaction.
  const locked = await store.webhookHealth.lock(
    told.map(({ id }) => id),
    queries,
  )
  const deliveries = locked.flatMap((webhook) =>
    (webhook.isEnabled ? events.filter((event) => wants(webhook, event, names)) : []).map(
      ({ number, subject }) => ({
        ...{ id: newId('dlv'), webhookId: webhook.id, eventNumber: number, lane: subject, nextAtMs: nowMs },
      }),
    ),
  )
  await store.deliveries.add(deliveries, nowMs, queries)
}
