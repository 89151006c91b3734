import * as z from 'zod'
import { appsOf, shownApps } from './app-access.ts'
import { SLUG, SLUG_EXPECTED } from '../../apps/app.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import { EVENT_TYPES, SEVERITIES } from '../../store/engine/tables/events.ts'
import { UNTRIED, type WebhookRecord, type WebhookSecret } from '../../store/events/webhooks.ts'
import type { ApiContext } from './context.ts'
import { etagOf, halvedTag } from '../http/precondition.ts'
import { time, timeOf } from '../http/schemas.ts'

export type WebhookEventType = (typeof EVENT_TYPES)[number]

export const event = z.enum(EVENT_TYPES).meta({ id: 'EventType' })

export const webhookFilters = z
  .strictObject({
    categories: z
      .array(z.enum(CATEGORIES))
      .min(1, 'is empty')
      .max(CATEGORIES.length, 'names a category twice')
      .optional()
      .meta({ description: 'Only events about agents of these categories.' }),
    purposes: z
      .array(z.enum(PURPOSES))
      .min(1, 'is empty')
      .max(PURPOSES.length, 'names a purpose twice')
      .optional()
      .meta({ description: 'Only events about agents with one of these published purposes.' }),
    agents: z
      .array(z.string().min(1, 'is empty').max(200, 'is longer than 200 characters'))
      .min(1, 'is empty')
      .max(200, 'must have at most 200 agents')
      .optional()
      .meta({ description: 'Only events about these agents, by id, name or alias.' }),
    apps: z
      .array(z.string().regex(SLUG, `must be ${SLUG_EXPECTED}`))
      .min(1, 'is empty')
      .max(200, 'must have at most 200 apps')
      .optional()
      .meta({
        description:
          'Only events about these apps, by id. `default`: events about requests that matched no app. Events that are not about one app do not pass.',
      }),
    min_severity: z.enum(SEVERITIES).optional().meta({
      description: 'Only threats of at least this severity. Events without a severity pass.',
    }),
    min_confidence: z
      .number()
      .min(0, 'must be a number from 0 to 1')
      .max(1, 'must be a number from 0 to 1')
      .optional()
      .meta({ description: 'Minimum confidence. Events without a confidence pass.' }),
  })
  .meta({ id: 'WebhookFilters' })

const configuredFields = {
  id: z.string().meta({ example: 'whk_x7c1Jq0aT5b2' }),
  url: z.string().meta({ format: 'uri' }),
  events: z.array(event),
  filters: webhookFilters.nullable(),
  apps: shownApps.meta({ description: 'Only events about these apps are sent. `*`: all events.' }),
  description: z.string().nullable(),
  enabled: z.boolean(),
  created_at: time,
  updated_at: time,
  old_secret_expires_at: time.nullable().meta({
    description: 'Until then, deliveries are also signed with the previous secret.',
  }),
  disabled_at: time.nullable(),
  disabled_reason: z.string().nullable().meta({
    description: 'Why Gatehouse disabled it. `enabled: true` clears it. `null`: not disabled by Gatehouse.',
  }),
}
const webhookFields = {
  ...configuredFields,
  pending: z.int().min(0).meta({ description: 'The number of deliveries that have not ended.' }),
  last_delivery_at: time.nullable().meta({ description: 'When a delivery last succeeded.' }),
  failing_since: time.nullable().meta({ description: 'The time since which every attempt has failed.' }),
  paused_until: time.nullable().meta({
    description:
      'Nothing is sent before then, because too many attempts failed or the receiver requested a pause.',
  }),
}
export const webhook = z.strictObject(webhookFields).meta({ id: 'Webhook' })
export const webhookWithSecret = z
  .strictObject({
    ...webhookFields,
    secret: z.string().meta({
      description: 'The secret that signs deliveries (Standard Webhooks). Shown only in this answer.',
    }),
  })
  .meta({ id: 'WebhookWithSecret' })

type WebhookView = z.output<typeof webhook>

export async function shownWebhooks(
  records: readonly WebhookRecord[],
  { store, nowMs }: Pick<ApiContext, 'store' | 'nowMs'>,
): Promise<WebhookView[]> {
  const ids = records.map(({ id }) => id)
  const secrets = await store.webhooks.secrets(ids, nowMs())
  const pending = await store.deliveries.pending(ids)
  return records.map((each) => shown(each, secrets, pending.get(each.id) ?? 0))
}

export async function shownWebhook(
  record: WebhookRecord,
  management: Pick<ApiContext, 'store' | 'nowMs'>,
): Promise<WebhookView> {
  return (await shownWebhooks([record], management))[0]!
}

/** Its second half has the state of deliveries. */
export function webhookTag(view: WebhookView): string {
  return halvedTag(configuredTag(view), view)
}

export function configuredTag(view: WebhookView): string {
  return etagOf(Object.keys(configuredFields).map((name) => view[name as keyof typeof configuredFields]))
}

/** The health of a webhook that is enabled again or has a new URL: it starts over. */
export function anew({ health }: WebhookRecord): WebhookRecord['health'] {
  return { ...UNTRIED, lastDeliveryAtMs: health.lastDeliveryAtMs }
}

function shown(record: WebhookRecord, secrets: readonly WebhookSecret[], pending: number): WebhookView {
  const { id, url, description, events, filters, createdAtMs, updatedAtMs, health } = record
  const expiring = secrets.flatMap(({ webhookId, expiresAtMs }) =>
    webhookId === id ? (expiresAtMs ?? []) : [],
  )
  return {
    id,
    url,
    events: events as WebhookEventType[],
    filters: filters as WebhookView['filters'],
    apps: appsOf(record),
    description,
    enabled: record.isEnabled,
    created_at: timeOf(createdAtMs),
    updated_at: timeOf(updatedAtMs),
    old_secret_expires_at: expiring.length === 0 ? null : timeOf(Math.max(...expiring)),
    disabled_at: timeOf(health.disabledAtMs),
    disabled_reason: health.disabledReason,
    pending,
    last_delivery_at: timeOf(health.lastDeliveryAtMs),
    failing_since: timeOf(health.failingSinceMs),
    paused_until: timeOf(health.pausedUntilMs),
  }
}
