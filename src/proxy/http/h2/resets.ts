import { Budget } from './abuse.ts'

/** The resets of one connection. */
export class Resets {
  /** Those by the client, and those that it makes us send (CVE-2023-44487, CVE-2025-8671). */
  readonly #budget: Budget
  /** Streams that we have reset, which the client may not know yet. */
  readonly #ours = new Set<number>()

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#budget = new Budget(burst, perSecond, nowMs)
  }

  /** Counts one that the client has caused. `false`: there were too many. */
  count(nowMs: number): boolean {
    return this.#budget.spend(nowMs)
  }

  note(stream: number): void {
    this.#ours.add(stream)
    if (this.#ours.size > KEPT_MAX) this.#ours.delete(this.#ours.values().next().value!)
  }

  isOurs(stream: number): boolean {
    return this.#ours.has(stream)
  }
}

/** More streams than a client may have open at once. */
const KEPT_MAX = 256
