import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { Severity } from '../engine/tables/events.ts'
import { storedObject, storedTexts } from '../engine/stored.ts'
import type { WebhookSecretTable, WebhookTable } from '../engine/tables/webhooks.ts'
import type { Tables } from '../engine/tables.ts'

/** Where somebody wants to be told of events, less the secrets. */
export interface WebhookRecord {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly description: string | null
  /** `null`: all events of its types are for it. */
  readonly filters: WebhookFilters | null
  readonly isEnabled: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly health: WebhookHealth
}

/** As the API has them. */
export interface WebhookFilters {
  readonly categories?: readonly string[] | undefined
  readonly agents?: readonly string[] | undefined
  readonly min_severity?: Severity | undefined
  readonly min_confidence?: number | undefined
}

/** How deliveries to it have gone lately. */
export interface WebhookHealth {
  /** Attempts in a row. */
  readonly failures: number
  /** In a row, each longer than the one before. */
  readonly pauses: number
  readonly failingSinceMs: number | null
  /** Nothing is sent before then. */
  readonly pausedUntilMs: number | null
  readonly lastDeliveryAtMs: number | null
  /** Why it was disabled, where nobody has done it. */
  readonly disabledReason: string | null
  readonly disabledAtMs: number | null
}

/** What deliveries are signed with, encrypted. */
export interface WebhookSecret {
  readonly id: string
  readonly webhookId: string
  readonly sealed: string
  readonly createdAtMs: number
  /** `null`: it stays. */
  readonly expiresAtMs: number | null
}

export class WebhookStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async count(queries: Queries): Promise<number> {
    const counted = queries.selectFrom('webhooks').select(({ fn }) => fn.countAll<number>().as('total'))
    return Number((await counted.executeTakeFirstOrThrow()).total)
  }

  async add(webhook: WebhookRecord, secret: NewWebhookSecret, queries: Queries): Promise<void> {
    await queries.insertInto('webhooks').values(rowOf(webhook)).execute()
    await addSecret(webhook.id, secret, queries)
  }

  async byId(id: string): Promise<WebhookRecord | null> {
    const found = this.#db.selectFrom('webhooks').selectAll().where('id', '=', id)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : webhookRecord(row)
  }

  /** Newest first. */
  async list<Asked extends Part>(part: Asked): Promise<PartOf<WebhookRecord, Asked>> {
    const found = this.#db.selectFrom('webhooks')
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, webhookRecord)
  }

  /** What is not in `changes` stays, whoever changes it meanwhile. `false`: it is not there any more. */
  async update(id: string, changes: WebhookChanges, atMs: number, queries: Queries): Promise<boolean> {
    const { events, filters, isEnabled, ...texts } = changes
    const row = {
      ...texts,
      ...(events !== undefined && { events: JSON.stringify(events) }),
      ...(filters !== undefined && { filters: textOf(filters) }),
      ...(isEnabled !== undefined && { enabled: Number(isEnabled) }),
    }
    const updated = queries
      .updateTable('webhooks')
      .set({ ...row, updated_at_ms: atMs })
      .where('id', '=', id)
    return (await updated.executeTakeFirst()).numUpdatedRows > 0n
  }

  /** With its secrets. `false`: it is not there any more. */
  async remove(id: string, queries: Queries): Promise<boolean> {
    const { numDeletedRows } = await queries.deleteFrom('webhooks').where('id', '=', id).executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** Those that sign at `nowMs`, newest first. */
  async secrets(webhookIds: readonly string[], nowMs: number): Promise<readonly WebhookSecret[]> {
    if (webhookIds.length === 0) return []
    const rows = await this.#db
      .selectFrom('webhook_secrets')
      .selectAll()
      .where('webhook_id', 'in', webhookIds)
      .where((where) => where.or([where('expires_at_ms', 'is', null), where('expires_at_ms', '>', nowMs)]))
      .orderBy('created_at_ms', 'desc')
      .execute()
    return rows.map(secretOf).toSorted(stayingFirst)
  }

  /**
   * Puts a new secret beside those that sign, all of which expire at `expiresAtMs` at the latest, and forgets those that
   * have expired. How many sign now; 0: there is no such webhook.
   */
  async rotate(id: string, secret: NewWebhookSecret, expiresAtMs: number, queries: Queries): Promise<number> {
    const { createdAtMs: nowMs } = secret
    // Of two at once the second waits here for the first one's end, and then sees what it has made.
    const locked = queries.updateTable('webhooks').set({ updated_at_ms: nowMs }).where('id', '=', id)
    if ((await locked.executeTakeFirst()).numUpdatedRows === 0n) return 0
    const own = queries.updateTable('webhook_secrets').where('webhook_id', '=', id)
    await own.set({ expires_at_ms: expiresAtMs }).where('expires_at_ms', 'is', null).execute()
    const expired = queries.deleteFrom('webhook_secrets').where('webhook_id', '=', id)
    await expired.where('expires_at_ms', '<=', nowMs).execute()
    await addSecret(id, secret, queries)
    const { total } = await queries
      .selectFrom('webhook_secrets')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where('webhook_id', '=', id)
      .executeTakeFirstOrThrow()
    return Number(total)
  }
}

export type WebhookChanges = Partial<
  Pick<WebhookRecord, 'url' | 'events' | 'description' | 'filters' | 'isEnabled'>
>
export type NewWebhookSecret = Pick<WebhookSecret, 'id' | 'sealed' | 'createdAtMs'>

async function addSecret(
  webhookId: string,
  { id, sealed, createdAtMs }: NewWebhookSecret,
  queries: Queries,
): Promise<void> {
  await queries
    .insertInto('webhook_secrets')
    .values({ id, webhook_id: webhookId, sealed, created_at_ms: createdAtMs, expires_at_ms: null })
    .execute()
}

/** Two that were made in the same millisecond: the one that stays is the newer one. */
function stayingFirst(one: WebhookSecret, other: WebhookSecret): number {
  return Number(one.expiresAtMs !== null) - Number(other.expiresAtMs !== null)
}

function rowOf({ id, url, description, ...webhook }: WebhookRecord) {
  return {
    ...{ id, url, description },
    events: JSON.stringify(webhook.events),
    filters: textOf(webhook.filters),
    enabled: Number(webhook.isEnabled),
    created_at_ms: webhook.createdAtMs,
    updated_at_ms: webhook.updatedAtMs,
    ...healthRow(webhook.health),
  }
}

function textOf(filters: WebhookFilters | null): string | null {
  return filters === null ? null : JSON.stringify(filters)
}

export function webhookRecord(row: Selectable<WebhookTable>): WebhookRecord {
  const { id, url, description, failures, pauses } = row
  return {
    ...{ id, url, description },
    events: storedTexts(row.events),
    filters: row.filters === null ? null : (storedObject(row.filters) as WebhookFilters),
    isEnabled: row.enabled === 1,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    health: {
      ...{ failures, pauses },
      failingSinceMs: row.failing_since_ms,
      pausedUntilMs: row.paused_until_ms,
      lastDeliveryAtMs: row.last_delivery_at_ms,
      disabledReason: row.disabled_reason,
      disabledAtMs: row.disabled_at_ms,
    },
  }
}

export function healthRow({ failures, pauses, disabledReason, ...times }: WebhookHealth) {
  return {
    ...{ failures, pauses, disabled_reason: disabledReason },
    failing_since_ms: times.failingSinceMs,
    paused_until_ms: times.pausedUntilMs,
    last_delivery_at_ms: times.lastDeliveryAtMs,
    disabled_at_ms: times.disabledAtMs,
  }
}

function secretOf(row: Selectable<WebhookSecretTable>): WebhookSecret {
  const { id, sealed } = row
  return {
    ...{ id, sealed },
    webhookId: row.webhook_id,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}

/** Of one that nothing was delivered to. */
export const UNTRIED: WebhookHealth = {
  failures: 0,
  pauses: 0,
  failingSinceMs: null,
  pausedUntilMs: null,
  lastDeliveryAtMs: null,
  disabledReason: null,
  disabledAtMs: null,
}
const NEWEST_FIRST: Order = {
  columns: [
    { name: 'webhooks.created_at_ms', kind: 'whole' },
    { name: 'webhooks.id', kind: 'text' },
  ],
  isDescending: true,
}
