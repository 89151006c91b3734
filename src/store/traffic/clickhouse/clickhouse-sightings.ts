import { hash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { ALL_APPS, type AppScope, reaches } from '../../../apps/app-scope.ts'
import type { WantedAddresses } from '../../../plane/privacy/address-form.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import { LateCache } from '../../../shared/late-cache.ts'
import { idPlace } from '../../catalogue/place-ranges.ts'
import type { DatabaseKind, Queries } from '../../engine/database.ts'
import type { StoreLogin } from '../../engine/store-login.ts'
import type { Tables } from '../../engine/tables.ts'
import type { RequestFilter } from '../request-filter.ts'
import type { RequestOrder } from '../sighting-parts.ts'
import type { ScannedRow } from '../request-search.ts'
import { ja4hParts } from '../sighting-rows.ts'
import { type ErasedRows, forgetJa4h } from '../sighting-erasure.ts'
import type { ProfileFacts } from '../sighting-profiles.ts'
import { type NumberedSighting, type SightingPlace, SightingStore } from '../sightings.ts'
import { ClickHouse, type ClickHouseValue } from './clickhouse.ts'
import { type TableConditions, conditionsIn } from './request-conditions.ts'
import { Outbox } from './outbox.ts'
import { newestFirst, RequestPages } from './request-pages.ts'
import { RequestsInOrder } from './requests-in-order.ts'
import {
  expiry,
  heldTable,
  INTO,
  NUMBERS_PER_MS,
  READ,
  type HeldRow,
  sightingIn,
  tableStatements,
} from './request-table.ts'

/**
 * Recorded requests in ClickHouse. Everything else about Sightings stays in the database: which of them were counted, the
 * counts, and the outbox, which holds requests until ClickHouse has them, a second or two later.
 */
export class ClickHouseSightings extends SightingStore {
  readonly outbox: Outbox
  readonly #clickHouse: ClickHouse
  readonly #inOrder: RequestsInOrder
  readonly #db: Kysely<Tables>
  /** What the rows of scans say of their clients, by id. */
  readonly #facts = new LateCache<ProfileFacts>({ max: FACTS_MAX })
  readonly #lookMs: number
  #isMade = false
  #retentionMs: number | null = null

  constructor(db: Kysely<Tables>, kind: DatabaseKind, { url, login, lookMs = LOOK_MS }: TrafficPlace) {
    super(db, kind)
    this.#db = db
    this.#lookMs = lookMs
    this.#clickHouse = new ClickHouse(url, login)
    this.#inOrder = new RequestsInOrder(this.#clickHouse, () => this.#make())
    this.outbox = new Outbox(db)
  }

  override async close(): Promise<void> {
    await this.#clickHouse.close()
  }

  override async add(
    fresh: readonly Sighting[],
    nowMs: number,
    queries: Queries,
    unsure: readonly Sighting[] = fresh,
  ): Promise<void> {
    const stored = await this.#storedAmong(unsure)
    const sightings = stored.size === 0 ? fresh : fresh.filter(({ id }) => !stored.has(id))
    await this.outbox.add(sightings, nowMs, queries)
  }

  /** Sends waiting requests to ClickHouse. `false`: the rest is too little for an insert of its own now. */
  override async send(): Promise<boolean> {
    const group = await this.outbox.next()
    if (group === null) return false
    await this.#make()
    await this.#clickHouse.insert(INTO, group.lines, String(group.until))
    await this.outbox.sent(group)
    return group.isMore
  }

  override waiting(): Promise<number> {
    return this.outbox.waiting()
  }

  override async byId(id: string, apps: AppScope): Promise<Sighting | null> {
    if (idPlace(id) === null) return null
    const [row] = await this.#read(conditionsIn({ apps: ALL_APPS, id }), 'LIMIT 1')
    const sighting = row === undefined ? null : sightingIn(row)
    return sighting !== null && reaches(apps, sighting.app) ? sighting : null
  }

  override async newest(number: number | null, limit: number): Promise<readonly NumberedSighting[]> {
    const found: NumberedSighting[] = []
    const all = conditionsIn({ apps: ALL_APPS })
    for await (const { rows } of this.#pages.newest(all, number, Number.POSITIVE_INFINITY, limit)) {
      for (const row of rows) found.push({ number: row[0], document: sightingIn(row) })
      if (found.length >= limit) break
    }
    return found.slice(0, limit)
  }

  override lastNumber(): Promise<number> {
    return this.outbox.sentNumber()
  }

  /** What ClickHouse has. Rows of before there was ClickHouse do not count. */
  override async stored(): Promise<{ readonly first: number; readonly last: number }> {
    return { first: 0, last: await this.lastNumber() }
  }

  override rowsAfter(number: number): Promise<number> {
    return this.#inOrder.count(number)
  }

  override async after(number: number, limit: number): Promise<readonly NumberedSighting[]> {
    return this.#inOrder.requests({ after: number, last: await this.lastNumber(), limit })
  }

  override placesAfter(after: number, last: number, limit: number): Promise<readonly SightingPlace[]> {
    return this.#inOrder.places({ after, last, limit })
  }

  override numbered(numbers: readonly number[]): Promise<readonly Sighting[]> {
    return this.#inOrder.numbered(numbers)
  }

  override async between(
    after: number,
    last: number,
    apps: AppScope,
    limit: number,
  ): Promise<{ readonly found: readonly Sighting[]; readonly count: number }> {
    const { texts, values } = conditionsIn({ apps })
    const range = {
      texts: [...texts, 'number <= {last:UInt64}'],
      values: { ...values, last },
      from: after + 1,
    }
    const found = (await this.#read(range, newestFirst(limit))).map(sightingIn)
    if (found.length < limit) return { found, count: found.length }
    const [[count] = [0]] = await this.#clickHouse.rows<[number]>(statement('count()', range, ''))
    return { found, count }
  }

  override async search(
    filter: RequestFilter,
    isWanted: (sighting: Sighting) => boolean,
    number: number | null,
    limit: number,
    order: RequestOrder = 'newest',
  ): ReturnType<SightingStore['search']> {
    const found: Sighting[] = []
    const conditions = conditionsIn(filter)
    const pages =
      order === 'oldest'
        ? this.#pages.oldest(conditions, number, this.#lookMs, limit)
        : this.#pages.newest(conditions, number, this.#lookMs, limit)
    for await (const { rows, next, isLate } of pages) {
      for (const row of rows) {
        const sighting = sightingIn(row)
        if (isWanted(sighting)) found.push(sighting)
        if (found.length === limit) return { found, next: row[0], stoppedAtMs: null }
      }
      if (isLate) return { found, next, stoppedAtMs: storedAtMs(next) }
    }
    return { found, next: null, stoppedAtMs: null }
  }

  override async scan(filter: RequestFilter, see: (row: ScannedRow) => void): Promise<number | null> {
    const conditions = conditionsIn(filter)
    const pages = this.#pages.newest(conditions, null, this.#lookMs, SCANNED_ROWS)
    for await (const { rows, next, isLate } of pages) {
      for (const row of rows) see(this.#scanned(sightingIn(row)))
      if (isLate) return storedAtMs(next)
    }
    return null
  }

  override async profileFacts(ids: readonly number[]): Promise<ReadonlyMap<number, ProfileFacts>> {
    return new Map(
      ids.flatMap((id) => {
        const facts = this.#facts.get(String(id))
        return facts === undefined ? [] : [[id, facts] as const]
      }),
    )
  }

  /** The rows of before there was ClickHouse, those that wait, and those in ClickHouse. */
  override async *erase(wanted: WantedAddresses, isDry: boolean): AsyncGenerator<ErasedRows> {
    yield* super.erase(wanted, isDry)
    for await (const { requests, ja4h } of this.outbox.erase((address) => wanted.has(address), isDry)) {
      yield new Map([['traffic_outbox', requests]])
      yield await this.#forgetJa4h(ja4h, isDry)
    }
    // What is being sent must be in ClickHouse before it can be deleted there.
    if (!isDry) await this.send()
    await this.#make()
    yield* this.#eraseSent(wanted, isDry)
  }

  async *#eraseSent({ keys, has }: WantedAddresses, isDry: boolean): AsyncGenerator<ErasedRows> {
    const { texts, values } = conditionsIn({ apps: ALL_APPS, addresses: keys })
    const isInRanges = texts.join(' AND ')
    for (let isMore = true; isMore; ) {
      const stored = await this.#clickHouse.rows<[string]>({
        text: `SELECT DISTINCT address FROM requests WHERE ${isInRanges} LIMIT ${ERASED_ADDRESSES}`,
        values,
      })
      const addresses = stored.flatMap(([address]) => (has(address) ? [address] : []))
      isMore = !isDry && addresses.length > 0 && stored.length === ERASED_ADDRESSES
      if (addresses.length === 0) return
      const isWanted = `${isInRanges} AND address IN {addresses:Array(String)}`
      const all = { ...values, addresses }
      const ja4h = await this.#clickHouse.rows<[string]>({
        text: `SELECT DISTINCT ja4h FROM requests WHERE ${isWanted} AND ja4h IS NOT NULL LIMIT ${ERASED_JA4H}`,
        values: all,
      })
      const [[requests] = [0]] = await this.#clickHouse.rows<[number]>({
        text: `SELECT count() FROM requests WHERE ${isWanted}`,
        values: all,
      })
      const { place } = this.#clickHouse
      const on = place.cluster === null ? '' : `ON CLUSTER '${place.cluster}'`
      if (!isDry)
        await this.#clickHouse.run({
          text: `ALTER TABLE ${heldTable(place)} ${on} DELETE WHERE ${isWanted} SETTINGS mutations_sync = 2`,
          values: all,
        })
      yield new Map([['requests', requests]])
      yield await this.#forgetJa4h(
        ja4h.map(([value]) => value),
        isDry,
      )
    }
  }

  #forgetJa4h(ja4h: readonly string[], isDry: boolean): Promise<ErasedRows> {
    const withCookies = ja4h.filter((value) => ja4hParts(value).cookies !== null)
    return this.#db.transaction().execute(async (queries) => {
      if (!isDry) await this.lock(queries)
      return forgetJa4h(withCookies, isDry, queries)
    })
  }

  /** Rows expire by themselves. Beyond `rowsMax`, the oldest days are dropped. */
  override async prepare(_nowMs: number, retentionMs: number): Promise<void> {
    await this.#make()
    if (this.#retentionMs === retentionMs) return
    const { place } = this.#clickHouse
    const on = place.cluster === null ? '' : `ON CLUSTER '${place.cluster}'`
    await this.#clickHouse.run({
      text: `ALTER TABLE ${heldTable(place)} ${on} MODIFY TTL ${expiry(retentionMs)} SETTINGS materialize_ttl_after_modify = 0`,
    })
    this.#retentionMs = retentionMs
  }

  override async forget(sinceMs: number, nowMs: number, rowsMax: number): Promise<boolean> {
    // Of before there was ClickHouse.
    if (await super.forget(sinceMs, nowMs, rowsMax)) return true
    const { place } = this.#clickHouse
    const days = await this.#clickHouse.rows<[day: string, rows: number, last: number]>({
      text: `SELECT partition, sum(rows), max(toUnixTimestamp(parseDateTimeBestEffort(partition, 'UTC'))) FROM system.parts
        WHERE active AND database = currentDatabase() AND table = {table:String} GROUP BY partition ORDER BY partition`,
      values: { table: heldTable(place) },
    })
    const all = days.reduce((sum, [, rows]) => sum + rows, 0)
    const [oldest] = days
    if (oldest === undefined || days.length === 1) return false
    const [day, rows, beganAtS] = oldest
    const isExpired = (beganAtS + DAY_S) * 1000 < sinceMs
    if (!isExpired && all - rows < rowsMax) return false
    const on = place.cluster === null ? '' : `ON CLUSTER '${place.cluster}'`
    await this.#clickHouse.run({
      text: `ALTER TABLE ${heldTable(place)} ${on} DROP PARTITION ID {day:String}`,
      values: { day },
    })
    return true
  }

  /** ClickHouse has room of its own. */
  override async *forgetOldest(): AsyncGenerator<void> {}

  override async rows(): Promise<number> {
    await this.#make()
    const [[count] = [0]] = await this.#clickHouse.rows<[number]>({ text: 'SELECT count() FROM requests' })
    return count
  }

  async #storedAmong(sightings: readonly Sighting[]): Promise<ReadonlySet<string>> {
    if (sightings.length === 0) return new Set()
    await this.#make()
    const ids = sightings.map(({ id }) => id)
    const rows = await this.#clickHouse.rows<[string]>({
      text: 'SELECT id FROM requests WHERE id IN {ids:Array(UUID)}',
      values: { ids },
    })
    return new Set(rows.map(([id]) => id))
  }

  /** Makes the table when it is first needed, so that a start does not wait for ClickHouse. */
  async #make(): Promise<void> {
    if (this.#isMade) return
    for (const text of tableStatements(this.#clickHouse.place)) await this.#clickHouse.run({ text })
    this.#isMade = true
  }

  /** See RequestPages. */
  get #pages(): RequestPages {
    return new RequestPages({
      read: (conditions, end) => this.#read(conditions, end),
      last: () => this.lastNumber(),
      first: () => this.#firstNumber(),
    })
  }

  async #firstNumber(): Promise<number> {
    await this.#make()
    const text = 'SELECT number FROM requests ORDER BY number LIMIT 1'
    const [[first] = [0]] = await this.#clickHouse.rows<[number]>({ text })
    return first
  }

  async #read(conditions: TableConditions, end: string): Promise<readonly HeldRow[]> {
    await this.#make()
    return this.#clickHouse.rows<HeldRow>(statement(READ, conditions, end))
  }

  #scanned({ ja4h, ...sighting }: Sighting): ScannedRow {
    const { common, cookies } = ja4hParts(ja4h)
    const { verdict, agent, category, purposes, done, rule, verified, ja4, http2, proxy, evidence } = sighting
    const own = { verdict, agent, category, purposes, done, rule, verified, ja4, http2, proxy, evidence }
    const facts = { ...own, ja4h: common }
    const digest = hash('sha256', JSON.stringify(Object.values(facts)), 'hex').slice(0, 12)
    const profile = Number.parseInt(digest, 16)
    this.#facts.set(String(profile), facts)
    const { app, host, address, path, campaign, sampled, seenAtMs } = sighting
    return {
      ...{ app, host, address, path, campaign, ja4h_cookies: cookies, profile, sampled },
      seen_at_ms: seenAtMs,
    }
  }
}

/** Where recorded requests are, if they are not in the database. */
export interface TrafficPlace {
  /** `clickhouse://…`, without a password. */
  readonly url: string
  readonly login: StoreLogin | null
  /** How long a search looks. */
  readonly lookMs?: number
}

function statement(columns: string, { texts, values, from }: TableConditions, end: string) {
  const where = ['number >= {from:UInt64}', ...texts].join(' AND ')
  const all: Record<string, ClickHouseValue> = { ...values, from }
  return { text: `SELECT ${columns} FROM requests WHERE ${where} ${end}`, values: all }
}

function storedAtMs(number: number): number {
  return Math.floor(number / NUMBERS_PER_MS)
}

const LOOK_MS = 500
const SCANNED_ROWS = 20_000
const FACTS_MAX = 50_000
const DAY_S = 86_400
/** Of one round. */
const ERASED_ADDRESSES = 10_000
const ERASED_JA4H = 10_000
