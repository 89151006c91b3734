import * as z from 'zod'
import { GRANT_STATES, type GnapGrantRecord } from '../../store/people/gnap-grants.ts'
import { decideGrant } from '../auth/gnap/grants.ts'
import { SCOPES, type Scope } from '../http/access/principal.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { listing } from '../http/listing.ts'
import { actorOf, operation } from '../http/operation.ts'
import { time, timeOf } from '../http/schemas.ts'
import type { Offered } from '../http/version.ts'

const scopes = z.array(z.enum(SCOPES))
const state = z.enum(GRANT_STATES).meta({
  id: 'GrantState',
  description: '`finished`: the client has what there is for it, or has withdrawn.',
})
const grant = z
  .strictObject({
    id: z.string().meta({ example: 'grt_x7c1Jq0aT5b2' }),
    name: z
      .string()
      .nullable()
      .meta({ description: 'What the client says about itself; nobody has checked it.' }),
    uri: z.string().nullable(),
    thumbprint: z.string().meta({ description: 'Of its key (RFC 7638).' }),
    state,
    scopes: scopes.meta({ description: 'That it asks for; once it is decided, those that were approved.' }),
    decided_by: z.string().nullable().meta({ description: 'A user, a key, a client.' }),
    bearer: z.boolean().meta({ description: 'Whether it asks for a token that nobody has to sign for.' }),
    finish_uri: z.string().nullable().meta({ description: 'Where the browser is sent when it is decided.' }),
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
      .meta({ description: 'Of those it asks for; without it, all of them.' }),
  })
  .meta({ id: 'GrantDecision' })
const decided = z.strictObject({ id: z.string(), decision: z.enum(['approve', 'deny']), scopes })

const listGrants = listing({
  id: 'listGrants',
  path: '/grants',
  tag: 'Administration',
  summary: 'List grants',
  description:
    'What clients ask for by GNAP with keys that nobody has approved, newest first: those that wait, or those of another `state`. An hour after it was asked for a grant is forgotten.',
  scopes: ['admin'],
  name: 'grants',
  filters: { state: state.default('waiting').meta({ description: 'Only these.' }) },
  part: ({ state }, part, { store, nowMs }) => store.gnapGrants.list(state, part, nowMs()),
  items: { schema: grant, show: (records) => records.map(shown) },
})

const decideGrantById = operation({
  id: 'decideGrant',
  method: 'POST',
  path: '/grants/{id}/decide',
  tag: 'Administration',
  summary: 'Approve or deny a grant',
  description: 'The client is told when it asks again; the browser that it has sent here is sent back.',
  scopes: ['admin'],
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
    if (!(await decideGrant(store, subject, said, actorOf(call), nowMs(), nowMs())))
      throw new Refusal('conflict', 'this grant is decided already')
    return { body: { id: subject.id, ...said } }
  },
})

export const GRANT_OPERATIONS: readonly Offered[] = [listGrants, decideGrantById]

function scopesGiven(
  { scopes: asked }: GnapGrantRecord,
  { decision, scopes }: z.output<typeof decisionRequest>,
): Scope[] {
  if (decision === 'deny') return []
  const more = scopes?.findIndex((scope) => !asked.includes(scope)) ?? -1
  if (more !== -1) throw invalid([{ pointer: `/scopes/${more}`, detail: 'is not asked for' }])
  return SCOPES.filter((scope) => asked.includes(scope) && (scopes === undefined || scopes.includes(scope)))
}

function shown({ id, display, thumbprint, scopes, wanted, finish, ...record }: GnapGrantRecord) {
  return {
    ...{ id, name: display.name, uri: display.uri, thumbprint },
    state: record.state,
    scopes: SCOPES.filter((scope) => scopes.includes(scope)),
    decided_by: record.decided?.by ?? null,
    bearer: wanted.tokens.some(({ isBearer }) => isBearer),
    finish_uri: finish?.uri ?? null,
    ...{ created_at: timeOf(record.createdAtMs), expires_at: timeOf(record.expiresAtMs) },
  }
}
