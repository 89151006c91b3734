import * as z from 'zod'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { shownApps } from './app-access.ts'
import { SCOPES } from '../http/access/principal.ts'
import { plan, scope } from './keys.ts'
import { type ApiOffered, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const principal = z
  .strictObject({
    id: z
      .string()
      .meta({ example: 'key_x7c1Jq0aT5b2', description: 'The id of the key, the client or the account.' }),
    name: z.string(),
    scopes: z.array(scope),
    apps: shownApps,
    plan,
    expires_at: time.nullable().meta({ description: 'When these credentials expire. `null`: never.' }),
  })
  .meta({ id: 'Principal' })

const getMe = operation({
  id: 'getMe',
  method: 'GET',
  path: '/me',
  tag: 'Administration',
  summary: 'Show the caller',
  description: 'The identity of the caller, whatever the kind of its credentials, and its scopes.',
  scopes: SCOPES,
  reach: 'own',
  answer: principal,
  run: ({ principal: { id, name, scopes, apps, plan, expiresAtMs } }) => ({
    body: {
      id,
      name,
      scopes: SCOPES.filter((each) => scopes.has(each)),
      apps: apps === ALL_APPS ? apps : [...apps],
      plan,
      expires_at: timeOf(expiresAtMs),
    },
  }),
})

export const ME_OPERATIONS: readonly ApiOffered[] = [getMe]
