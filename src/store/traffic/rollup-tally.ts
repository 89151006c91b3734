import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import type { Sighting } from '../../plane/sighting.ts'

export interface Counts {
  requests: number
  /** Requests with the verdict `agent`. */
  agents: number
  /** Requests that were blocked. */
  blocked: number
}

/** The dimensions of counts. Every key is from a fixed list, or the id of an agent. */
export type Dimension = (typeof DIMENSIONS)[number]

/** Counts sightings in memory by minute and dimension, to add them to the rollups at once. */
export class RollupTally {
  readonly #minutes = new Map<number, Buckets>()

  /** `agent`: the key to count the agent under; `null`: unnamed. */
  add(sighting: Sighting, agent: string | null): void {
    const { verdict, done, category, purposes, confidence, verified } = sighting
    const isAgent = verdict === 'agent'
    const isBlocked = done === 'block'
    const buckets = this.#at(Math.floor(sighting.seenAtMs / MINUTE_MS) * MINUTE_MS)
    count(buckets.total, ALL, isAgent, isBlocked)
    count(buckets.verdict, verdict, isAgent, isBlocked)
    count(buckets.action, listed(ACTIONS, done), isAgent, isBlocked)
    count(buckets.confidence, confidenceBucket(confidence), isAgent, isBlocked)
    if (verified !== null) count(buckets.verified, listed(PROOF_METHODS, verified), isAgent, isBlocked)
    if (!isAgent) return
    count(buckets.agent, agent ?? UNNAMED, isAgent, isBlocked)
    count(buckets.category, category === null ? UNNAMED : listed(CATEGORIES, category), isAgent, isBlocked)
    if (purposes.length === 0) count(buckets.purpose, UNPUBLISHED, isAgent, isBlocked)
    for (const each of new Set(purposes.map((purpose) => listed(PURPOSES, purpose))))
      count(buckets.purpose, each, isAgent, isBlocked)
  }

  /** Sums by `grainMs`, without those too old to keep. */
  *rows(grainMs: number, sinceMs: number): Iterable<TallyRow> {
    const sums = new Map<number, Buckets>()
    for (const [minuteMs, buckets] of this.#minutes) {
      const atMs = Math.floor(minuteMs / grainMs) * grainMs
      if (atMs < sinceMs) continue
      const sum = sums.get(atMs) ?? newBuckets()
      sums.set(atMs, sum)
      for (const dimension of DIMENSIONS)
        for (const [key, counts] of buckets[dimension]) addTo(sum[dimension], key, counts)
    }
    for (const [atMs, buckets] of sums)
      for (const dimension of DIMENSIONS)
        for (const [key, counts] of buckets[dimension]) yield { atMs, dimension, key, counts }
  }

  #at(minuteMs: number): Buckets {
    const known = this.#minutes.get(minuteMs)
    if (known !== undefined) return known
    const made = newBuckets()
    this.#minutes.set(minuteMs, made)
    return made
  }
}

interface TallyRow {
  readonly atMs: number
  readonly dimension: Dimension
  readonly key: string
  readonly counts: Readonly<Counts>
}

/** `0.0` to `0.9`: one tenth each. The last includes 1. */
function confidenceBucket(confidence: number): string {
  return CONFIDENCES[Math.min(9, Math.floor(confidence * 10))]!
}

type Buckets = Readonly<Record<Dimension, Map<string, Counts>>>

function newBuckets(): Buckets {
  return {
    total: new Map(),
    verdict: new Map(),
    action: new Map(),
    confidence: new Map(),
    verified: new Map(),
    agent: new Map(),
    category: new Map(),
    purpose: new Map(),
  }
}

function count(bucket: Map<string, Counts>, key: string, isAgent: boolean, isBlocked: boolean): void {
  const counts = countsIn(bucket, key)
  counts.requests++
  if (isAgent) counts.agents++
  if (isBlocked) counts.blocked++
}

function addTo(bucket: Map<string, Counts>, key: string, { requests, agents, blocked }: Counts): void {
  const counts = countsIn(bucket, key)
  counts.requests += requests
  counts.agents += agents
  counts.blocked += blocked
}

function countsIn(bucket: Map<string, Counts>, key: string): Counts {
  const known = bucket.get(key)
  if (known !== undefined) return known
  const made = { requests: 0, agents: 0, blocked: 0 }
  bucket.set(key, made)
  return made
}

function listed(list: readonly string[], value: string): string {
  return list.includes(value) ? value : OTHER
}

export const MINUTE_MS = 60_000
/** The only key of the dimension `total`. */
const ALL = 'all'
/** Agents beyond the limit, and values that are in no list. */
export const OTHER = 'other'
/** An agent without a known name. */
export const UNNAMED = 'unnamed'
/** An agent without a published purpose. */
export const UNPUBLISHED = 'unpublished'
export const ACTIONS = ['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'redirect', 'route'] as const
export const CONFIDENCES = ['0.0', '0.1', '0.2', '0.3', '0.4', '0.5', '0.6', '0.7', '0.8', '0.9'] as const
const DIMENSIONS = [
  'total',
  'verdict',
  'action',
  'confidence',
  'verified',
  'agent',
  'category',
  'purpose',
] as const
