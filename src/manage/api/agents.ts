import * as z from 'zod'
import { DAY_MS } from '../../classify/calendar.ts'
import { CATEGORIES, parseSoftware, type Software, SOFTWARE_KINDS } from '../../classify/software.ts'
import type { FingerprintLists, KnownAgent } from '../../store/catalogue-lists.ts'
import type { SoftwareRow } from '../../store/catalogue.ts'
import type { Store } from '../../store/store.ts'
import { type AnyOperation, operation } from './operation.ts'
import { links, PAGE_ANSWER, PAGE_FIELDS, textInQuery, time, timeOf } from './schemas.ts'
import { shownSignature, signature } from './signature-schemas.ts'

const category = z.enum(CATEGORIES).meta({ id: 'AgentCategory' })
const fingerprintLists = z
  .strictObject({
    ja4: z.array(z.string()),
    ja4s: z.array(z.string()),
    ja4h: z.array(z.string()),
    ja4x: z.array(z.string()),
  })
  .meta({ description: 'Some of those it is known by; `GET /signatures?agent_id=…` has all.' })

const agentFields = {
  id: z.string().meta({ example: 'openai-python' }),
  name: z.string(),
  description: z.string().meta({ description: 'Empty where nobody has written one.' }),
  fingerprints: fingerprintLists,
  first_seen: time.meta({ description: 'The earliest day on which something it is known by was measured.' }),
  last_seen: time.nullable().meta({ description: 'On traffic of this installation; `null`: never.' }),
}
const agent = z.strictObject({ ...agentFields, category }).meta({ id: 'Agent' })

const VERSIONS_MAX = 50
const METHODS = ['web-bot-auth', 'ip-range', 'reverse-dns'] as const
const agentDetail = z
  .strictObject({
    ...agentFields,
    category: category.nullable().meta({
      description: 'Every agent has one; `null` of the tools and browsers that signatures name as well.',
    }),
    kind: z.enum(SOFTWARE_KINDS),
    vendor: z.string().nullable(),
    homepage: z.string().nullable(),
    documentation: z.string().nullable().meta({ description: 'A page about it, where one is known.' }),
    user_agent_patterns: z
      .array(z.strictObject({ pattern: z.string(), match: z.enum(['product', 'whole']) }))
      .meta({
        description:
          'Words of its User-Agent, in any case of letters: `product` not in the middle of a word, `whole` all of it.',
      }),
    robots_token: z.string().nullable().meta({ description: 'What it goes by in robots.txt.' }),
    verification: z.strictObject({
      methods: z.array(z.enum(METHODS)).meta({ description: 'How its vendor lets others check it.' }),
      sources: z.array(z.strictObject({ method: z.enum(METHODS), source: z.string() })).meta({
        description:
          'The origin of its key directory; where its addresses are published; ends of its host names.',
      }),
    }),
    signatures: z.array(signature).meta({ description: 'The first of them; `GET /signatures` has all.' }),
    sightings: z
      .strictObject({ '24h': z.int().min(0), '7d': z.int().min(0), total: z.int().min(0) })
      .meta({ description: 'Requests of it on traffic of this installation.' }),
    versions: z.array(z.string()).max(VERSIONS_MAX).meta({
      description:
        'Those that its User-Agent has named on traffic of this installation, the most frequent and the latest first. Clients say them; nobody checks them.',
    }),
  })
  .meta({ id: 'AgentDetail' })

const listAgents = operation({
  id: 'listAgents',
  method: 'GET',
  path: '/agents',
  tag: 'Agents',
  summary: 'List the agents that are known',
  description: 'In the order of their ids.',
  scopes: ['read'],
  query: z.strictObject({
    category: category.optional().meta({ description: 'Only these.' }),
    q: textInQuery('Something it is called or described by, in any case of letters.').optional(),
    seen_since: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'Seen on traffic of this installation since then.' }),
    ...PAGE_FIELDS,
  }),
  answer: z.strictObject({ agents: z.array(agent), ...PAGE_ANSWER }),
  run: async ({ query, target }, { store, publicUrl }) => {
    const { page, limit, seen_since: since } = query
    const filter = {
      category: query.category ?? null,
      text: query.q ?? null,
      seenSinceMs: since === undefined ? null : Date.parse(since),
    }
    const { items, total } = await store.catalogueLists.agents(filter, { page, limit })
    const lists = await store.catalogueLists.fingerprintsOf(
      items.map(({ id }) => id),
      LISTED_MAX,
    )
    const agents = items.map((each) => ({
      ...shownAgent(each, lists.get(each.id)!),
      category: each.category!,
    }))
    return {
      body: { agents, total, page, limit },
      headers: links(publicUrl, target, { page, limit }, total),
    }
  },
})

const getAgent = operation({
  id: 'getAgent',
  method: 'GET',
  path: '/agents/{agent_id}',
  tag: 'Agents',
  summary: 'All that is known of one agent',
  description:
    'By its id, or by its exact name. Tools and browsers that signatures name are found here, too; their `kind` says what they are.',
  scopes: ['read'],
  params: z.strictObject({ agent_id: z.string() }),
  answer: agentDetail,
  find: ({ params }, { store }) => store.catalogue.softwareNamed(params.agent_id),
  run: async ({ subject }, { store, nowMs }) => ({ body: await shownDetail(subject, store, nowMs()) }),
})

export const AGENT_OPERATIONS: readonly AnyOperation[] = [listAgents, getAgent]

function shownAgent(known: KnownAgent, { ja4, ja4s, ja4h, ja4x }: FingerprintLists) {
  return {
    ...{ id: known.id, name: known.name, description: known.description ?? '' },
    fingerprints: { ja4: [...ja4], ja4s: [...ja4s], ja4h: [...ja4h], ja4x: [...ja4x] },
    first_seen: timeOf(known.firstSeenMs),
    last_seen: timeOf(known.lastSeenMs),
  }
}

async function shownDetail(row: SoftwareRow, store: Store, nowMs: number) {
  const { id, category, kind } = row
  const { catalogueLists } = store
  const lists = await catalogueLists.fingerprintsOf([id], DETAIL_MAX)
  const seen = await catalogueLists.agentSeen(id)
  const filter = { ...OF_AGENT, softwareId: id }
  const { items } = await catalogueLists.signatures(filter, { page: 1, limit: DETAIL_MAX })
  const software = parseSoftware(JSON.parse(row.document))
  const { vendor, homepage, robotsToken } = software
  const known = {
    ...{ id, category, kind, name: row.name, description: row.description },
    ...{ firstSeenMs: row.first_seen_ms, lastSeenMs: seen?.lastSeenMs ?? null },
  }
  return {
    ...shownAgent(known, lists.get(id)!),
    ...{ category, kind, vendor, homepage, documentation: documentationOf(homepage) },
    user_agent_patterns: userAgentPatterns(software),
    robots_token: robotsToken,
    verification: shownVerification(software),
    signatures: items.map(shownSignature),
    sightings: await agentSightings(store, id, seen?.requests ?? 0, nowMs),
    versions: (seen?.versions ?? []).slice(0, VERSIONS_MAX),
  }
}

/** Requests of it that this installation has seen. */
async function agentSightings({ rollups }: Store, softwareId: string, total: number, nowMs: number) {
  return {
    '24h': await rollups.requestsOf(softwareId, nowMs - DAY_MS, nowMs),
    '7d': await rollups.requestsOf(softwareId, nowMs - 7 * DAY_MS, nowMs),
    total,
  }
}

/** The page of a vendor is its homepage; what stands deeper there is about the agent. */
function documentationOf(homepage: string | null): string | null {
  return homepage !== null && new URL(homepage).pathname !== '/' ? homepage : null
}

function userAgentPatterns({ signatures }: Software) {
  const patterns = new Map<string, { pattern: string; match: 'product' | 'whole' }>()
  for (const each of signatures)
    if (each.type === 'user-agent')
      patterns.set(`${each.match} ${each.text}`, { pattern: each.text, match: each.match })
  return [...patterns.values()]
}

function shownVerification({ verification }: Software) {
  const { signatureAgent, rangesUrl, ranges, reverseDns } = verification
  const published = rangesUrl ?? ranges?.source ?? null
  const sources = [
    ...(signatureAgent === null ? [] : [{ method: 'web-bot-auth' as const, source: signatureAgent }]),
    ...(published === null ? [] : [{ method: 'ip-range' as const, source: published }]),
    ...reverseDns.map((source) => ({ method: 'reverse-dns' as const, source })),
  ]
  return { methods: METHODS.filter((method) => sources.some((each) => each.method === method)), sources }
}

const OF_AGENT = {
  ...{ type: null, unknownOnly: false, text: null, confidenceMin: 0 },
  sort: { by: 'confidence', isDescending: true },
} as const
/** Of each type, in a list. */
const LISTED_MAX = 10
/** In one record. */
const DETAIL_MAX = 100
