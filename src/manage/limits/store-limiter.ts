import { type RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Log } from '../../shared/log.ts'
import type { RateLimitStore } from '../../store/traffic/rate-limits.ts'

/** Counts in the store together with other processes, and alone while the store is unreachable. */
export class StoreLimiter {
  readonly #counts: RateLimitStore
  readonly #memory: RateLimiterMemory
  readonly #log: Log
  #isReachable = true

  /** `memory` holds the limits, and counts while the store is unreachable. */
  constructor(counts: RateLimitStore, memory: RateLimiterMemory, log: Log) {
    this.#counts = counts
    this.#memory = memory
    this.#log = log
  }

  /** If the quota is exceeded, rejects with what is left, like the limiters of the library. */
  async consume(id: string): Promise<RateLimiterRes> {
    const memory = this.#memory
    const known = await memory.get(id)
    // A caller over its limit costs no more queries.
    if (known !== null && known.consumedPoints > memory.points) throw known
    const result = await this.#counted(id)
    if (result === null) return memory.consume(id)
    if (result.consumedPoints <= memory.points) return result
    await memory.set(id, result.consumedPoints, Math.ceil(result.msBeforeNext / 1000))
    throw result
  }

  /** `null`: the store is unreachable. */
  async #counted(id: string): Promise<RateLimiterRes | null> {
    const { points: most, duration } = this.#memory
    try {
      const { points, endsAtMs } = await this.#counts.add(
        this.#memory.getKey(id),
        1,
        duration * 1000,
        Date.now(),
      )
      this.#isReachable = true
      return new RateLimiterRes(Math.max(0, most - points), Math.max(0, endsAtMs - Date.now()), points)
    } catch (error) {
      if (this.#isReachable)
        this.#log.warn('the database is unavailable: rate limits are counted in this process only', {
          error: error as Error,
        })
      this.#isReachable = false
      return null
    }
  }
}
