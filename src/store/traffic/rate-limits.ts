import { type Kysely, sql } from 'kysely'
import type { Queries } from '../engine/database.ts'
import type { Tables } from '../engine/tables.ts'

/** The used part of a limit. */
interface Count {
  readonly key: string
  readonly points: number
  /** When the window ends. */
  readonly endsAtMs: number
}

interface AddedCount extends Pick<Count, 'key' | 'points'> {
  /** Of a window that begins now. */
  readonly windowMs: number
}

/** Counts requests in time windows. With PostgreSQL, all processes share the counts. */
export class RateLimitStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Adds points to the current window, or starts a new one. */
  async add(key: string, points: number, windowMs: number, nowMs: number): Promise<Count> {
    return (await this.addAll([{ key, points, windowMs }], nowMs))[0]!
  }

  /** Adds to several different keys in one statement. Resolves in their order. */
  async addAll(counts: readonly AddedCount[], nowMs: number): Promise<readonly Count[]> {
    // In one order, so that no two processes wait for each other's rows.
    const ordered = counts.toSorted((one, other) => (one.key < other.key ? -1 : 1))
    const rows = await this.#db
      .insertInto('rate_limits')
      .values(ordered.map(({ key, points, windowMs }) => ({ key, points, ends_at_ms: nowMs + windowMs })))
      .onConflict((conflict) =>
        conflict.column('key').doUpdateSet({
          points: sql`case when rate_limits.ends_at_ms <= ${nowMs} then excluded.points else rate_limits.points + excluded.points end`,
          ends_at_ms: sql`case when rate_limits.ends_at_ms <= ${nowMs} then excluded.ends_at_ms else rate_limits.ends_at_ms end`,
        }),
      )
      .returning(['key', 'points', 'ends_at_ms'])
      .execute()
    const byKey = new Map(
      rows.map(({ key, points, ends_at_ms }) => [key, { key, points, endsAtMs: ends_at_ms }]),
    )
    return counts.map(({ key }) => byKey.get(key)!)
  }

  /** Replaces a stored count with one that a process keeps in memory. */
  async keep({ key, points, endsAtMs }: Count, queries: Queries): Promise<void> {
    await queries
      .insertInto('rate_limits')
      .values({ key, points, ends_at_ms: endsAtMs })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ points, ends_at_ms: endsAtMs }))
      .execute()
  }

  /** Counts whose window has not ended. There is one for each key that was used in it. */
  async current(nowMs: number): Promise<readonly Count[]> {
    const rows = await this.#db
      .selectFrom('rate_limits')
      .selectAll()
      .where('ends_at_ms', '>', nowMs)
      .limit(COUNTS_MAX)
      .execute()
    return rows.map(({ key, points, ends_at_ms }) => ({ key, points, endsAtMs: ends_at_ms }))
  }

  async sweep(nowMs: number): Promise<void> {
    await this.#db.deleteFrom('rate_limits').where('ends_at_ms', '<=', nowMs).execute()
  }
}

/** More keys than one SQLite sees in a day. */
const COUNTS_MAX = 100_000
