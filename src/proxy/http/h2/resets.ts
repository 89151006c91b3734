import { Budget } from './abuse.ts'

export interface ResetLimits {
  readonly h2ResetBurst: number
  readonly h2ResetRate: number
  readonly streamsPerConnectionMax: number
}

/** The resets of one connection. */
export class Resets {
  /** Those by the client, and those that it makes us send (CVE-2023-44487, CVE-2025-8671). */
  readonly #budget: Budget
  /** Streams that we have reset, which the client may not know yet. */
  readonly #ours = new Set<number>()

  readonly #keptMax: number

  constructor({ h2ResetBurst, h2ResetRate, streamsPerConnectionMax }: ResetLimits, nowMs: number) {
    this.#budget = new Budget(h2ResetBurst, h2ResetRate, nowMs)
    // All streams that the client had open, and as many that it opened instead.
    this.#keptMax = 2 * streamsPerConnectionMax
  }

  /** Counts one that the client has caused. `false`: there were too many. */
  count(nowMs: number): boolean {
    return this.#budget.spend(nowMs)
  }

  note(stream: number): void {
    this.#ours.add(stream)
    if (this.#ours.size > this.#keptMax) this.#ours.delete(this.#ours.values().next().value!)
  }

  isOurs(stream: number): boolean {
    return this.#ours.has(stream)
  }
}
