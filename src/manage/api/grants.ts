import * as z from 'zod'
import type { GnapGrantRecord } from '../../store/gnap-grants.ts'
import { changed } from '../audit.ts'
import { SCOPES, type Scope } from '../auth/principal.ts'
import { invalid, Refusal } from '../refusal.ts'
import { listing } from './listing.ts'
import { actorOf, operation } from './operation.ts'
import { time, timeOf } from './schemas.ts'
import type { Offered } from './version.ts'

const scopes = z.array(z.enum(SCOPES))
const grant = z
  .strictObject({
    id: z.string().meta({ example: 'grt_x7c1Jq0aT5b2' }),
    name: z
      .string()
      .nullable()
      .meta({ description: 'What the client says about itself; nobody has checked it.' }),
    uri: z.string().nullable(),
    thumbprint: z.string().meta({ description: 'Of its key (RFC 7638).' }),
    scopes: scopes.meta({ description: 'That it asks for.' }),
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
  summary: 'List grants that wait',
  description: 'What clients ask for by GNAP with keys that nobody has approved, newest first.',
  scopes: ['admin'],
  name: 'grants',
  filters: {},
  part: (_, part, { store, nowMs }) => store.gnapGrants.waiting(part, nowMs()),
  items: { schema: grant, show: (records) => records.map(shown) },
})

const decideGrant = operation({
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
    const { id, thumbprint } = subject
    const detail = { decision: body.decision, scopes: given, thumbprint }
    const change = { action: 'decideGrant', subject: id, detail }
    await changed(store, actorOf(call), change, nowMs(), async (queries) => {
      const state = body.decision === 'approve' ? 'approved' : 'denied'
      if (!(await store.gnapGrants.decide(id, state, given, queries)))
        throw new Refusal('conflict', 'this grant is decided already')
    })
    return { body: { id, decision: body.decision, scopes: given } }
  },
})

export const GRANT_OPERATIONS: readonly Offered[] = [listGrants, decideGrant]

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
    scopes: SCOPES.filter((scope) => scopes.includes(scope)),
    bearer: wanted.tokens.some(({ isBearer }) => isBearer),
    finish_uri: finish?.uri ?? null,
    ...{ created_at: timeOf(record.createdAtMs), expires_at: timeOf(record.expiresAtMs) },
  }
}
