export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
  /** How many may come at once; `requests` where the rule says nothing. */
  readonly burst: number
}

/**
 * Counts requests by key, evenly over time (GCRA): one number a key, no timer. It holds for this process. The keys
 * seen longest ago are forgotten first, half of all at once, which only ever lets more through. (A cache that is made
 * for all of them takes 20 ms of the start.)
 */
export class RateLimiter {
  /** By key: the time at which the requests so far will have been worked off. */
  #newer = new Map<string, number>()
  #older = new Map<string, number>()
  readonly #half: number

  constructor(keysMax = KEYS_MAX) {
    this.#half = keysMax >> 1
  }

  /** 0 when the request is within the limit, else the milliseconds until one will be. */
  take(key: string, { requests, windowMs, burst }: RateLimit, nowMs: number): number {
    const interval = windowMs / requests
    const dueMs = this.#newer.get(key) ?? this.#older.get(key) ?? 0
    // No more than a burst can be due: more is from before the clock went back, or the limit became another.
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

/** 100,000 keys of 80 characters are some 20 MB. */
const KEYS_MAX = 100_000
/** Times of day have some 0.0002 ms of it. */
const ROUNDING_MS = 0.01
