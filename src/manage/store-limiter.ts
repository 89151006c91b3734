import type { Log } from '../log.ts'
import type { RateLimitStore } from '../store/rate-limits.ts'
import type { Counted, PlanCounts } from './plan-counts.ts'

/** Counts in the store together with other processes, and by itself while that cannot be reached. */
export class StoreLimiter {
  readonly #counts: RateLimitStore
  readonly #memory: PlanCounts
  readonly #log: Log
  #isReachable = true

  /** `memory` says how much and for how long, and takes over. */
  constructor(counts: RateLimitStore, memory: PlanCounts, log: Log) {
    this.#counts = counts
    this.#memory = memory
    this.#log = log
  }

  /** One request more, be it one too many. */
  async count(id: string, nowMs: number): Promise<Counted> {
    const memory = this.#memory
    const known = memory.find(id, nowMs)
    // Who has used it up costs no more queries.
    if (known !== null && known.points > memory.pointsMax) return known
    const counted = await this.#counted(id, nowMs)
    if (counted === null) return memory.count(id, nowMs)
    if (counted.points > memory.pointsMax) memory.put(id, counted)
    return counted
  }

  /** `null`: the store cannot be reached. */
  async #counted(id: string, nowMs: number): Promise<Counted | null> {
    try {
      const counted = await this.#counts.add(this.#memory.keyOf(id), 1, this.#memory.windowMs, nowMs)
      this.#isReachable = true
      return counted
    } catch (error) {
      if (this.#isReachable)
        this.#log.warn('requests are counted by this process alone', { error: error as Error })
      this.#isReachable = false
      return null
    }
  }
}
