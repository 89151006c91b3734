import * as z from 'zod'
import { appsToGive, ifVisible, wantedApps } from './app-access.ts'
import { EVENT_TYPES } from '../../store/engine/tables/events.ts'
import { UNTRIED, type WebhookRecord } from '../../store/events/webhooks.ts'
import { changed } from '../http/audit.ts'
import { newId } from '../http/ids.ts'
import type { ApiContext } from './context.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { readWebhookUrl } from '../events/webhooks/webhook-url.ts'
import { newSigningSecret, secretOf } from '../jobs/signing.ts'
import { actorOf, type Addressed } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { checkMatch, firstHalf } from '../http/precondition.ts'
import {
  anew,
  configuredTag,
  type WebhookEventType,
  event,
  shownWebhook,
  shownWebhooks,
  webhook,
  webhookFilters,
  webhookTag,
  webhookWithSecret,
} from './webhook-views.ts'

const requestFields = {
  url: z
    .string()
    .max(2048, 'is longer than 2048 characters')
    .meta({ format: 'uri', example: 'https://hooks.example.com/gatehouse' }),
  events: z.array(event).min(1, 'is empty').max(EVENT_TYPES.length, 'names an event twice'),
  filters: webhookFilters.nullable().optional(),
  description: z.string().max(500, 'is longer than 500 characters').nullable().optional(),
  enabled: z.boolean().optional(),
}
const webhookRequest = z
  .strictObject({
    ...requestFields,
    apps: wantedApps.meta({
      description:
        'Only events about these apps are sent, whatever its filters. `*`: all events. It never changes, and principals that are limited to other apps do not see the webhook. Default: the apps of the caller.',
    }),
  })
  .meta({ id: 'WebhookRequest' })
const webhookChanges = z
  .strictObject({
    ...requestFields,
    url: requestFields.url.optional(),
    events: requestFields.events.optional(),
  })
  .meta({ id: 'WebhookChanges' })

const createWebhook = operation({
  id: 'createWebhook',
  method: 'POST',
  path: '/webhooks',
  tag: 'Webhooks',
  summary: 'Register a webhook',
  description:
    'The secret is shown only in this answer. The URL must use https:// and a public address, unless `webhooks.allow_private_addresses` is set.',
  scopes: ['admin'],
  reach: 'filtered',
  body: webhookRequest,
  status: 201,
  answer: webhookWithSecret,
  problems: ['conflict'],
  isIdempotent: true,
  run: async (call, management) => {
    const { store, nowMs } = management
    const { body } = call
    const atMs = nowMs()
    const record: WebhookRecord = {
      id: newId('whk'),
      url: await usualUrl(body.url, management),
      events: inOrder(body.events),
      filters: body.filters ?? null,
      apps: await appsToGive(body.apps, call.principal, management),
      description: body.description ?? null,
      isEnabled: body.enabled ?? true,
      createdAtMs: atMs,
      updatedAtMs: atMs,
      health: UNTRIED,
    }
    const { secret, sealed } = await newSecret(record.id, management)
    await changed(
      store,
      actorOf(call),
      { action: 'createWebhook', subject: record.id, apps: record.apps, detail: told(record) },
      atMs,
      async (queries) => {
        if ((await store.webhooks.count(queries)) >= WEBHOOKS_MAX)
          throw new Refusal('conflict', `too many webhooks (at most ${WEBHOOKS_MAX}): remove one first`)
        await store.webhooks.add(record, { ...sealed, createdAtMs: atMs }, queries)
      },
    )
    return { body: { ...(await shownWebhook(record, management)), secret } }
  },
})

const listWebhooks = listing({
  id: 'listWebhooks',
  path: '/webhooks',
  tag: 'Webhooks',
  summary: 'List webhooks',
  description: 'Newest first.',
  scopes: ['admin'],
  reach: 'filtered',
  name: 'webhooks',
  filters: {},
  part: (_, part, { store }, { principal }) => store.webhooks.list(part, principal.apps),
  items: {
    schema: webhook,
    show: shownWebhooks,
  },
})

const byId = {
  params: z.strictObject({ id: z.string() }),
  find: async ({ params, principal }: Addressed<{ id: string }>, { store }: ApiContext) =>
    ifVisible(await store.webhooks.byId(params.id), principal),
}

const getWebhook = operation({
  id: 'getWebhook',
  method: 'GET',
  path: '/webhooks/{id}',
  tag: 'Webhooks',
  summary: 'Get a webhook',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  answer: webhook,
  run: async ({ subject }, management) => {
    const body = await shownWebhook(subject, management)
    return { body, headers: { ETag: webhookTag(body) } }
  },
})

const updateWebhook = operation({
  id: 'updateWebhook',
  method: 'PATCH',
  path: '/webhooks/{id}',
  tag: 'Webhooks',
  summary: 'Change a webhook',
  description:
    'Omitted fields are unchanged. `enabled: false` pauses it, and waiting deliveries continue once it is enabled again. `If-Match` is supported, and deliveries in the meantime do not count as a change.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  body: webhookChanges,
  answer: webhook,
  problems: ['precondition_failed'],
  run: async (call, management) => {
    const { store, nowMs } = management
    checkMatch(firstHalf(call.ifMatch), configuredTag(await shownWebhook(call.subject, management)))
    const { enabled, url, events, filters, description } = call.body
    const { id, apps } = call.subject
    const changes = {
      ...(url !== undefined && { url: await usualUrl(url, management) }),
      ...(events !== undefined && { events: inOrder(events) }),
      ...(filters !== undefined && { filters }),
      ...(description !== undefined && { description }),
      ...(enabled !== undefined && { isEnabled: enabled }),
    }
    const detail = { before: told(call.subject), after: told({ ...call.subject, ...changes }) }
    await changed(
      store,
      actorOf(call),
      { action: 'updateWebhook', subject: id, apps, detail },
      nowMs(),
      async (queries) => {
        const [before] = await store.webhookHealth.lock([id], queries)
        if (before === undefined) throw gone()
        await store.webhooks.update(id, changes, nowMs(), queries)
        const isAnew =
          (enabled === true && !before.isEnabled) || (url !== undefined && changes.url !== before.url)
        if (!isAnew) return
        await store.webhookHealth.put(id, anew(before), queries)
        await store.deliveries.hurry(id, nowMs(), queries)
      },
    )
    management.deliveries.wake()
    return { body: await shownWebhook((await store.webhooks.byId(id)) ?? refuseGone(), management) }
  },
})

const deleteWebhook = operation({
  id: 'deleteWebhook',
  method: 'DELETE',
  path: '/webhooks/{id}',
  tag: 'Webhooks',
  summary: 'Remove a webhook',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  status: 204,
  run: async (call, { store, nowMs }) => {
    const { id, apps } = call.subject
    await changed(
      store,
      actorOf(call),
      { action: 'deleteWebhook', subject: id, apps, detail: told(call.subject) },
      nowMs(),
      async (queries) => {
        if (!(await store.webhooks.remove(id, queries))) throw gone()
      },
    )
    return { body: null }
  },
})

const rotateWebhookSecret = operation({
  id: 'rotateWebhookSecret',
  method: 'POST',
  path: '/webhooks/{id}/rotate',
  tag: 'Webhooks',
  summary: 'Rotate the secret of a webhook',
  description:
    'Deliveries are signed with both secrets for 24 hours. The new one is shown only in this answer.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  answer: webhookWithSecret,
  problems: ['conflict'],
  run: async (call, management) => {
    const { store, nowMs } = management
    const { id, apps } = call.subject
    const { secret, sealed } = await newSecret(id, management)
    const atMs = nowMs()
    await changed(
      store,
      actorOf(call),
      { action: 'rotateWebhookSecret', subject: id, apps, detail: {} },
      atMs,
      async (queries) => {
        const made = { ...sealed, createdAtMs: atMs }
        const signing = await store.webhooks.rotate(id, made, atMs + OLD_SECRET_MS, queries)
        if (signing === 0) throw gone()
        if (signing > SECRETS_MAX)
          throw new Refusal(
            'conflict',
            `the webhook already has ${SECRETS_MAX} active secrets: wait until one has expired`,
          )
      },
    )
    const after = await shownWebhook((await store.webhooks.byId(id)) ?? refuseGone(), management)
    return { body: { ...after, secret } }
  },
})

export const WEBHOOK_OPERATIONS: readonly ApiOffered[] = [
  ...[createWebhook, listWebhooks, getWebhook, updateWebhook, deleteWebhook, rotateWebhookSecret],
]

async function usualUrl(text: string, { allowPrivateWebhooks }: ApiContext): Promise<string> {
  const read = await readWebhookUrl(text, allowPrivateWebhooks)
  if ('refused' in read) throw invalid([{ pointer: '/url', detail: read.refused }])
  return read.url
}

async function newSecret(webhookId: string, { sealer }: ApiContext) {
  const id = newId('whs')
  const secret = newSigningSecret()
  return { secret, sealed: { id, sealed: await sealer.seal(secret, secretOf(webhookId, id)) } }
}

/** For the audit log. Only the host of the URL: the rest is often as good as a password. */
function told({ url, events, filters, apps, description, isEnabled }: WebhookRecord) {
  return { host: new URL(url).host, events, filters, apps, description, enabled: isEnabled }
}

function inOrder(events: readonly WebhookEventType[]): WebhookEventType[] {
  return EVENT_TYPES.filter((each) => events.includes(each))
}

function gone(): Refusal {
  return new Refusal('not_found', 'webhook not found: it was deleted')
}

function refuseGone(): never {
  throw gone()
}

/** Each event is stored once for each webhook. */
const WEBHOOKS_MAX = 100
const OLD_SECRET_MS = 86_400_000
/** Each secret signs every delivery, in one header. */
const SECRETS_MAX = 5
