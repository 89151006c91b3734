import * as z from 'zod'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import type { ListedAgent } from '../../store/catalogue/catalogue-lists.ts'
import type { CountedAgent } from '../../store/traffic/agent-counts.ts'
import type { TimeSpan } from '../../store/traffic/rolled-up.ts'
import { integerInQuery, textInQuery, time, timeOf } from '../http/schemas.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import type { ApiContext } from './context.ts'
import { type ApiOperation, operation } from './operation.ts'
import { bucketsOf, spanOf } from './stats.ts'
import { BUCKETS, bucket, count, type StatsBucket, type StatsWindow, window } from './stats-answer.ts'

const agentStats = z
  .strictObject({
    window,
    bucket: bucket.meta({ description: 'The length of a bucket in `series`.' }),
    since: time.meta({ description: 'The start of the window, and of the first bucket.' }),
    total: count.meta({ description: 'The agents that fit the filters.' }),
    agents: z
      .array(
        z.strictObject({
          agent_id: z.string(),
          agent_name: z.string().meta({ description: 'Its id if it is not in the signatures any more.' }),
          agent_category: z.enum(CATEGORIES).nullable(),
          agent_purpose: z.array(z.enum(PURPOSES)).meta({ description: 'As published.' }),
          vendor: z.string().nullable().meta({ description: 'The operator of the agent, as published.' }),
          requests: count,
          blocked: count,
          verified: count.nullable().meta({
            description:
              'Requests that proved to be of this agent. `null`: unknown, because an earlier version counted a part of the window.',
          }),
          last_seen: time.nullable().meta({
            description:
              'For one app, one team, and callers that are limited to some apps: the start of the bucket of its last request.',
          }),
          series: z
            .array(count)
            .meta({ description: 'Its requests in each bucket. The last one is not complete.' }),
        }),
      )
      .meta({ description: 'Most requests first.' }),
  })
  .meta({ id: 'AgentStatistics' })

const getAgentStats = operation({
  id: 'getAgentStats',
  method: 'GET',
  path: '/stats/agents',
  tag: 'Statistics',
  summary: 'Get statistics of the agents that were here',
  description:
    'Agents with requests in the window, with their counts in time. Agents without a known name are not listed. Of an app with more than 100 agents in a day, those with the most requests.',
  scopes: ['read'],
  reach: 'filtered',
  query: z.strictObject({
    window: window
      .default('24h')
      .meta({ description: 'The period that is counted.', override: { default: '24h' } }),
    category: z.enum(CATEGORIES).optional().meta({ description: 'Only agents of this category.' }),
    purpose: z.enum(PURPOSES).optional().meta({ description: 'Only agents with this published purpose.' }),
    q: textInQuery('A text in its name, its aliases or its description. Case is ignored.').optional(),
    app: textInQuery('Only requests to this app, by its id.', 63).optional(),
    ...TEAM_FILTER,
    limit: integerInQuery(1, 200, 50, 'Agents in the answer.'),
  }),
  answer: agentStats,
  run: async ({ query, principal }, management) => {
    const apps = await filteredApps(query, principal, management)
    const bucket = TREND_BUCKETS[query.window]
    const span = spanOf(query.window, bucket, management.nowMs())
    const counted = (await countsOf(apps, span, BUCKETS[bucket], management)).sorted()
    const { found, total } = await matching(counted, query, management)
    const ids = found.map(({ id }) => id)
    const { rollups, appRollups } = management.store
    const trends =
      apps === ALL_APPS
        ? await rollups.trends(ids, span, BUCKETS[bucket])
        : await appRollups.trends(ids, apps, span, BUCKETS[bucket])
    const starts = bucketsOf(span, BUCKETS[bucket])
    const agents = found.map(({ id, requests, blocked, verified, listed }) => {
      const trend = trends.get(id)!
      const lastMs = apps === ALL_APPS && listed !== null ? listed.lastSeenMs : Math.max(...trend.keys())
      return {
        agent_id: id,
        agent_name: listed?.name ?? id,
        agent_category: listed?.category ?? null,
        agent_purpose: [...(listed?.purposes ?? [])],
        vendor: listed?.vendor ?? null,
        ...{ requests, blocked, verified },
        last_seen: timeOf(lastMs),
        series: starts.map((atMs) => trend.get(atMs) ?? 0),
      }
    })
    return { body: { window: query.window, bucket, since: timeOf(span.fromMs), total, agents } }
  },
})

export const AGENT_STATS_OPERATIONS: readonly ApiOperation[] = [getAgentStats]

function countsOf(apps: AppScope, span: TimeSpan, bucketMs: number, { store }: ApiContext) {
  if (apps === ALL_APPS) return store.rollups.agentCounts(span, bucketMs)
  return store.appRollups.agentCounts(apps, span, bucketMs)
}

interface AgentStatsFilters {
  readonly category?: (typeof CATEGORIES)[number] | null | undefined
  readonly purpose?: (typeof PURPOSES)[number] | null | undefined
  readonly q?: string | null | undefined
  readonly limit: number
}

interface MatchingAgent extends CountedAgent {
  /** `null`: it is not in the catalogue any more. */
  readonly listed: ListedAgent | null
}

/** The first of the counted agents that fit the filters, with what is known of them. */
async function matching(
  counted: readonly CountedAgent[],
  { category = null, purpose = null, q: text = null, limit }: AgentStatsFilters,
  { store }: ApiContext,
): Promise<{ readonly found: readonly MatchingAgent[]; readonly total: number }> {
  const isFiltered = category !== null || purpose !== null || text !== null
  const wanted = isFiltered ? counted : counted.slice(0, limit)
  const filter = { category, purpose, text, seenSinceMs: null, ids: wanted.map(({ id }) => id) }
  const { items } = await store.catalogueLists.agents(filter, { page: 1, limit: Math.max(1, wanted.length) })
  const known = new Map(items.map((each) => [each.id, each]))
  const found = wanted
    .filter(({ id }) => !isFiltered || known.has(id))
    .map((each) => ({ ...each, listed: known.get(each.id) ?? null }))
  return { found: found.slice(0, limit), total: isFiltered ? found.length : counted.length }
}

/** Some 30 points, as a small line shows them. */
const TREND_BUCKETS: Readonly<Record<StatsWindow, StatsBucket>> = {
  '1h': '5m',
  '24h': '1h',
  '7d': '6h',
  '30d': '1d',
}
