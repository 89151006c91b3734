import * as z from 'zod'
import type { UserRecord } from '../../store/people/users.ts'
import {
  changeUser,
  deleteUser,
  emailIn,
  forgetOpenid,
  makeUser,
  OPENID_SUBJECT,
  scopesOf,
  setOpenid,
} from '../auth/people/make-user.ts'
import { passwordProblem } from '../auth/people/password-hash.ts'
import { SCOPES, type Scope } from '../http/access/principal.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { scope } from './keys.ts'
import { listing } from '../http/listing.ts'
import type { Management } from '../management.ts'
import { actorOf, type Asked, operation } from '../http/operation.ts'
import { checkMatch, etagOf } from '../http/precondition.ts'
import { time, timeOf } from '../http/schemas.ts'
import type { Offered } from '../http/version.ts'

const openid = z.strictObject({ issuer: z.string(), subject: z.string() }).meta({ id: 'OpenidAccount' })

const user = z
  .strictObject({
    id: z.string().meta({ example: 'usr_Zt0cP1w4Yk2e' }),
    email: z.string(),
    scopes: z.array(scope).meta({ description: 'No client that they consent to gets more.' }),
    has_password: z.boolean().meta({
      description: 'Without one they sign in by other means: a passkey, the OpenID provider elsewhere.',
    }),
    has_one_time_codes: z.boolean().meta({ description: 'Whether one is asked for beside the password.' }),
    disabled: z.boolean().meta({ description: 'They cannot sign in.' }),
    openid: openid.nullable().meta({
      description: 'Who they are at the OpenID provider elsewhere (`auth.openid`); `null`: nobody, so far.',
    }),
    created_at: time,
  })
  .meta({ id: 'User' })

const openidRequest = z
  .strictObject({
    subject: z.string().regex(OPENID_SUBJECT, 'takes 1 to 255 characters of ASCII').meta({
      description: 'What the provider calls them for good (`sub`), as `failSignIn` in the audit log has it.',
    }),
  })
  .meta({ id: 'OpenidRequest' })

const userRequest = z
  .strictObject({
    email: z.string().meta({ description: 'What they sign in with. Case makes no difference.' }),
    password: z
      .string()
      .optional()
      .meta({ description: '12 characters or more; without it one is set later.' }),
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length),
  })
  .meta({ id: 'UserRequest' })

const userChanges = z
  .strictObject({
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length).optional(),
    password: z.string().optional().meta({
      description:
        '12 characters or more. They are signed out everywhere, and what they have consented to is over.',
    }),
    one_time_codes: z.literal(false).optional().meta({
      description: '`false`: they are asked for none any more. Only who has the app can begin with them.',
    }),
    passkeys: z.literal(false).optional().meta({ description: '`false`: all that they have are removed.' }),
    disabled: z.boolean().optional().meta({
      description:
        '`true`: they cannot sign in; else as after a deletion, but for their passkeys and their password.',
    }),
  })
  .refine((body) => Object.keys(body).length > 0, 'has nothing to change')
  .meta({ id: 'UserChanges', override: { minProperties: 1 } })

const createUser = operation({
  id: 'createUser',
  method: 'POST',
  path: '/users',
  tag: 'Administration',
  summary: 'Make a user',
  description:
    'Somebody who signs in, and lets clients do a part of what they may do themselves. Of the password a hash is kept.',
  scopes: ['admin'],
  body: userRequest,
  status: 201,
  answer: user,
  problems: ['conflict'],
  isIdempotent: true,
  examples: {
    body: { email: 'anna@example.com', password: 'a phrase of some words', scopes: ['read', 'detect'] },
    answer: {
      ...{ id: 'usr_Zt0cP1w4Yk2e', email: 'anna@example.com', scopes: ['read', 'detect'] },
      ...{ has_password: true, has_one_time_codes: false, disabled: false, openid: null },
      created_at: '2026-11-21T09:30:00.000Z',
    },
  },
  run: async (call, { store, passwords, nowMs }) => {
    const { password = null } = call.body
    const email = emailIn(call.body.email)
    const problem = password === null ? null : passwordProblem(password)
    const errors = [
      ...(email === null ? [{ pointer: '/email', detail: 'is no email address' }] : []),
      ...(problem === null ? [] : [{ pointer: '/password', detail: problem }]),
    ]
    const [first, ...more] = errors
    if (email === null || first !== undefined) throw invalid([first!, ...more])
    const wanted = { email, password, scopes: [...new Set<Scope>(call.body.scopes)] }
    const made = await makeUser(store, passwords, wanted, actorOf(call), nowMs())
    if (made === null) throw new Refusal('conflict', 'there is a user of this address')
    return { body: shown(made) }
  },
})

const listUsers = listing({
  id: 'listUsers',
  path: '/users',
  tag: 'Administration',
  summary: 'List users',
  description: 'Newest first.',
  scopes: ['admin'],
  name: 'users',
  filters: {},
  part: (_, part, { store }) => store.users.list(part),
  items: { schema: user, show: (records) => records.map(shown) },
})

const byId = {
  params: z.strictObject({ id: z.string() }),
  find: ({ params }: Asked<{ id: string }>, { store }: Management) => store.users.byId(params.id),
}

const getUser = operation({
  id: 'getUser',
  method: 'GET',
  path: '/users/{id}',
  tag: 'Administration',
  summary: 'One user',
  scopes: ['admin'],
  ...byId,
  answer: user,
  run: ({ subject }) => ({ body: shown(subject) }),
})

const updateUser = operation({
  id: 'updateUser',
  method: 'PATCH',
  path: '/users/{id}',
  tag: 'Administration',
  summary: 'Change a user',
  description:
    'What is left out stays. It is in force within a second, for sessions and tokens that are out, too: what somebody may not do any more, nobody does in their name. `If-Match` is heeded.',
  scopes: ['admin'],
  ...byId,
  body: userChanges,
  answer: user,
  problems: ['precondition_failed'],
  examples: { body: { scopes: ['read'], disabled: false } },
  run: async (call, { store, passwords, nowMs }) => {
    checkMatch(call.ifMatch, etagOf(shown(call.subject)))
    const { scopes, password, one_time_codes, passkeys, disabled } = call.body
    const problem = password === undefined ? null : passwordProblem(password)
    if (problem !== null) throw invalid([{ pointer: '/password', detail: problem }])
    const changes = {
      ...(scopes !== undefined && { scopes: [...new Set<Scope>(scopes)] }),
      ...(password !== undefined && { password }),
      ...(one_time_codes === false && { withoutCodes: true }),
      ...(passkeys === false && { withoutPasskeys: true }),
      ...(disabled !== undefined && { isDisabled: disabled }),
    }
    const isDone = await changeUser(store, passwords, call.subject, changes, actorOf(call), nowMs())
    const now = isDone ? await store.users.byId(call.subject.id) : null
    // The user has been deleted meanwhile.
    if (now === null) throw new Refusal('not_found', 'there is nothing of this name')
    return { body: shown(now) }
  },
})

const deleteUserById = operation({
  id: 'deleteUser',
  method: 'DELETE',
  path: '/users/{id}',
  tag: 'Administration',
  summary: 'Delete a user',
  description: 'Within a second they are signed out everywhere, and what they have consented to is over.',
  scopes: ['admin'],
  ...byId,
  status: 204,
  run: async (call, { store, nowMs }) => {
    // Another request has deleted the user first.
    if (!(await deleteUser(store, call.subject, actorOf(call), nowMs())))
      throw new Refusal('not_found', 'there is nothing of this name')
    return { body: null }
  },
})

const setUserOpenid = operation({
  id: 'setOpenid',
  method: 'PUT',
  path: '/users/{id}/openid',
  tag: 'Administration',
  summary: 'Say who a user is at the OpenID provider elsewhere',
  description:
    'It is found out by itself where the provider says that their email address is verified. Who was somebody else there is signed out everywhere.',
  scopes: ['admin'],
  params: z.strictObject({ id: z.string() }),
  body: openidRequest,
  status: 200,
  answer: user,
  problems: ['conflict'],
  examples: {
    body: { subject: '248289761001' },
    answer: {
      ...{ id: 'usr_Zt0cP1w4Yk2e', email: 'anna@example.com', scopes: ['read', 'detect'] },
      ...{ has_password: false, has_one_time_codes: false, disabled: false },
      openid: { issuer: 'https://id.example/', subject: '248289761001' },
      created_at: '2026-11-21T09:30:00.000Z',
    },
  },
  find: ({ params }, { store }) => store.users.byId(params.id),
  run: async (call, { store, elsewhere, nowMs }) => {
    if (elsewhere === null)
      throw new Refusal('conflict', 'there is no provider: auth.openid.issuer is not set')
    const openid = { issuer: elsewhere.issuer, subject: call.body.subject }
    if (!(await setOpenid(store, call.subject, openid, actorOf(call), nowMs())))
      throw new Refusal('conflict', 'another user is that one, or this one is gone')
    return { body: shown({ ...call.subject, openid }) }
  },
})

const deleteUserOpenid = operation({
  id: 'forgetOpenid',
  method: 'DELETE',
  path: '/users/{id}/openid',
  tag: 'Administration',
  summary: 'Forget who a user is at the OpenID provider elsewhere',
  description:
    'Within a second they are signed out everywhere. Whoever has their address there, verified, is that one then.',
  scopes: ['admin'],
  params: z.strictObject({ id: z.string() }),
  status: 204,
  find: ({ params }, { store }) => store.users.byId(params.id),
  run: async (call, { store, nowMs }) => {
    if (!(await forgetOpenid(store, call.subject, actorOf(call), nowMs())))
      throw new Refusal('not_found', 'there is nothing of this name')
    return { body: null }
  },
})

export const USER_OPERATIONS: readonly Offered[] = [
  createUser,
  listUsers,
  getUser,
  updateUser,
  deleteUserById,
  setUserOpenid,
  deleteUserOpenid,
]

function shown(record: UserRecord) {
  const { id, email, hasPassword, hasCodes, isDisabled, createdAtMs } = record
  return {
    ...{ id, email, scopes: [...scopesOf(record)] },
    ...{ has_password: hasPassword, has_one_time_codes: hasCodes, disabled: isDisabled },
    ...{ openid: record.openid, created_at: timeOf(createdAtMs) },
  }
}
