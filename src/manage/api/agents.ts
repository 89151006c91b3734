import * as z from 'zod'
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
import type { ApiContext } from './context.ts'
import { type ApiOffered, type ApiVersioned, listing, operation } from './operation.ts'
import { reasons, textInQuery, time, timeOf } from '../http/schemas.ts'
import {
  shownSignature,
  shownWithEvidence,
  signature,
  signatureWithEvidence,
} from '../judging/signature-schemas.ts'

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
  last_seen: time.nullable().meta({ description: 'When this installation last saw it. `null`: never.' }),
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
  sightings: z
    .strictObject({ '24h': z.int().min(0), '7d': z.int().min(0), total: z.int().min(0) })
    .meta({ description: 'Its requests that this installation saw.' }),
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
  name: 'agents',
  filters: {
    category: category.optional().meta({ description: 'Only agents of this category.' }),
    purpose: z.enum(PURPOSES).optional().meta({ description: 'Only agents with this published purpose.' }),
    q: textInQuery('A text in its name, its aliases or its description. Case is ignored.').optional(),
    seen_since: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'Only agents that this installation has seen since this time.' }),
  },
  part: ({ category = null, purpose = null, q = null, seen_since: since }, part, { store }) => {
    const seenSinceMs = since === undefined ? null : Date.parse(since)
    return store.catalogueLists.agents({ category, purpose, text: q, seenSinceMs }, part)
  },
  items: { schema: agent, show: shownAgents },
  betaItems: {
    schema: agentWithEvidence,
    show: async (known: readonly ListedAgent[], management) => {
      const shown = await shownAgents(known, management)
      const reasons = await agentEvidence(
        known.map(({ id }) => id),
        management,
      )
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
  params: z.strictObject({ agent_id: z.string() }),
  find: ({ params }: { readonly params: { readonly agent_id: string } }, { store }: ApiContext) =>
    store.catalogue.softwareNamed(params.agent_id),
}

const getAgent: ApiVersioned = {
  v1: operation({
    ...describing,
    answer: agentDetail,
    run: async ({ subject }, management) => {
      const signatures = await signaturesOf(subject, management)
      return { body: await shownDetail(subject, signatures.map(shownSignature), management) }
    },
  }),
  v2: operation({
    ...describing,
    answer: agentDetailWithEvidence,
    run: async ({ subject }, management) => {
      const signatures = await shownWithEvidence(await signaturesOf(subject, management), management)
      const detail = await shownDetail(subject, signatures, management)
      const reasons = await agentEvidence([subject.id], management)
      return { body: { ...detail, evidence: reasons.get(subject.id) ?? [] } }
    },
  }),
}

export const AGENT_OPERATIONS: readonly ApiOffered[] = [listAgents, getAgent]

async function shownAgents(known: readonly ListedAgent[], { store }: ApiContext) {
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

async function signaturesOf({ id }: SoftwareRow, { store }: ApiContext) {
  const filter = { ...OF_AGENT, softwareId: id }
  return (await store.catalogueLists.signatures(filter, { after: null, limit: DETAIL_MAX })).items
}

async function shownDetail<Shown>(row: SoftwareRow, signatures: Shown[], { store, nowMs }: ApiContext) {
  const { id, category, kind } = row
  const { catalogueLists } = store
  const lists = await catalogueLists.fingerprintsOf([id], DETAIL_MAX)
  const seen = await catalogueLists.agentSeen(id)
  const software = parseSoftware(JSON.parse(row.document))
  const { vendor, homepage, robotsToken } = software
  const known = {
    id,
    category,
    purposes: software.purposes,
    kind,
    name: row.name,
    description: row.description,
    firstSeenMs: row.first_seen_ms,
    lastSeenMs: seen?.lastSeenMs ?? null,
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
    sightings: await agentSightings(store, id, seen?.requests ?? 0, nowMs()),
    versions: (seen?.versions ?? []).slice(0, VERSIONS_MAX),
  }
}

/** Numbers of requests from the agent that this installation has seen. */
async function agentSightings({ rollups }: Store, softwareId: string, total: number, nowMs: number) {
  return {
    '24h': await rollups.requestsOf(softwareId, nowMs - DAY_MS, nowMs),
    '7d': await rollups.requestsOf(softwareId, nowMs - 7 * DAY_MS, nowMs),
    total,
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
/** Fingerprints of each type, for each agent of a list. */
const LISTED_MAX = 10
/** Signatures, and fingerprints of each type, of a single agent. */
const DETAIL_MAX = 100
