import * as z from 'zod'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { DAY_MS } from '../../classify/known/calendar.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import {
  CATEGORIES,
  PURPOSES,
  parseSoftware,
  type Software,
  SOFTWARE_KINDS,
} from '../../classify/known/software.ts'
import type { FingerprintLists, ListedAgent } from '../../store/catalogue/catalogue-lists.ts'
import type { SoftwareRow } from '../../store/catalogue/catalogue.ts'
import type { Store } from '../../store/store.ts'
import { agentEvidence, verificationSources } from '../judging/agent-evidence.ts'
import type { Principal } from '../http/access/principal.ts'
import { HOUR_MS } from '../../store/traffic/rolled-up.ts'
import type { Counts } from '../../plane/counts/buckets.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import type { ApiContext } from './context.ts'
import { type ApiOffered, type ApiVersioned, listing, operation } from './operation.ts'
import { reasons, textInQuery, time, timeOf } from '../http/schemas.ts'
import {
  knownToTeam,
  shownSignature,
  shownWithEvidence,
  signature,
  signatureWithEvidence,
} from '../judging/signature-schemas.ts'
import { softwareInPath } from './software-id.ts'

const category = z.enum(CATEGORIES).meta({ id: 'AgentCategory' })
const purpose = z.array(z.enum(PURPOSES)).meta({
  description:
    'What the agent does with the pages that it fetches, as its vendor or a public list has published it. Empty if nothing is published.',
})
const fingerprintLists = z
  .strictObject({
    ja4: z.array(z.string()),
    ja4s: z.array(z.string()),
    ja4h: z.array(z.string()),
    ja4x: z.array(z.string()),
  })
  .meta({ description: 'Some of its fingerprints. `GET /signatures?agent_id=…` lists all.' })

const agentFields = {
  id: z.string().meta({ example: 'openai-sdk-python' }),
  name: z.string(),
  description: z.string().meta({ description: 'Empty without a description.' }),
  purpose,
  fingerprints: fingerprintLists,
  first_seen: time.meta({ description: 'The earliest day on which one of its signatures was measured.' }),
  last_seen: time.nullable().meta({
    description:
      'When this installation last saw it. For callers that are limited to some apps: the beginning of the day of its last request to them. `null`: never.',
  }),
}
const evidence = reasons(
  'AgentEvidence',
  'fingerprints',
  'What identifies it. The weight of `fingerprints` of a type is that of the most certain one, as the natural logarithm of odds. Its names in User-Agents (`goes-by`), the ways to verify it (`verifiable`) and live sightings (`seen-live`) have the weight 0.',
)
const agent = z.strictObject({ ...agentFields, category }).meta({ id: 'Agent' })
const agentWithEvidence = z.strictObject({ ...agentFields, category, evidence }).meta({ id: 'Agent' })

const VERSIONS_MAX = 50
const FIRST_SIGNATURES = 'The first few. `GET /signatures` lists all.'
const detailFields = {
  ...agentFields,
  category: category.nullable().meta({
    description: 'Set for every agent. `null` for the tools and browsers that signatures also name.',
  }),
  kind: z.enum(SOFTWARE_KINDS),
  vendor: z.string().nullable(),
  homepage: z.string().nullable(),
  documentation: z.string().nullable().meta({ description: 'A page about it, if one is known.' }),
  user_agent_patterns: z
    .array(z.strictObject({ pattern: z.string(), match: z.enum(['product', 'whole']) }))
    .meta({
      description:
        'A text in its User-Agent. Case is ignored. `product`: not in the middle of a word. `whole`: the entire User-Agent.',
    }),
  purpose_sources: z
    .array(z.strictObject({ purpose: z.enum(PURPOSES), source: z.string(), date: z.string() }))
    .meta({ description: 'Where each purpose was published, and the day of which it is true.' }),
  robots_token: z.string().nullable().meta({ description: 'Its name in robots.txt.' }),
  verification: z.strictObject({
    methods: z.array(z.enum(PROOF_METHODS)).meta({ description: 'How its vendor lets others verify it.' }),
    sources: z.array(z.strictObject({ method: z.enum(PROOF_METHODS), source: z.string() })).meta({
      description:
        'The origin of its key directory, the URLs of its published addresses, or the suffixes of its host names.',
    }),
  }),
  signatures: z.array(signature).meta({ description: FIRST_SIGNATURES }),
  sightings: z.strictObject({ '24h': z.int().min(0), '7d': z.int().min(0), total: z.int().min(0) }).meta({
    description:
      'Its requests that this installation saw. For callers that are limited to some apps: those to them.',
  }),
  versions: z.array(z.string()).max(VERSIONS_MAX).meta({
    description:
      'The versions named in its User-Agents that this installation saw, the most frequent and the latest first. Clients claim them. They are not verified.',
  }),
}
const agentDetail = z.strictObject(detailFields).meta({ id: 'AgentDetail' })
const agentDetailWithEvidence = z
  .strictObject({
    ...detailFields,
    signatures: z.array(signatureWithEvidence).meta({ description: FIRST_SIGNATURES }),
    evidence,
  })
  .meta({ id: 'AgentDetail' })

const listAgents = listing({
  id: 'listAgents',
  path: '/agents',
  tag: 'Agents',
  summary: 'List known agents',
  description: 'Ordered by id.',
  scopes: ['read'],
  reach: 'filtered',
  name: 'agents',
  filters: {
    category: category.optional().meta({ description: 'Only agents of this category.' }),
    purpose: z.enum(PURPOSES).optional().meta({ description: 'Only agents with this published purpose.' }),
    q: textInQuery('A text in its name, its aliases or its description. Case is ignored.').optional(),
    seen_since: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'Only agents that this installation has seen since this time.' }),
    app: textInQuery(
      'Only agents that sent requests to this app, by its id, in the last 30 days or since the hour (after a week: the day) of `seen_since`. Of an app with more than 100 agents in a day, those with the most requests.',
      63,
    ).optional(),
    ...TEAM_FILTER,
  },
  part: async (wanted, part, management, { principal }) => {
    const { store, nowMs } = management
    const { category = null, purpose = null, q: text = null, seen_since, app, team } = wanted
    const sinceMs = seen_since === undefined ? null : Date.parse(seen_since)
    const isLimited = principal.apps !== ALL_APPS
    const apps = await filteredApps(wanted, principal, management)
    const isSeen = app !== undefined || team !== undefined || (isLimited && sinceMs !== null)
    const seen =
      apps === ALL_APPS || !isSeen
        ? null
        : await store.appRollups.agentsOf(apps, sinceMs ?? nowMs() - APP_AGENTS_MS, nowMs())
    const ids = seen === null ? null : [...seen.keys()]
    // When all apps saw an agent must not decide what a limited caller gets.
    const seenSinceMs = isLimited ? null : sinceMs
    return store.catalogueLists.agents({ category, purpose, text, seenSinceMs, ids }, part)
  },
  items: { schema: agent, show: shownAgents },
  betaItems: {
    schema: agentWithEvidence,
    show: async (known: readonly ListedAgent[], management, principal) => {
      const shown = await shownAgents(known, management, principal)
      const ids = known.map(({ id }) => id)
      const reasons = await agentEvidence(ids, management, principal.apps)
      return shown.map((each) => ({ ...each, evidence: reasons.get(each.id) ?? [] }))
    },
  },
})

const describing = {
  id: 'getAgent',
  method: 'GET' as const,
  path: '/agents/{agent_id}' as const,
  tag: 'Agents' as const,
  summary: 'Get an agent',
  description:
    'By its id or its exact name. Also finds the tools and browsers that signatures name. `kind` tells them apart.',
  scopes: ['read'] as const,
  reach: 'filtered' as const,
  params: z.strictObject({ agent_id: z.string() }),
  find: softwareInPath,
}

const getAgent: ApiVersioned = {
  v1: operation({
    ...describing,
    answer: agentDetail,
    run: async ({ subject, principal }, management) => {
      const signatures = await signaturesOf(subject, management, principal)
      return { body: await shownDetail(subject, signatures.map(shownSignature), management, principal) }
    },
  }),
  v2: operation({
    ...describing,
    answer: agentDetailWithEvidence,
    run: async ({ subject, principal }, management) => {
      const { apps } = principal
      const known = await signaturesOf(subject, management, principal)
      const signatures = await shownWithEvidence(known, management, apps)
      const detail = await shownDetail(subject, signatures, management, principal)
      const reasons = await agentEvidence([subject.id], management, apps)
      return { body: { ...detail, evidence: reasons.get(subject.id) ?? [] } }
    },
  }),
}

export const AGENT_OPERATIONS: readonly ApiOffered[] = [listAgents, getAgent]

async function shownAgents(
  listed: readonly ListedAgent[],
  { store, nowMs }: ApiContext,
  { apps }: Principal,
) {
  const seen = apps === ALL_APPS ? null : await store.appRollups.agentsOf(apps, 0, nowMs())
  const known =
    seen === null ? listed : listed.map((each) => ({ ...each, lastSeenMs: seen.get(each.id) ?? null }))
  const ids = known.map(({ id }) => id)
  const lists = await store.catalogueLists.fingerprintsOf(ids, LISTED_MAX)
  return known.map((each) => ({ ...shownAgent(each, lists.get(each.id)!), category: each.category! }))
}

function shownAgent(known: ListedAgent, { ja4, ja4s, ja4h, ja4x }: FingerprintLists) {
  return {
    id: known.id,
    name: known.name,
    description: known.description ?? '',
    purpose: [...known.purposes],
    fingerprints: { ja4: [...ja4], ja4s: [...ja4s], ja4h: [...ja4h], ja4x: [...ja4x] },
    first_seen: timeOf(known.firstSeenMs),
    last_seen: timeOf(known.lastSeenMs),
  }
}

async function signaturesOf({ id }: SoftwareRow, { store }: ApiContext, { apps }: Principal) {
  const filter = { ...OF_AGENT, softwareId: id }
  const found = await store.catalogueLists.signatures(filter, { after: null, limit: DETAIL_MAX })
  return knownToTeam(found.items, apps)
}

async function shownDetail<Shown>(
  row: SoftwareRow,
  signatures: Shown[],
  { store, nowMs }: ApiContext,
  { apps }: Principal,
) {
  const { id, category, kind } = row
  const { catalogueLists } = store
  const lists = await catalogueLists.fingerprintsOf([id], DETAIL_MAX)
  const seen =
    apps === ALL_APPS ? await seenByAll(store, id, nowMs()) : await seenBy(apps, store, id, nowMs())
  const software = parseSoftware(JSON.parse(row.document))
  const { vendor, homepage, robotsToken } = software
  const known = {
    id,
    category,
    purposes: software.purposes,
    vendor: software.vendor,
    kind,
    name: row.name,
    description: row.description,
    firstSeenMs: row.first_seen_ms,
    lastSeenMs: seen.lastSeenMs,
  }
  return {
    ...shownAgent(known, lists.get(id)!),
    category,
    kind,
    vendor,
    homepage,
    documentation: documentationOf(homepage),
    user_agent_patterns: userAgentPatterns(software),
    purpose_sources: software.purposes.map((purpose, i) => ({ purpose, ...software.purposeSources[i]! })),
    robots_token: robotsToken,
    verification: shownVerification(software),
    signatures,
    sightings: seen.sightings,
    versions: seen.versions.slice(0, VERSIONS_MAX),
  }
}

/** The requests of the agent that this installation has seen. */
async function seenByAll({ catalogueLists, rollups }: Store, softwareId: string, nowMs: number) {
  const seen = await catalogueLists.agentSeen(softwareId)
  return {
    lastSeenMs: seen?.lastSeenMs ?? null,
    versions: seen?.versions ?? [],
    sightings: {
      '24h': await rollups.requestsOf(softwareId, nowMs - DAY_MS, nowMs),
      '7d': await rollups.requestsOf(softwareId, nowMs - 7 * DAY_MS, nowMs),
      total: seen?.requests ?? 0,
    },
  }
}

/** Its requests to these apps, in whole hours and days, as long as they are kept. */
async function seenBy(apps: ReadonlySet<string>, { appRollups }: Store, softwareId: string, nowMs: number) {
  const since = async (sinceMs: number, bucketMs: number) => {
    const span = { fromMs: Math.floor(sinceMs / bucketMs) * bucketMs, toMs: nowMs + 1 }
    return appRollups.seriesOf(softwareId, apps, span, bucketMs)
  }
  const sumOf = (series: ReadonlyMap<number, Counts>) =>
    [...series.values()].reduce((sum, { requests }) => sum + requests, 0)
  const all = await since(0, DAY_MS)
  return {
    lastSeenMs: all.size === 0 ? null : Math.max(...all.keys()),
    versions: [],
    sightings: {
      '24h': sumOf(await since(nowMs - DAY_MS, HOUR_MS)),
      '7d': sumOf(await since(nowMs - 7 * DAY_MS, HOUR_MS)),
      total: sumOf(all),
    },
  }
}

/** A homepage without a path is about the vendor. A deeper page is about the agent. */
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

function shownVerification(software: Software) {
  const sources = [...verificationSources(software)]
  const methods = PROOF_METHODS.filter((method) => sources.some((each) => each.method === method))
  return { methods, sources }
}

const OF_AGENT = {
  type: null,
  unknownOnly: false,
  text: null,
  confidenceMin: 0,
  sort: { by: 'confidence', isDescending: true },
} as const
const APP_AGENTS_MS = 30 * DAY_MS
/** Fingerprints of each type, for each agent of a list. */
const LISTED_MAX = 10
/** Signatures, and fingerprints of each type, of a single agent. */
const DETAIL_MAX = 100
