import * as z from 'zod'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import { type AnyOperation, operation } from './operation.ts'
import { time, timeOf } from './schemas.ts'

const instance = z
  .strictObject({
    id: z
      .string()
      .meta({ example: 'worker-0', description: 'A worker that replaces another one has its id.' }),
    pid: z.int().nullable(),
    state: z.enum(['starting', 'serving', 'unready', 'gone']).meta({
      description:
        '`unready`: it serves, and says why it should not; `gone`: another one takes its place soon.',
    }),
    since: time.nullable().meta({ description: 'When it began to serve.' }),
    snapshot: z.int().nullable().meta({ description: 'The number of the one it judges by.' }),
    current: z.boolean().meta({ description: 'Whether that is the newest.' }),
    reasons: z.array(z.string()),
  })
  .meta({ id: 'Instance' })
const fleet = z
  .strictObject({
    version: z.string(),
    snapshot: z
      .strictObject({ number: z.int(), hash: z.string(), made_at: time })
      .nullable()
      .meta({ description: 'The newest: signatures and policy.' }),
    instances: z.array(instance),
  })
  .meta({ id: 'Fleet' })

const getFleet = operation({
  id: 'getFleet',
  method: 'GET',
  path: '/fleet',
  tag: 'Administration',
  summary: 'The processes that serve',
  description: 'The workers of this gateway and what they judge by, as they said it within the last second.',
  scopes: ['admin'],
  answer: fleet,
  run: (_, { version, snapshot, workers }) => {
    const newest = snapshot()
    return {
      body: {
        version,
        snapshot:
          newest === null
            ? null
            : { number: newest.number, hash: newest.hash, made_at: timeOf(newest.madeAtMs) },
        instances: workers().map((worker) => shown(worker, newest?.number ?? null)),
      },
    }
  },
})

export const FLEET_OPERATIONS: readonly AnyOperation[] = [getFleet]

function shown({ number, pid, state, sinceMs, snapshot, unready }: WorkerStatus, newest: number | null) {
  return {
    ...{ id: `worker-${number}`, pid, snapshot },
    state: state === 'serving' && unready.length > 0 ? ('unready' as const) : state,
    since: timeOf(sinceMs),
    current: snapshot !== null && snapshot === newest,
    reasons: [...unready],
  }
}
