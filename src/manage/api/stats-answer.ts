import * as z from 'zod'
import { MINUTE_MS } from '../../plane/counts/buckets.ts'
import { time } from '../http/schemas.ts'

/** Each window with the sizes of buckets that it allows, and the default size. */
export const WINDOWS = {
  '1h': { lengthMs: 60 * MINUTE_MS, buckets: ['1m', '5m', '15m'], usual: '1m' },
  '24h': { lengthMs: 24 * 60 * MINUTE_MS, buckets: ['5m', '15m', '1h'], usual: '1h' },
  '7d': { lengthMs: 7 * 24 * 60 * MINUTE_MS, buckets: ['1h', '6h', '1d'], usual: '1h' },
  '30d': { lengthMs: 30 * 24 * 60 * MINUTE_MS, buckets: ['1h', '6h', '1d'], usual: '1d' },
} as const satisfies Record<string, { lengthMs: number; buckets: readonly StatsBucket[]; usual: StatsBucket }>
export const BUCKETS = {
  '1m': MINUTE_MS,
  '5m': 5 * MINUTE_MS,
  '15m': 15 * MINUTE_MS,
  '1h': 60 * MINUTE_MS,
  '6h': 6 * 60 * MINUTE_MS,
  '1d': 24 * 60 * MINUTE_MS,
} as const

export type StatsWindow = keyof typeof WINDOWS
export type StatsBucket = keyof typeof BUCKETS

export const window = z.enum(Object.keys(WINDOWS) as [StatsWindow, ...StatsWindow[]])
export const bucket = z.enum(Object.keys(BUCKETS) as [StatsBucket, ...StatsBucket[]])
export const count = z.int().min(0)
/** Of what reads recorded requests for a limited time, newest first. */
export const stoppedAt = time.nullable().meta({
  description:
    'The requests before this time were not read: there are more than there was time for. `null`: no request was left out.',
})
const counts = { requests: count, agents: count, blocked: count }
const totals = {
  requests: count,
  agents: count.meta({ description: 'Requests of agents.' }),
  rate: z.number().min(0).max(1).meta({ description: 'The share of all requests.' }),
  blocked: count,
  tagged: count,
  by_verdict: z.record(z.string(), count),
  blocked_by_verdict: z.record(z.string(), count).meta({
    description: 'Blocked requests. `human`: those of people.',
  }),
  verified: count.meta({ description: 'Requests with a proven identity.' }),
  verified_by: z.record(z.string(), count).meta({
    description: 'The same by proof: `web-bot-auth`, `ip-range`, `reverse-dns`.',
  }),
  by_category: z.record(z.string(), count).meta({
    description: 'Requests of agents. `unnamed`: requests of agents whose name is unknown.',
  }),
  by_purpose: z.record(z.string(), count).meta({
    description:
      'Requests of agents by published purpose. A request of an agent with several purposes counts for each. `unpublished`: requests of agents without one.',
  }),
  by_action: z.record(z.string(), count).meta({
    description: 'All requests by the action taken. A rule on trial takes no action.',
  }),
  by_confidence: z.record(z.string(), count).meta({
    description: 'All requests by the confidence in the verdict, in steps of 0.1, whatever the verdict.',
  }),
}
export const stats = z
  .strictObject({
    window,
    bucket,
    agents: z.strictObject({
      total: count.meta({ description: 'The number of agents in the catalogue, seen or not.' }),
      seen: count.meta({ description: 'Known agents that sent a request in the window.' }),
      new: count.nullable().meta({
        description:
          'Known agents that sent their first request to the installation in the window. `null` with `app`, and for callers that are limited to some apps.',
      }),
    }),
    fingerprints: z
      .strictObject({
        unique: count.meta({ description: 'Distinct fingerprints seen in the window.' }),
        by_type: z.strictObject({ ja4: count, ja4s: count, ja4h: count, ja4x: count }),
        unknown: count.meta({ description: 'Those that belong to no known software.' }),
      })
      .nullable()
      .meta({
        description:
          'Counted for the whole installation only: `null` with `app`, and for callers that are limited to some apps.',
      }),
    detection: z.strictObject({
      ...totals,
      by_agent: z
        .array(
          z.strictObject({
            agent_id: z.string(),
            agent_name: z.string(),
            agent_category: z.string().nullable(),
            agent_purpose: z.array(z.string()),
            requests: count,
            blocked: count,
          }),
        )
        .meta({ description: 'Most requests first.' }),
    }),
    by_app: z
      .array(z.strictObject({ app: z.string(), ...counts }))
      .nullable()
      .meta({
        description: 'The apps with the most requests, the most first. `null` without `include=apps`.',
      }),
    previous: z
      .strictObject({
        detection: z.strictObject(totals),
        series: z.array(z.strictObject({ at: time, ...counts })),
      })
      .nullable()
      .meta({
        description:
          'The same of the window that ends where this one begins. `null` without `include=previous`.',
      }),
    counted_since: time.nullable().meta({
      description:
        'The first bucket with counts that are kept, of the whole installation. Of the time before, nothing is known. `null`: nothing was counted.',
    }),
    series: z
      .array(
        z.strictObject({
          at: time,
          ...counts,
          by_verdict: z.record(z.string(), count),
          by_action: z.record(z.string(), count),
          by_category: z.record(z.string(), count),
          by_purpose: z.record(z.string(), count),
        }),
      )
      .meta({
        description:
          'Each bucket has the time at which it begins. The last one is not complete. The buckets add up to `detection`. Only verdicts, actions, categories and purposes that occurred are listed.',
      }),
    generated_at: time,
  })
  .meta({ id: 'Statistics' })
