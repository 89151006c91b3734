import type { Kysely, Selectable } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import type { ThreatWindowTable } from '../engine/tables/threats.ts'
import type { Tables } from '../engine/tables.ts'

export interface ThreatWindow {
  readonly key: string
  readonly topic: string
  readonly endsAtMs: number
  readonly count: number
  readonly sinceMs: number
  readonly untilMs: number
  /** JSON. */
  readonly event: string
}

/** Counts threats that repeat within the window of a report. Writers hold the lock of sightings. */
export class ThreatWindowStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** The windows that exist, without their events. An event is long, and `put` does not change it. */
  async held(keys: readonly string[], queries: Queries): Promise<ReadonlyMap<string, ThreatWindow>> {
    const held = new Map<string, ThreatWindow>()
    for (const part of parts(keys)) {
      const rows = await queries
        .selectFrom('threat_windows')
        .select(['key', 'topic', 'ends_at_ms', 'count', 'since_ms', 'until_ms'])
        .where('key', 'in', part)
        .execute()
      for (const row of rows) held.set(row.key, windowOf({ ...row, event: '' }))
    }
    return held
  }

  /** Inserts windows, or updates those with the same keys. The stored event is kept. */
  async put(windows: readonly ThreatWindow[], queries: Queries): Promise<void> {
    for (const part of parts(windows)) {
      await queries
        .insertInto('threat_windows')
        .values(part.map(rowOf))
        .onConflict((conflict) =>
          conflict.column('key').doUpdateSet(({ ref }) => ({
            ends_at_ms: ref('excluded.ends_at_ms'),
            count: ref('excluded.count'),
            since_ms: ref('excluded.since_ms'),
            until_ms: ref('excluded.until_ms'),
          })),
        )
        .execute()
    }
  }

  /** Windows that have ended, the earliest first. */
  async ended(nowMs: number, limit: number, queries: Queries = this.#db): Promise<readonly ThreatWindow[]> {
    const rows = await queries
      .selectFrom('threat_windows')
      .selectAll()
      .where('ends_at_ms', '<=', nowMs)
      .orderBy('ends_at_ms')
      .orderBy('key')
      .limit(limit)
      .execute()
    return rows.map(windowOf)
  }

  async remove(keys: readonly string[], queries: Queries): Promise<void> {
    for (const part of parts(keys))
      await queries.deleteFrom('threat_windows').where('key', 'in', part).execute()
  }

  async rows(): Promise<number> {
    const { rows } = await this.#db
      .selectFrom('threat_windows')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .executeTakeFirstOrThrow()
    return Number(rows)
  }
}

function windowOf(row: Selectable<ThreatWindowTable>): ThreatWindow {
  const { key, topic, ends_at_ms: endsAtMs, count, since_ms: sinceMs, until_ms: untilMs, event } = row
  return { key, topic, endsAtMs, count, sinceMs, untilMs, event }
}

function rowOf({ endsAtMs, sinceMs, untilMs, ...window }: ThreatWindow) {
  return { ...window, ends_at_ms: endsAtMs, since_ms: sinceMs, until_ms: untilMs }
}
