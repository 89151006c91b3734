import type { Kysely } from 'kysely'
import type { Tables } from '../engine/tables.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'

interface CampaignRow {
  readonly id: string
  readonly foundAtMs: number
  readonly lastSeenMs: number
  /** JSON. Readers must validate it, because others may have written to the database. */
  readonly document: string
}

/** Campaigns, and what proxies have shown of them that the leader has not counted yet. */
export class CampaignStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Inserts campaigns, or updates those with the same ids. */
  async put(rows: readonly CampaignRow[]): Promise<void> {
    for (const { id, foundAtMs, lastSeenMs, document } of rows)
      await this.#db
        .insertInto('campaigns')
        .values({ id, found_at_ms: foundAtMs, last_seen_ms: lastSeenMs, document })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ last_seen_ms: lastSeenMs, document }))
        .execute()
  }

  async byId(id: string): Promise<CampaignRow | null> {
    const row = await this.#db.selectFrom('campaigns').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : rowOf(row)
  }

  /** The newest first. */
  async list<Asked extends Part>(part: Asked): Promise<PartOf<CampaignRow, Asked>> {
    const found = this.#db.selectFrom('campaigns')
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, rowOf)
  }

  /** Those that were seen since then, at most `rowsMax`, the most recently seen first. */
  async since(sinceMs: number, rowsMax: number): Promise<readonly CampaignRow[]> {
    const rows = await this.#db
      .selectFrom('campaigns')
      .selectAll()
      .where('last_seen_ms', '>=', sinceMs)
      .orderBy('last_seen_ms', 'desc')
      .limit(rowsMax)
      .execute()
    return rows.map(rowOf)
  }

  /** Deletes some campaigns that were last seen before then. Resolves to their number. */
  async forget(beforeMs: number, rowsMax: number): Promise<number> {
    const old = this.#db.selectFrom('campaigns').select('id').where('last_seen_ms', '<', beforeMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('campaigns')
      .where('id', 'in', old.orderBy('last_seen_ms').limit(rowsMax))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  /** Leaves requests for the leader to count. */
  async leave(document: string, atMs: number): Promise<void> {
    await this.#db.insertInto('campaign_signs').values({ at_ms: atMs, document }).execute()
  }

  /** Takes the oldest requests away. Only the leader may call it. */
  async take(rowsMax: number): Promise<readonly string[]> {
    const rows = await this.#db
      .selectFrom('campaign_signs')
      .select(['number', 'document'])
      .orderBy('number')
      .limit(rowsMax)
      .execute()
    if (rows.length > 0)
      await this.#db
        .deleteFrom('campaign_signs')
        .where(
          'number',
          'in',
          rows.map(({ number }) => number),
        )
        .execute()
    return rows.map(({ document }) => document)
  }

  /** Deletes some requests that no leader took. Resolves to their number. */
  async forgetLeft(beforeMs: number, rowsMax: number): Promise<number> {
    const old = this.#db.selectFrom('campaign_signs').select('number').where('at_ms', '<', beforeMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('campaign_signs')
      .where('number', 'in', old.orderBy('number').limit(rowsMax))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

function rowOf(row: {
  readonly id: string
  readonly found_at_ms: number
  readonly last_seen_ms: number
  readonly document: string
}): CampaignRow {
  const { id, found_at_ms: foundAtMs, last_seen_ms: lastSeenMs, document } = row
  return { id, foundAtMs, lastSeenMs, document }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'campaigns.found_at_ms', kind: 'whole' },
    { name: 'campaigns.id', kind: 'text' },
  ],
  isDescending: true,
}
