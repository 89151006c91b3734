import type { Kysely } from 'kysely'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { Tables } from '../engine/tables.ts'
import { healthRow, type WebhookHealth, type WebhookRecord, webhookRecord } from './webhooks.ts'

/** The health of webhooks, and the claims on them. */
export class WebhookHealthStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** The webhooks that receive events. */
  async enabled(queries: Queries): Promise<readonly WebhookRecord[]> {
    const rows = queries.selectFrom('webhooks').selectAll().where('enabled', '=', 1)
    return (await rows.execute()).map(webhookRecord)
  }

  /**
   * Locks those webhooks that exist, and returns their current state. Until the transaction ends, other
   * processes that add or finish deliveries to them wait. This keeps the order of queues defined.
   */
  async lock(ids: readonly string[], queries: Queries): Promise<readonly WebhookRecord[]> {
    if (ids.length === 0) return []
    const some = queries.selectFrom('webhooks').selectAll().where('id', 'in', ids).orderBy('id')
    // SQLite's transaction locks the file by itself.
    const rows = await (this.#kind === 'postgres' ? some.forNoKeyUpdate() : some).execute()
    return rows.map(webhookRecord)
  }

  /** The webhooks with due deliveries that are not paused. */
  async due(nowMs: number): Promise<readonly WebhookRecord[]> {
    const rows = await this.#db
      .selectFrom('webhooks')
      .selectAll()
      .where('enabled', '=', 1)
      .where(({ or, eb }) => or([eb('paused_until_ms', 'is', null), eb('paused_until_ms', '<=', nowMs)]))
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('deliveries')
            .select('deliveries.id')
            .whereRef('deliveries.webhook_id', '=', 'webhooks.id')
            .where('finished_at_ms', 'is', null)
            .where('next_at_ms', '<=', nowMs),
        ),
      )
      .orderBy('id')
      .execute()
    return rows.map(webhookRecord)
  }

  /** Reserves a webhook until `untilMs`. `false`: another process reserved it first, or it is disabled. */
  async hold(id: string, nowMs: number, untilMs: number, queries: Queries): Promise<boolean> {
    const held = queries
      .updateTable('webhooks')
      .set({ paused_until_ms: untilMs })
      .where('id', '=', id)
      .where('enabled', '=', 1)
      .where(({ or, eb }) => or([eb('paused_until_ms', 'is', null), eb('paused_until_ms', '<=', nowMs)]))
    return (await held.executeTakeFirst()).numUpdatedRows > 0n
  }

  /** The caller has locked the webhook. */
  async put(id: string, health: WebhookHealth, queries: Queries): Promise<void> {
    await queries.updateTable('webhooks').set(healthRow(health)).where('id', '=', id).execute()
  }

  /** The number of webhooks that were disabled automatically. */
  async countDisabled(): Promise<number> {
    const { total } = await this.#db
      .selectFrom('webhooks')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where('disabled_at_ms', 'is not', null)
      .executeTakeFirstOrThrow()
    return Number(total)
  }
}
