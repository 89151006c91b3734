import * as z from 'zod'
import { appsOf, appsToGive, ifVisible, shownApps, wantedApps } from './app-access.ts'
import type { TrustRecord } from '../../store/people/trust.ts'
import { makeTrust, removeTrust } from '../auth/make-trust.ts'
import { knownPlan, knownScopes, SCOPES } from '../http/access/principal.ts'
import { Refusal } from '../http/refusal.ts'
import { plan, scope } from './keys.ts'
import { given } from './member-rules.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const members = z.record(z.string(), z.unknown())
const AGENT = 'https://agent.example/identity.json'

const trust = z
  .strictObject({
    id: z.string().meta({ example: 'trs_x7c1Jq0aT5b2' }),
    agent_id: z.string().nullable().meta({ description: 'The URL of an Agent Identity. `null` for a key.' }),
    document: members.nullable().meta({ description: 'The Agent Identity Document, if it is stored here.' }),
    jwk: members.nullable().meta({ description: 'A public key. `null` for an agent.' }),
    thumbprint: z.string().nullable().meta({ description: 'The SHA-256 thumbprint of the key (RFC 7638).' }),
    name: z.string().nullable(),
    scopes: z.array(scope),
    apps: shownApps,
    plan,
    created_at: time,
  })
  .meta({ id: 'Trust' })

const trustRequest = z
  .strictObject({
    agent_id: z.string().min(1, 'is empty').optional().meta({
      description: 'The URL of an Agent Identity Document, or an origin with a key directory.',
      example: AGENT,
    }),
    document: members.optional().meta({
      description:
        'An Agent Identity Document to store instead of fetching it, with `jwks`, `jwks_uri` or `public_key`.',
    }),
    jwk: members.optional().meta({ description: 'The public key of a GNAP client.' }),
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length),
    apps: wantedApps,
    name: z
      .string()
      .regex(/^\P{Cc}{1,100}$/u, 'must have 1 to 100 characters, no control characters')
      .optional(),
    plan: plan.optional(),
  })
  .meta({
    id: 'TrustRequest',
    override: { oneOf: [given('jwk'), { anyOf: [given('agent_id'), given('document')] }] },
  })

const createTrust = operation({
  id: 'createTrust',
  method: 'POST',
  path: '/trust',
  tag: 'Administration',
  summary: 'Trust an agent or a key',
  description:
    'Grants scopes to an Agent Identity (`agent_id`, `document`) or a GNAP key (`jwk`). A proven identity alone grants no access. Each agent or key has one entry.',
  scopes: ['admin'],
  reach: 'filtered',
  body: trustRequest,
  status: 201,
  answer: trust,
  problems: ['conflict'],
  isIdempotent: true,
  examples: {
    body: { agent_id: AGENT, scopes: ['read', 'detect'] },
    answer: {
      id: 'trs_x7c1Jq0aT5b2',
      agent_id: AGENT,
      document: null,
      jwk: null,
      thumbprint: null,
      name: null,
      scopes: ['read', 'detect'],
      apps: '*' as const,
      plan: 'standard',
      created_at: '2026-11-21T09:30:00.000Z',
    },
  },
  run: async (call, management) => {
    const { store, trust, agents, nowMs } = management
    const { name = null, plan = 'standard', scopes, apps: wanted, ...subject } = call.body
    const apps = await appsToGive(wanted, call.principal, management)
    const terms = { name, plan, apps, scopes: [...new Set(scopes)] }
    const record = await makeTrust(store, { subject, terms, rules: agents.rules }, actorOf(call), nowMs())
    trust.forget()
    return { body: shown(record) }
  },
})

const listTrust = listing({
  id: 'listTrust',
  path: '/trust',
  tag: 'Administration',
  summary: 'List trusted agents and keys',
  description: 'Newest first.',
  scopes: ['admin'],
  reach: 'filtered',
  name: 'trust',
  filters: {},
  part: (_, part, { store }, { principal }) => store.trust.list(part, principal.apps),
  items: { schema: trust, show: (records) => records.map(shown) },
})

const deleteTrust = operation({
  id: 'deleteTrust',
  method: 'DELETE',
  path: '/trust/{id}',
  tag: 'Administration',
  summary: 'Stop trusting an agent or a key',
  description: 'It loses its access within a second.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string() }),
  status: 204,
  find: async ({ params, principal }, { store }) => ifVisible(await store.trust.byId(params.id), principal),
  run: async (call, { store, trust, nowMs }) => {
    if (!(await removeTrust(store, call.subject, actorOf(call), nowMs())))
      throw new Refusal('not_found', `trusted agent "${call.subject.id}" not found`)
    trust.forget()
    return { body: null }
  },
})

export const TRUST_OPERATIONS: readonly ApiOffered[] = [createTrust, listTrust, deleteTrust]

function shown(record: TrustRecord) {
  const { id, kind, subject, name, scopes, plan, document, createdAtMs } = record
  const isKey = kind === 'key'
  return {
    id,
    agent_id: isKey ? null : subject,
    document: isKey ? null : document,
    jwk: isKey ? document : null,
    thumbprint: isKey ? subject : null,
    name,
    scopes: knownScopes(scopes),
    apps: appsOf(record),
    plan: knownPlan(plan),
    created_at: timeOf(createdAtMs),
  }
}
