import assert from 'node:assert/strict'
import { type Kysely, sql } from 'kysely'
import { ALL_APPS, type AppScope, reaches } from '../../apps/app-scope.ts'
import type { WantedAddresses } from '../../plane/privacy/address-form.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { insertRows, isOneOf } from '../engine/arrays.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { idPlace, idTimeMs, PlaceRanges } from '../catalogue/place-ranges.ts'
import type { Tables } from '../engine/tables.ts'
import { currentOf, numberOf, SightingPartitions } from './sighting-partitions.ts'
import { type ErasedRows, SightingErasure } from './sighting-erasure.ts'
import { SightingRetention } from './sighting-retention.ts'
import { SightingProfiles } from './sighting-profiles.ts'
import { RequestSearch } from './request-search.ts'
import { SightingParts } from './sighting-parts.ts'
import { insertSightings, READ_COLUMNS, rowOf, sightingOf } from './sighting-rows.ts'

interface Sorted<Item> {
  /** Items that were not taken before. */
  readonly fresh: readonly Item[]
  /** Those of them that may be stored all the same: the record that they were taken may be deleted. */
  readonly unsure: readonly Item[]
  readonly duplicates: readonly Item[]
  /** The number of items whose ids do not come from a proxy. */
  readonly crowded: number
}

export interface NumberedSighting {
  /** In the order in which they were stored. */
  readonly number: number
  readonly document: Sighting
}

/** What tells the file of a Sighting. */
export interface SightingPlace extends Pick<Sighting, 'app' | 'seenAtMs'> {
  readonly number: number
}

/** Sightings as received, and which of them were counted. */
export class SightingStore {
  readonly #profiles: SightingProfiles
  readonly #parts: SightingParts
  readonly #search: RequestSearch
  readonly #retention: SightingRetention
  /** `null`: SQLite has none. */
  readonly #partitions: SightingPartitions | null
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
    this.#profiles = new SightingProfiles()
    this.#parts = new SightingParts(db)
    this.#search = new RequestSearch(db, kind)
    this.#partitions = kind === 'postgres' ? new SightingPartitions(db) : null
    this.#retention = new SightingRetention(db, this.#partitions)
  }

  /** Waits until other processes that count sightings have ended their transactions. */
  async lock(queries: Queries): Promise<void> {
    await lockUntilCommit(queries, this.#kind, 'sightings')
  }

  /** Separates new items from repeated ones, and records the new ones. */
  async sort<Item extends { readonly id: string }>(
    items: readonly Item[],
    nowMs: number,
    queries: Queries,
  ): Promise<Sorted<Item>> {
    const places = items.map(({ id }) => {
      const place = idPlace(id)
      assert(place !== null, 'ids are read where batches come in')
      return place
    })
    const { slots, recorded } = await this.#slots([...new Set(places.map(({ slot }) => slot))], queries)
    const changed = new Map<string, PlaceRanges>()
    const outcomes = places.map(({ slot, place }) => {
      const ranges = slots.get(slot)!
      const outcome = ranges.add(place)
      if (outcome === 'fresh') changed.set(slot, ranges)
      return outcome
    })
    const rows = [...changed].map(([slot, ranges]) => ({ slot, ranges: ranges.text, taken_at_ms: nowMs }))
    await insertRows(
      'sightings_taken',
      rows,
      TAKEN_COLUMNS,
      'on conflict (slot) do update set ranges = excluded.ranges, taken_at_ms = excluded.taken_at_ms',
      queries,
    )
    const isUnsure = (id: string, slot: string) => !recorded.has(slot) && idTimeMs(id) < nowMs - RECORDED_MS
    return {
      fresh: items.filter((_, at) => outcomes[at] === 'fresh'),
      unsure: items.filter(({ id }, at) => outcomes[at] === 'fresh' && isUnsure(id, places[at]!.slot)),
      duplicates: items.filter((_, at) => outcomes[at] === 'taken'),
      crowded: outcomes.filter((outcome) => outcome === 'crowded').length,
    }
  }

  /** Stores new sightings, except those of `unsure` that are stored already. Writers hold the lock. */
  async add(
    fresh: readonly Sighting[],
    nowMs: number,
    queries: Queries,
    unsure: readonly Sighting[] = fresh,
  ): Promise<void> {
    const stored = await this.#stored(unsure, queries)
    const sightings = stored.size === 0 ? fresh : fresh.filter(({ id }) => !stored.has(id))
    if (sightings.length === 0) return
    const profiles = await this.#profiles.idsOf(sightings, nowMs, queries)
    const current = this.#partitions === null ? null : currentOf(await this.#partitions.list(queries), nowMs)
    const first = await this.#parts.addTo(sightings, numberOf(current?.first ?? 0), queries)
    const rows = sightings.map((sighting, at) =>
      rowOf(sighting, { number: first + at, profile: profiles[at]! }),
    )
    await insertSightings(rows, queries)
  }

  /** PostgreSQL: the commit of this transaction does not wait for the disk. If the server crashes, it may be undone. */
  async commitSoon(queries: Queries): Promise<void> {
    if (this.#kind === 'postgres') await sql`set local synchronous_commit to off`.execute(queries)
  }

  /** Sends some requests to where they are kept, if that is not the database. `true`: call it again at once. */
  async send(): Promise<boolean> {
    return false
  }

  /** How many wait to be sent; `null`: they are kept in the database. */
  async waiting(): Promise<number | null> {
    return null
  }

  async close(): Promise<void> {}

  /** `null` if it is missing, or of another app. */
  async byId(id: string, apps: AppScope): Promise<Sighting | null> {
    if (idPlace(id) === null) return null
    const row = await this.#rows.where('sightings.id', '=', id).executeTakeFirst()
    return row === undefined || !reaches(apps, row.app) ? null : sightingOf(row)
  }

  /** Newest first, before `number`. `next` is the number to continue with, also behind a short list; `null` at the end. */
  async before(
    number: number | null,
    limit: number,
    apps: AppScope = ALL_APPS,
  ): Promise<{ readonly sightings: readonly Sighting[]; readonly next: number | null }> {
    if (apps !== ALL_APPS) {
      const { found, next } = await this.search({ apps }, () => true, number, limit)
      return { sightings: found, next }
    }
    const found = await this.newest(number, limit)
    const next = found.length < limit ? null : found.at(-1)!.number
    return { sightings: found.map(({ document }) => document), next }
  }

  /** Like `before`, with the number of each. */
  async newest(number: number | null, limit: number): Promise<readonly NumberedSighting[]> {
    const rows = await this.#rows
      .where('sightings.number', '<', number ?? Number.MAX_SAFE_INTEGER)
      .orderBy('sightings.number', 'desc')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ number: row.number, document: sightingOf(row) }))
  }

  /** The number of the newest one; 0: the table is empty. */
  async lastNumber(): Promise<number> {
    return (await this.#numbers()).last ?? 0
  }

  /** The first and the last number that is stored. `first` is 0 if the table is empty, and `last` that of the last one ever. */
  async stored(): Promise<{ readonly first: number; readonly last: number }> {
    const { first, last } = await this.#numbers()
    return { first: first ?? 0, last: last ?? (await this.#parts.last()) }
  }

  /** The number of Sightings behind this one. An upper bound, because deleted ones in the middle count too. */
  rowsAfter(number: number): Promise<number> {
    return this.#parts.rowsAfter(number)
  }

  /** The next ones behind `number`, oldest first. */
  async after(number: number, limit: number): Promise<readonly NumberedSighting[]> {
    const rows = await this.#rows
      .where('sightings.number', '>', number)
      .orderBy('sightings.number')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ number: row.number, document: sightingOf(row) }))
  }

  /** The same with little of each, up to the number `last`. */
  async placesAfter(number: number, last: number, limit: number): Promise<readonly SightingPlace[]> {
    const rows = await this.#db
      .selectFrom('sightings')
      .select(['number', 'app', 'seen_at_ms'])
      .where('number', '>', number)
      .where('number', '<=', last)
      .orderBy('number')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ number: row.number, app: row.app, seenAtMs: row.seen_at_ms }))
  }

  /** Those with these numbers, which ascend, as far as they are still stored, oldest first. */
  async numbered(numbers: readonly number[]): Promise<readonly Sighting[]> {
    if (numbers.length === 0) return []
    const rows = await this.#rows
      .where(isOneOf('sightings.number', numbers, this.#db, 'bigint'))
      // Names the partitions in PostgreSQL.
      .where('sightings.number', '>=', numbers[0]!)
      .where('sightings.number', '<=', numbers.at(-1)!)
      .orderBy('sightings.number')
      .execute()
    return rows.map(sightingOf)
  }

  /** Those of these apps with a number above `after` up to `last`: the newest ones, newest first, and how many there are. */
  async between(
    after: number,
    last: number,
    apps: AppScope,
    limit: number,
  ): Promise<{ readonly found: readonly Sighting[]; readonly count: number }> {
    if (apps !== ALL_APPS && apps.size === 0) return { found: [], count: 0 }
    const isIn = sql<boolean>`sightings.number > ${after} and sightings.number <= ${last}`
    const isWanted = apps === ALL_APPS ? isIn : sql<boolean>`${isIn} and app in (${sql.join([...apps])})`
    const rows = await this.#rows.where(isWanted).orderBy('sightings.number', 'desc').limit(limit).execute()
    const found = rows.map(sightingOf)
    if (found.length < limit) return { found, count: found.length }
    const all = this.#db.selectFrom('sightings').where(isWanted)
    const { count } = await all
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    return { found, count: Number(count) }
  }

  /** See RequestSearch. */
  search(...asked: Parameters<RequestSearch['find']>): ReturnType<RequestSearch['find']> {
    return this.#search.find(...asked)
  }

  /** See RequestSearch. */
  scan(...asked: Parameters<RequestSearch['scan']>): ReturnType<RequestSearch['scan']> {
    return this.#search.scan(...asked)
  }

  profileFacts(ids: readonly number[]): ReturnType<SightingProfiles['facts']> {
    return this.#profiles.facts(ids, this.#db)
  }

  /** See SightingErasure. */
  erase(wanted: WantedAddresses, isDry: boolean): AsyncGenerator<ErasedRows> {
    return new SightingErasure(this.#db, this.#kind).erase(wanted, isDry)
  }

  /** See SightingRetention. */
  forget(...asked: Parameters<SightingRetention['forget']>): Promise<boolean> {
    return this.#retention.forget(...asked)
  }

  /** PostgreSQL: makes the partitions of the next time. */
  async prepare(nowMs: number, retentionMs: number): Promise<void> {
    await this.#partitions?.makeAhead(nowMs, retentionMs)
  }

  /**
   * Deletes the oldest Sightings while `isTooMuch`, and profiles that have none left. Yields after each part of the
   * work. The newest Sightings stay in any case.
   */
  async *forgetOldest(isTooMuch: () => Promise<boolean>): AsyncGenerator<void> {
    while (await isTooMuch()) {
      const { first, last } = await this.#numbers()
      if (first === null || last === null || last - first < KEPT_MIN) return
      const oldest = this.#db
        .selectFrom('sightings')
        .select('number')
        .where('number', '<=', last - KEPT_MIN)
        .orderBy('number')
        .limit(FORGOTTEN_AT_ONCE)
      await this.#db.deleteFrom('sightings').where('number', 'in', oldest).execute()
      yield
      yield* this.forgetUnusedProfiles(await this.rows())
    }
  }

  /** Deletes some profiles whose Sightings were stored before then: they are deleted. `false`: there are no more. */
  async forgetProfiles(sinceMs: number): Promise<boolean> {
    const { first } = await this.#numbers()
    await this.#parts.forget(first)
    return this.#db.transaction().execute(async (queries) => {
      // A transaction that counts Sightings may be about to use one.
      await this.lock(queries)
      return this.#profiles.forget(sinceMs, queries)
    })
  }

  /**
   * Deletes profiles of deleted Sightings if there are more than `max`, as when each request has a User-Agent of its
   * own. Yields after each part of the work.
   */
  async *forgetUnusedProfiles(max: number): AsyncGenerator<void> {
    if ((await this.#profiles.count(this.#db)) <= max) return
    for (let last: number | null = 0; last !== null; ) {
      const after: number = last
      last = await this.#db.transaction().execute(async (queries) => {
        await this.lock(queries)
        return this.#profiles.forgetUnused(after, queries)
      })
      yield
    }
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

  /** An upper bound, because Sightings in the middle that are deleted count too. */
  rows(): Promise<number> {
    return this.#retention.rows()
  }

  profiles(): Promise<number> {
    return this.#profiles.count(this.#db)
  }

  get #rows() {
    return this.#db
      .selectFrom('sightings')
      .innerJoin('sighting_profiles', 'sighting_profiles.id', 'sightings.profile')
      .select(READ_COLUMNS)
  }

  async #stored(sightings: readonly Sighting[], queries: Queries): Promise<ReadonlySet<string>> {
    if (sightings.length === 0) return new Set()
    const ids = sightings.map(({ id }) => id)
    const isStored = isOneOf('id', ids, queries, 'uuid')
    const rows = await queries.selectFrom('sightings').select('id').where(isStored).execute()
    return new Set(rows.map(({ id }) => id))
  }

  async #slots(names: readonly string[], queries: Queries) {
    const slots = new Map(names.map((name) => [name, new PlaceRanges()]))
    const rows = await queries
      .selectFrom('sightings_taken')
      .select(['slot', 'ranges'])
      .where(isOneOf('slot', names, queries))
      .execute()
    for (const { slot, ranges } of rows) slots.set(slot, new PlaceRanges(ranges))
    return { slots, recorded: new Set(rows.map(({ slot }) => slot)) }
  }

  /** Two queries, so that each reads one end of the index. */
  async #numbers(): Promise<{ readonly first: number | null; readonly last: number | null }> {
    const numbers = this.#db.selectFrom('sightings').select('number').limit(1)
    const first = await numbers.orderBy('number').executeTakeFirst()
    const last = await numbers.orderBy('number', 'desc').executeTakeFirst()
    return { first: first?.number ?? null, last: last?.number ?? null }
  }
}

/** That Sightings were counted is recorded for much longer. */
const RECORDED_MS = 60_000
const TAKEN_COLUMNS = { slot: 'text', ranges: 'text', taken_at_ms: 'bigint' } as const
/** Takes a few milliseconds of an idle database. */
const FORGOTTEN_AT_ONCE = 2_000
/** Kept, however large the rest of the database is. */
const KEPT_MIN = 1_000
/** One row for each second in which a process had requests: half a day of 20 proxies. */
const TAKEN_MAX = 1_000_000
