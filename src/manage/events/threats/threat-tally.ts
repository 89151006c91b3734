import { DEFAULT_APP } from '../../../apps/app.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import type { SoftwareById } from '../../judging/sighting-account.ts'
import type { EventDraft } from '../event-draft.ts'
import type { StormExample, Occurrence } from '../storms.ts'
import type { RobotsRules, ThreatRule } from './rule.ts'
import type { ThreatReason } from './threat.ts'

/** One threat, which any number of requests may show. */
export interface Threat extends Occurrence {
  /** Reason, app, fingerprint and address. Each key is reported once per window. */
  readonly key: string
  readonly reason: ThreatReason
  /** Threats of one topic share the limit of separate events. */
  readonly topic: string
  /** The ids of software whose names `describe` needs. */
  readonly software: readonly string[]
  describe(names: SoftwareById): EventDraft
}

/** Describes a threat by the first request that showed it. */
export type Describe = (
  rule: ThreatRule,
  sighting: Sighting,
  counted: Pick<Threat, 'count' | 'sinceMs' | 'untilMs'>,
  names: SoftwareById,
) => EventDraft

/** Applies each rule to each request and groups the hits by threat, in order of arrival. */
export function threatsIn(
  batch: readonly Sighting[],
  rules: readonly ThreatRule[],
  robots: RobotsRules,
  describe: Describe,
): readonly Threat[] {
  const threats = new Map<string, SeenThreat>()
  for (const sighting of batch) {
    for (const rule of rules) {
      if (!rule.holds(sighting, robots)) continue
      const key = keyOf(rule.reason, sighting)
      const known = threats.get(key)
      if (known === undefined) threats.set(key, new SeenThreat(key, rule, sighting, describe))
      else known.add(sighting)
    }
  }
  return [...threats.values()]
}

class SeenThreat implements Threat {
  readonly key: string
  readonly #rule: ThreatRule
  readonly #describe: Describe
  #first: Sighting
  count = 1
  untilMs: number

  constructor(key: string, rule: ThreatRule, first: Sighting, describe: Describe) {
    this.key = key
    this.#rule = rule
    this.#first = first
    this.#describe = describe
    this.untilMs = first.seenAtMs
  }

  add(sighting: Sighting): void {
    this.count++
    this.untilMs = Math.max(this.untilMs, sighting.seenAtMs)
    if (sighting.seenAtMs < this.#first.seenAtMs) this.#first = sighting
  }

  get reason(): ThreatReason {
    return this.#rule.reason
  }

  get topic(): string {
    return topicOf(this.reason, this.#first)
  }

  get sinceMs(): number {
    return this.#first.seenAtMs
  }

  get address(): string {
    return this.#first.address
  }

  get fingerprint(): string | null {
    return this.#first.ja4
  }

  get agent(): string | null {
    return this.#first.agent
  }

  get category(): string | null {
    return this.#first.category
  }

  get confidence(): number {
    return this.#first.confidence
  }

  get app(): string {
    return this.#first.app
  }

  get example(): StormExample {
    return exampleOf(this)
  }

  get software(): readonly string[] {
    const { agent, software } = this.#first
    return [agent, software].filter((id) => id !== null)
  }

  describe(names: SoftwareById): EventDraft {
    return this.#describe(this.#rule, this.#first, this, names)
  }
}

/** The entry of a threat in a list of examples. */
export function exampleOf({ address, fingerprint, agent, count }: Omit<Occurrence, 'example'>): StormExample {
  return { address, fingerprint, agent_id: agent, count }
}

/**
 * `stable` is the form of the JA4 that survives session resumption. Rules of the policy count by it as well.
 */
function keyOf(reason: ThreatReason, sighting: Sighting): string {
  const { stable, ja4, address } = sighting
  return `${topicOf(reason, sighting)} ${stable ?? ja4 ?? '-'} ${address}`
}

/** Of each app its own, so that threats to one app hide none to another. */
function topicOf(reason: ThreatReason, { app }: Pick<Sighting, 'app'>): string {
  return app === DEFAULT_APP ? reason : `${reason} ${app}`
}
