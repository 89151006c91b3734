import { sql } from 'kysely'
import { Fault } from '../../shared/fault.ts'
import type { Queries } from '../engine/database.ts'

/** Sightings of some minutes. Their numbers begin with the first of these minutes. */
export interface SightingPartition {
  /** Minutes since 1970; 0: the first partition. */
  readonly first: number
  readonly beyond: number
}

/**
 * PostgreSQL: the partitions of the Sightings, which are made ahead and dropped whole. A transaction takes the numbers
 * of the newest partition that has begun. So Sightings always have one, also if none was made for too long.
 */
export class SightingPartitions {
  readonly #db: Queries

  constructor(db: Queries) {
    this.#db = db
  }

  /** Oldest first. */
  async list(queries: Queries = this.#db): Promise<readonly SightingPartition[]> {
    const { rows } = await sql<{ name: string; bounds: string | null }>`
      select relname as name, pg_get_expr(relpartbound, oid) as bounds from pg_class
      where oid in (select inhrelid from pg_inherits where inhparent = 'sightings'::regclass)`.execute(
      queries,
    )
    const found = rows.flatMap(({ name, bounds }) => {
      // Dropped by another process since the catalogue was read.
      if (bounds === null) return []
      const [first = '', beyond = ''] = bounds.match(/-?\d+/g) ?? []
      return name === FIRST
        ? { first: 0, beyond: Number(first) / NUMBERS }
        : { first: Number(first) / NUMBERS, beyond: Number(beyond) / NUMBERS }
    })
    return found.sort((one, other) => one.first - other.first)
  }

  /** Makes those of the next time: each as long as a 24th of the retention, so that Sightings are kept at most so much longer. */
  async makeAhead(nowMs: number, retentionMs: number): Promise<void> {
    const span = Math.max(1, Math.round(retentionMs / MINUTE_MS / SPANS))
    const now = Math.floor(nowMs / MINUTE_MS)
    const newest = (await this.list()).at(-1)
    for (
      let first = Math.max(newest?.beyond ?? 0, now - (now % span));
      first < now + AHEAD * span;
      first += span
    )
      if (!(await this.#change(first, first + span, true))) return
  }

  /** `false`: others read the table for so long that it has to be tried again, as `pg_dump` does. */
  drop({ first, beyond }: SightingPartition): Promise<boolean> {
    return this.#change(first, beyond, false)
  }

  async #change(first: number, beyond: number, isWanted: boolean): Promise<boolean> {
    try {
      await sql`select change_sightings_partition(${first}, ${beyond}, ${isWanted})`.execute(this.#db)
      return true
    } catch (error) {
      if (error instanceof Fault && error.code === 'STORE_LOCKED') return false
      throw error
    }
  }
}

/** The newest one that has begun; by a clock that is behind, maybe none: the oldest one. */
export function currentOf(partitions: readonly SightingPartition[], nowMs: number): SightingPartition {
  return partitions.findLast(({ first }) => first * MINUTE_MS <= nowMs) ?? partitions[0]!
}

/** The first number of a minute. Enough numbers for 250,000 Sightings a second. */
export function numberOf(minute: number): number {
  return minute * NUMBERS
}

const FIRST = 'sightings_first'
const MINUTE_MS = 60_000
const NUMBERS = 2 ** 24
/** Partitions in the time of the retention. */
const SPANS = 24
/** Partitions that are made before they are needed. */
const AHEAD = 4
