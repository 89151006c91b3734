import type { SoftwareNames } from '../../../classify/known/software-names.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import type { Store } from '../../../store/store.ts'
import { newId } from '../../http/ids.ts'
import { wants } from './event-filter.ts'

/** Writes down, beside the events and in the same transaction, which webhooks are to be told of them. */
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
  // Who was disabled, or changed what it wants, meanwhile has done it before this, or does it after this.
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
