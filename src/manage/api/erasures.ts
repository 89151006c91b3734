import * as z from 'zod'
import { Fault } from '../../shared/fault.ts'
import { actorOf } from '../http/operation.ts'
import { invalid } from '../http/refusal.ts'
import { erase, type Erased, UNREADABLE } from '../privacy/erase.ts'
import { exactlyOne } from './member-rules.ts'
import { type ApiOperation, operation } from './operation.ts'

const erasureRequest = z
  .strictObject({
    address: z.string().max(100, 'is longer than 100 characters').optional().meta({
      description:
        'An address of a client, the /64 of an IPv6 address, or a stored `hash:…`. Every stored form of it is found.',
    }),
    user: z
      .string()
      .max(300, 'is longer than 300 characters')
      .optional()
      .meta({ description: 'The email address or the id of an account, which may be deleted already.' }),
    dry_run: z
      .boolean()
      .optional()
      .meta({ description: '`true`: only count what would be erased, and change nothing.' }),
  })
  .meta({ id: 'ErasureRequest', override: exactlyOne('address', 'user') })

const erasure = z
  .strictObject({
    dry_run: z.boolean(),
    tables: z.array(
      z.strictObject({
        table: z.string().meta({
          example: 'sightings',
          description: 'As in the data map of the manual. `requests`: in ClickHouse.',
        }),
        rows: z.int().min(0),
        done: z.enum(['deleted', 'blanked']).meta({
          description: 'What was done with these rows; with `dry_run`, what would be done.',
        }),
      }),
    ),
  })
  .meta({ id: 'Erasure' })

const erasePerson = operation({
  id: 'erasePerson',
  method: 'POST',
  path: '/erasures',
  tag: 'Administration',
  summary: 'Erase the data of one person',
  description:
    'Give either `address` or `user`. Erases a client or an account in every table, like `gatehouse erase`. It may be repeated, and after a failure the repetition does the rest. The audit log gets the counts, and not whose data it was. Files of sinks, what webhooks received, logs and backups are not reached.',
  scopes: ['admin'],
  reach: 'organisation',
  body: erasureRequest,
  examples: {
    body: { address: '203.0.113.7', dry_run: true },
    answer: { dry_run: true, tables: [{ table: 'sightings', rows: 12, done: 'deleted' as const }] },
  },
  answer: erasure,
  run: async (call, management) => {
    const erased = erasedIn(call.body)
    const { dry_run: isDry = false } = call.body
    try {
      const { tables } = await erase(management, erased, actorOf(call), { isDry, nowMs: management.nowMs() })
      return { body: { dry_run: isDry, tables: [...tables] } }
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== UNREADABLE) throw error
      throw invalid([{ pointer: 'address' in erased ? '/address' : '/user', detail: error.message }])
    }
  },
})

export const ERASURE_OPERATIONS: readonly ApiOperation[] = [erasePerson]

function erasedIn({ address, user }: z.output<typeof erasureRequest>): Erased {
  if (address !== undefined && user === undefined) return { address }
  if (user !== undefined && address === undefined) return { user }
  throw invalid([{ pointer: '/address', detail: 'give either address or user' }])
}
