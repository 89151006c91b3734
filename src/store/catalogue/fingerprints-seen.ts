import { type Kysely, type Selectable, sql } from 'kysely'
import type { Sighting } from '../../plane/sighting.ts'
import { AddressSketch } from '../engine/address-sketch.ts'
import { insertRows, isOneOf } from '../engine/arrays.ts'
import type { Queries } from '../engine/database.ts'
import type { FingerprintSeenTable } from '../engine/tables/sightings.ts'
import type { Tables } from '../engine/tables.ts'

export type FingerprintKind = FingerprintSeenTable['type']

/** A fingerprint that no known software has. */
export interface UnnamedFingerprint {
  readonly type: FingerprintKind
  readonly value: string
  readonly firstSeenMs: number
  readonly requests: number
  /** Distinct addresses, estimated. */
  readonly addresses: number
}

/** Counts the fingerprints of sightings in memory, to add them to the stored counts. */
export class FingerprintTally {
  readonly #entries = new Map<FingerprintKind, Map<string, Entry>>(TYPES.map((type) => [type, new Map()]))

  /** `address`: a 32-bit hash of it, evenly distributed. */
  add(sighting: Sighting, address: number): void {
    for (const type of TYPES) {
      const value = sighting[type]
      if (value === null) continue
      const entries = this.#entries.get(type)!
      let entry = entries.get(value)
      if (entry === undefined) {
        entry = new Entry(type, value, sighting.seenAtMs)
        entries.set(value, entry)
      }
      entry.add(sighting.seenAtMs, address)
    }
  }

  entries(type: FingerprintKind): ReadonlyMap<string, Entry> {
    return this.#entries.get(type)!
  }
}

class Entry {
  readonly type: FingerprintKind
  readonly value: string
  firstSeenMs: number
  lastSeenMs: number
  requests = 0
  isNamed = false
  readonly sketch = new AddressSketch()

  constructor(type: FingerprintKind, value: string, seenAtMs: number) {
    this.type = type
    this.value = value
    this.firstSeenMs = seenAtMs
    this.lastSeenMs = seenAtMs
  }

  add(seenAtMs: number, address: number): void {
    this.requests++
    this.firstSeenMs = Math.min(this.firstSeenMs, seenAtMs)
    this.lastSeenMs = Math.max(this.lastSeenMs, seenAtMs)
    this.sketch.add(address)
  }

  join(row: Selectable<FingerprintSeenTable>): void {
    this.requests += row.requests
    this.firstSeenMs = Math.min(this.firstSeenMs, row.first_seen_ms)
    this.lastSeenMs = Math.max(this.lastSeenMs, row.last_seen_ms)
    this.sketch.join(AddressSketch.parse(row.sketch))
  }

  get row(): Selectable<FingerprintSeenTable> {
    return {
      type: this.type,
      value: this.value,
      requests: this.requests,
      first_seen_ms: this.firstSeenMs,
      last_seen_ms: this.lastSeenMs,
      addresses: this.sketch.count,
      sketch: this.sketch.text,
      is_named: this.isNamed ? 1 : 0,
      // Twice as many requests count as much as one day. Frequent fingerprints
      // are deleted later, but not never.
      rank: this.lastSeenMs / RANK_STEP_MS + Math.log2(this.requests),
    }
  }
}

/** The fingerprints on live traffic. A limit keeps the most frequent and the most recent. */
export class FingerprintsSeenStore {
  readonly #db: Kysely<Tables>
  readonly #rowsMax: number
  /** New rows since the last count; `null`: never counted. */
  #newSince: number | null = null

  constructor(db: Kysely<Tables>, rowsMax = ROWS_MAX) {
    this.#db = db
    this.#rowsMax = rowsMax
  }

  /** Resolves to the fingerprints that no known software has. */
  async add(tally: FingerprintTally, queries: Queries): Promise<readonly UnnamedFingerprint[]> {
    const stored: Entry[] = []
    let isNew = 0
    for (const type of TYPES) {
      const entries = tally.entries(type)
      const known = await this.#joinKnown(type, entries, queries)
      // Limits new values for each batch, because a flood of random fingerprints has no end.
      const fresh = [...entries.values()].filter(({ value }) => !known.has(value))
      if (fresh.length > NEW_AT_ONCE_MAX) fresh.sort(byRequestsAndTime)
      fresh.length = Math.min(fresh.length, NEW_AT_ONCE_MAX)
      const kept = [...fresh, ...[...known].map((value) => entries.get(value)!)]
      await this.#name(type, kept, queries)
      isNew += fresh.length
      stored.push(...kept)
    }
    const rows = stored.map(({ row }) => row)
    await insertRows('fingerprints_seen', rows, COLUMNS, REPLACED, queries)
    if (isNew > 0) await this.#makeRoom(isNew, queries)
    return stored.filter(({ isNamed }) => !isNamed).map(unnamedOf)
  }

  /** The number of fingerprints seen since then, by type, and how many of them have no known software. */
  async counts(
    sinceMs: number,
  ): Promise<
    readonly { readonly type: FingerprintKind; readonly count: number; readonly unnamed: number }[]
  > {
    const rows = await this.#db
      .selectFrom('fingerprints_seen')
      .select(['type', 'is_named'])
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('last_seen_ms', '>=', sinceMs)
      .groupBy(['type', 'is_named'])
      .execute()
    return TYPES.map((type) => {
      const ofType = rows.filter((row) => row.type === type)
      const sum = (some: typeof rows) => some.reduce((total, { count }) => total + Number(count), 0)
      return { type, count: sum(ofType), unnamed: sum(ofType.filter((row) => row.is_named === 0)) }
    })
  }

  async rows(): Promise<number> {
    return countIn(this.#db)
  }

  /** Adds the stored counts. Resolves to the values that were stored before. */
  async #joinKnown(
    type: FingerprintKind,
    entries: ReadonlyMap<string, Entry>,
    queries: Queries,
  ): Promise<ReadonlySet<string>> {
    const known = new Set<string>()
    if (entries.size === 0) return known
    const rows = await queries
      .selectFrom('fingerprints_seen')
      .selectAll()
      .where('type', '=', type)
      .where(isOneOf('value', [...entries.keys()], queries))
      .execute()
    for (const row of rows) {
      entries.get(row.value)!.join(row)
      known.add(row.value)
    }
    return known
  }

  /** Marks each fingerprint that any software has. */
  async #name(type: FingerprintKind, entries: readonly Entry[], queries: Queries): Promise<void> {
    const byValue = new Map(entries.map((entry) => [entry.value, entry]))
    if (byValue.size === 0) return
    const rows = await queries
      .selectFrom('signatures')
      .select('value')
      .where('type', '=', type)
      .where(isOneOf('value', [...byValue.keys()], queries))
      .where('software_id', '<>', '')
      .where('status', '<>', 'retired')
      .execute()
    for (const { value } of rows) byValue.get(value)!.isNamed = true
  }

  async #makeRoom(isNew: number, queries: Queries): Promise<void> {
    const step = Math.ceil(this.#rowsMax / 20)
    this.#newSince = this.#newSince === null ? step : this.#newSince + isNew
    if (this.#newSince < step) return
    this.#newSince = 0
    // Deletes one step more, so that the next count is due after that many new rows.
    const surplus = (await countIn(queries)) - (this.#rowsMax - step)
    if (surplus <= 0) return
    await sql`
      delete from fingerprints_seen where (type, value) in (
        select type, value from fingerprints_seen order by rank, type, value limit ${surplus})`.execute(
      queries,
    )
  }
}

/** The most frequent first, then the latest. */
function byRequestsAndTime(one: Entry, other: Entry): number {
  return other.requests - one.requests || other.lastSeenMs - one.lastSeenMs
}

async function countIn(queries: Queries): Promise<number> {
  const { rows } = await queries
    .selectFrom('fingerprints_seen')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  return Number(rows)
}

function unnamedOf({ type, value, firstSeenMs, requests, sketch }: Entry): UnnamedFingerprint {
  return { type, value, firstSeenMs, requests, addresses: sketch.count }
}

const TYPES = ['ja4', 'ja4s', 'ja4h', 'ja4x'] as const
const COLUMNS = {
  ...({ type: 'text', value: 'text', first_seen_ms: 'bigint', last_seen_ms: 'bigint' } as const),
  ...({ requests: 'bigint', addresses: 'bigint', sketch: 'text', is_named: 'bigint' } as const),
  rank: 'double precision' as const,
}
const REPLACED = `on conflict (type, value) do update set first_seen_ms = excluded.first_seen_ms,
  last_seen_ms = excluded.last_seen_ms, requests = excluded.requests, addresses = excluded.addresses,
  sketch = excluded.sketch, is_named = excluded.is_named, rank = excluded.rank`
const ROWS_MAX = 100_000
/** For each type and transaction. */
const NEW_AT_ONCE_MAX = 64
const RANK_STEP_MS = 86_400_000
