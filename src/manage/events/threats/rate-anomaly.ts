import type { Category } from '../../../classify/known/software.ts'
import type { Store } from '../../../store/store.ts'
import type { EventDraft } from '../event-draft.ts'
import { nameOf, type SoftwareById } from '../../judging/sighting-account.ts'
import { countOf } from './threat-data.ts'
import { SEVERITY_OF } from './threat.ts'
import { exampleOf, type Threat } from './threat-tally.ts'

export interface AnomalySettings {
  /** Multiple of the usual number of requests. */
  readonly factor: number
  /** Fewer requests in five minutes are not a threat, whatever the baseline is. */
  readonly requestsMin: number
}

/** Number of requests, by the start of their minute. */
type Minutes = ReadonlyMap<number, number>

interface Anomaly {
  readonly requests: number
  /** The usual number of requests in the same length of time. */
  readonly usual: number
}

/**
 * Compares an agent's requests in the five minutes before `endMs` with the median of such windows over the
 * last six hours, or around this time yesterday, whichever is greater. Windows without requests are ignored:
 * an agent that comes seldom and then sends many requests behaves as usual.
 */
export function anomalyIn(
  minutes: Minutes,
  endMs: number,
  { factor, requestsMin }: AnomalySettings,
): Anomaly | null {
  const requests = sumIn(minutes, endMs - STRETCH_MS)
  if (requests < requestsMin) return null
  // A surge that is just beginning must not count as usual.
  const recent = stretches(minutes, endMs - RECENT_MS, endMs - STRETCH_MS - GAP_MS)
  const yesterday = stretches(minutes, endMs - DAY_MS - AROUND_MS, endMs - DAY_MS + AROUND_MS)
  if (recent.length + yesterday.length < STRETCHES_MIN) return null
  const usual = Math.max(median(recent), median(yesterday))
  return requests > factor * usual ? { requests, usual } : null
}

/** Agents with an anomaly in the last whole minutes. One short read, and two more if an agent is busy. */
export async function anomalousAgents(
  { rollups }: Pick<Store, 'rollups'>,
  settings: AnomalySettings,
  nowMs: number,
): Promise<readonly Threat[]> {
  const endMs = Math.floor((nowMs - LATE_MS) / MINUTE_MS) * MINUTE_MS
  const stretch = { fromMs: endMs - STRETCH_MS, toMs: endMs }
  const agents = await rollups.busiest(stretch, settings.requestsMin, AGENTS_MAX)
  if (agents.length === 0) return []
  const spans = [
    { fromMs: endMs - RECENT_MS, toMs: endMs },
    { fromMs: endMs - DAY_MS - AROUND_MS, toMs: endMs - DAY_MS + AROUND_MS },
  ]
  const [recent, yesterday] = await Promise.all(spans.map((span) => rollups.minutesOf(agents, span)))
  return agents.flatMap((agent) => {
    const minutes = new Map([...yesterday!.get(agent)!, ...recent!.get(agent)!])
    const anomaly = anomalyIn(minutes, endMs, settings)
    return anomaly === null ? [] : [new AgentThreat(agent, anomaly, minutes, stretch.fromMs, endMs)]
  })
}

/** The part of a threat that was not reported by `toldUntilMs`; `null`: all of it was. */
export function since(threat: Threat, toldUntilMs: number): Threat | null {
  return threat instanceof AgentThreat ? threat.after(toldUntilMs) : threat
}

class AgentThreat implements Threat {
  readonly reason = 'rate_anomaly'
  readonly topic = this.reason
  readonly address = null
  readonly fingerprint = null
  readonly category: Category | null = null
  readonly confidence = null
  readonly app = null
  readonly agent: string
  readonly sinceMs: number
  readonly untilMs: number
  readonly #anomaly: Anomaly
  readonly #minutes: Minutes

  constructor(agent: string, anomaly: Anomaly, minutes: Minutes, sinceMs: number, untilMs: number) {
    this.agent = agent
    this.#anomaly = anomaly
    this.#minutes = minutes
    this.sinceMs = sinceMs
    this.untilMs = untilMs
  }

  after(toldUntilMs: number): Threat | null {
    if (toldUntilMs >= this.untilMs) return null
    const fromMs = Math.max(toldUntilMs, this.sinceMs)
    return new AgentThreat(this.agent, this.#anomaly, this.#minutes, fromMs, this.untilMs)
  }

  get key(): string {
    return `${this.reason} ${this.agent}`
  }

  get count(): number {
    return sumIn(this.#minutes, this.sinceMs, this.untilMs)
  }

  get example() {
    return exampleOf(this)
  }

  get software(): readonly string[] {
    return [this.agent]
  }

  describe(names: SoftwareById): EventDraft {
    const { agent, reason } = this
    const { requests, usual } = this.#anomaly
    const severity = SEVERITY_OF[reason]
    const { category = null, purposes = [] } = names.get(agent) ?? {}
    const data = {
      reason,
      severity,
      detail: `${requests} requests in five minutes, where ${usual} are usual for it`,
      detection: ofAgent(agent, category, purposes, names),
      action: null,
      request: { method: null, host: null, path: null, address: null },
      ...countOf(this),
    }
    return {
      type: 'threat_detected',
      subject: `agent ${agent}`,
      agent,
      category,
      severity,
      confidence: null,
      app: null,
      data,
    }
  }
}

/** The detection of an agent as a whole, not of a single request. */
function ofAgent(agent: string, category: string | null, purposes: readonly string[], names: SoftwareById) {
  const name = nameOf(agent, names)
  return {
    is_agent: true,
    confidence: 0,
    agent_name: name,
    agent_category: category,
    fingerprints: { ja4: '', ja4s: '', ja4h: '' },
    agent_purpose: purposes,
    name_confidence: 0,
    agent_id: agent,
    verified: null,
    proof: null,
    conflicts: [],
    verdict: 'agent',
    software: { id: agent, name, kind: 'agent' },
    evidence: [],
    request_id: '',
  }
}

/** The sums of windows that contain requests, from the latest window back. */
function stretches(minutes: Minutes, fromMs: number, toMs: number): readonly number[] {
  const sums: number[] = []
  for (let endMs = toMs; endMs - STRETCH_MS >= fromMs; endMs -= STRETCH_MS) {
    const sum = sumIn(minutes, endMs - STRETCH_MS)
    if (sum > 0) sums.push(sum)
  }
  return sums
}

function sumIn(minutes: Minutes, fromMs: number, toMs = fromMs + STRETCH_MS): number {
  let sum = 0
  for (let atMs = fromMs; atMs < toMs; atMs += MINUTE_MS) sum += minutes.get(atMs) ?? 0
  return sum
}

/** 0 for an empty list. */
function median(numbers: readonly number[]): number {
  if (numbers.length === 0) return 0
  const sorted = numbers.toSorted((one, other) => one - other)
  const middle = sorted.length >>> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const STRETCH_MS = 5 * MINUTE_MS
const GAP_MS = 15 * MINUTE_MS
const RECENT_MS = 360 * MINUTE_MS
/** Around this time yesterday. */
const AROUND_MS = 60 * MINUTE_MS
/** One hour of history. Agents with less history have no baseline. */
const STRETCHES_MIN = 12
/** Proxies have sent their Sightings by then. */
const LATE_MS = 10_000
/** More would exceed the limit on separate events anyway. */
const AGENTS_MAX = 64
