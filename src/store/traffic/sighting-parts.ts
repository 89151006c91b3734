import type { Sighting } from '../../plane/sighting.ts'
import type { Queries } from '../engine/database.ts'

/** Which requests come first: as they were stored, or the other way round. */
export type RequestOrder = 'newest' | 'oldest'

/** A part of the Sightings, by their numbers. */
export interface SightingPart {
  readonly number: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

export interface WholePart extends SightingPart {
  /** The number of its last Sighting. */
  readonly lastSighting: number
}

/** Which parts there are, and when their Sightings were seen. */
export class SightingParts {
  readonly #db: Queries

  constructor(db: Queries) {
    this.#db = db
  }

  /** Notes that these are stored next, at `from` or behind it. Returns the number of the first; the others follow. */
  async addTo(sightings: readonly Sighting[], from: number, queries: Queries): Promise<number> {
    const newest = await queries
      .selectFrom('sighting_parts')
      .selectAll()
      .orderBy('number', 'desc')
      .limit(1)
      .executeTakeFirst()
    const first = Math.max((newest?.last_sighting ?? 0) + 1, from)
    const numbered = sightings.map(({ seenAtMs }, at) => ({ number: first + at, seenAtMs }))
    for (const [number, some] of Map.groupBy(numbered, (each) => partOf(each.number))) {
      const times = some.map(({ seenAtMs }) => seenAtMs)
      if (newest?.number === number) times.push(newest.first_seen_ms, newest.last_seen_ms)
      const changed = {
        last_sighting: some.at(-1)!.number,
        first_seen_ms: Math.min(...times),
        last_seen_ms: Math.max(...times),
      }
      await queries
        .insertInto('sighting_parts')
        .values({ number, ...changed })
        .onConflict((conflict) => conflict.column('number').doUpdateSet(changed))
        .execute()
    }
    return first
  }

  /** Those with Sightings of this time, and of numbers beyond this one in this order. */
  async between(
    sinceMs: number,
    untilMs: number,
    number: number,
    order: RequestOrder = 'newest',
  ): Promise<readonly SightingPart[]> {
    const isOldest = order === 'oldest'
    const rows = await this.#db
      .selectFrom('sighting_parts')
      .select(['number', 'first_seen_ms', 'last_seen_ms'])
      .where('last_seen_ms', '>=', sinceMs)
      .where('first_seen_ms', '<=', untilMs)
      .where('number', isOldest ? '>=' : '<=', partOf(isOldest ? number + 1 : number - 1))
      .orderBy('number', isOldest ? 'asc' : 'desc')
      .execute()
    return rows.map((row) => ({
      number: row.number,
      firstSeenMs: row.first_seen_ms,
      lastSeenMs: row.last_seen_ms,
    }))
  }

  /** The number of the last Sighting ever; 0: there was none. */
  async last(): Promise<number> {
    const newest = this.#db.selectFrom('sighting_parts').select('last_sighting').orderBy('number', 'desc')
    return (await newest.limit(1).executeTakeFirst())?.last_sighting ?? 0
  }

  /** The number of Sightings with a number above `after`. An upper bound, because deleted ones in the middle count too. */
  async rowsAfter(after: number): Promise<number> {
    const rows = await this.#db
      .selectFrom('sighting_parts')
      .selectAll()
      .where('last_sighting', '>', after)
      .execute()
    return rows.reduce(
      (sum, row) => sum + row.last_sighting - Math.max(after, row.number * PART_SIZE - 1, 0),
      0,
    )
  }

  /** All of them, newest first. */
  async all(): Promise<readonly WholePart[]> {
    const rows = await this.#db.selectFrom('sighting_parts').selectAll().orderBy('number', 'desc').execute()
    return rows.map((row) => ({
      number: row.number,
      lastSighting: row.last_sighting,
      firstSeenMs: row.first_seen_ms,
      lastSeenMs: row.last_seen_ms,
    }))
  }

  /** All Sightings of this part that were seen before then are deleted. */
  async raiseFirst(number: number, firstSeenMs: number): Promise<void> {
    await this.#db
      .updateTable('sighting_parts')
      .set({ first_seen_ms: firstSeenMs })
      .where('number', '=', number)
      .execute()
  }

  /** Deletes those whose Sightings are deleted. The newest one stays, so that no number is used twice. */
  async forget(firstSighting: number | null): Promise<void> {
    const newest = this.#db.selectFrom('sighting_parts').select(({ fn }) => fn.max('number').as('number'))
    await this.#db
      .deleteFrom('sighting_parts')
      .where('number', '<', firstSighting === null ? Number.MAX_SAFE_INTEGER : partOf(firstSighting))
      .where('number', '<', newest)
      .execute()
  }
}

export function partOf(number: number): number {
  return Math.floor(number / PART_SIZE)
}

/** As in the indexes of Sightings: `number >> 16`. */
export const PART_SIZE = 65_536
