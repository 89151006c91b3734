import { LRUCache } from 'lru-cache'

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
  /** How many may come at once; `requests` where the rule says nothing. */
  readonly burst: number
}

/**
 * Counts requests by key, evenly over time (GCRA): one number a key, no timer. It holds for this process. The least
 * recently seen keys are forgotten first, which only ever lets more through.
 */
export class RateLimiter {
  /** By key: the time at which the requests so far will have been worked off. */
  readonly #due: LRUCache<string, number>

  constructor(keysMax = KEYS_MAX) {
    this.#due = new LRUCache({ max: keysMax })
  }

  /** 0 when the request is within the limit, else the milliseconds until one will be. */
  take(key: string, { requests, windowMs, burst }: RateLimit, nowMs: number): number {
    const interval = windowMs / requests
    // No more than a burst can be due: more is from before the clock went back, or the limit became another.
    const aheadMs = Math.min(Math.max((this.#due.get(key) ?? 0) - nowMs, 0), burst * interval)
    const earlyMs = aheadMs - (burst - 1) * interval
    if (earlyMs > ROUNDING_MS) return Math.ceil(earlyMs)
    this.#due.set(key, nowMs + aheadMs + interval)
    return 0
  }
}

/** 100,000 keys of 80 characters are some 20 MB. */
const KEYS_MAX = 100_000
/** Times of day have some 0.0002 ms of it. */
const ROUNDING_MS = 0.01
