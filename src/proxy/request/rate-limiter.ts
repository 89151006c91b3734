export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
  /** How many requests may come at once. `requests` if the rule does not set it. */
  readonly burst: number
}

/**
 * Counts requests by key, evenly over time (GCRA): one number per key, no timer. Limits are per process. The
 * least recently seen keys are forgotten first, half of all at once, which can only let more requests
 * through. (A preallocated cache for all keys takes 20 ms of the start.)
 */
export class RateLimiter {
  /** By key: the time at which the earlier requests are worked off. */
  #newer = new Map<string, number>()
  #older = new Map<string, number>()
  readonly #half: number

  constructor(keysMax = KEYS_MAX) {
    this.#half = keysMax >> 1
  }

  /** 0 if the request is within the limit. Otherwise the milliseconds until one will be. */
  take(key: string, { requests, windowMs, burst }: RateLimit, nowMs: number): number {
    const interval = windowMs / requests
    const dueMs = this.#newer.get(key) ?? this.#older.get(key) ?? 0
    // At most a burst can be due. A higher value predates a change of the limit or of the clock.
    const aheadMs = Math.min(Math.max(dueMs - nowMs, 0), burst * interval)
    const earlyMs = aheadMs - (burst - 1) * interval
    const isEarly = earlyMs > ROUNDING_MS
    this.#see(key, isEarly ? dueMs : nowMs + aheadMs + interval)
    return isEarly ? Math.ceil(earlyMs) : 0
  }

  #see(key: string, dueMs: number): void {
    if (this.#newer.size >= this.#half && !this.#newer.has(key)) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(key, dueMs)
  }
}

/** 100,000 keys of 80 characters take some 20 MB. */
const KEYS_MAX = 100_000
/** Times of day have a rounding error of some 0.0002 ms. */
const ROUNDING_MS = 0.01
