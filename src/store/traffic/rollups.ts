import { type Kysely, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import { type Counts, type Dimension, MINUTE_MS, OTHER, type RollupTally, UNNAMED } from './rollup-tally.ts'
import type { Tables } from '../engine/tables.ts'

/** How long minutes, hours and days are kept. */
export interface RollupRetention {
  readonly minutesMs: number
  readonly hoursMs: number
  readonly daysMs: number
}

/** A time span of whole minutes, hours or days. */
export interface TimeSpan {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
}

export interface RolledUp {
  /** The sums of the whole span, by dimension and key. */
  readonly sums: ReadonlyMap<Dimension, ReadonlyMap<string, Readonly<Counts>>>
  /** By the start of each bucket. Empty buckets are omitted. */
  readonly series: ReadonlyMap<number, RolledUpBucket>
}

export interface RolledUpBucket extends Readonly<Counts> {
  readonly verdicts: ReadonlyMap<string, Readonly<Counts>>
  readonly categories: ReadonlyMap<string, Readonly<Counts>>
  /** A request of an agent with several purposes counts for each. */
  readonly purposes: ReadonlyMap<string, Readonly<Counts>>
}

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
    for (const part of parts(rows)) {
      await queries
        .insertInto('rollups')
        .values(part)
        .onConflict((conflict) =>
          conflict.columns(['grain_ms', 'dimension', 'at_ms', 'key']).doUpdateSet({
            requests: sql`rollups.requests + excluded.requests`,
            agents: sql`rollups.agents + excluded.agents`,
            blocked: sql`rollups.blocked + excluded.blocked`,
          }),
        )
        .execute()
    }
  }

  /**
   * Reads everything in `span`. Uses one statement, so that the result is consistent. `bucketMs` must divide
   * a day or be one, and both ends of the span must be bucket boundaries.
   */
  async read(span: TimeSpan, bucketMs: number): Promise<RolledUp> {
    const seriesMs = GRAINS.findLast((grainMs) => bucketMs % grainMs === 0)!
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
              // The total is in the series and in every other dimension.
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
   * The requests of an agent since then. Spans longer than a day use hours, because
   * minutes are kept for a shorter time.
   */
  async requestsOf(agent: string, sinceMs: number, nowMs: number): Promise<number> {
    const grainMs = nowMs - sinceMs > DAY_MS ? HOUR_MS : MINUTE_MS
    const floor = (ms: number) => Math.floor(ms / grainMs) * grainMs
    const span = { fromMs: floor(sinceMs), toMs: floor(nowMs) + grainMs }
    let requests = 0
    for (const piece of pieces(span, grainMs)) {
      const row = await this.#db
        .selectFrom('rollups')
        .select(({ fn }) => fn.sum<number | null>('requests').as('requests'))
        .where('grain_ms', '=', piece.grainMs)
        .where('dimension', '=', 'agent')
        .where('key', '=', agent)
        .where('at_ms', '>=', piece.fromMs)
        .where('at_ms', '<', piece.toMs)
        .executeTakeFirstOrThrow()
      requests += Number(row.requests ?? 0)
    }
    return requests
  }

  /** The counts of one agent, by the start of each bucket. */
  async seriesOf(
    agent: string,
    span: TimeSpan,
    bucketMs: number,
  ): Promise<ReadonlyMap<number, Readonly<Counts>>> {
    const grainMs = GRAINS.findLast((each) => bucketMs % each === 0)!
    const rows = await this.#db
      .selectFrom('rollups')
      .select(['at_ms', 'requests', 'agents', 'blocked'])
      .where('grain_ms', '=', grainMs)
      .where('dimension', '=', 'agent')
      .where('key', '=', agent)
      .where('at_ms', '>=', span.fromMs)
      .where('at_ms', '<', span.toMs)
      .execute()
    const series = new Map<number, Counts>()
    for (const row of rows) add(series, row.at_ms - (row.at_ms % bucketMs), row)
    return series
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

  /** Deletes some expired rows. `false`: there are no more. */
  async forget(retention: RollupRetention, nowMs: number): Promise<boolean> {
    for (const { grainMs, keptMs } of grains(retention)) {
      for (const dimension of ['total' as const, ...SUMMED]) {
        const oldestMs = await this.#oldestMs(grainMs, dimension)
        if (oldestMs === null || oldestMs >= nowMs - keptMs) continue
        await this.#db
          .deleteFrom('rollups')
          .where('grain_ms', '=', grainMs)
          .where('dimension', '=', dimension)
          .where('at_ms', '<', Math.min(nowMs - keptMs, oldestMs + FORGOTTEN_AT_ONCE * grainMs))
          .execute()
        return true
      }
    }
    return false
  }

  async rows(): Promise<number> {
    const { rows } = await this.#db
      .selectFrom('rollups')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .executeTakeFirstOrThrow()
    return Number(rows)
  }

  async #oldestMs(grainMs: number, dimension: Dimension): Promise<number | null> {
    const row = await this.#db
      .selectFrom('rollups')
      .select('at_ms')
      .where('grain_ms', '=', grainMs)
      .where('dimension', '=', dimension)
      .orderBy('at_ms')
      .limit(1)
      .executeTakeFirst()
    return row?.at_ms ?? null
  }
}

interface Row extends Counts {
  readonly dimension: string
  readonly key: string
  /** The start of the bucket, or `OF_ALL`. */
  readonly at_ms: number
}

function rolledUp(rows: readonly Row[]): RolledUp {
  const sums = new Map<Dimension, Map<string, Counts>>()
  const series = new Map<number, Bucket>()
  for (const row of rows) {
    const dimension = row.dimension as Dimension
    const atMs = Number(row.at_ms)
    if (atMs !== OF_ALL) {
      const bucket = series.get(atMs) ?? emptyBucket()
      series.set(atMs, bucket)
      if (dimension === 'total') increase(bucket, row)
      else if (dimension === 'verdict') add(bucket.verdicts, row.key, row)
      else add(dimension === 'category' ? bucket.categories : bucket.purposes, row.key, row)
      continue
    }
    const sum = sums.get(dimension) ?? new Map<string, Counts>()
    sums.set(dimension, sum)
    add(sum, row.key, row)
  }
  return { sums, series }
}

type Bucket = Counts & Readonly<Record<'verdicts' | 'categories' | 'purposes', Map<string, Counts>>>

function emptyBucket(): Bucket {
  return { ...NOTHING, verdicts: new Map(), categories: new Map(), purposes: new Map() }
}

function add<Key>(to: Map<Key, Counts>, key: Key, row: Counts): void {
  const counts = to.get(key) ?? { ...NOTHING }
  to.set(key, counts)
  increase(counts, row)
}

function increase(counts: Counts, { requests, agents, blocked }: Counts): void {
  // A driver may return the sum of integers as text.
  counts.requests += Number(requests)
  counts.agents += Number(agents)
  counts.blocked += Number(blocked)
}

interface Piece extends TimeSpan {
  readonly grainMs: number
}

/** Splits the span into as few rows as possible: days in the middle, hours and minutes at the ends. */
function pieces(span: TimeSpan, grainMs: number): readonly Piece[] {
  const coarser = GRAINS.find((each) => each > grainMs)
  if (coarser === undefined) return [{ ...span, grainMs }]
  const fromMs = Math.ceil(span.fromMs / coarser) * coarser
  const toMs = Math.floor(span.toMs / coarser) * coarser
  if (fromMs >= toMs) return [{ ...span, grainMs }]
  const edges = [
    { grainMs, fromMs: span.fromMs, toMs: fromMs },
    { grainMs, fromMs: toMs, toMs: span.toMs },
  ]
  return [...edges.filter((edge) => edge.fromMs < edge.toMs), ...pieces({ fromMs, toMs }, coarser)]
}

function grains({ minutesMs, hoursMs, daysMs }: RollupRetention) {
  return [
    { grainMs: MINUTE_MS, keptMs: minutesMs },
    { grainMs: HOUR_MS, keptMs: hoursMs },
    { grainMs: DAY_MS, keptMs: daysMs },
  ]
}

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const GRAINS = [MINUTE_MS, HOUR_MS, DAY_MS]
/** Marks sums of the whole span. */
const OF_ALL = -1
const NOTHING: Readonly<Counts> = { requests: 0, agents: 0, blocked: 0 }
const IN_SERIES: readonly Dimension[] = ['total', 'verdict', 'category', 'purpose']
const SUMMED: readonly Dimension[] = [
  'verdict',
  'action',
  'confidence',
  'verified',
  'agent',
  'category',
  'purpose',
]
/** Minutes, hours or days of one dimension: some thousand rows. */
const FORGOTTEN_AT_ONCE = 60
