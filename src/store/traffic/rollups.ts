import { type Kysely, sql } from 'kysely'
import {
  addTo,
  type Counts,
  type Dimension,
  DIMENSIONS,
  MINUTE_MS,
  OTHER,
  UNNAMED,
} from '../../plane/counts/buckets.ts'
import type { RollupTally } from '../../plane/counts/rollup-tally.ts'
import { insertRows } from '../engine/arrays.ts'
import type { Queries } from '../engine/database.ts'
import type { Tables } from '../engine/tables.ts'
import { AgentCounts } from './agent-counts.ts'
import {
  DAY_MS,
  forgetRows,
  grainOf,
  grains,
  HOUR_MS,
  IN_SERIES,
  OF_ALL,
  pieces,
  type RolledUp,
  type RollupRetention,
  rolledUp,
  rowsIn,
  SUMMED,
  type TimeSpan,
} from './rolled-up.ts'

/** Requests in minutes, hours and days, the source of all statistics. */
export class RollupStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async add(tally: RollupTally, retention: RollupRetention, nowMs: number, queries: Queries): Promise<void> {
    const rows = grains(retention).flatMap(({ grainMs, keptMs }) =>
      [...tally.rows(grainMs, nowMs - keptMs)].map(({ atMs, dimension, key, counts }) => {
        return { grain_ms: grainMs, dimension, at_ms: atMs, key, ...counts }
      }),
    )
    await insertRows('rollups', rows, COLUMNS, ADDED, queries)
  }

  /**
   * Reads everything in `span`. Uses one statement, so that the result is consistent. `bucketMs` must divide
   * a day or be one, and both ends of the span must be bucket boundaries.
   */
  async read(span: TimeSpan, bucketMs: number): Promise<RolledUp> {
    const seriesMs = grainOf(bucketMs)
    // As a literal, because one driver sends a parameter as a floating-point number.
    const bucket = sql<number>`at_ms - at_ms % ${sql.lit(bucketMs)}`
    const series = this.#db
      .selectFrom('rollups')
      .select(['dimension', 'key', bucket.as('at_ms')])
      .select(({ fn }) => [
        fn.sum<number>('requests').as('requests'),
        fn.sum<number>('agents').as('agents'),
        fn.sum<number>('blocked').as('blocked'),
      ])
      .where('grain_ms', '=', seriesMs)
      .where('dimension', 'in', IN_SERIES)
      .where('at_ms', '>=', span.fromMs)
      .where('at_ms', '<', span.toMs)
      .groupBy(['dimension', 'key', bucket])
    const rows = await pieces(span, seriesMs)
      .reduce(
        (all, { grainMs, fromMs, toMs }) =>
          all.unionAll(
            this.#db
              .selectFrom('rollups')
              .select(['dimension', 'key', sql.lit(OF_ALL).as('at_ms')])
              .select(({ fn }) => [
                fn.sum<number>('requests').as('requests'),
                fn.sum<number>('agents').as('agents'),
                fn.sum<number>('blocked').as('blocked'),
              ])
              .where('grain_ms', '=', grainMs)
              .where('dimension', 'in', SUMMED)
              .where('at_ms', '>=', fromMs)
              .where('at_ms', '<', toMs)
              .groupBy(['dimension', 'key']),
          ),
        series,
      )
      .execute()
    return rolledUp(rows)
  }

  /**
   * The requests of an agent, tool or browser since then. Spans longer than a day use hours, because
   * minutes are kept for a shorter time.
   */
  async requestsOf(software: string, sinceMs: number, nowMs: number): Promise<number> {
    const grainMs = nowMs - sinceMs > DAY_MS ? HOUR_MS : MINUTE_MS
    const floor = (ms: number) => Math.floor(ms / grainMs) * grainMs
    const span = { fromMs: floor(sinceMs), toMs: floor(nowMs) + grainMs }
    let requests = 0
    for (const piece of pieces(span, grainMs)) {
      const row = await this.#db
        .selectFrom('rollups')
        .select(({ fn }) => fn.sum<number | null>('requests').as('requests'))
        .where('grain_ms', '=', piece.grainMs)
        .where('dimension', 'in', OF_SOFTWARE)
        .where('key', '=', software)
        .where('at_ms', '>=', piece.fromMs)
        .where('at_ms', '<', piece.toMs)
        .executeTakeFirstOrThrow()
      requests += Number(row.requests ?? 0)
    }
    return requests
  }

  /** The counts of one agent, tool or browser, by the start of each bucket. */
  async seriesOf(
    software: string,
    span: TimeSpan,
    bucketMs: number,
  ): Promise<ReadonlyMap<number, Readonly<Counts>>> {
    const grainMs = grainOf(bucketMs)
    const rows = await this.#db
      .selectFrom('rollups')
      .select(['at_ms', 'requests', 'agents', 'blocked'])
      .where('grain_ms', '=', grainMs)
      .where('dimension', 'in', OF_SOFTWARE)
      .where('key', '=', software)
      .where('at_ms', '>=', span.fromMs)
      .where('at_ms', '<', span.toMs)
      .execute()
    const series = new Map<number, Counts>()
    for (const row of rows) addTo(series, row.at_ms - (row.at_ms % bucketMs), row)
    return series
  }

  /** The requests of each agent in `span`, from rows of one grain. */
  async agentCounts({ fromMs, toMs }: TimeSpan, bucketMs: number): Promise<AgentCounts> {
    const rows = await this.#db
      .selectFrom('rollups')
      .select(['dimension', 'key'])
      .select(({ fn }) => [
        fn.sum<number>('requests').as('requests'),
        fn.sum<number>('agents').as('agents'),
        fn.sum<number>('blocked').as('blocked'),
      ])
      .where('grain_ms', '=', grainOf(bucketMs))
      .where('dimension', 'in', OF_AGENTS)
      .where('at_ms', '>=', fromMs)
      .where('at_ms', '<', toMs)
      .groupBy(['dimension', 'key'])
      .execute()
    const found = new AgentCounts()
    for (const row of rows) {
      const counts = {
        requests: Number(row.requests),
        agents: Number(row.agents),
        blocked: Number(row.blocked),
      }
      if (row.dimension === 'agent') found.addAgent(row.key, counts)
      else if (row.dimension === 'verified_agent') found.addVerifiedAgent(row.key, counts)
      else found.addProof(counts)
    }
    return found
  }

  /** The requests of these agents, by agent and by the start of each bucket, in one query. */
  async trends(
    agents: readonly string[],
    { fromMs, toMs }: TimeSpan,
    bucketMs: number,
  ): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
    const trends = new Map(agents.map((agent) => [agent, new Map<number, number>()]))
    if (agents.length === 0) return trends
    // As a literal, because one driver sends a parameter as a floating-point number.
    const bucket = sql<number>`at_ms - at_ms % ${sql.lit(bucketMs)}`
    const rows = await this.#db
      .selectFrom('rollups')
      .select(['key', bucket.as('at_ms')])
      .select(({ fn }) => fn.sum<number>('requests').as('requests'))
      .where('grain_ms', '=', grainOf(bucketMs))
      .where('dimension', '=', 'agent')
      .where('key', 'in', agents)
      .where('at_ms', '>=', fromMs)
      .where('at_ms', '<', toMs)
      .groupBy(['key', bucket])
      .execute()
    for (const { key, at_ms, requests } of rows) trends.get(key)!.set(Number(at_ms), Number(requests))
    return trends
  }

  /** Agents with at least `requestsMin` requests in whole minutes, the most first. */
  async busiest(span: TimeSpan, requestsMin: number, limit: number): Promise<readonly string[]> {
    const rows = await this.#minutes(span)
      .where('key', 'not in', [OTHER, UNNAMED])
      .select('key')
      .groupBy('key')
      .having(({ fn }) => fn.sum<number>('requests'), '>=', requestsMin)
      .orderBy(({ fn }) => fn.sum<number>('requests'), 'desc')
      .orderBy('key')
      .limit(limit)
      .execute()
    return rows.map(({ key }) => key)
  }

  /** Requests by agent and by the start of each minute. */
  async minutesOf(
    agents: readonly string[],
    span: TimeSpan,
  ): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
    const minutes = new Map(agents.map((agent) => [agent, new Map<number, number>()]))
    if (agents.length === 0) return minutes
    const rows = await this.#minutes(span)
      .where('key', 'in', agents)
      .select(['key', 'at_ms', 'requests'])
      .execute()
    for (const { key, at_ms: atMs, requests } of rows) minutes.get(key)!.set(atMs, requests)
    return minutes
  }

  #minutes({ fromMs, toMs }: TimeSpan) {
    return this.#db
      .selectFrom('rollups')
      .where('grain_ms', '=', MINUTE_MS)
      .where('dimension', '=', 'agent')
      .where('at_ms', '>=', fromMs)
      .where('at_ms', '<', toMs)
  }

  /** The start of the first counts that are kept for buckets of this length; `null`: nothing was counted. */
  async keptSince(bucketMs: number): Promise<number | null> {
    const row = await this.#db
      .selectFrom('rollups')
      .select('at_ms')
      .where('grain_ms', '=', grainOf(bucketMs))
      .where('dimension', '=', 'total')
      .orderBy('at_ms')
      .limit(1)
      .executeTakeFirst()
    return row === undefined ? null : Number(row.at_ms)
  }

  /** Deletes some expired rows. `false`: there are no more. */
  async forget(retention: RollupRetention, nowMs: number): Promise<boolean> {
    return forgetRows(this.#db, ROWS, retention, nowMs)
  }

  async rows(): Promise<number> {
    return rowsIn(this.#db, ROWS.table)
  }
}

const COLUMNS = {
  ...({ grain_ms: 'bigint', dimension: 'text', at_ms: 'bigint', key: 'text' } as const),
  ...({ requests: 'bigint', agents: 'bigint', blocked: 'bigint' } as const),
}
const ADDED = `on conflict (grain_ms, dimension, at_ms, key) do update set requests = rollups.requests + excluded.requests,
  agents = rollups.agents + excluded.agents, blocked = rollups.blocked + excluded.blocked`
/** A software is in one of them, by its kind. */
const OF_SOFTWARE: readonly Dimension[] = ['agent', 'tool']
/** `verified` tells whether `verified_agent` is complete. */
const OF_AGENTS: readonly Dimension[] = ['agent', 'verified_agent', 'verified']
const ROWS = { table: 'rollups', dimensions: DIMENSIONS, atOnce: 60 } as const
