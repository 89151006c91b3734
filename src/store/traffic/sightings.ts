import assert from 'node:assert/strict'
import { type Kysely, sql } from 'kysely'
import type { Sighting } from '../../plane/sighting.ts'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { idPlace, PlaceRanges } from '../catalogue/place-ranges.ts'
import type { Tables } from '../engine/tables.ts'

export interface Sorted {
  /** Those that have not been stored before. */
  readonly fresh: readonly Sighting[]
  readonly duplicates: number
  /** Those whose ids no proxy has made. */
  readonly crowded: number
}

/** As it is in the database, which others may have written. */
export interface NumberedSighting {
  /** In the order in which they were stored. */
  readonly number: number
  readonly document: unknown
}

/** Sightings as they came, and which of them have been counted. */
export class SightingStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** Whoever counts Sightings waits here for others who do, until its transaction ends. */
  async lock(queries: Queries): Promise<void> {
    // SQLite's transaction holds the file by itself.
    if (this.#kind === 'postgres') await sql`select pg_advisory_xact_lock(${LOCK})`.execute(queries)
  }

  /** Tells those that are new from those that came before, and takes note of them. */
  async sort(sightings: readonly Sighting[], nowMs: number, queries: Queries): Promise<Sorted> {
    const places = sightings.map(({ id }) => {
      const place = idPlace(id)
      assert(place !== null, 'ids are read where Sightings come in')
      return place
    })
    const slots = await this.#slots([...new Set(places.map(({ slot }) => slot))], queries)
    const changed = new Map<string, PlaceRanges>()
    const outcomes = places.map(({ slot, place }) => {
      const ranges = slots.get(slot)!
      const outcome = ranges.add(place)
      if (outcome === 'fresh') changed.set(slot, ranges)
      return outcome
    })
    const rows = [...changed].map(([slot, ranges]) => ({ slot, ranges: ranges.text, taken_at_ms: nowMs }))
    for (const part of parts(rows)) {
      await queries
        .insertInto('sightings_taken')
        .values(part)
        .onConflict((conflict) =>
          conflict.column('slot').doUpdateSet(({ ref }) => ({
            ranges: ref('excluded.ranges'),
            taken_at_ms: ref('excluded.taken_at_ms'),
          })),
        )
        .execute()
    }
    return {
      fresh: sightings.filter((_, at) => outcomes[at] === 'fresh'),
      duplicates: outcomes.filter((outcome) => outcome === 'taken').length,
      crowded: outcomes.filter((outcome) => outcome === 'crowded').length,
    }
  }

  /** Of those that are new. */
  async add(sightings: readonly Sighting[], queries: Queries): Promise<void> {
    const rows = sightings.map((sighting) => {
      return { id: sighting.id, seen_at_ms: sighting.seenAtMs, document: JSON.stringify(sighting) }
    })
    for (const part of parts(rows)) {
      // What was counted so long ago that nobody knows may be here still.
      await queries
        .insertInto('sightings')
        .values(part)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
  }

  /** As it is in the database; `null` where it is none, or not there. */
  async byId(id: string): Promise<Sighting | null> {
    const row = await this.#db
      .selectFrom('sightings')
      .select('document')
      .where('id', '=', id)
      .executeTakeFirst()
    return row === undefined ? null : (jsonIn(row.document) as Sighting | null)
  }

  /** Newest first, before the one of that number; `next` is the number to go on with, `null` at the end. */
  async before(
    number: number | null,
    limit: number,
  ): Promise<{ readonly sightings: readonly Sighting[]; readonly next: number | null }> {
    const rows = await this.newest(number, limit)
    const next = rows.length < limit ? null : rows.at(-1)!.number
    return { sightings: rows.map(({ document }) => document as Sighting), next }
  }

  /** The same, each with its number. */
  async newest(number: number | null, limit: number): Promise<readonly NumberedSighting[]> {
    const rows = await this.#db
      .selectFrom('sightings')
      .select(['number', 'document'])
      .where('number', '<', number ?? Number.MAX_SAFE_INTEGER)
      .orderBy('number', 'desc')
      .limit(limit)
      .execute()
    return rows.map(({ number, document }) => ({ number, document: jsonIn(document) }))
  }

  /** Removes some of those that were seen before `sinceMs` or are more than `rowsMax`. `false`: there are no more. */
  async forget(sinceMs: number, rowsMax: number): Promise<boolean> {
    const { first, last } = await this.#numbers()
    if (first === null || last === null) return false
    const end = first + FORGOTTEN_AT_ONCE
    const { numDeletedRows } = await this.#db
      .deleteFrom('sightings')
      .where('number', '<', end)
      .where(({ eb, or }) => or([eb('seen_at_ms', '<', sinceMs), eb('number', '<=', last - rowsMax)]))
      .executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** Removes some of the notes of which Sightings came before `sinceMs`. `false`: there are no more. */
  async forgetTaken(sinceMs: number): Promise<boolean> {
    const { rows } = await this.#db
      .selectFrom('sightings_taken')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .executeTakeFirstOrThrow()
    const old = this.#db
      .selectFrom('sightings_taken')
      .select('slot')
      .orderBy('taken_at_ms')
      .limit(FORGOTTEN_AT_ONCE)
    const some = Number(rows) > TAKEN_MAX ? old : old.where('taken_at_ms', '<', sinceMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('sightings_taken')
      .where('slot', 'in', some)
      .executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** At most: numbers that are missing are counted, too. */
  async rows(): Promise<number> {
    const { first, last } = await this.#numbers()
    return first === null || last === null ? 0 : last - first + 1
  }

  async #slots(names: readonly string[], queries: Queries): Promise<ReadonlyMap<string, PlaceRanges>> {
    const slots = new Map(names.map((name) => [name, new PlaceRanges()]))
    for (const part of parts(names)) {
      const rows = await queries
        .selectFrom('sightings_taken')
        .select(['slot', 'ranges'])
        .where('slot', 'in', part)
        .execute()
      for (const { slot, ranges } of rows) slots.set(slot, new PlaceRanges(ranges))
    }
    return slots
  }

  /** Two queries, each of which looks at one end of the index. */
  async #numbers(): Promise<{ readonly first: number | null; readonly last: number | null }> {
    const numbers = this.#db.selectFrom('sightings').select('number').limit(1)
    const first = await numbers.orderBy('number').executeTakeFirst()
    const last = await numbers.orderBy('number', 'desc').executeTakeFirst()
    return { first: first?.number ?? null, last: last?.number ?? null }
  }
}

/** `null`: it is none; whoever reads it leaves it out, and the others are there all the same. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Another number than that of the migrations. */
const LOCK = 7_164_201_912
/** A few milliseconds of a database that does nothing else meanwhile. */
const FORGOTTEN_AT_ONCE = 2_000
/** A row for each second in which a process had requests: 20 proxies make as many in half a day. */
const TAKEN_MAX = 1_000_000
