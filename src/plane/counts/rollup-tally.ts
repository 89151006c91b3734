import { OTHER_APPS } from '../../apps/app.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import type { Sighting } from '../sighting.ts'
import {
  ACTIONS,
  addBuckets,
  addTo,
  ALL,
  type Buckets,
  CONFIDENCES,
  type Counts,
  type Dimension,
  DIMENSIONS,
  MINUTE_MS,
  newBuckets,
  OTHER,
  UNNAMED,
  UNPUBLISHED,
} from './buckets.ts'

/** Counts requests in memory by app, minute and dimension, to add them to the rollups at once. */
export class RollupTally {
  #apps = new Map<string, Map<number, Buckets>>()
  #requests = 0
  #size = 0

  /** The number of requests that were counted. */
  get requests(): number {
    return this.#requests
  }

  /** The number of counts, about 100 bytes each. */
  get size(): number {
    return this.#size
  }

  add(sighting: Sighting): void {
    const { verdict, done, agent, software, category, purposes, confidence, verified } = sighting
    const isAgent = verdict === 'agent'
    const isBlocked = done === 'block'
    const buckets = this.#at(sighting.app, minuteOf(sighting.seenAtMs))
    this.#requests++
    this.#count(buckets.total, ALL, isAgent, isBlocked)
    this.#count(buckets.verdict, verdict, isAgent, isBlocked)
    this.#count(buckets.action, listed(ACTIONS, done), isAgent, isBlocked)
    this.#count(buckets.confidence, confidenceBucket(confidence), isAgent, isBlocked)
    if (verified !== null) this.#count(buckets.verified, listed(PROOF_METHODS, verified), isAgent, isBlocked)
    if (software !== null && !(isAgent && agent !== null))
      this.#count(buckets.tool, software, isAgent, isBlocked)
    if (!isAgent) return
    this.#count(buckets.agent, agent ?? UNNAMED, isAgent, isBlocked)
    if (verified !== null) this.#count(buckets.verified_agent, agent ?? UNNAMED, isAgent, isBlocked)
    this.#count(
      buckets.category,
      category === null ? UNNAMED : listed(CATEGORIES, category),
      isAgent,
      isBlocked,
    )
    if (purposes.length === 0) this.#count(buckets.purpose, UNPUBLISHED, isAgent, isBlocked)
    for (const each of new Set(purposes.map((purpose) => listed(PURPOSES, purpose))))
      this.#count(buckets.purpose, each, isAgent, isBlocked)
  }

  addAll(other: RollupTally): void {
    for (const { app, atMs, buckets } of other.minutes()) this.addMinute(app, atMs, buckets)
  }

  addMinute(app: string, minuteMs: number, buckets: Buckets): void {
    const sum = this.#at(app, minuteMs)
    const before = sizeOf(sum)
    addBuckets(sum, buckets)
    this.#size += sizeOf(sum) - before
    this.#requests += buckets.total.get(ALL)?.requests ?? 0
  }

  /**
   * Counts all agents but these as `other`, and all tools and browsers but these not at all: their names come from
   * clients, and the database has a row for each.
   */
  keepNames(named: ReadonlySet<string>): void {
    for (const { buckets } of this.minutes()) {
      for (const agents of [buckets.agent, buckets.verified_agent])
        for (const [agent, counts] of agents) {
          if (named.has(agent) || agent === UNNAMED || agent === OTHER) continue
          agents.delete(agent)
          addTo(agents, OTHER, counts)
        }
      for (const tool of buckets.tool.keys()) if (!named.has(tool)) buckets.tool.delete(tool)
    }
  }

  /** Counts less exactly where and when, in about half of the memory. `false`: it is as small as it can be. */
  shrink(): boolean {
    const apps = this.#apps
    const isByMinute = [...apps.values()].some(({ size }) => size > 1)
    if (!isByMinute && apps.size <= 1) return false
    this.#apps = new Map()
    this.#requests = 0
    this.#size = 0
    for (const [app, minutes] of apps) {
      const times = [...minutes.keys()].sort((one, other) => one - other)
      for (const [at, minuteMs] of times.entries()) {
        const pairMs = times[Math.min(at | 1, times.length - 1)]!
        this.addMinute(isByMinute ? app : OTHER_APPS, isByMinute ? pairMs : minuteMs, minutes.get(minuteMs)!)
      }
    }
    return true
  }

  *minutes(): Iterable<TallyOfApp> {
    for (const [app, minutes] of this.#apps)
      for (const [atMs, buckets] of minutes) yield { app, atMs, buckets }
  }

  /** Sums of all apps by `grainMs`, without those too old to keep. */
  *rows(grainMs: number, sinceMs: number): Iterable<TallyRow> {
    const sums = new Map<number, Buckets>()
    for (const minutes of this.#apps.values()) sumUp(minutes, grainMs, sinceMs, sums)
    for (const [atMs, buckets] of sums)
      for (const dimension of DIMENSIONS)
        for (const [key, counts] of buckets[dimension]) yield { atMs, dimension, key, counts }
  }

  /** The same for each app. */
  *ofApps(grainMs: number, sinceMs: number): Iterable<TallyOfApp> {
    for (const [app, minutes] of this.#apps) {
      const sums = new Map<number, Buckets>()
      sumUp(minutes, grainMs, sinceMs, sums)
      for (const [atMs, buckets] of sums) yield { app, atMs, buckets }
    }
  }

  #at(app: string, minuteMs: number): Buckets {
    const minutes = this.#apps.get(app) ?? new Map<number, Buckets>()
    const buckets = minutes.get(minuteMs) ?? newBuckets()
    if (minutes.size === 0) this.#apps.set(app, minutes)
    minutes.set(minuteMs, buckets)
    return buckets
  }

  #count(bucket: Map<string, Counts>, key: string, isAgent: boolean, isBlocked: boolean): void {
    let counts = bucket.get(key)
    if (counts === undefined) {
      counts = { requests: 0, agents: 0, blocked: 0 }
      bucket.set(key, counts)
      this.#size++
    }
    counts.requests++
    if (isAgent) counts.agents++
    if (isBlocked) counts.blocked++
  }
}

export interface TallyOfApp {
  readonly app: string
  /** The start of the minute, hour or day. */
  readonly atMs: number
  readonly buckets: Buckets
}

interface TallyRow {
  readonly atMs: number
  readonly dimension: Dimension
  readonly key: string
  readonly counts: Readonly<Counts>
}

function sumUp(
  minutes: ReadonlyMap<number, Buckets>,
  grainMs: number,
  sinceMs: number,
  sums: Map<number, Buckets>,
): void {
  for (const [minuteMs, buckets] of minutes) {
    const atMs = Math.floor(minuteMs / grainMs) * grainMs
    if (atMs < sinceMs) continue
    const sum = sums.get(atMs) ?? newBuckets()
    sums.set(atMs, sum)
    addBuckets(sum, buckets)
  }
}

function sizeOf(buckets: Buckets): number {
  return DIMENSIONS.reduce((sum, dimension) => sum + buckets[dimension].size, 0)
}

/** `0.0` to `0.9`: one tenth each. The last includes 1. */
function confidenceBucket(confidence: number): string {
  return CONFIDENCES[Math.min(9, Math.floor(confidence * 10))]!
}

export function listed(list: readonly string[], value: string): string {
  return list.includes(value) ? value : OTHER
}

export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS
}
