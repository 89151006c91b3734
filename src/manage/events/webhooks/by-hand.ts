import type { Queries } from '../../../store/engine/database.ts'
import { type DeliveryRecord, FIRST_OF_ALL } from '../../../store/events/delivery-log.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import type { Store } from '../../../store/store.ts'
import type { EventType } from '../../../store/engine/tables/events.ts'
import type { WebhookRecord } from '../../../store/events/webhooks.ts'
import { newId } from '../../http/ids.ts'
import type { EventsContext } from '../context.ts'
import { Refusal } from '../../http/refusal.ts'
import { wants } from './event-filter.ts'

// Deliveries that an administrator triggers.

/** Sends a test event to this webhook only. Resolves to the id of the delivery. */
export async function sendTest(
  webhookId: string,
  { store, nowMs }: Pick<EventsContext, 'store' | 'nowMs'>,
  queries: Queries,
): Promise<string> {
  const [atMs, id] = [nowMs(), newId('dlv')]
  const about = { agent: null, category: null, severity: null, confidence: null, app: null }
  const data = JSON.stringify({ webhook_id: webhookId, message: 'This is a test. Nothing has happened.' })
  const event = { id: newId('evt'), type: 'test' as const, atMs, subject: webhookId, ...about, data }
  const [{ number }] = (await store.events.add([event], queries)) as [EventRecord]
  await unpaused(webhookId, store, queries)
  const delivery = { id, webhookId, eventNumber: number, lane: null, nextAtMs: FIRST_OF_ALL }
  await store.deliveries.add([delivery], atMs, queries)
  return id
}

/** Sends the same delivery again, whatever its outcome was. */
export async function tryAgain(
  { id, webhookId }: DeliveryRecord,
  { store }: Pick<EventsContext, 'store'>,
  queries: Queries,
): Promise<void> {
  await unpaused(webhookId, store, queries)
  await store.deliveryLog.again(id, queries)
}

interface WantedEvents {
  readonly types: readonly EventType[]
  readonly sinceMs: number
  readonly untilMs: number
}

interface FoundEvents {
  readonly events: readonly Pick<EventRecord, 'number' | 'subject'>[]
  /** The time from which more events remain; `null`: none remain. */
  readonly nextSinceMs: number | null
}

/** The events to replay, oldest first. */
export async function findReplayed(
  { id: webhookId, filters, apps }: WebhookRecord,
  wanted: WantedEvents,
  { store, snapshot }: Pick<EventsContext, 'store' | 'snapshot'>,
): Promise<FoundEvents> {
  const names = snapshot()?.knowledge?.names ?? null
  const found: FoundEvents['events'][number][] = []
  for (let after: EventRecord | null = null; ; ) {
    const asked = { webhookId, ...wanted, after }
    const events: readonly EventRecord[] = await store.deliveryLog.replayed(asked, SLICE_EVENTS)
    for (const event of events) {
      if (!wants({ events: wanted.types, filters, apps }, event, names)) continue
      if (found.length === REPLAYED_MAX) return { events: found, nextSinceMs: event.atMs }
      found.push({ number: event.number, subject: event.subject })
    }
    if (events.length < SLICE_EVENTS) return { events: found, nextSinceMs: null }
    after = events.at(-1)!
  }
}

/** Queues past events again. */
export async function replay(
  webhookId: string,
  events: FoundEvents['events'],
  { store, nowMs }: Pick<EventsContext, 'store' | 'nowMs'>,
  queries: Queries,
): Promise<void> {
  await locked(webhookId, store, queries)
  const atMs = nowMs()
  const deliveries = events.map(({ number, subject }) => {
    return { id: newId('dlv'), webhookId, eventNumber: number, lane: subject, nextAtMs: atMs }
  })
  await store.deliveries.add(deliveries, atMs, queries)
}

/** Also ends a pause, because the administrator wants to see whether the endpoint works again. */
async function unpaused(webhookId: string, store: Store, queries: Queries): Promise<void> {
  const { health } = await locked(webhookId, store, queries)
  await store.webhookHealth.put(webhookId, { ...health, pausedUntilMs: null }, queries)
}

async function locked(webhookId: string, { webhookHealth }: Store, queries: Queries): Promise<WebhookRecord> {
  const [webhook] = await webhookHealth.lock([webhookId], queries)
  if (webhook === undefined) throw new Refusal('not_found', 'there is nothing of this name')
  if (webhook.isEnabled) return webhook
  throw new Refusal('conflict', 'the webhook is disabled: enable it first')
}

const SLICE_EVENTS = 512
const REPLAYED_MAX = 10_000
