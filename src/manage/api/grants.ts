import { ALL_APPS } from '../../apps/app-scope.ts'
import * as z from 'zod'
import { GRANT_STATES, type GnapGrantRecord } from '../../store/people/gnap-grants.ts'
import { decideGrant } from '../auth/gnap/grants.ts'
import { SCOPES, type Scope } from '../http/access/principal.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const scopes = z.array(z.enum(SCOPES))
const state = z.enum(GRANT_STATES).meta({
  id: 'GrantState',
  description: '`finished`: the client has its tokens, or has withdrawn.',
})
const grant = z
  .strictObject({
    id: z.string().meta({ example: 'grt_x7c1Jq0aT5b2' }),
    name: z.string().nullable().meta({ description: 'What the client says about itself. Unverified.' }),
    uri: z.string().nullable(),
    thumbprint: z.string().meta({ description: 'The thumbprint of its key (RFC 7638).' }),
    state,
    scopes: scopes.meta({ description: 'The requested scopes. After the decision, the approved ones.' }),
    decided_by: z.string().nullable().meta({ description: 'The id of a user, a key or a client.' }),
    bearer: z
      .boolean()
      .meta({ description: 'Whether it requests a bearer token, which is not bound to a key.' }),
    finish_uri: z.string().nullable().meta({ description: 'Where the browser is sent after the decision.' }),
    created_at: time,
    expires_at: time,
  })
  .meta({ id: 'Grant' })
const decisionRequest = z
  .strictObject({
    decision: z.enum(['approve', 'deny']),
    scopes: scopes
      .min(1, 'is empty')
      .max(SCOPES.length)
      .optional()
      .meta({ description: 'A subset of the requested scopes. Default: all of them.' }),
  })
  .meta({ id: 'GrantDecision' })
const decided = z.strictObject({ id: z.string(), decision: z.enum(['approve', 'deny']), scopes })

const listGrants = listing({
  id: 'listGrants',
  path: '/grants',
  tag: 'Administration',
  summary: 'List grants',
  description:
    'GNAP requests of clients with keys that are not approved, newest first. By default only those that wait for a decision. A grant is deleted an hour after it was requested.',
  scopes: ['admin'],
  reach: 'organisation',
  name: 'grants',
  filters: { state: state.default('waiting').meta({ description: 'Only grants in this state.' }) },
  part: ({ state }, part, { store, nowMs }) => store.gnapGrants.list(state, part, nowMs()),
  items: { schema: grant, show: (records) => records.map(shown) },
})

const decideGrantById = operation({
  id: 'decideGrant',
  method: 'POST',
  path: '/grants/{id}/decide',
  tag: 'Administration',
  summary: 'Approve or deny a grant',
  description:
    'The client learns the decision when it asks again. The browser that it sent here is sent back.',
  scopes: ['admin'],
  reach: 'organisation',
  params: z.strictObject({ id: z.string().regex(/^[\w-]{1,64}$/) }),
  body: decisionRequest,
  answer: decided,
  problems: ['conflict'],
  examples: {
    body: { decision: 'approve', scopes: ['detect'] },
    answer: { id: 'grt_x7c1Jq0aT5b2', decision: 'approve', scopes: ['detect'] },
  },
  find: async ({ params }, { store, nowMs }) => {
    const found = await store.gnapGrants.byId(params.id)
    return found !== null && found.expiresAtMs > nowMs() ? found : null
  },
  run: async (call, { store, nowMs }) => {
    const { subject, body } = call
    const given = scopesGiven(subject, body)
    const { decision } = body
    const said = { decision, scopes: given }
    if (
      !(await decideGrant(store, subject, { ...said, apps: ALL_APPS, atMs: nowMs() }, actorOf(call), nowMs()))
    )
      throw new Refusal('conflict', 'this grant has already been decided')
    return { body: { id: subject.id, ...said } }
  },
})

export const GRANT_OPERATIONS: readonly ApiOffered[] = [listGrants, decideGrantById]

function scopesGiven(
  { scopes: asked }: GnapGrantRecord,
  { decision, scopes }: z.output<typeof decisionRequest>,
): Scope[] {
  if (decision === 'deny') return []
  const more = scopes?.findIndex((scope) => !asked.includes(scope)) ?? -1
  if (more !== -1) throw invalid([{ pointer: `/scopes/${more}`, detail: 'was not requested by the client' }])
  return SCOPES.filter((scope) => asked.includes(scope) && (scopes === undefined || scopes.includes(scope)))
}

function shown({ id, display, thumbprint, scopes, wanted, finish, ...record }: GnapGrantRecord) {
  return {
    id,
    name: display.name,
    uri: display.uri,
    thumbprint,
    state: record.state,
    scopes: SCOPES.filter((scope) => scopes.includes(scope)),
    decided_by: record.decided?.by ?? null,
    bearer: wanted.tokens.some(({ isBearer }) => isBearer),
    finish_uri: finish?.uri ?? null,
    created_at: timeOf(record.createdAtMs),
    expires_at: timeOf(record.expiresAtMs),
  }
}
