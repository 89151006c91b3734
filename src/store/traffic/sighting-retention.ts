import { type Kysely, sql } from 'kysely'
import type { Tables } from '../engine/tables.ts'
import {
  currentOf,
  numberOf,
  type SightingPartition,
  type SightingPartitions,
} from './sighting-partitions.ts'
import { partOf, PART_SIZE, SightingParts, type WholePart } from './sighting-parts.ts'

/**
 * Which Sightings are deleted. In PostgreSQL, expired partitions are dropped whole. Only Sightings that a partition would
 * keep for too long are deleted one by one, as in SQLite: those that came late, and those of before there were partitions.
 */
export class SightingRetention {
  readonly #db: Kysely<Tables>
  readonly #parts: SightingParts
  readonly #partitions: SightingPartitions | null

  constructor(db: Kysely<Tables>, partitions: SightingPartitions | null) {
    this.#db = db
    this.#parts = new SightingParts(db)
    this.#partitions = partitions
  }

  /** Deletes some sightings that are older than `sinceMs` or exceed `rowsMax`. `false`: there are no more. */
  async forget(sinceMs: number, nowMs: number, rowsMax: number): Promise<boolean> {
    const { first, last } = await this.#numbers()
    if (this.#partitions === null) {
      if (first === null || last === null) return false
      return this.#delete({ first, last }, { sinceMs, nowMs, until: last - rowsMax })
    }
    const parts = await this.#parts.all()
    const partitions = await this.#partitions.list()
    const current = currentOf(partitions, nowMs)
    for (const each of partitions) {
      if (each.first >= current.first) break
      const of = parts.filter((part) => isIn(part, each))
      const isExpired = of.every(({ lastSeenMs }) => lastSeenMs < sinceMs)
      if (!isExpired && rowsIn(parts, first) - rowsIn(of, first) < rowsMax) break
      if (!(await this.#partitions.drop(each))) return false
      await this.#parts.forget(numberOf(each.beyond))
      return true
    }
    if (first === null || last === null) return false
    const [oldest, ...others] = partitions
    if (oldest?.first !== 0) return this.#deleteLate(parts, partitions, sinceMs, rowsMax)
    const end = await this.#lastBefore(numberOf(oldest.beyond))
    const until = numberBeyond(parts, rowsMax)
    return (
      (await this.#delete({ first, last: end }, { sinceMs, nowMs, until })) ||
      this.#deleteLate(parts, others, sinceMs, rowsMax)
    )
  }

  /** An upper bound, because gaps in the numbers count too. */
  async rows(): Promise<number> {
    const { first, last } = await this.#numbers()
    if (first === null || last === null) return 0
    return this.#partitions === null ? last - first + 1 : rowsIn(await this.#parts.all(), first)
  }

  /** Of numbers without large gaps. */
  async #delete(
    { first, last }: { readonly first: number; readonly last: number },
    { sinceMs, nowMs, until }: Expired,
  ): Promise<boolean> {
    for (let from = first; from <= last; from += FORGOTTEN_AT_ONCE) {
      const end = Math.min(from + FORGOTTEN_AT_ONCE, last + 1)
      const { numDeletedRows } = await this.#db
        .deleteFrom('sightings')
        .where('number', '>=', from)
        .where('number', '<', end)
        .where(({ eb, or }) => or([eb('seen_at_ms', '<', sinceMs), eb('number', '<=', until)]))
        .executeTakeFirst()
      if (numDeletedRows > 0n) return true
      // Sightings from a clock that is ahead do not expire yet, but those behind them may.
      const current = this.#db.selectFrom('sightings').select('number').limit(1)
      const isCurrent = current.where('number', '>=', from).where('number', '<', end)
      if ((await isCurrent.where('seen_at_ms', '<=', nowMs).executeTakeFirst()) !== undefined) return false
    }
    return false
  }

  /** Those that came so late that their partition would keep them for too long, and those of a flood. */
  async #deleteLate(
    parts: readonly WholePart[],
    partitions: readonly SightingPartition[],
    sinceMs: number,
    rowsMax: number,
  ): Promise<boolean> {
    const until = numberBeyond(parts, rowsMax * ROWS_SHARE_MAX)
    for (const each of partitions) {
      const lateMs = Math.min(sinceMs, (2 * each.first - each.beyond) * MINUTE_MS)
      for (const { number, firstSeenMs } of parts.filter((part) => isIn(part, each))) {
        const from = number * PART_SIZE
        if (firstSeenMs >= lateMs && from > until) continue
        const { numDeletedRows } = await this.#db
          .deleteFrom('sightings')
          .where('number', '>=', from)
          .where('number', '<', from + PART_SIZE)
          .where(sql<boolean>`(seen_at_ms < ${lateMs} or number <= ${until})`)
          .executeTakeFirst()
        if (firstSeenMs < lateMs) await this.#parts.raiseFirst(number, lateMs)
        if (numDeletedRows > 0n) return true
      }
    }
    return false
  }

  /** The numbers of the first partition end long before those of the next one begin. 0: it has no Sighting. */
  async #lastBefore(number: number): Promise<number> {
    const before = this.#db.selectFrom('sightings').select('number').where('number', '<', number)
    return (await before.orderBy('number', 'desc').limit(1).executeTakeFirst())?.number ?? 0
  }

  /** Two queries, so that each reads one end of the index. */
  async #numbers(): Promise<{ readonly first: number | null; readonly last: number | null }> {
    const numbers = this.#db.selectFrom('sightings').select('number').limit(1)
    const first = await numbers.orderBy('number').executeTakeFirst()
    const last = await numbers.orderBy('number', 'desc').executeTakeFirst()
    return { first: first?.number ?? null, last: last?.number ?? null }
  }
}

interface Expired {
  readonly sinceMs: number
  readonly nowMs: number
  /** The last number that is too many. */
  readonly until: number
}

function isIn(part: WholePart, { first, beyond }: SightingPartition): boolean {
  return part.number >= partOf(numberOf(first)) && part.number < partOf(numberOf(beyond))
}

/** The rows of these parts, where `first` is the first number of all. */
function rowsIn(parts: readonly WholePart[], first: number | null): number {
  return parts.reduce((sum, part) => sum + rowsOf(part, first ?? 0), 0)
}

function rowsOf({ number, lastSighting }: WholePart, first: number): number {
  return Math.max(0, lastSighting + 1 - Math.max(first, 1, number * PART_SIZE))
}

/** The last number before the newest `rowsMax` rows; 0: there are not so many. Parts are newest first. */
function numberBeyond(parts: readonly WholePart[], rowsMax: number): number {
  let room = rowsMax
  for (const part of parts) {
    const rows = rowsOf(part, 0)
    if (rows > room) return part.lastSighting - Math.floor(room)
    room -= rows
  }
  return 0
}

const MINUTE_MS = 60_000
/** Takes a few milliseconds of an idle database. */
const FORGOTTEN_AT_ONCE = 2_000
/** A partition is dropped before its rows are deleted one by one. */
const ROWS_SHARE_MAX = 1.25
