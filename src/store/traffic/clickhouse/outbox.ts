import { type Kysely, sql } from 'kysely'
import { Fault } from '../../../shared/fault.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import type { Queries } from '../../engine/database.ts'
import type { Tables } from '../../engine/tables.ts'
import { NUMBERS_PER_MS, withoutAddresses, written } from './request-table.ts'

/**
 * Requests on their way to ClickHouse. They are stored here in the transaction that counts them, and deleted when
 * ClickHouse has them. What is sent together is decided before it is sent, so that sending it again, as after a crash, sends
 * the same rows under the same name, and ClickHouse keeps them once.
 */
export class Outbox {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Writers hold the lock of Sightings. Throws a Fault if ClickHouse has not taken what came before. */
  async add(sightings: readonly Sighting[], nowMs: number, queries: Queries): Promise<void> {
    if (sightings.length === 0) return
    const { last_number: last } = await this.#state(queries)
    const waiting = await queries
      .selectFrom('traffic_outbox')
      .select(({ fn }) => fn.sum<number | null>('requests').as('requests'))
      .executeTakeFirst()
    if (Number(waiting?.requests ?? 0) > WAITING_MAX)
      throw new Fault(
        'STORE_LOCKED',
        'more requests wait for ClickHouse than may wait; the proxies keep the rest',
      )
    const first = Math.max(last + 1, nowMs * NUMBERS_PER_MS)
    const lastNumber = first + sightings.length - 1
    const lines = await written(sightings, first)
    await queries
      .insertInto('traffic_outbox')
      .values({ last_number: lastNumber, requests: sightings.length, lines })
      .execute()
    await queries
      .insertInto('traffic_outbox_state')
      .values({ ...NOTHING_SENT, id: 1, last_number: lastNumber })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ last_number: lastNumber }))
      .execute()
  }

  /** What is sent next, and under which name; `null`: nothing waits. */
  async next(): Promise<OutboxGroup | null> {
    const { until, isMore } = await this.#db.transaction().execute(async (queries) => {
      const { sending_until: sending } = await this.#state(queries)
      if (sending !== null) return { until: sending, isMore: true }
      const waiting = await queries
        .selectFrom('traffic_outbox')
        .select(['last_number', 'requests'])
        .orderBy('last_number')
        .limit(GROUP_ROWS_MAX)
        .execute()
      let requests = 0
      let last: number | null = null
      let isFull = waiting.length === GROUP_ROWS_MAX
      for (const each of waiting) {
        if (last !== null && requests + each.requests > GROUP_MAX) {
          isFull = true
          break
        }
        requests += each.requests
        last = each.last_number
      }
      if (last !== null)
        await queries.updateTable('traffic_outbox_state').set({ sending_until: last }).execute()
      return { until: last, isMore: isFull }
    })
    if (until === null) return null
    const rows = await this.#db
      .selectFrom('traffic_outbox')
      .select(['requests', 'lines'])
      .where('last_number', '<=', until)
      .orderBy('last_number')
      .execute()
    return {
      until,
      requests: rows.reduce((sum, { requests }) => sum + requests, 0),
      lines: rows.map(({ lines }) => lines),
      isMore,
    }
  }

  /** ClickHouse has them. */
  async sent({ until }: OutboxGroup): Promise<void> {
    await this.#db.transaction().execute(async (queries) => {
      await queries.deleteFrom('traffic_outbox').where('last_number', '<=', until).execute()
      await queries
        .updateTable('traffic_outbox_state')
        .set({ sending_until: null, sent_number: until })
        .where('sending_until', '=', until)
        .execute()
    })
  }

  /**
   * Takes requests of some addresses away, except those that are being sent. Yields how many each slice took, and their JA4H.
   */
  async *erase(isUnwanted: (address: string) => boolean, isDry: boolean): AsyncGenerator<ErasedFromOutbox> {
    for (let after: number | null = -1; after !== null; ) {
      const from: number = after
      const slice: ErasedFromOutbox & { readonly next: number | null } = await this.#db
        .transaction()
        .execute(async (queries) => {
          // No other process decides meanwhile what is sent next.
          await queries.updateTable('traffic_outbox_state').set({ id: 1 }).execute()
          const { sending_until: sending } = await this.#state(queries)
          return this.#eraseSlice(Math.max(from, sending ?? -1), isUnwanted, isDry, queries)
        })
      after = slice.next
      yield slice
    }
  }

  async #eraseSlice(
    after: number,
    isUnwanted: (address: string) => boolean,
    isDry: boolean,
    queries: Queries,
  ): Promise<ErasedFromOutbox & { readonly next: number | null }> {
    const rows = await queries
      .selectFrom('traffic_outbox')
      .selectAll()
      .where('last_number', '>', after)
      .orderBy('last_number')
      .limit(ERASED_ROWS)
      .execute()
    const ja4h: (string | null)[] = []
    for (const { last_number: number, requests, lines } of rows) {
      const { left, ja4h: gone } = await withoutAddresses(lines, isUnwanted)
      ja4h.push(...gone)
      if (gone.length === 0 || isDry) continue
      if (left === null)
        await queries.deleteFrom('traffic_outbox').where('last_number', '=', number).execute()
      else
        await queries
          .updateTable('traffic_outbox')
          .set({ lines: left, requests: requests - gone.length })
          .where('last_number', '=', number)
          .execute()
    }
    return {
      requests: ja4h.length,
      ja4h: ja4h.filter((each) => each !== null),
      next: rows.length < ERASED_ROWS ? null : rows.at(-1)!.last_number,
    }
  }

  /** The number of the newest request that ClickHouse has; 0: none was sent. */
  async sentNumber(): Promise<number> {
    return (await this.#state(this.#db)).sent_number
  }

  async waiting(): Promise<number> {
    const { rows } = await sql<{
      requests: number | null
    }>`select sum(requests) as requests from traffic_outbox`.execute(this.#db)
    return Number(rows[0]?.requests ?? 0)
  }

  async #state(queries: Queries) {
    const state = await queries.selectFrom('traffic_outbox_state').selectAll().executeTakeFirst()
    return state ?? NOTHING_SENT
  }
}

interface ErasedFromOutbox {
  readonly requests: number
  readonly ja4h: readonly string[]
}

interface OutboxGroup {
  /** The number of its last request, which names it. */
  readonly until: number
  readonly requests: number
  /** See `written`. */
  readonly lines: readonly Buffer[]
  /** There may be another group. `false`: at most some requests that have come since, which wait for more. */
  readonly isMore: boolean
}

const NOTHING_SENT = { last_number: 0, sending_until: null, sent_number: 0 } as const
/** Some minutes of 5,000 requests a second, and some 100 MB. */
const WAITING_MAX = 1_000_000
/** Of one insert. ClickHouse takes few large ones better than many small ones. */
const GROUP_MAX = 100_000
const GROUP_ROWS_MAX = 1_000
/** Of some thousand requests each. */
const ERASED_ROWS = 20
