import { ALL_APPS } from '../../apps/app-scope.ts'
import * as z from 'zod'
import { changed } from '../http/audit.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOperation, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const signingKey = z
  .strictObject({
    kid: z.string().meta({ example: 'q1u0WkS0kz5c0l6k2iVQy3m0nT3W2wA0Y6pYkq7Zs8E' }),
    created_at: time,
    signs_from: time,
  })
  .meta({ id: 'SigningKey' })

const EXAMPLE = {
  kid: 'q1u0WkS0kz5c0l6k2iVQy3m0nT3W2wA0Y6pYkq7Zs8E',
  created_at: '2026-11-21T09:30:00.000Z',
  signs_from: '2026-11-21T09:30:00.000Z',
}

const listSigningKeys = operation({
  id: 'listSigningKeys',
  method: 'GET',
  path: '/signing-keys',
  tag: 'Administration',
  summary: 'List the signing keys of access tokens',
  description:
    'Newest first. The newest may be one that starts to sign later. Older keys stay until every token they signed has expired.',
  scopes: ['admin'],
  reach: 'organisation',
  answer: z.strictObject({ signing_keys: z.array(signingKey) }),
  examples: { answer: { signing_keys: [EXAMPLE] } },
  run: async (_, { store }) => {
    const keys = await store.oauthKeys.all()
    return { body: { signing_keys: keys.map(shown) } }
  },
})

const rotateSigningKey = operation({
  id: 'rotateSigningKey',
  method: 'POST',
  path: '/signing-keys',
  tag: 'Administration',
  summary: 'Sign access tokens with a new key',
  description:
    'Takes effect at once. `drop_old` removes the earlier keys: within a second, every token that they signed becomes invalid.',
  scopes: ['admin'],
  reach: 'organisation',
  body: z.strictObject({ drop_old: z.boolean().default(false) }).meta({ id: 'SigningKeyRequest' }),
  status: 201,
  answer: signingKey,
  examples: { body: { drop_old: false }, answer: EXAMPLE },
  run: async (call, { store, oauth, nowMs }) => {
    const dropsOld = call.body.drop_old
    const change = {
      action: 'rotateSigningKey',
      subject: null,
      apps: ALL_APPS,
      detail: { drop_old: dropsOld },
    } as const
    const { key, dropped } = await changed(store, actorOf(call), change, nowMs(), async (queries) => {
      const rotated = await oauth.keys.rotate(dropsOld, queries)
      for (const kid of rotated.dropped) await oauth.denials.addTo(queries, 'key', kid)
      return rotated
    })
    for (const kid of dropped) oauth.denials.learn('key', kid)
    oauth.keys.forget()
    return { body: shown(key) }
  },
})

export const SIGNING_KEY_OPERATIONS: readonly ApiOperation[] = [listSigningKeys, rotateSigningKey]

function shown({ kid, createdAtMs, signsFromMs }: { kid: string; createdAtMs: number; signsFromMs: number }) {
  return { kid, created_at: timeOf(createdAtMs), signs_from: timeOf(signsFromMs) }
}
