import * as z from 'zod'
import { time, timeOf } from '../http/schemas.ts'
import { type ApiOffered, operation } from './operation.ts'

/** Counting stops there. */
const WAITING_MAX = 1_000

const sink = z
  .strictObject({
    kind: z.enum(['file', 'syslog']),
    place: z.string().meta({ description: 'The file, or the address of the receiver.' }),
    state: z.enum(['current', 'behind']).meta({
      description: '`behind`: an event has waited for more than 30 seconds.',
    }),
    waiting: z.int().min(0).max(WAITING_MAX).meta({
      description: 'The number of events that the sink has not confirmed yet, counted up to 1,000.',
    }),
    oldest_waiting_at: time.nullable().meta({ description: 'The time of the first of them.' }),
  })
  .meta({ id: 'Sink' })

const listSinks = operation({
  id: 'listSinks',
  method: 'GET',
  path: '/sinks',
  tag: 'Events',
  summary: 'List the sinks of events',
  description:
    'The file and the syslog receiver that this manager is configured with (`sinks.file`, `sinks.syslog`), and whether events arrive there. The files of other managers are not listed. Sinks of requests have metrics only.',
  scopes: ['admin'],
  reach: 'organisation',
  answer: z.strictObject({ sinks: z.array(sink) }).meta({ id: 'Sinks' }),
  run: async (_, { sinks, store, nowMs }) => {
    const { places } = sinks
    const positions = await store.eventPositions.of(places.map(({ name }) => name))
    const shown = places.map(async ({ kind, place, name }) => {
      const { count, oldestAtMs } = await store.events.waiting(positions.get(name) ?? 0, WAITING_MAX)
      const isBehind = oldestAtMs !== null && oldestAtMs < nowMs() - BEHIND_MS
      return {
        ...{ kind, place, state: isBehind ? ('behind' as const) : ('current' as const) },
        waiting: count,
        oldest_waiting_at: timeOf(oldestAtMs),
      }
    })
    return { body: { sinks: await Promise.all(shown) } }
  },
})

export const SINK_OPERATIONS: readonly ApiOffered[] = [listSinks]

const BEHIND_MS = 30_000
