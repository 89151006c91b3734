import * as z from 'zod'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { ifVisible } from './app-access.ts'
import type { DeliveryRecord } from '../../store/events/delivery-log.ts'
import { storedObject } from '../../store/engine/stored.ts'
import type { WebhookRecord } from '../../store/events/webhooks.ts'
import { changed } from '../http/audit.ts'
import type { ApiContext } from './context.ts'
import { Refusal } from '../http/refusal.ts'
import { bodyOf } from '../jobs/signing.ts'
import { findReplayed, replay, sendTest, tryAgain } from '../events/webhooks/by-hand.ts'
import { actorOf, type Addressed } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'
import { event, type WebhookEventType } from './webhook-views.ts'

const attempt = z
  .strictObject({
    at: time,
    duration_ms: z.int().min(0),
    status: z.int().nullable().meta({ description: 'The status of the answer. `null`: no answer.' }),
    error: z.string().nullable().meta({ description: 'Why it failed. `null`: it succeeded.' }),
    response: z.string().meta({ description: 'The beginning of the answer, as plain text.' }),
  })
  .meta({ id: 'DeliveryAttempt' })
const status = z.enum(['pending', 'delivered', 'failed'])
const deliveryFields = {
  id: z.string().meta({ example: 'dlv_x7c1Jq0aT5b2Lw9k' }),
  webhook_id: z.string(),
  event_id: z.string().meta({ description: 'Sent as `webhook-id` with each attempt.' }),
  event_type: z.enum([...event.options, 'test']),
  event_at: time,
  status: status.meta({ description: '`failed`: no more attempts are made.' }),
  attempts: z.int().min(0).meta({ description: 'Attempts since it was last requested.' }),
  log: z.array(attempt).meta({ description: 'The latest attempts, oldest first.' }),
  created_at: time,
  next_attempt_at: time.nullable().meta({
    description: '`null`: it has ended, or it waits for an earlier delivery about the same subject.',
  }),
  finished_at: time.nullable(),
}
const delivery = z.strictObject(deliveryFields).meta({ id: 'Delivery' })
const deliveryWithBody = z
  .strictObject({
    ...deliveryFields,
    body: z
      .strictObject({ type: z.string(), timestamp: time, data: z.record(z.string(), z.unknown()) })
      .meta({ description: 'The body that is sent.' }),
  })
  .meta({ id: 'DeliveryWithBody' })

const id = z.strictObject({ id: z.string().max(100) })
const ofWebhook = {
  params: id,
  find: async ({ params, principal }: Addressed<{ id: string }>, { store }: ApiContext) =>
    ifVisible(await store.webhooks.byId(params.id), principal),
}
const byId = {
  params: id,
  find: async ({ params, principal }: Addressed<{ id: string }>, { store }: ApiContext) => {
    const found = await store.deliveryLog.byId(params.id)
    if (found === null || principal.apps === ALL_APPS) return found
    const webhook = await store.webhooks.byId(found.webhookId)
    return ifVisible(webhook, principal) === null ? null : found
  },
}

function moment(description: string) {
  return z.iso.datetime({ offset: true, error: 'must be a time (RFC 3339)' }).meta({ description })
}

const listDeliveries = listing({
  id: 'listDeliveries',
  path: '/webhooks/{id}/deliveries',
  tag: 'Webhooks',
  summary: 'List the deliveries of a webhook',
  description:
    'Newest first, with the outcome of each attempt. Deliveries that have ended are deleted after `webhooks.retention`.',
  scopes: ['admin'],
  reach: 'filtered',
  of: ofWebhook,
  name: 'deliveries',
  isPartFirst: true,
  filters: {
    status: status.optional().meta({ description: 'Only deliveries with this status.' }),
    since: moment('Only deliveries created from this time on.').optional(),
    until: moment('Only deliveries created before this time.').optional(),
  },
  part: (
    { status = null, since, until },
    part,
    { store },
    { owner: webhook }: { readonly owner: WebhookRecord },
  ) => {
    const [sinceMs, untilMs] = [since, until].map((text) => (text === undefined ? null : Date.parse(text)))
    const filter = { webhookId: webhook.id, status, sinceMs: sinceMs!, untilMs: untilMs! }
    return store.deliveryLog.list(filter, part)
  },
  items: { schema: delivery, show: (records) => records.map(shown) },
})

const getDelivery = operation({
  id: 'getDelivery',
  method: 'GET',
  path: '/deliveries/{id}',
  tag: 'Webhooks',
  summary: 'Get a delivery',
  description: 'Includes the body that is sent.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  answer: deliveryWithBody,
  run: async ({ subject }, { store }) => {
    const told = (await store.events.byId(subject.eventId, ALL_APPS)) ?? refuseGone()
    return {
      body: {
        ...shown(subject),
        body: storedObject(bodyOf(told)) as z.output<typeof deliveryWithBody>['body'],
      },
    }
  },
})

const retryDelivery = operation({
  id: 'retryDelivery',
  method: 'POST',
  path: '/deliveries/{id}/retry',
  tag: 'Webhooks',
  summary: 'Retry a delivery',
  description:
    'Sends it again at once, before all others, whether or not it succeeded, with the same `webhook-id` and body. A delivery in progress is unchanged.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  answer: delivery,
  problems: ['conflict'],
  run: async (call, management) => {
    const { subject } = call
    const { id, apps } = (await management.store.webhooks.byId(subject.webhookId)) ?? refuseGone()
    const change = { action: 'retryDelivery', subject: subject.id, apps, detail: { webhook: id } }
    await changed(management.store, actorOf(call), change, management.nowMs(), (queries) =>
      tryAgain(subject, management, queries),
    )
    management.deliveries.wake()
    return { body: shown((await management.store.deliveryLog.byId(subject.id)) ?? refuseGone()) }
  },
})

const testWebhook = operation({
  id: 'testWebhook',
  method: 'POST',
  path: '/webhooks/{id}/test',
  tag: 'Webhooks',
  summary: 'Send a test event to a webhook',
  description:
    'An event of the type `test`, sent to this webhook only, at once and before all others. `GET /deliveries/{id}` shows the outcome.',
  scopes: ['admin'],
  reach: 'filtered',
  ...ofWebhook,
  status: 201,
  answer: delivery,
  problems: ['conflict'],
  isIdempotent: true,
  run: async (call, management) => {
    const { id: subject, apps } = call.subject
    const change = { action: 'testWebhook', subject, apps, detail: {} }
    const made = await changed(management.store, actorOf(call), change, management.nowMs(), (queries) =>
      sendTest(subject, management, queries),
    )
    management.deliveries.wake()
    return { body: shown((await management.store.deliveryLog.byId(made)) ?? refuseGone()) }
  },
})

const replayWebhook = operation({
  id: 'replayWebhook',
  method: 'POST',
  path: '/webhooks/{id}/replay',
  tag: 'Webhooks',
  summary: 'Deliver past events again',
  description:
    'Delivers the stored events since a time, or in a period, that pass its filters and are not waiting already: at most 10,000, oldest first. The `webhook-id` is the same as before, so that the receiver can drop duplicates. If there are more, `next_since` says where to continue.',
  scopes: ['admin'],
  reach: 'filtered',
  ...ofWebhook,
  body: z
    .strictObject({
      since: moment('Only events from this time on.'),
      until: moment('Only events before this time. Default: no end.').optional(),
      types: z
        .array(event)
        .min(1, 'is empty')
        .max(event.options.length, 'names an event twice')
        .optional()
        .meta({
          description: 'Default: the events that the webhook subscribes to.',
        }),
    })
    .refine(({ since, until }) => until === undefined || Date.parse(since) < Date.parse(until), {
      path: ['until'],
      message: 'is not later than since',
    })
    .meta({ id: 'WebhookReplay' }),
  answer: z
    .strictObject({
      queued: z.int().min(0),
      next_since: time.nullable().meta({ description: '`null`: there are no more.' }),
    })
    .meta({ id: 'WebhookReplayed' }),
  problems: ['conflict'],
  isIdempotent: true,
  examples: { body: { since: '2026-11-21T09:30:00.000Z', types: ['threat_detected'] } },
  run: async (call, management) => {
    const { subject, body } = call
    const { since, until, types } = body
    const wanted = {
      types: (types ?? subject.events) as WebhookEventType[],
      sinceMs: Date.parse(since),
      untilMs: until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until),
    }
    const { events, nextSinceMs } = await findReplayed(subject, wanted, management)
    const queued = events.length
    const detail = { ...body, queued }
    const change = { action: 'replayWebhook', subject: subject.id, apps: subject.apps, detail }
    await changed(management.store, actorOf(call), change, management.nowMs(), (queries) =>
      replay(subject.id, events, management, queries),
    )
    management.deliveries.wake()
    return { body: { queued, next_since: timeOf(nextSinceMs) } }
  },
})

export const DELIVERY_OPERATIONS: readonly ApiOffered[] = [
  testWebhook,
  replayWebhook,
  listDeliveries,
  getDelivery,
  retryDelivery,
]

function shown(record: DeliveryRecord): z.output<typeof delivery> {
  const { id, webhookId, eventId, type, status, attempts, log, createdAtMs, nextAtMs, finishedAtMs } = record
  return {
    id,
    webhook_id: webhookId,
    event_id: eventId,
    event_type: type,
    event_at: timeOf(record.eventAtMs),
    status,
    attempts,
    log: log.map(({ atMs, durationMs, status, error, response }) => {
      return { at: timeOf(atMs), duration_ms: durationMs, status, error, response }
    }),
    created_at: timeOf(createdAtMs),
    // A delivery that goes before all others has a time long past.
    next_attempt_at: nextAtMs === null ? null : timeOf(Math.max(nextAtMs, createdAtMs)),
    finished_at: timeOf(finishedAtMs),
  }
}

function refuseGone(): never {
  throw new Refusal('not_found', 'delivery or webhook not found: it was deleted')
}
