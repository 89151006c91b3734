import { type Kysely, sql } from 'kysely'
import {
  addTo,
  type Counts,
  type Dimension,
  DIMENSIONS,
  MINUTE_MS,
  NOTHING,
} from '../../plane/counts/buckets.ts'
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
  /** By the action taken. */
  readonly actions: ReadonlyMap<string, Readonly<Counts>>
  readonly categories: ReadonlyMap<string, Readonly<Counts>>
  /** A request of an agent with several purposes counts for each. */
  readonly purposes: ReadonlyMap<string, Readonly<Counts>>
}

interface Row extends Readonly<Counts> {
  readonly dimension: string
  readonly key: string
  /** The start of the bucket, or `OF_ALL`. */
  readonly at_ms: number
}

export function rolledUp(rows: Iterable<Row>): RolledUp {
  const sums = new Map<Dimension, Map<string, Counts>>()
  const series = new Map<number, Bucket>()
  for (const row of rows) {
    const dimension = row.dimension as Dimension
    const atMs = Number(row.at_ms)
    // A driver may return the sum of integers as text.
    const counts = {
      requests: Number(row.requests),
      agents: Number(row.agents),
      blocked: Number(row.blocked),
    }
    if (atMs !== OF_ALL) {
      const bucket = series.get(atMs) ?? emptyBucket()
      series.set(atMs, bucket)
      if (dimension === 'total') {
        bucket.requests += counts.requests
        bucket.agents += counts.agents
        bucket.blocked += counts.blocked
      } else if (dimension in PLACES) addTo(bucket[PLACES[dimension as keyof typeof PLACES]], row.key, counts)
      continue
    }
    const sum = sums.get(dimension) ?? new Map<string, Counts>()
    sums.set(dimension, sum)
    addTo(sum, row.key, counts)
  }
  return { sums, series }
}

type Bucket = Counts & Readonly<Record<(typeof PLACES)[keyof typeof PLACES], Map<string, Counts>>>

/** Where a bucket has the counts of a dimension. */
const PLACES = {
  verdict: 'verdicts',
  action: 'actions',
  category: 'categories',
  purpose: 'purposes',
} as const

function emptyBucket(): Bucket {
  return { ...NOTHING, verdicts: new Map(), actions: new Map(), categories: new Map(), purposes: new Map() }
}

/** A table of minutes, hours and days. Its key begins with them, then with the dimension if it has one. */
interface RollupRows {
  readonly table: 'rollups' | 'app_rollups'
  readonly dimensions: readonly (Dimension | null)[]
  /** How many minutes, hours or days are deleted at once: some thousand rows. */
  readonly atOnce: number
}

/** Deletes some expired rows. `false`: there are no more. */
export async function forgetRows(
  db: Kysely<Tables>,
  { table, dimensions, atOnce }: RollupRows,
  retention: RollupRetention,
  nowMs: number,
): Promise<boolean> {
  for (const { grainMs, keptMs } of grains(retention)) {
    for (const dimension of dimensions) {
      const ofGrain = sql`grain_ms = ${grainMs}`
      const isOfIt = dimension === null ? ofGrain : sql`${ofGrain} and dimension = ${dimension}`
      const oldest = sql<{
        at_ms: number
      }>`select at_ms from ${sql.table(table)} where ${isOfIt} order by at_ms limit 1`
      const oldestMs = (await oldest.execute(db)).rows[0]?.at_ms
      if (oldestMs === undefined || oldestMs >= nowMs - keptMs) continue
      const endMs = Math.min(nowMs - keptMs, oldestMs + atOnce * grainMs)
      await sql`delete from ${sql.table(table)} where ${isOfIt} and at_ms < ${endMs}`.execute(db)
      return true
    }
  }
  return false
}

export async function rowsIn(db: Kysely<Tables>, table: RollupRows['table']): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`.execute(db)
  return Number(rows[0]!.count)
}

export function grains({ minutesMs, hoursMs, daysMs }: RollupRetention) {
  return [
    { grainMs: MINUTE_MS, keptMs: minutesMs },
    { grainMs: HOUR_MS, keptMs: hoursMs },
    { grainMs: DAY_MS, keptMs: daysMs },
  ]
}

/** The coarsest grain that divides a bucket. */
export function grainOf(bucketMs: number): number {
  return GRAINS.findLast((grainMs) => bucketMs % grainMs === 0)!
}

interface Piece extends TimeSpan {
  readonly grainMs: number
}

/** Splits the span into as few rows as possible: days in the middle, hours and minutes at the ends. */
export function pieces(span: TimeSpan, grainMs: number): readonly Piece[] {
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

export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000
export const GRAINS = [MINUTE_MS, HOUR_MS, DAY_MS]
/** Marks sums of the whole span. */
export const OF_ALL = -1
export const IN_SERIES: readonly Dimension[] = ['total', 'verdict', 'action', 'category', 'purpose']
/** The total is in the series and in every other dimension. Tools are read one by one, verified agents with their agents. */
export const SUMMED: readonly Dimension[] = DIMENSIONS.filter(
  (each) => each !== 'total' && each !== 'tool' && each !== 'verified_agent',
)
