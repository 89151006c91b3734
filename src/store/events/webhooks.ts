import type { Kysely, Selectable } from 'kysely'
import type { AppList, AppScope } from '../../apps/app-scope.ts'
import { rowIsWithin, storedApps } from '../engine/app-lists.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { Severity } from '../engine/tables/events.ts'
import { storedObject, storedTexts } from '../engine/stored.ts'
import type { WebhookSecretTable, WebhookTable } from '../engine/tables/webhooks.ts'
import type { Tables } from '../engine/tables.ts'

/** A webhook, without its secrets. */
export interface WebhookRecord {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly description: string | null
  /** `null`: it receives all events of its types. */
  readonly filters: WebhookFilters | null
  /** It receives only events about these apps. Never changes. */
  readonly apps: AppList
  readonly isEnabled: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly health: WebhookHealth
}

/** The API's format. */
export interface WebhookFilters {
  readonly categories?: readonly string[] | undefined
  /** Published purposes of the event's agent. */
  readonly purposes?: readonly string[] | undefined
  readonly agents?: readonly string[] | undefined
  readonly apps?: readonly string[] | undefined
  readonly min_severity?: Severity | undefined
  readonly min_confidence?: number | undefined
}

/** The results of recent deliveries. */
export interface WebhookHealth {
  /** Failed attempts in a row. */
  readonly failures: number
  /** Pauses in a row, each longer than the one before. */
  readonly pauses: number
  readonly failingSinceMs: number | null
  /** Nothing is sent before then. */
  readonly pausedUntilMs: number | null
  readonly lastDeliveryAtMs: number | null
  /** Why it was disabled automatically. */
  readonly disabledReason: string | null
  readonly disabledAtMs: number | null
}

/** A secret that signs deliveries, encrypted. */
export interface WebhookSecret {
  readonly id: string
  readonly webhookId: string
  readonly sealed: string
  readonly createdAtMs: number
  /** `null`: permanent. */
  readonly expiresAtMs: number | null
}

export class WebhookStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** For a limit: others that count wait until this transaction has added its own. */
  async count(queries: Queries): Promise<number> {
    await lockUntilCommit(queries, this.#kind, 'webhooks')
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

  /** Those within the apps, newest first. */
  async list<Asked extends Part>(part: Asked, apps: AppScope): Promise<PartOf<WebhookRecord, Asked>> {
    const found = this.#db.selectFrom('webhooks').where(rowIsWithin(this.#kind, 'webhooks.apps', apps))
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, webhookRecord)
  }

  /**
   * Changes only the given fields, so that concurrent changes of others are kept.
   * `false`: it does not exist any more.
   */
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

  /** Also removes its secrets. `false`: it does not exist any more. */
  async remove(id: string, queries: Queries): Promise<boolean> {
    const { numDeletedRows } = await queries.deleteFrom('webhooks').where('id', '=', id).executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** The secrets that are valid at `nowMs`, newest first. */
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
   * Adds a new secret. All others expire at `expiresAtMs` at the latest, and expired ones are deleted.
   * Resolves to the number of valid secrets; 0: there is no such webhook.
   */
  async rotate(id: string, secret: NewWebhookSecret, expiresAtMs: number, queries: Queries): Promise<number> {
    const { createdAtMs: nowMs } = secret
    // Of two concurrent calls, the second waits here for the first to commit, and then sees its secret.
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
type NewWebhookSecret = Pick<WebhookSecret, 'id' | 'sealed' | 'createdAtMs'>

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

/** If two were created in the same millisecond, the permanent one is newer. */
function stayingFirst(one: WebhookSecret, other: WebhookSecret): number {
  return Number(one.expiresAtMs !== null) - Number(other.expiresAtMs !== null)
}

function rowOf({ id, url, description, ...webhook }: WebhookRecord) {
  return {
    id,
    url,
    description,
    events: JSON.stringify(webhook.events),
    filters: textOf(webhook.filters),
    apps: JSON.stringify(webhook.apps),
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
    id,
    url,
    description,
    events: storedTexts(row.events),
    filters: row.filters === null ? null : (storedObject(row.filters) as WebhookFilters),
    apps: storedApps(row.apps),
    isEnabled: row.enabled === 1,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    health: {
      failures,
      pauses,
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
    failures,
    pauses,
    disabled_reason: disabledReason,
    failing_since_ms: times.failingSinceMs,
    paused_until_ms: times.pausedUntilMs,
    last_delivery_at_ms: times.lastDeliveryAtMs,
    disabled_at_ms: times.disabledAtMs,
  }
}

function secretOf(row: Selectable<WebhookSecretTable>): WebhookSecret {
  const { id, sealed } = row
  return {
    id,
    sealed,
    webhookId: row.webhook_id,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}

/** The health of a webhook without deliveries. */
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
