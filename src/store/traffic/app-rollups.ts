import { type Kysely, sql } from 'kysely'
import { OTHER_APPS } from '../../apps/app.ts'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import {
  addBuckets,
  addTo,
  type Buckets,
  bucketsIn,
  type Counts,
  documentOf,
  newBuckets,
  NOTHING,
  OTHER,
  UNNAMED,
} from '../../plane/counts/buckets.ts'
import type { RollupTally } from '../../plane/counts/rollup-tally.ts'
import { parts } from '../engine/bulk.ts'
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

/**
 * The rollups of each app. All counts of an app in a minute, hour or day are one row. So a transaction writes
 * three rows for each app that it has requests of, whatever their number.
 */
export class AppRollupStore {
  readonly #db: Kysely<Tables>
  readonly #appsMax: number

  constructor(db: Kysely<Tables>, appsMax = APPS_MAX) {
    this.#db = db
    this.#appsMax = appsMax
  }

  /** Writers hold the lock of sightings. */
  async add(tally: RollupTally, retention: RollupRetention, nowMs: number, queries: Queries): Promise<void> {
    for (const { grainMs, keptMs } of grains(retention)) {
      const spans = Map.groupBy(tally.ofApps(grainMs, nowMs - keptMs), ({ atMs }) => atMs)
      for (const [atMs, found] of spans) {
        const added = new Map(found.map(({ app, buckets }) => [app, buckets]))
        await this.#addTo({ grainMs, atMs }, added, queries)
      }
    }
  }

  /** Reads the sum of these apps in `span`. For the other arguments, see RollupStore. */
  async read(apps: ReadonlySet<string>, span: TimeSpan, bucketMs: number): Promise<RolledUp> {
    return rolledUp(statisticsOf(await this.#stored(apps, span, grainOf(bucketMs)), bucketMs))
  }

  /** The counts of each of these apps in `span`, without other dimensions. */
  async totals(apps: AppScope, span: TimeSpan, bucketMs: number): Promise<ReadonlyMap<string, Counts>> {
    const totals = new Map<string, Counts>()
    if (apps !== ALL_APPS && apps.size === 0) return totals
    for (const { grainMs, fromMs, toMs } of pieces(span, grainOf(bucketMs))) {
      const all = this.#db
        .selectFrom('app_rollups')
        .select(['app', sql<string>`substr(counts, 1, ${sql.lit(TOTAL_LENGTH_MAX)})`.as('start')])
        .where('grain_ms', '=', grainMs)
        .where('at_ms', '>=', fromMs)
        .where('at_ms', '<', toMs)
      const rows = await (apps === ALL_APPS ? all : all.where('app', 'in', [...apps])).execute()
      for (const { app, start } of rows) addTo(totals, app, totalIn(start))
    }
    return totals
  }

  /**
   * The agents that sent requests to these apps since this hour, each with the beginning of its last hour. If it
   * is more than a week ago: days instead of hours.
   */
  async agentsOf(
    apps: ReadonlySet<string>,
    sinceMs: number,
    nowMs: number,
  ): Promise<ReadonlyMap<string, number>> {
    const grainMs = nowMs - sinceMs > 7 * DAY_MS ? DAY_MS : HOUR_MS
    const span = { fromMs: sinceMs - (sinceMs % grainMs), toMs: Number.MAX_SAFE_INTEGER }
    const last = new Map<string, number>()
    for (const { atMs, buckets } of await this.#stored(apps, span, grainMs))
      for (const agent of buckets.agent.keys())
        if (agent !== OTHER && agent !== UNNAMED) last.set(agent, Math.max(atMs, last.get(agent) ?? 0))
    return last
  }

  /** The counts of one agent, tool or browser at these apps, by the start of each bucket. */
  async seriesOf(
    software: string,
    apps: ReadonlySet<string>,
    span: TimeSpan,
    bucketMs: number,
  ): Promise<ReadonlyMap<number, Readonly<Counts>>> {
    const series = new Map<number, Counts>()
    for (const { atMs, buckets } of await this.#stored(apps, span, grainOf(bucketMs))) {
      const counts = buckets.agent.get(software) ?? buckets.tool.get(software)
      if (counts !== undefined) addTo(series, atMs - (atMs % bucketMs), counts)
    }
    return series
  }

  /** The requests of each agent to these apps in `span`. */
  async agentCounts(apps: ReadonlySet<string>, span: TimeSpan, bucketMs: number): Promise<AgentCounts> {
    const found = new AgentCounts()
    for (const { buckets } of await this.#stored(apps, span, grainOf(bucketMs))) {
      for (const [id, counts] of buckets.agent) found.addAgent(id, counts)
      for (const [id, counts] of buckets.verified_agent) found.addVerifiedAgent(id, counts)
      for (const counts of buckets.verified.values()) found.addProof(counts)
    }
    return found
  }

  /** The requests of these agents to these apps, by agent and by the start of each bucket, in one query. */
  async trends(
    agents: readonly string[],
    apps: ReadonlySet<string>,
    span: TimeSpan,
    bucketMs: number,
  ): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
    const trends = new Map(agents.map((agent) => [agent, new Map<number, number>()]))
    for (const { atMs, buckets } of await this.#stored(apps, span, grainOf(bucketMs))) {
      const bucket = atMs - (atMs % bucketMs)
      for (const [agent, trend] of trends) {
        const requests = buckets.agent.get(agent)?.requests ?? 0
        if (requests > 0) trend.set(bucket, (trend.get(bucket) ?? 0) + requests)
      }
    }
    return trends
  }

  /** Deletes some expired rows. `false`: there are no more. */
  async forget(retention: RollupRetention, nowMs: number): Promise<boolean> {
    return forgetRows(this.#db, ROWS, retention, nowMs)
  }

  async rows(): Promise<number> {
    return rowsIn(this.#db, ROWS.table)
  }

  /** Adds the counts of apps to one minute, hour or day. Apps beyond the limit are counted together. */
  async #addTo(place: Place, added: ReadonlyMap<string, Buckets>, queries: Queries): Promise<void> {
    const before = await this.#before(place, [...added.keys(), OTHER_APPS], queries)
    const fresh = [...added.keys()].filter((app) => !before.has(app))
    const room = fresh.length === 0 ? 0 : await this.#room(place, queries)
    const beyond = new Set(fresh.slice(Math.max(0, room)))
    const sums = new Map<string, Buckets>()
    for (const [app, buckets] of added) {
      const to = beyond.has(app) ? OTHER_APPS : app
      const sum = sums.get(to) ?? before.get(to) ?? newBuckets()
      sums.set(to, sum)
      addBuckets(sum, buckets)
    }
    const { grainMs: grain_ms, atMs: at_ms } = place
    const rows = [...sums].map(([app, sum]) => ({ grain_ms, app, at_ms, counts: textOf(sum) }))
    for (const part of parts(rows))
      await queries
        .insertInto('app_rollups')
        .values(part)
        .onConflict((conflict) =>
          conflict
            .columns(['grain_ms', 'app', 'at_ms'])
            .doUpdateSet(({ ref }) => ({ counts: ref('excluded.counts') })),
        )
        .execute()
  }

  async #before(
    { grainMs, atMs }: Place,
    apps: readonly string[],
    queries: Queries,
  ): Promise<ReadonlyMap<string, Buckets>> {
    const before = new Map<string, Buckets>()
    for (const part of parts(apps)) {
      const rows = await queries
        .selectFrom('app_rollups')
        .select(['app', 'counts'])
        .where('grain_ms', '=', grainMs)
        .where('app', 'in', part)
        .where('at_ms', '=', atMs)
        .execute()
      for (const { app, counts } of rows) before.set(app, storedBuckets(counts))
    }
    return before
  }

  /** The number of apps that may still get a row of their own. */
  async #room({ grainMs, atMs }: Place, queries: Queries): Promise<number> {
    const { rows } = await queries
      .selectFrom('app_rollups')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .where('grain_ms', '=', grainMs)
      .where('at_ms', '=', atMs)
      .where('app', '<>', OTHER_APPS)
      .executeTakeFirstOrThrow()
    return this.#appsMax - Number(rows)
  }

  async #stored(
    apps: ReadonlySet<string>,
    { fromMs, toMs }: TimeSpan,
    grainMs: number,
  ): Promise<readonly Stored[]> {
    if (apps.size === 0) return []
    const rows = await this.#db
      .selectFrom('app_rollups')
      .select(['at_ms', 'counts'])
      .where('grain_ms', '=', grainMs)
      .where('app', 'in', [...apps])
      .where('at_ms', '>=', fromMs)
      .where('at_ms', '<', toMs)
      .execute()
    return rows.map(({ at_ms: atMs, counts }) => ({ atMs, buckets: storedBuckets(counts) }))
  }
}

/** A minute, hour or day. */
interface Place {
  readonly grainMs: number
  readonly atMs: number
}

interface Stored {
  readonly atMs: number
  readonly buckets: Buckets
}

function* statisticsOf(stored: readonly Stored[], bucketMs: number) {
  for (const { atMs, buckets } of stored) {
    const at_ms = atMs - (atMs % bucketMs)
    for (const dimension of IN_SERIES)
      for (const [key, counts] of buckets[dimension]) yield { dimension, key, at_ms, ...counts }
    for (const dimension of SUMMED)
      for (const [key, counts] of buckets[dimension]) yield { dimension, key, at_ms: OF_ALL, ...counts }
  }
}

function textOf(buckets: Buckets): string {
  const agent = mostOf(buckets.agent)
  const verified_agent = listedIn(agent, buckets.verified_agent)
  return JSON.stringify(documentOf({ ...buckets, agent, verified_agent, tool: mostOf(buckets.tool) }))
}

/** The others are counted together, as in `kept`. */
function listedIn(kept: ReadonlyMap<string, Counts>, agents: Map<string, Counts>): Map<string, Counts> {
  const listed = new Map<string, Counts>()
  for (const [agent, counts] of agents) addTo(listed, kept.has(agent) ? agent : OTHER, counts)
  return listed
}

/** The agents, or tools, with the most requests. The rest is counted together. */
function mostOf(agents: Map<string, Counts>): Map<string, Counts> {
  if (agents.size <= AGENTS_MAX) return agents
  const named = [...agents].filter(([agent]) => agent !== OTHER)
  const sorted = named.sort(([, one], [, other]) => other.requests - one.requests)
  const most = new Map(sorted.slice(0, AGENTS_MAX - 1))
  const rest = [...sorted.slice(AGENTS_MAX - 1).map(([, counts]) => counts), agents.get(OTHER) ?? NOTHING]
  for (const counts of rest) addTo(most, OTHER, counts)
  return most
}

function storedBuckets(text: string): Buckets {
  try {
    return bucketsIn(JSON.parse(text))
  } catch {
    return bucketsIn(null)
  }
}

/** The total is the first member of the document, so that the rest need not be parsed. */
function totalIn(start: string): Readonly<Counts> {
  const [, requests, agents, blocked] = TOTAL.exec(start) ?? []
  if (requests === undefined) return NOTHING
  return { requests: Number(requests), agents: Number(agents), blocked: Number(blocked) }
}

const TOTAL = /^\{"total":\{"all":\[(\d{1,15}),(\d{1,15}),(\d{1,15})\]/
const TOTAL_LENGTH_MAX = 80
/** Each row is written again with each batch of its app. */
const AGENTS_MAX = 100
/** In each minute, hour and day. A million and a half rows of minutes in a day. */
const APPS_MAX = 1_000
const ROWS = { table: 'app_rollups', dimensions: [null], atOnce: 10 } as const
