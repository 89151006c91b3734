import assert from 'node:assert/strict'
import type { Kysely } from 'kysely'
import type { Sighting } from '../../plane/sighting.ts'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { idPlace, PlaceRanges } from '../catalogue/place-ranges.ts'
import type { Tables } from '../engine/tables.ts'

interface Sorted {
  /** Sightings that were not stored before. */
  readonly fresh: readonly Sighting[]
  readonly duplicates: number
  /** Sightings whose ids do not come from a proxy. */
  readonly crowded: number
}

/** A sighting as stored. It is not validated, because others may have written to the database. */
export interface NumberedSighting {
  /** In the order in which they were stored. */
  readonly number: number
  readonly document: unknown
}

/** Sightings as received, and which of them were counted. */
export class SightingStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** Waits until other processes that count sightings have ended their transactions. */
  async lock(queries: Queries): Promise<void> {
    await lockUntilCommit(queries, this.#kind, 'sightings')
  }

  /** Separates new sightings from repeated ones, and records the new ones. */
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

  /** Stores new sightings. */
  async add(sightings: readonly Sighting[], queries: Queries): Promise<void> {
    const rows = sightings.map((sighting) => {
      return { id: sighting.id, seen_at_ms: sighting.seenAtMs, document: JSON.stringify(sighting) }
    })
    for (const part of parts(rows)) {
      // A sighting whose record of counting was deleted may still be stored.
      await queries
        .insertInto('sightings')
        .values(part)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
  }

  /** The sighting as stored; `null` if it is damaged or missing. */
  async byId(id: string): Promise<Sighting | null> {
    const row = await this.#db
      .selectFrom('sightings')
      .select('document')
      .where('id', '=', id)
      .executeTakeFirst()
    return row === undefined ? null : (jsonIn(row.document) as Sighting | null)
  }

  /** Newest first, before `number`. `next` is the number to continue with; `null` at the end. */
  async before(
    number: number | null,
    limit: number,
  ): Promise<{ readonly sightings: readonly Sighting[]; readonly next: number | null }> {
    const rows = await this.newest(number, limit)
    const next = rows.length < limit ? null : rows.at(-1)!.number
    return { sightings: rows.map(({ document }) => document as Sighting), next }
  }

  /** Like `before`, with the number of each. */
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

  /** Deletes some sightings that are older than `sinceMs` or exceed `rowsMax`. `false`: there are no more. */
  async forget(sinceMs: number, nowMs: number, rowsMax: number): Promise<boolean> {
    const { first, last } = await this.#numbers()
    if (first === null || last === null) return false
    for (let from = first; from <= last; from += FORGOTTEN_AT_ONCE) {
      const end = from + FORGOTTEN_AT_ONCE
      const { numDeletedRows } = await this.#db
        .deleteFrom('sightings')
        .where('number', '>=', from)
        .where('number', '<', end)
        .where(({ eb, or }) => or([eb('seen_at_ms', '<', sinceMs), eb('number', '<=', last - rowsMax)]))
        .executeTakeFirst()
      if (numDeletedRows > 0n) return true
      // Sightings from a clock that is ahead do not expire yet, but those behind them may.
      const current = this.#db.selectFrom('sightings').select('number').limit(1)
      const isCurrent = current.where('number', '>=', from).where('number', '<', end)
      if ((await isCurrent.where('seen_at_ms', '<=', nowMs).executeTakeFirst()) !== undefined) return false
    }
    return false
  }

  /** Deletes some records of counting from before `sinceMs`. `false`: there are no more. */
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

  /** An upper bound, because gaps in the numbers count too. */
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

  /** Two queries, so that each reads one end of the index. */
  async #numbers(): Promise<{ readonly first: number | null; readonly last: number | null }> {
    const numbers = this.#db.selectFrom('sightings').select('number').limit(1)
    const first = await numbers.orderBy('number').executeTakeFirst()
    const last = await numbers.orderBy('number', 'desc').executeTakeFirst()
    return { first: first?.number ?? null, last: last?.number ?? null }
  }
}

/** `null` if it is damaged, so that readers can skip it and return the rest. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Takes a few milliseconds of an idle database. */
const FORGOTTEN_AT_ONCE = 2_000
/** One row for each second in which a process had requests: half a day of 20 proxies. */
const TAKEN_MAX = 1_000_000
