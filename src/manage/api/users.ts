import * as z from 'zod'
import { appsOf, appsToGive, ifVisible, shownApps, wantedApps } from './app-access.ts'
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
import type { ApiContext } from './context.ts'
import { actorOf, type Addressed } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { checkMatch, etagOf } from '../http/precondition.ts'
import { time, timeOf } from '../http/schemas.ts'

const openid = z.strictObject({ issuer: z.string(), subject: z.string() }).meta({ id: 'OpenidAccount' })

const user = z
  .strictObject({
    id: z.string().meta({ example: 'usr_Zt0cP1w4Yk2e' }),
    email: z.string(),
    scopes: z
      .array(scope)
      .meta({ description: 'The scopes of the user. Clients that they authorize get no others.' }),
    apps: shownApps,
    has_password: z.boolean().meta({
      description:
        'Whether the user has a password. Without one they sign in with a passkey or through the OpenID provider.',
    }),
    has_one_time_codes: z
      .boolean()
      .meta({ description: 'Whether a one-time code is required in addition to the password.' }),
    disabled: z.boolean().meta({ description: 'Whether the user is barred from signing in.' }),
    openid: openid.nullable().meta({
      description: 'Their account at the external OpenID provider (`auth.openid`). `null`: not linked yet.',
    }),
    created_at: time,
  })
  .meta({ id: 'User' })

const openidRequest = z
  .strictObject({
    subject: z.string().regex(OPENID_SUBJECT, 'must have 1 to 255 characters of ASCII').meta({
      description: 'Their permanent id at the provider (`sub`), as shown by `failSignIn` in the audit log.',
    }),
  })
  .meta({ id: 'OpenidRequest' })

const userRequest = z
  .strictObject({
    email: z.string().meta({ description: 'The address they sign in with. Case is ignored.' }),
    password: z
      .string()
      .optional()
      .meta({ description: 'At least 12 characters. If omitted, it is set later.' }),
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length),
    apps: wantedApps,
  })
  .meta({ id: 'UserRequest' })

const userChanges = z
  .strictObject({
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length).optional(),
    apps: wantedApps.meta({ description: 'The ids of the apps whose objects the user may see, or `*`.' }),
    password: z.string().optional().meta({
      description:
        'At least 12 characters. Ends all sessions of the user and revokes the access they granted to clients.',
    }),
    one_time_codes: z.literal(false).optional().meta({
      description:
        '`false`: turns one-time codes off. Only the user can turn them on, with their authenticator app.',
    }),
    passkeys: z.literal(false).optional().meta({ description: '`false`: removes all passkeys of the user.' }),
    disabled: z.boolean().optional().meta({
      description:
        '`true`: the user cannot sign in. The effect is that of a deletion, but the account, its passkeys and its password are kept.',
    }),
  })
  .refine((body) => Object.keys(body).length > 0, 'contains nothing to change')
  .meta({ id: 'UserChanges', override: { minProperties: 1 } })

const createUser = operation({
  id: 'createUser',
  method: 'POST',
  path: '/users',
  tag: 'Administration',
  summary: 'Create a user',
  description:
    'A user signs in, and can grant clients some or all of their own scopes. Only a hash of the password is stored.',
  scopes: ['admin'],
  reach: 'filtered',
  body: userRequest,
  status: 201,
  answer: user,
  problems: ['conflict'],
  isIdempotent: true,
  examples: {
    body: { email: 'anna@example.com', password: 'a phrase of some words', scopes: ['read', 'detect'] },
    answer: {
      id: 'usr_Zt0cP1w4Yk2e',
      email: 'anna@example.com',
      scopes: ['read', 'detect'],
      apps: '*' as const,
      has_password: true,
      has_one_time_codes: false,
      disabled: false,
      openid: null,
      created_at: '2026-11-21T09:30:00.000Z',
    },
  },
  run: async (call, management) => {
    const { store, passwords, nowMs } = management
    const { password = null } = call.body
    const email = emailIn(call.body.email)
    const problem = password === null ? null : passwordProblem(password)
    const errors = [
      ...(email === null ? [{ pointer: '/email', detail: 'is not a valid email address' }] : []),
      ...(problem === null ? [] : [{ pointer: '/password', detail: problem }]),
    ]
    const [first, ...more] = errors
    if (email === null || first !== undefined) throw invalid([first!, ...more])
    const apps = await appsToGive(call.body.apps, call.principal, management)
    const wanted = { email, password, apps, scopes: [...new Set<Scope>(call.body.scopes)] }
    const made = await makeUser(store, passwords, wanted, actorOf(call), nowMs())
    if (made === null) throw new Refusal('conflict', 'a user with this email address already exists')
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
  reach: 'filtered',
  name: 'users',
  filters: {},
  part: (_, part, { store }, { principal }) => store.users.list(part, principal.apps),
  items: { schema: user, show: (records) => records.map(shown) },
})

const byId = {
  params: z.strictObject({ id: z.string() }),
  find: async ({ params, principal }: Addressed<{ id: string }>, { store }: ApiContext) =>
    ifVisible(await store.users.byId(params.id), principal),
}

const getUser = operation({
  id: 'getUser',
  method: 'GET',
  path: '/users/{id}',
  tag: 'Administration',
  summary: 'Get a user',
  scopes: ['admin'],
  reach: 'filtered',
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
    'Omitted fields are unchanged. Takes effect within a second, also for existing sessions and tokens: clients lose every scope that the user loses. `If-Match` is supported.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  body: userChanges,
  answer: user,
  problems: ['precondition_failed'],
  examples: { body: { scopes: ['read'], disabled: false } },
  run: async (call, management) => {
    const { store, passwords, nowMs } = management
    checkMatch(call.ifMatch, etagOf(shown(call.subject)))
    const { scopes, apps, password, one_time_codes, passkeys, disabled } = call.body
    const problem = password === undefined ? null : passwordProblem(password)
    if (problem !== null) throw invalid([{ pointer: '/password', detail: problem }])
    const changes = {
      ...(scopes !== undefined && { scopes: [...new Set<Scope>(scopes)] }),
      ...(apps !== undefined && { apps: await appsToGive(apps, call.principal, management) }),
      ...(password !== undefined && { password }),
      ...(one_time_codes === false && { withoutCodes: true }),
      ...(passkeys === false && { withoutPasskeys: true }),
      ...(disabled !== undefined && { isDisabled: disabled }),
    }
    const isDone = await changeUser(
      { store, hasher: passwords },
      call.subject,
      changes,
      actorOf(call),
      nowMs(),
    )
    const now = isDone ? await store.users.byId(call.subject.id) : null
    // The user has been deleted meanwhile.
    if (now === null) throw new Refusal('not_found', `user "${call.subject.id}" not found`)
    return { body: shown(now) }
  },
})

const deleteUserById = operation({
  id: 'deleteUser',
  method: 'DELETE',
  path: '/users/{id}',
  tag: 'Administration',
  summary: 'Delete a user',
  description:
    'Within a second, all sessions of the user end, and the access they granted to clients is revoked.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  status: 204,
  run: async (call, { store, nowMs }) => {
    // Another request has deleted the user first.
    if (!(await deleteUser(store, call.subject, actorOf(call), nowMs())))
      throw new Refusal('not_found', `user "${call.subject.id}" not found`)
    return { body: null }
  },
})

const setUserOpenid = operation({
  id: 'setOpenid',
  method: 'PUT',
  path: '/users/{id}/openid',
  tag: 'Administration',
  summary: 'Link a user to an account at the OpenID provider',
  description:
    'Gatehouse links the accounts itself if the provider says that the email address is verified. If the user was linked to another account there, all their sessions end.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string() }),
  body: openidRequest,
  status: 200,
  answer: user,
  problems: ['conflict'],
  examples: {
    body: { subject: '248289761001' },
    answer: {
      id: 'usr_Zt0cP1w4Yk2e',
      email: 'anna@example.com',
      scopes: ['read', 'detect'],
      apps: '*' as const,
      has_password: false,
      has_one_time_codes: false,
      disabled: false,
      openid: { issuer: 'https://id.example/', subject: '248289761001' },
      created_at: '2026-11-21T09:30:00.000Z',
    },
  },
  find: byId.find,
  run: async (call, { store, elsewhere, nowMs }) => {
    if (elsewhere === null)
      throw new Refusal('conflict', 'no OpenID provider is configured: set auth.openid.issuer')
    const openid = { issuer: elsewhere.issuer, subject: call.body.subject }
    if (!(await setOpenid(store, call.subject, openid, actorOf(call), nowMs())))
      throw new Refusal('conflict', 'another user is linked to this account, or this user was deleted')
    return { body: shown({ ...call.subject, openid }) }
  },
})

const deleteUserOpenid = operation({
  id: 'forgetOpenid',
  method: 'DELETE',
  path: '/users/{id}/openid',
  tag: 'Administration',
  summary: 'Unlink a user from the OpenID provider',
  description:
    'All sessions of the user end within a second. The next sign-in through the provider with their verified email address links them again.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string() }),
  status: 204,
  find: byId.find,
  run: async (call, { store, nowMs }) => {
    if (!(await forgetOpenid(store, call.subject, actorOf(call), nowMs())))
      throw new Refusal('not_found', `user "${call.subject.id}" not found`)
    return { body: null }
  },
})

export const USER_OPERATIONS: readonly ApiOffered[] = [
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
    id,
    email,
    scopes: [...scopesOf(record)],
    apps: appsOf(record),
    has_password: hasPassword,
    has_one_time_codes: hasCodes,
    disabled: isDisabled,
    openid: record.openid,
    created_at: timeOf(createdAtMs),
  }
}
