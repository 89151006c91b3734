import * as z from 'zod'
import type { ScannedRow } from '../../store/traffic/request-search.ts'
import type { ProfileFacts } from '../../store/traffic/sighting-profiles.ts'
import { textInQuery, time, timeOf } from '../http/schemas.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import { type ApiOperation, operation } from './operation.ts'
import { count, stoppedAt, WINDOWS, window } from './stats-answer.ts'
import { softwareInPath } from './software-id.ts'

const TYPES = ['ja4', 'ja4h', 'http2'] as const
type FingerprintType = (typeof TYPES)[number]
const SHOWN_MAX = 50

const agentFingerprints = z
  .strictObject({
    agent_id: z.string(),
    window,
    requests: count.meta({ description: 'The recorded requests that were read.' }),
    fingerprints: z
      .array(
        z.strictObject({
          type: z.enum(TYPES),
          value: z.string(),
          first_seen: time,
          last_seen: time,
          requests: count,
          estimated: count.meta({
            description:
              'How many requests these stand for, where only a share of them is recorded (`sampled`). The same number otherwise.',
          }),
          new: z.boolean().nullable().meta({
            description:
              'Whether it was first seen in the window, while the agent was seen before it. `null`: unknown, because no earlier request was read.',
          }),
        }),
      )
      .max(SHOWN_MAX)
      .meta({ description: 'New ones first, then those with the most requests.' }),
    others: count.meta({ description: 'Fingerprints that are not listed.' }),
    stopped_at: stoppedAt,
  })
  .meta({ id: 'AgentFingerprints' })

const getAgentFingerprints = operation({
  id: 'getAgentFingerprints',
  method: 'GET',
  path: '/agents/{agent_id}/fingerprints',
  tag: 'Statistics',
  summary: 'List the fingerprints of an agent in time',
  description:
    'The JA4, JA4H and HTTP/2 fingerprints of its recorded requests, with when each was first and last seen, as far back as requests are kept. It begins with the newest requests and stops after about half a second. Clients that only claim to be the agent are counted, too.',
  scopes: ['read'],
  reach: 'filtered',
  params: z.strictObject({ agent_id: z.string() }),
  find: softwareInPath,
  query: z.strictObject({
    window: window.default('24h').meta({ description: 'What counts as new.', override: { default: '24h' } }),
    app: textInQuery('Only requests to this app, by its id.', 63).optional(),
    ...TEAM_FILTER,
  }),
  answer: agentFingerprints,
  run: async ({ subject, query, principal }, management) => {
    const { store, nowMs } = management
    const apps = await filteredApps(query, principal, management)
    const seen = new ClientsSeen()
    const filter = { apps, profile: { agent: subject.id } }
    const stoppedAtMs = await store.sightings.scan(filter, (row) => seen.add(row))
    const profiles = await store.sightings.profileFacts(seen.profiles)
    const sinceMs = nowMs() - WINDOWS[query.window].lengthMs
    const all = sorted(fingerprintsOf(seen, profiles), sinceMs, seen.firstMs)
    return {
      body: {
        agent_id: subject.id,
        window: query.window,
        requests: seen.requests,
        fingerprints: all.slice(0, SHOWN_MAX),
        others: Math.max(0, all.length - SHOWN_MAX),
        stopped_at: timeOf(stoppedAtMs),
      },
    }
  },
})

export const AGENT_FINGERPRINT_OPERATIONS: readonly ApiOperation[] = [getAgentFingerprints]

interface Span {
  firstMs: number
  lastMs: number
  requests: number
  estimated: number
}

/** The requests of one agent by client. Memory is bounded: beyond `CLIENTS_MAX`, new ones are left out. */
class ClientsSeen {
  /** By profile and the end of the JA4H. */
  readonly #spans = new Map<string, Span>()
  requests = 0
  firstMs = Number.POSITIVE_INFINITY

  add({ profile, ja4h_cookies: cookies, seen_at_ms: atMs, sampled }: ScannedRow): void {
    this.requests++
    this.firstMs = Math.min(this.firstMs, atMs)
    const key = cookies === null ? String(profile) : `${profile}_${cookies}`
    const span = { firstMs: atMs, lastMs: atMs, requests: 1, estimated: sampled === null ? 1 : 1 / sampled }
    const known = this.#spans.get(key)
    if (known !== undefined) join(known, span)
    else if (this.#spans.size < CLIENTS_MAX) this.#spans.set(key, span)
  }

  get profiles(): readonly number[] {
    return [...new Set([...this.#spans.keys()].map((key) => Number(key.split('_')[0])))]
  }

  *clients(): Iterable<readonly [profile: number, cookies: string | undefined, span: Readonly<Span>]> {
    for (const [key, span] of this.#spans) {
      const [profile, cookies] = key.split('_')
      yield [Number(profile), cookies, span]
    }
  }
}

type SpanOf = readonly [type: FingerprintType, value: string, span: Readonly<Span>]

function fingerprintsOf(seen: ClientsSeen, profiles: ReadonlyMap<number, ProfileFacts>): readonly SpanOf[] {
  const found = new Map<string, readonly [FingerprintType, string, Span]>()
  for (const [profile, cookies, span] of seen.clients()) {
    const facts = profiles.get(profile)
    // A profile may have been deleted meanwhile.
    if (facts === undefined) continue
    for (const type of TYPES) {
      const value = facts[type]
      if (value === null) continue
      const whole = type === 'ja4h' && cookies !== undefined ? `${value}_${cookies}` : value
      const known = found.get(`${type} ${whole}`)
      if (known === undefined) found.set(`${type} ${whole}`, [type, whole, { ...span }])
      else join(known[2], span)
    }
  }
  return [...found.values()]
}

/** `firstMs`: of the earliest request that was read. */
function sorted(found: readonly SpanOf[], sinceMs: number, firstMs: number) {
  return found
    .map(([type, value, span]) => ({
      ...{ type, value, requests: span.requests, estimated: Math.round(span.estimated) },
      first_seen: timeOf(span.firstMs),
      last_seen: timeOf(span.lastMs),
      new: firstMs >= sinceMs ? null : span.firstMs >= sinceMs,
    }))
    .sort((one, other) => Number(other.new ?? 0) - Number(one.new ?? 0) || other.estimated - one.estimated)
}

function join(span: Span, other: Readonly<Span>): void {
  span.firstMs = Math.min(span.firstMs, other.firstMs)
  span.lastMs = Math.max(span.lastMs, other.lastMs)
  span.requests += other.requests
  span.estimated += other.estimated
}

/** A profile each, and one for each set of cookies. */
const CLIENTS_MAX = 20_000
