/** Numbers of requests. */
export interface Counts {
  requests: number
  /** Requests with the verdict `agent`. */
  agents: number
  /** Requests that were blocked. */
  blocked: number
}

/**
 * Every key is from a fixed list, or the id of an agent, tool or browser. `verified_agent` has the requests of an
 * `agent` that proved its identity.
 */
export const DIMENSIONS = [
  'total',
  'verdict',
  'action',
  'confidence',
  'verified',
  'agent',
  'verified_agent',
  'tool',
  'category',
  'purpose',
] as const

/** The dimensions of counts. */
export type Dimension = (typeof DIMENSIONS)[number]

/** Counts by dimension and key. */
export type Buckets = Readonly<Record<Dimension, Map<string, Counts>>>

/** The same as JSON: the numbers of requests, of those of agents, and of those that were blocked. */
export type BucketsDocument = Readonly<
  Partial<Record<Dimension, Readonly<Record<string, readonly [number, number, number]>>>>
>

export function newBuckets(): Buckets {
  return {
    total: new Map(),
    verdict: new Map(),
    action: new Map(),
    confidence: new Map(),
    verified: new Map(),
    agent: new Map(),
    verified_agent: new Map(),
    tool: new Map(),
    category: new Map(),
    purpose: new Map(),
  }
}

export function addBuckets(sum: Buckets, buckets: Buckets): void {
  for (const dimension of DIMENSIONS)
    for (const [key, counts] of buckets[dimension]) addTo(sum[dimension], key, counts)
}

export function addTo<Key>(bucket: Map<Key, Counts>, key: Key, added: Readonly<Counts>): void {
  const counts = countsIn(bucket, key)
  counts.requests += added.requests
  counts.agents += added.agents
  counts.blocked += added.blocked
}

export function countsIn<Key>(bucket: Map<Key, Counts>, key: Key): Counts {
  const known = bucket.get(key)
  if (known !== undefined) return known
  const made = { ...NOTHING }
  bucket.set(key, made)
  return made
}

export function documentOf(buckets: Buckets): BucketsDocument {
  const document: Partial<Record<Dimension, Record<string, [number, number, number]>>> = {}
  for (const dimension of DIMENSIONS) {
    if (buckets[dimension].size === 0) continue
    document[dimension] = Object.fromEntries(
      [...buckets[dimension]].map(([key, { requests, agents, blocked }]) => [
        key,
        [requests, agents, blocked],
      ]),
    )
  }
  return document
}

/** Of an untrusted document. What is damaged counts nothing, so that it does not stop the counting. */
export function bucketsIn(document: unknown): Buckets {
  const buckets = newBuckets()
  if (typeof document !== 'object' || document === null) return buckets
  for (const dimension of DIMENSIONS)
    for (const [key, counts] of Object.entries((document as BucketsDocument)[dimension] ?? {})) {
      if (!Array.isArray(counts) || counts.length !== 3 || !counts.every(isCount)) continue
      const [requests, agents, blocked] = counts
      buckets[dimension].set(key, { requests, agents, blocked })
    }
  return buckets
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

export const MINUTE_MS = 60_000
export const NOTHING: Readonly<Counts> = { requests: 0, agents: 0, blocked: 0 }
/** The only key of the dimension `total`. */
export const ALL = 'all'
/** Agents beyond the limit, and values that are in no list. */
export const OTHER = 'other'
/** An agent without a known name. */
export const UNNAMED = 'unnamed'
/** An agent without a published purpose. */
export const UNPUBLISHED = 'unpublished'
export const ACTIONS = [
  'pass',
  'tag',
  'block',
  'rate_limit',
  'tarpit',
  'redirect',
  'route',
  'charge',
] as const
export const CONFIDENCES = ['0.0', '0.1', '0.2', '0.3', '0.4', '0.5', '0.6', '0.7', '0.8', '0.9'] as const
