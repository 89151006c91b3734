import { setImmediate as nextTurn } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { ALL_APPS } from '../../apps/app-scope.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { idPlace } from '../catalogue/place-ranges.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { conditionsOf, profileConditionsOf, type RequestFilter } from './request-filter.ts'
import { PART_SIZE, type RequestOrder, type SightingPart, SightingParts } from './sighting-parts.ts'
import { READ_COLUMNS, sightingOf } from './sighting-rows.ts'

interface FoundRequests {
  /** In the order that was asked for. */
  readonly found: readonly Sighting[]
  /** The search goes on before this number, or behind it with the oldest first. `null`: it is complete. */
  readonly next: number | null
  /** The search took too long and has stopped at a request of this time. `null`: it has not. */
  readonly stoppedAtMs: number | null
}

/**
 * Searches Sightings in the order of their numbers, one part after another. A value that is rare in a part is looked up in an index.
 * Otherwise the part is read, which takes some ten milliseconds if it holds nothing. A search that takes too long stops
 * and says where it goes on.
 */
export class RequestSearch {
  readonly #db: Queries
  readonly #kind: DatabaseKind
  readonly #parts: SightingParts
  readonly #lookMs: number

  constructor(db: Queries, kind: DatabaseKind, lookMs = LOOK_MS) {
    this.#db = db
    this.#kind = kind
    this.#parts = new SightingParts(db)
    this.#lookMs = lookMs
  }

  /** Up to `limit` requests beyond this number that fit the filter and are wanted. `null`: from the first one. */
  find(
    filter: RequestFilter,
    isWanted: (sighting: Sighting) => boolean,
    number: number | null,
    limit: number,
    order: RequestOrder = 'newest',
  ): Promise<FoundRequests> {
    return this.#indexed((search) => search.#find(filter, isWanted, number, limit, order))
  }

  /**
   * Tells `see` of each request that fits the filter, newest first, for a limited time. Resolves to the time of the
   * request at which it has stopped; `null`: it has seen all.
   */
  scan(filter: RequestFilter, see: (row: ScannedRow) => void): Promise<number | null> {
    return this.#indexed(async (search) => {
      const lookMs = search.#lookMs * SCAN_LOOKS
      const read = (rows: MatchingRows) => rows.select(SCANNED_COLUMNS).execute()
      for await (const { rows, next, isLate } of search.#pages(
        filter,
        null,
        { lookMs, rowsMax: SCANNED_ROWS, order: 'newest' },
        read,
      )) {
        for (const row of rows) see(row)
        if (isLate) return (await search.#stopped([], next, 'newest')).stoppedAtMs
        // Other work of this process goes on meanwhile.
        await nextTurn()
      }
      return null
    })
  }

  async #indexed<Result>(work: (search: RequestSearch) => Promise<Result>): Promise<Result> {
    if (this.#kind === 'sqlite') return work(this)
    return this.#db.transaction().execute(async (queries) => {
      // The planner reads the whole table for a value that it takes for frequent.
      await sql`set local enable_seqscan = off`.execute(queries)
      await sql`set local enable_bitmapscan = off`.execute(queries)
      return work(new RequestSearch(queries, this.#kind, this.#lookMs))
    })
  }

  async #find(
    ...[filter, isWanted, number, limit, order = 'newest']: Parameters<RequestSearch['find']>
  ): Promise<FoundRequests> {
    const found: Sighting[] = []
    // Most searches end with the first rows.
    const look = { lookMs: this.#lookMs, rowsFirst: limit, rowsMax: ROWS, order }
    const read = (rows: MatchingRows) => rows.select(READ_COLUMNS).execute()
    for await (const { rows, next, isLate } of this.#pages(filter, number, look, read)) {
      for (const row of rows) {
        const sighting = sightingOf(row)
        if (isWanted(sighting)) found.push(sighting)
        if (found.length === limit) return { found, next: row.number, stoppedAtMs: null }
      }
      if (isLate) return this.#stopped(found, next, order)
    }
    return { found, next: null, stoppedAtMs: null }
  }

  /** Rows that fit the filter, in order, in pages. The last page is late, or there are no more rows. */
  async *#pages<Row extends { readonly number: number }>(
    filter: RequestFilter,
    number: number | null,
    { lookMs, rowsMax, rowsFirst = rowsMax, order }: Look,
    read: (rows: MatchingRows) => Promise<readonly Row[]>,
  ): AsyncGenerator<RowPage<Row>> {
    const deadlineMs = performance.now() + lookMs
    const conditions = conditionsOf(filter)
    let limit = rowsFirst
    const isOldest = order === 'oldest'
    const start = number ?? (isOldest ? -1 : Number.MAX_SAFE_INTEGER)
    for await (const { numbers, from, to } of this.#stretches(filter, start, order)) {
      let range = { from, to }
      let isMore = true
      do {
        const rows =
          numbers?.length === 0
            ? []
            : await read(this.#matching(conditions, numbers, range, order).limit(limit))
        isMore = rows.length === limit
        limit = rowsMax
        const next = isMore ? rows.at(-1)!.number : isOldest ? to - 1 : from
        range = isOldest ? { from: next + 1, to } : { from, to: next }
        const isLate = performance.now() > deadlineMs
        yield { rows, next, isLate }
        if (isLate) return
      } while (isMore)
    }
  }

  /** The ranges of numbers that have to be looked at, in order. */
  async *#stretches(filter: RequestFilter, number: number, order: RequestOrder): AsyncGenerator<Stretch> {
    const { sinceMs = 0, untilMs = Number.MAX_SAFE_INTEGER } = filter
    const parts = await this.#parts.between(sinceMs, untilMs, number, order)
    const [first, end] = order === 'oldest' ? [number + 1, Number.MAX_SAFE_INTEGER] : [0, number]
    const ways = await this.#ways(filter)
    const rare = await this.#rare(ways, parts)
    if (rare !== null) return yield { numbers: rare, from: first, to: end }
    for (const part of parts) {
      const from = part.number * PART_SIZE
      const numbers = parts.length === 1 ? null : await this.#rare(ways, [part])
      yield { numbers, from: Math.max(first, from), to: Math.min(end, from + PART_SIZE) }
    }
  }

  /** The filters that an index can answer. */
  async #ways({ apps, id, host, addresses, ...others }: RequestFilter): Promise<readonly Way[]> {
    const ways: Way[] = []
    if (id !== undefined) ways.push({ column: 'id', values: idPlace(id) === null ? [] : [id] })
    if (addresses !== undefined) ways.push({ column: 'address_key', ranges: addresses })
    const ofProfile = profileConditionsOf({ apps, ...others })
    if (ofProfile.length > 0) {
      const profiles = await this.#db
        .selectFrom('sighting_profiles')
        .select('id')
        .where(sql<boolean>`${sql.join(ofProfile, AND)}`)
        .limit(PROFILES_MAX + 1)
        .execute()
      if (profiles.length <= PROFILES_MAX)
        ways.push({ column: 'profile', values: profiles.map((profile) => profile.id) })
    }
    if (host !== undefined) ways.push({ column: 'host', values: [host] })
    if (apps !== ALL_APPS) ways.push({ column: 'app', values: [...apps] })
    return ways
  }

  /** The numbers of all Sightings of these parts that fit one of the filters. `null`: there are too many for each. */
  async #rare(ways: readonly Way[], parts: readonly SightingPart[]): Promise<readonly number[] | null> {
    for (const way of ways) {
      const values = way.values ?? way.ranges!.map(([first]) => first)
      if (values.length * parts.length > SEEKS_MAX) continue
      if (values.length * parts.length === 0) return []
      const numbers = await this.#numbersOf(way, values, parts)
      if (numbers.length <= RARE_MAX) return numbers
    }
    return null
  }

  /** One seek in the index for each part and value, whatever the database knows of their frequency. */
  async #numbersOf(
    { column, ranges }: Way,
    values: readonly (string | number)[],
    parts: readonly SightingPart[],
  ): Promise<readonly number[]> {
    const isPostgres = this.#kind === 'postgres'
    const type = sql.raw(column === 'profile' ? 'bigint' : 'text')
    const partNumbers = parts.map(({ number }) => number)
    const lasts = ranges?.map(([, last]) => last) ?? values
    const pairs = values.map((value, index) => [value, lasts[index]])
    const each = isPostgres
      ? sql`unnest(${partNumbers}::bigint[]) as part (value) cross join unnest(${values}::${type}[], ${lasts}::${type}[]) as wanted (value, last)`
      : sql`json_each(${JSON.stringify(partNumbers)}) as part cross join json_each(${JSON.stringify(ranges === undefined ? values : pairs)}) as wanted`
    const is =
      ranges === undefined
        ? sql`sightings.${sql.ref(column)} = wanted.value`
        : isPostgres
          ? sql`sightings.address_key between wanted.value and wanted.last`
          : sql`sightings.address_key between wanted.value ->> 0 and wanted.value ->> 1`
    const limit = sql`limit ${RARE_MAX + 1}`
    // Without a range of numbers: PostgreSQL would read all rows of it when it takes the value for frequent.
    const inPart = sql`sightings.number >> 16 = part.value and ${is}`
    const { rows } = await (column === 'id'
      ? sql<{ number: number }>`select number from sightings where id = ${values[0]}`
      : isPostgres
        ? sql<{ number: number }>`select found.number from ${each}
            cross join lateral (select number from sightings where ${inPart} ${limit}) as found ${limit}`
        : sql<{
            number: number
          }>`select sightings.number from ${each} cross join sightings where ${inPart} ${limit}`
    ).execute(this.#db)
    return rows.map(({ number }) => number)
  }

  /** `numbers`: only these. */
  #matching(
    conditions: readonly RawBuilder<boolean>[],
    numbers: readonly number[] | null,
    range: Omit<Stretch, 'numbers'>,
    order: RequestOrder,
  ): MatchingRows {
    const { from, to } = range
    const rows = matchingRows(this.#db, conditions, range, order)
    const list = numbers?.filter((number) => number >= from && number < to)
    return list === undefined ? rows : rows.where(sql<boolean>`sightings.number ${this.#isIn(list)}`)
  }

  #isIn(numbers: readonly number[]): RawBuilder<unknown> {
    // Names the partitions, unlike a subquery.
    if (this.#kind === 'postgres') return sql`= any(${numbers}::bigint[])`
    return sql`in (select value from json_each(${JSON.stringify(numbers)}))`
  }

  async #stopped(found: readonly Sighting[], next: number, order: RequestOrder): Promise<FoundRequests> {
    const isOldest = order === 'oldest'
    const rest = await this.#db
      .selectFrom('sightings')
      .select('seen_at_ms')
      .where('number', isOldest ? '>' : '<', next)
      .orderBy('number', isOldest ? 'asc' : 'desc')
      .limit(1)
      .executeTakeFirst()
    return rest === undefined
      ? { found, next: null, stoppedAtMs: null }
      : { found, next, stoppedAtMs: rest.seen_at_ms }
  }
}

/** What a scan shows of a request. */
export interface ScannedRow {
  readonly seen_at_ms: number
  readonly app: string
  readonly host: string | null
  readonly address: string
  readonly path: string
  readonly campaign: string | null
  /** The end of the JA4H, unless the profile has all of it. */
  readonly ja4h_cookies: string | null
  /** See SightingStore.profiles. */
  readonly profile: number
  /** The share of such requests that is stored; `null`: all. */
  readonly sampled: number | null
}

type MatchingRows = ReturnType<typeof matchingRows>

interface RowPage<Row> {
  readonly rows: readonly Row[]
  /** The next page begins beyond this number. */
  readonly next: number
  /** The time is over. */
  readonly isLate: boolean
}

interface Look {
  readonly order: RequestOrder
  readonly lookMs: number
  /** Of a page. */
  readonly rowsMax: number
  /** Of the first page. */
  readonly rowsFirst?: number
}

/** Numbers from `from` to below `to`; of these, only `numbers`, if it is not `null`. */
interface Stretch {
  readonly numbers: readonly number[] | null
  readonly from: number
  readonly to: number
}

interface Way {
  readonly column: 'id' | 'address_key' | 'profile' | 'host' | 'app'
  readonly values?: readonly (string | number)[]
  readonly ranges?: RequestFilter['addresses']
}

function matchingRows(
  db: Queries,
  conditions: readonly RawBuilder<boolean>[],
  { from, to }: Omit<Stretch, 'numbers'>,
  order: RequestOrder,
) {
  // With `is true`, no index answers a condition: an index of its own has the rows of all parts.
  const fits = sql<boolean>`(${sql.join([sql`1 = 1`, ...conditions], AND)}) is true`
  return db
    .selectFrom('sightings')
    .innerJoin('sighting_profiles', 'sighting_profiles.id', 'sightings.profile')
    .where('sightings.number', '>=', from)
    .where('sightings.number', '<', to)
    .where(fits)
    .orderBy('sightings.number', order === 'oldest' ? 'asc' : 'desc')
}

const AND = sql` and `
/** If the database is in this process, everything else waits meanwhile. */
const LOOK_MS = 100
/** Rows of one query, which takes a few milliseconds. */
const ROWS = 500
/** A scan may take so many times longer than a search. */
const SCAN_LOOKS = 5
/** Takes some ten milliseconds. */
const SCANNED_ROWS = 2_000
const SCANNED_COLUMNS = [
  ...(['sightings.number', 'profile', 'app', 'host', 'address', 'path', 'campaign', 'ja4h_cookies'] as const),
  'sampled',
  'seen_at_ms',
] as const
/** Sightings of a rare value are read all at once. */
const RARE_MAX = 1_000
const PROFILES_MAX = 1_000
/** About ten milliseconds. */
const SEEKS_MAX = 5_000
