import * as z from 'zod'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import {
  ACTIONS,
  CONFIDENCES,
  type Counts,
  type Dimension,
  MINUTE_MS,
  OTHER,
  UNNAMED,
} from '../../store/traffic/rollup-tally.ts'
import type { RolledUp, RolledUpBucket, TimeSpan } from '../../store/traffic/rollups.ts'
import type { Store } from '../../store/store.ts'
import { invalid } from '../http/refusal.ts'
import { type ApiOperation, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

/** Each window with the sizes of buckets that it allows, and the default size. */
export const WINDOWS = {
  '1h': { lengthMs: 60 * MINUTE_MS, buckets: ['1m', '5m', '15m'], usual: '1m' },
  '24h': { lengthMs: 24 * 60 * MINUTE_MS, buckets: ['5m', '15m', '1h'], usual: '1h' },
  '7d': { lengthMs: 7 * 24 * 60 * MINUTE_MS, buckets: ['1h', '6h', '1d'], usual: '1h' },
  '30d': { lengthMs: 30 * 24 * 60 * MINUTE_MS, buckets: ['1h', '6h', '1d'], usual: '1d' },
} as const satisfies Record<string, { lengthMs: number; buckets: readonly Bucket[]; usual: Bucket }>
const BUCKETS = {
  '1m': MINUTE_MS,
  '5m': 5 * MINUTE_MS,
  '15m': 15 * MINUTE_MS,
  '1h': 60 * MINUTE_MS,
  '6h': 6 * 60 * MINUTE_MS,
  '1d': 24 * 60 * MINUTE_MS,
} as const

type Window = keyof typeof WINDOWS
type Bucket = keyof typeof BUCKETS

export const window = z.enum(Object.keys(WINDOWS) as [Window, ...Window[]])
const bucket = z.enum(Object.keys(BUCKETS) as [Bucket, ...Bucket[]])
const count = z.int().min(0)
const stats = z
  .strictObject({
    window,
    bucket,
    agents: z.strictObject({
      total: count.meta({ description: 'The number of known agents.' }),
      seen: count.meta({ description: 'Known agents that sent a request in the window.' }),
      new: count.meta({ description: 'Known agents that sent their first request in the window.' }),
    }),
    fingerprints: z.strictObject({
      unique: count.meta({ description: 'Distinct fingerprints seen in the window.' }),
      by_type: z.strictObject({ ja4: count, ja4s: count, ja4h: count, ja4x: count }),
      unknown: count.meta({ description: 'Those that belong to no known software.' }),
    }),
    detection: z.strictObject({
      requests: count,
      agents: count.meta({ description: 'Requests of agents.' }),
      rate: z.number().min(0).max(1).meta({ description: 'The share of all requests.' }),
      blocked: count,
      tagged: count,
      verified: count.meta({ description: 'Requests with a proven identity.' }),
      verified_by: z.record(z.string(), count).meta({
        description: 'The same by proof: `web-bot-auth`, `ip-range`, `reverse-dns`.',
      }),
      by_category: z.record(z.string(), count).meta({
        description: 'Requests of agents. `unnamed`: requests of agents whose name is unknown.',
      }),
      by_purpose: z.record(z.string(), count).meta({
        description:
          'Requests of agents by published purpose. A request of an agent with several purposes counts for each. `unpublished`: requests of agents without one.',
      }),
      by_agent: z
        .array(
          z.strictObject({
            agent_id: z.string(),
            agent_name: z.string(),
            agent_category: z.string().nullable(),
            agent_purpose: z.array(z.string()),
            requests: count,
            blocked: count,
          }),
        )
        .meta({ description: 'Most requests first.' }),
      by_action: z.record(z.string(), count).meta({
        description: 'All requests by the action taken. A rule on trial takes no action.',
      }),
      by_confidence: z.record(z.string(), count).meta({
        description: 'All requests by the confidence in the verdict, in steps of 0.1, whatever the verdict.',
      }),
    }),
    series: z
      .array(
        z.strictObject({
          at: time,
          requests: count,
          agents: count,
          blocked: count,
          by_verdict: z.record(z.string(), count),
          by_category: z.record(z.string(), count),
          by_purpose: z.record(z.string(), count),
        }),
      )
      .meta({
        description:
          'Each bucket has the time at which it begins. The last one is not complete. The buckets add up to `detection`. Only verdicts, categories and purposes that occurred are listed.',
      }),
    generated_at: time,
  })
  .meta({ id: 'Statistics' })

const windowQuery = z.strictObject({
  window: window
    .default('24h')
    .meta({ description: 'The period that is counted.', override: { default: '24h' } }),
  bucket: bucket
    .optional()
    .meta({ description: 'The length of a bucket in `series`. Each window allows other lengths.' }),
})

const getStats = operation({
  id: 'getStats',
  method: 'GET',
  path: '/stats',
  tag: 'Statistics',
  summary: 'Get statistics',
  description:
    'Counts for the window, which ends now and starts at the beginning of a bucket, in UTC. ' +
    'A request is counted within a second.',
  scopes: ['read'],
  query: windowQuery,
  answer: stats,
  run: async ({ query }, { store, nowMs }) => {
    const { window, bucket } = askedFor(query)
    return { body: await statistics(store, window, bucket, nowMs()) }
  },
})

const traffic = z
  .strictObject({
    agent_id: z.string(),
    window,
    bucket,
    requests: count,
    blocked: count,
    series: z
      .array(z.strictObject({ at: time, requests: count, blocked: count }))
      .meta({ description: 'Each bucket has the time at which it begins. The last one is not complete.' }),
  })
  .meta({ id: 'AgentTraffic' })

const getAgentTraffic = operation({
  id: 'getAgentTraffic',
  method: 'GET',
  path: '/agents/{agent_id}/traffic',
  tag: 'Statistics',
  summary: 'Get statistics of an agent',
  description: 'Its requests in the window, in the same buckets as `/stats`.',
  scopes: ['read'],
  params: z.strictObject({ agent_id: z.string() }),
  find: ({ params }, { store }) => store.catalogue.softwareNamed(params.agent_id),
  query: windowQuery,
  answer: traffic,
  run: async ({ subject, query }, { store, nowMs }) => {
    const { window, bucket } = askedFor(query)
    const span = spanOf(window, bucket, nowMs())
    const found = await store.rollups.seriesOf(subject.id, span, BUCKETS[bucket])
    const series = bucketsOf(span, BUCKETS[bucket]).map((atMs) => {
      const { requests, blocked } = found.get(atMs) ?? NOTHING
      return { at: timeOf(atMs), requests, blocked }
    })
    const sum = (of: 'requests' | 'blocked') => series.reduce((total, each) => total + each[of], 0)
    const sums = { requests: sum('requests'), blocked: sum('blocked') }
    return { body: { agent_id: subject.id, window, bucket, ...sums, series } }
  },
})

export const STATS_OPERATIONS: readonly ApiOperation[] = [getStats, getAgentTraffic]

function askedFor(query: { readonly window: Window; readonly bucket?: Bucket | undefined }) {
  const { window } = query
  const { buckets, usual } = WINDOWS[window]
  const bucket = query.bucket ?? usual
  const allowed: readonly Bucket[] = buckets
  if (!allowed.includes(bucket))
    throw invalid([
      { pointer: '/bucket', detail: `must be one of ${allowed.join(', ')} with a window of ${window}` },
    ])
  return { window, bucket }
}

/** The answer of GET /stats at `nowMs`. */
export async function statistics(
  store: Store,
  window: Window,
  bucket: Bucket,
  nowMs: number,
): Promise<z.input<typeof stats>> {
  const bucketMs = BUCKETS[bucket]
  const span = spanOf(window, bucket, nowMs)
  // PostgreSQL runs these queries at the same time.
  const [rolledUp, fingerprints, total, fresh] = await Promise.all([
    store.rollups.read(span, bucketMs),
    store.fingerprintsSeen.counts(span.fromMs),
    store.agentsSeen.total(),
    store.agentsSeen.newSince(span.fromMs),
  ])
  const agents = [...sumsOf(rolledUp, 'agent')].filter(([id]) => id !== OTHER && id !== UNNAMED)
  return {
    window,
    bucket,
    agents: {
      total,
      seen: agents.length,
      new: fresh,
    },
    fingerprints: {
      unique: fingerprints.reduce((sum, { count }) => sum + count, 0),
      by_type: Object.fromEntries(fingerprints.map(({ type, count }) => [type, count])) as ByType,
      unknown: fingerprints.reduce((sum, { unnamed }) => sum + unnamed, 0),
    },
    detection: { ...detection(rolledUp), by_agent: await top(store, agents) },
    series: series(rolledUp, span, bucketMs),
    generated_at: timeOf(nowMs),
  }
}

/** Ends with the current bucket, which is not over. */
function spanOf(window: Window, bucket: Bucket, nowMs: number): TimeSpan {
  const bucketMs = BUCKETS[bucket]
  const toMs = (Math.floor(nowMs / bucketMs) + 1) * bucketMs
  return { fromMs: toMs - WINDOWS[window].lengthMs, toMs }
}

/** The start time of each bucket. */
function bucketsOf({ fromMs, toMs }: TimeSpan, bucketMs: number): readonly number[] {
  return Array.from({ length: (toMs - fromMs) / bucketMs }, (_, index) => fromMs + index * bucketMs)
}

type ByType = z.input<typeof stats>['fingerprints']['by_type']

function detection(rolledUp: RolledUp) {
  const verdicts = [...sumsOf(rolledUp, 'verdict').values()]
  const requests = verdicts.reduce((sum, { requests }) => sum + requests, 0)
  const agents = verdicts.reduce((sum, { agents }) => sum + agents, 0)
  const actions = byKey(rolledUp, 'action', ACTIONS)
  return {
    requests,
    agents,
    rate: requests === 0 ? 0 : agents / requests,
    blocked: actions['block']!,
    tagged: actions['tag']!,
    verified: [...sumsOf(rolledUp, 'verified').values()].reduce((sum, { requests }) => sum + requests, 0),
    verified_by: byKey(rolledUp, 'verified', PROOF_METHODS),
    by_category: byKey(rolledUp, 'category', CATEGORIES),
    by_purpose: byKey(rolledUp, 'purpose', PURPOSES),
    by_action: actions,
    by_confidence: byKey(rolledUp, 'confidence', CONFIDENCES),
  }
}

/**
 * Has every key of the list, even with a count of 0. It has other keys (`other`, `unnamed`) only if they
 * occurred.
 */
function byKey(rolledUp: RolledUp, dimension: Dimension, keys: readonly string[]): Record<string, number> {
  const found = sumsOf(rolledUp, dimension)
  const counts: Record<string, number> = Object.fromEntries(keys.map((key) => [key, 0]))
  for (const [key, { requests }] of found) counts[key] = requests
  return counts
}

async function top(store: Store, agents: readonly (readonly [string, Readonly<Counts>])[]) {
  const most = agents
    .toSorted(
      ([one, { requests }], [other, { requests: others }]) => others - requests || (one < other ? -1 : 1),
    )
    .slice(0, TOP)
  const names = await store.agentsSeen.names(most.map(([id]) => id))
  return most.map(([id, { requests, blocked }]) => {
    const { name = id, category = null, purposes = [] } = names.get(id) ?? {}
    const agent = { agent_id: id, agent_name: name, agent_category: category, agent_purpose: [...purposes] }
    return { ...agent, requests, blocked }
  })
}

function series({ series: found }: RolledUp, span: TimeSpan, bucketMs: number) {
  return bucketsOf(span, bucketMs).map((atMs) => {
    const { requests, agents, blocked, verdicts, categories, purposes } = found.get(atMs) ?? NOTHING
    const by = {
      by_verdict: requestsBy(verdicts),
      by_category: requestsBy(categories),
      by_purpose: requestsBy(purposes),
    }
    return { at: timeOf(atMs), requests, agents, blocked, ...by }
  })
}

function requestsBy(counts: ReadonlyMap<string, Readonly<Counts>>): Record<string, number> {
  return Object.fromEntries([...counts].map(([key, { requests }]) => [key, requests]))
}

function sumsOf({ sums }: RolledUp, dimension: Dimension): ReadonlyMap<string, Readonly<Counts>> {
  return sums.get(dimension) ?? new Map()
}

const NOTHING: RolledUpBucket = {
  requests: 0,
  agents: 0,
  blocked: 0,
  verdicts: new Map(),
  categories: new Map(),
  purposes: new Map(),
}
/** As many agents as a page shows. */
const TOP = 20
