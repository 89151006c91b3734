import * as z from 'zod'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import {
  ACTIONS,
  CONFIDENCES,
  type Counts,
  type Dimension,
  OTHER,
  UNNAMED,
} from '../../plane/counts/buckets.ts'
import type { RolledUp, RolledUpBucket, TimeSpan } from '../../store/traffic/rolled-up.ts'
import type { Store } from '../../store/store.ts'
import { invalid } from '../http/refusal.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import { type ApiOperation, operation } from './operation.ts'
import {
  type StatsBucket,
  BUCKETS,
  bucket,
  count,
  stats,
  type StatsWindow,
  WINDOWS,
  window,
} from './stats-answer.ts'
import { VERDICTS } from './request-views.ts'
import { severalInQuery, textInQuery, time, timeOf } from '../http/schemas.ts'

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
  reach: 'filtered',
  query: windowQuery.extend({
    app: textInQuery(
      'Only requests to this app, by its id. `default`: those that matched no app. An app without requests has zeros. At most 1,000 apps are counted in a minute, hour or day, the others together as `other`.',
      63,
    ).optional(),
    ...TEAM_FILTER,
    include: severalInQuery(
      ['previous', 'apps'],
      'More members, separated by commas: `previous`, the window before; `apps`, the requests by app.',
    ),
  }),
  answer: stats,
  run: async ({ query, principal }, management) => {
    const { store } = management
    const nowMs = management.nowMs()
    const { window, bucket } = askedFor(query)
    const apps = await filteredApps(query, principal, management)
    const span = spanOf(window, bucket, nowMs)
    const has = (member: 'previous' | 'apps') => query.include?.includes(member) ?? false
    const [body, previous, by_app] = await Promise.all([
      statistics(store, window, bucket, nowMs, apps),
      has('previous') ? before(store, apps, span, BUCKETS[bucket]) : null,
      has('apps') ? byApp(store, apps, span, BUCKETS[bucket]) : null,
    ])
    return { body: { ...body, previous, by_app } }
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
  reach: 'filtered',
  params: z.strictObject({ agent_id: z.string() }),
  find: ({ params }, { store }) => store.catalogue.softwareNamed(params.agent_id),
  query: windowQuery,
  answer: traffic,
  run: async ({ subject, query, principal }, { store, nowMs }) => {
    const { window, bucket } = askedFor(query)
    const span = spanOf(window, bucket, nowMs())
    const { apps } = principal
    const found =
      apps === ALL_APPS
        ? await store.rollups.seriesOf(subject.id, span, BUCKETS[bucket])
        : await store.appRollups.seriesOf(subject.id, apps, span, BUCKETS[bucket])
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

function askedFor(query: { readonly window: StatsWindow; readonly bucket?: StatsBucket | undefined }) {
  const { window } = query
  const { buckets, usual } = WINDOWS[window]
  const bucket = query.bucket ?? usual
  const allowed: readonly StatsBucket[] = buckets
  if (!allowed.includes(bucket))
    throw invalid([
      { pointer: '/bucket', detail: `must be one of ${allowed.join(', ')} with a window of ${window}` },
    ])
  return { window, bucket }
}

/** The answer of GET /stats at `nowMs`, of requests to these apps. */
export async function statistics(
  store: Store,
  window: StatsWindow,
  bucket: StatsBucket,
  nowMs: number,
  apps: AppScope = ALL_APPS,
): Promise<z.input<typeof stats>> {
  const bucketMs = BUCKETS[bucket]
  const span = spanOf(window, bucket, nowMs)
  // PostgreSQL runs these queries at the same time.
  const [rolledUp, total, keptSinceMs, ofAll] = await Promise.all([
    readOf(store, apps, span, bucketMs),
    store.agentsSeen.total(),
    store.rollups.keptSince(bucketMs),
    apps === ALL_APPS ? countedForAll(store, span.fromMs) : { fresh: null, fingerprints: null },
  ])
  const agents = [...sumsOf(rolledUp, 'agent')].filter(([id]) => id !== OTHER && id !== UNNAMED)
  return {
    window,
    bucket,
    agents: {
      total,
      seen: agents.length,
      new: ofAll.fresh,
    },
    fingerprints: ofAll.fingerprints,
    detection: { ...detection(rolledUp), by_agent: await top(store, agents) },
    by_app: null,
    previous: null,
    counted_since: keptSinceMs === null ? null : timeOf(keptSinceMs - (keptSinceMs % bucketMs)),
    series: series(rolledUp, span, bucketMs),
    generated_at: timeOf(nowMs),
  }
}

function readOf(store: Store, apps: AppScope, span: TimeSpan, bucketMs: number): Promise<RolledUp> {
  if (apps === ALL_APPS) return store.rollups.read(span, bucketMs)
  return store.appRollups.read(apps, span, bucketMs)
}

/** The counts of the window before. */
async function before(store: Store, apps: AppScope, { fromMs, toMs }: TimeSpan, bucketMs: number) {
  const span = { fromMs: fromMs - (toMs - fromMs), toMs: fromMs }
  const found = await readOf(store, apps, span, bucketMs)
  return {
    detection: detection(found),
    series: series(found, span, bucketMs).map(({ at, requests, agents, blocked }) => {
      return { at, requests, agents, blocked }
    }),
  }
}

async function byApp(store: Store, apps: AppScope, span: TimeSpan, bucketMs: number) {
  const totals = await store.appRollups.totals(apps, span, bucketMs)
  return mostFirst([...totals]).map(([app, counts]) => ({ app, ...counts }))
}

/** New agents and fingerprints are not counted by app. */
async function countedForAll(store: Store, sinceMs: number) {
  const [fresh, counts] = await Promise.all([
    store.agentsSeen.newSince(sinceMs),
    store.fingerprintsSeen.counts(sinceMs),
  ])
  const fingerprints = {
    unique: counts.reduce((sum, { count }) => sum + count, 0),
    by_type: Object.fromEntries(counts.map(({ type, count }) => [type, count])) as ByType,
    unknown: counts.reduce((sum, { unnamed }) => sum + unnamed, 0),
  }
  return { fresh, fingerprints }
}

/** Ends with the current bucket, which is not over. */
export function spanOf(window: StatsWindow, bucket: StatsBucket, nowMs: number): TimeSpan {
  const bucketMs = BUCKETS[bucket]
  const toMs = (Math.floor(nowMs / bucketMs) + 1) * bucketMs
  return { fromMs: toMs - WINDOWS[window].lengthMs, toMs }
}

/** The start time of each bucket. */
export function bucketsOf({ fromMs, toMs }: TimeSpan, bucketMs: number): readonly number[] {
  return Array.from({ length: (toMs - fromMs) / bucketMs }, (_, index) => fromMs + index * bucketMs)
}

type ByType = NonNullable<z.input<typeof stats>['fingerprints']>['by_type']

function detection(rolledUp: RolledUp) {
  const byVerdict = sumsOf(rolledUp, 'verdict')
  const verdicts = [...byVerdict.values()]
  const requests = verdicts.reduce((sum, { requests }) => sum + requests, 0)
  const agents = verdicts.reduce((sum, { agents }) => sum + agents, 0)
  const actions = byKey(rolledUp, 'action', ACTIONS)
  return {
    requests,
    agents,
    rate: requests === 0 ? 0 : agents / requests,
    blocked: actions['block']!,
    tagged: actions['tag']!,
    by_verdict: byKey(rolledUp, 'verdict', VERDICTS),
    blocked_by_verdict: Object.fromEntries(
      VERDICTS.map((verdict) => [verdict, byVerdict.get(verdict)?.blocked ?? 0]),
    ),
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
  const most = mostFirst(agents)
  const names = await store.agentsSeen.names(most.map(([id]) => id))
  return most.map(([id, { requests, blocked }]) => {
    const { name = id, category = null, purposes = [] } = names.get(id) ?? {}
    const agent = { agent_id: id, agent_name: name, agent_category: category, agent_purpose: [...purposes] }
    return { ...agent, requests, blocked }
  })
}

function mostFirst(counted: readonly (readonly [string, Readonly<Counts>])[]) {
  return counted
    .toSorted(
      ([one, { requests }], [other, { requests: others }]) => others - requests || (one < other ? -1 : 1),
    )
    .slice(0, TOP)
}

function series({ series: found }: RolledUp, span: TimeSpan, bucketMs: number) {
  return bucketsOf(span, bucketMs).map((atMs) => {
    const { requests, agents, blocked, verdicts, actions, categories, purposes } = found.get(atMs) ?? NOTHING
    const by = {
      by_verdict: requestsBy(verdicts),
      by_action: requestsBy(actions),
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
  actions: new Map(),
  categories: new Map(),
  purposes: new Map(),
}
/** As many agents or apps as a page shows. */
const TOP = 20
