import * as z from 'zod'
import { SCOPES } from '../http/access/principal.ts'
import { plan, scope } from './keys.ts'
import { operation } from '../http/operation.ts'
import { time, timeOf } from '../http/schemas.ts'
import type { Offered } from '../http/version.ts'

const principal = z
  .strictObject({
    id: z.string().meta({ example: 'key_x7c1Jq0aT5b2', description: 'Of the key, the client, the account.' }),
    name: z.string(),
    scopes: z.array(scope),
    plan,
    expires_at: time.nullable().meta({ description: 'When that is over; null: never by itself.' }),
  })
  .meta({ id: 'Principal' })

const getMe = operation({
  id: 'getMe',
  method: 'GET',
  path: '/me',
  tag: 'Administration',
  summary: 'Read who asks',
  description: 'Whom this gateway takes the caller for, whatever he shows, and what he may do.',
  scopes: SCOPES,
  answer: principal,
  run: ({ principal: { id, name, scopes, plan, expiresAtMs } }) => ({
    body: {
      id,
      name,
      scopes: SCOPES.filter((each) => scopes.has(each)),
      plan,
      expires_at: timeOf(expiresAtMs),
    },
  }),
})

export const ME_OPERATIONS: readonly Offered[] = [getMe]
