import * as z from 'zod'
import { appsOf, appsToGive, ifVisible, shownApps, wantedApps } from './app-access.ts'
import type { KeyRecord } from '../../store/people/keys.ts'
import { changed } from '../http/audit.ts'
import { principalOf } from '../auth/api-keys.ts'
import { makeKey, type WantedKey } from '../auth/make-key.ts'
import { ACCESS, type Access, PLANS, planFor, SCOPES, type Scope } from '../http/access/principal.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { exactlyOne } from './member-rules.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

export const scope = z.enum(SCOPES).meta({ id: 'Scope' })
export const plan = z.enum(PLANS).meta({
  id: 'Plan',
  description: 'Its rate limit: `free` 1,000 requests a day, `standard` 10,000 requests an hour.',
})
const keyFields = {
  id: z.string().meta({ example: 'key_x7c1Jq0aT5b2' }),
  name: z.string(),
  scopes: z.array(scope),
  apps: shownApps,
  plan,
  created_at: time,
  expires_at: time.nullable(),
}
const key = z.strictObject({ ...keyFields, last_used_at: time.nullable() }).meta({ id: 'Key' })
const newKeyAnswer = z
  .strictObject({ ...keyFields, key: z.string().meta({ description: 'Shown only in this answer.' }) })
  .meta({ id: 'NewKey' })

const keyRequest = z
  .strictObject({
    name: z.string().min(1, 'is empty').max(100, 'is longer than 100 characters'),
    access: z.enum(Object.keys(ACCESS) as [Access, ...Access[]]).optional(),
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length).optional(),
    apps: wantedApps,
    plan: plan.optional(),
    expires_at: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({ id: 'KeyRequest', override: exactlyOne('access', 'scopes') })

const createKey = operation({
  id: 'createKey',
  method: 'POST',
  path: '/keys',
  tag: 'Administration',
  summary: 'Create an API key',
  description:
    'Give either `access` or `scopes`. The key is shown only in this answer. Only a hash is stored.',
  scopes: ['admin'],
  reach: 'filtered',
  body: keyRequest,
  status: 201,
  answer: newKeyAnswer,
  isIdempotent: true,
  examples: {
    body: { name: 'nightly build', access: 'read' },
    answer: {
      id: 'key_x7c1Jq0aT5b2',
      name: 'nightly build',
      scopes: ['read', 'detect'],
      apps: '*' as const,
      plan: 'standard',
      created_at: '2026-11-21T09:30:00.000Z',
      expires_at: null,
      key: 'ghk_…',
    },
  },
  run: async (call, management) => {
    const { store, nowMs } = management
    const wanted = wantedKey(call.body, nowMs())
    const apps = await appsToGive(call.body.apps, call.principal, management)
    const { key, record } = await makeKey(store, { ...wanted, apps }, actorOf(call), nowMs())
    return { body: { ...shown(record), key } }
  },
})

const listKeys = listing({
  id: 'listKeys',
  path: '/keys',
  tag: 'Administration',
  summary: 'List API keys',
  description: 'Keys that are not revoked, newest first.',
  scopes: ['admin'],
  reach: 'filtered',
  name: 'keys',
  filters: {},
  part: (_, part, { store }, { principal }) => store.keys.list(part, principal.apps),
  items: {
    schema: key,
    show: (records) => records.map((each) => ({ ...shown(each), last_used_at: timeOf(each.lastUsedAtMs) })),
  },
})

const revokeKey = operation({
  id: 'revokeKey',
  method: 'DELETE',
  path: '/keys/{id}',
  tag: 'Administration',
  summary: 'Revoke an API key',
  description: 'It becomes invalid within a second.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string() }),
  status: 204,
  find: async ({ params, principal }, { store }) => {
    const found = ifVisible(await store.keys.byId(params.id), principal)
    return found?.revokedAtMs === null ? found : null
  },
  run: async (call, { store, apiKeys, nowMs }) => {
    const { id: subject, name, apps } = call.subject
    await changed(
      store,
      actorOf(call),
      { action: 'revokeKey', subject, apps, detail: { name } },
      nowMs(),
      async (queries) => {
        // Another request has revoked the key first.
        if (!(await store.keys.revoke(subject, nowMs(), queries)))
          throw new Refusal('not_found', `API key "${subject}" not found`)
      },
    )
    apiKeys.forget()
    return { body: null }
  },
})

export const KEY_OPERATIONS: readonly ApiOffered[] = [createKey, listKeys, revokeKey]

/** Exactly one of `access` and `scopes` says what the key may do. */
function wantedKey(body: z.output<typeof keyRequest>, nowMs: number): Omit<WantedKey, 'apps'> {
  const { name, access, scopes } = body
  if ((access === undefined) === (scopes === undefined))
    throw invalid([{ pointer: '/access', detail: 'give exactly one of access and scopes' }])
  const expiresAtMs = body.expires_at === undefined ? null : Date.parse(body.expires_at)
  if (expiresAtMs !== null && expiresAtMs <= nowMs)
    throw invalid([{ pointer: '/expires_at', detail: 'is in the past' }])
  const may = [...new Set<Scope>(scopes ?? ACCESS[access!])]
  return { name, scopes: may, plan: body.plan ?? planFor(may), expiresAtMs }
}

function shown(record: KeyRecord) {
  const { id, name, scopes, plan } = principalOf(record)
  return {
    id,
    name,
    scopes: [...scopes],
    apps: appsOf(record),
    plan,
    created_at: timeOf(record.createdAtMs),
    expires_at: timeOf(record.expiresAtMs),
  }
}
