import { type Kysely, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import { type Counts, type Dimension, MINUTE_MS, OTHER, type RollupTally, UNNAMED } from './rollup-tally.ts'
import type { Tables } from '../engine/tables.ts'

/** For how long minutes, hours and days are kept. */
export interface RollupRetention {
  readonly minutesMs: number
  readonly hoursMs: number
  readonly daysMs: number
}

/** A stretch of time: from the first minute (hour, day) to the last one, both whole. */
export interface Span {
  readonly fromMs: number
  /** Not part of it. */
  readonly toMs: number
}

export interface RolledUp {
  /** Of all of it, by dimension and key. */
  readonly sums: ReadonlyMap<Dimension, ReadonlyMap<string, Readonly<Counts>>>
  /** By the time at which each bucket begins; those in which there was nothing are left out. */
  readonly series: ReadonlyMap<number, RolledUpBucket>
}

export interface RolledUpBucket extends Readonly<Counts> {
  readonly verdicts: ReadonlyMap<string, Readonly<Counts>>
  readonly categories: ReadonlyMap<string, Readonly<Counts>>
}

/** How many requests there were, in minutes, hours and days: all that statistics are made of. */
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
   * Everything in `span`, as it was at one moment: one statement, so that no batch comes in between. `bucketMs` divides
   * a day or is one, and both ends of the span are where a bucket begins.
   */
  async read(span: Span, bucketMs: number): Promise<RolledUp> {
    const seriesMs = GRAINS.findLast((grainMs) => bucketMs % grainMs === 0)!
    // In the text itself: as a parameter, one of the drivers has it a number with a fraction.
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
              // The total is in every other dimension, and in the series.
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

  /** Requests of an agent since then; what it was is kept for as long by hours as for a day by minutes. */
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

  /** Of one agent, by the time at which each bucket begins, as `read` has them of all. */
  async seriesOf(
    agent: string,
    span: Span,
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

  /** Agents with so many requests in whole minutes, the most first. */
  async busiest(span: Span, requestsMin: number, limit: number): Promise<readonly string[]> {
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

  /** Of these agents, by agent and by when each minute began. */
  async minutesOf(
    agents: readonly string[],
    span: Span,
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

  #minutes({ fromMs, toMs }: Span) {
    return this.#db
      .selectFrom('rollups')
      .where('grain_ms', '=', MINUTE_MS)
      .where('dimension', '=', 'agent')
      .where('at_ms', '>=', fromMs)
      .where('at_ms', '<', toMs)
  }

  /** Removes some of what is too old. `false`: there is no more. */
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
  /** When the bucket begins, or `OF_ALL`. */
  readonly at_ms: number
}

function rolledUp(rows: readonly Row[]): RolledUp {
  const sums = new Map<Dimension, Map<string, Counts>>()
  const series = new Map<
    number,
    Counts & { verdicts: Map<string, Counts>; categories: Map<string, Counts> }
  >()
  for (const row of rows) {
    const dimension = row.dimension as Dimension
    const atMs = Number(row.at_ms)
    if (atMs !== OF_ALL) {
      const bucket = series.get(atMs) ?? { ...NOTHING, verdicts: new Map(), categories: new Map() }
      series.set(atMs, bucket)
      if (dimension === 'total') increase(bucket, row)
      else add(dimension === 'verdict' ? bucket.verdicts : bucket.categories, row.key, row)
      continue
    }
    const sum = sums.get(dimension) ?? new Map<string, Counts>()
    sums.set(dimension, sum)
    add(sum, row.key, row)
  }
  return { sums, series }
}

function add<Key>(to: Map<Key, Counts>, key: Key, row: Counts): void {
  const counts = to.get(key) ?? { ...NOTHING }
  to.set(key, counts)
  increase(counts, row)
}

function increase(counts: Counts, { requests, agents, blocked }: Counts): void {
  // A driver may give the sum of whole numbers as text.
  counts.requests += Number(requests)
  counts.agents += Number(agents)
  counts.blocked += Number(blocked)
}

interface Piece extends Span {
  readonly grainMs: number
}

/** The same span in as few rows as there are: days in its middle, hours and minutes at its ends. */
function pieces(span: Span, grainMs: number): readonly Piece[] {
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
/** Not of one bucket. */
const OF_ALL = -1
const NOTHING: Readonly<Counts> = { requests: 0, agents: 0, blocked: 0 }
const IN_SERIES: readonly Dimension[] = ['total', 'verdict', 'category']
const SUMMED: readonly Dimension[] = ['verdict', 'action', 'confidence', 'verified', 'agent', 'category']
/** Minutes, hours or days of one dimension: some thousand rows. */
const FORGOTTEN_AT_ONCE = 60
