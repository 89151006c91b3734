import { Budget } from './abuse.ts'
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from './body.ts'

export interface ResetLimits {
  readonly h2ResetBurst: number
  readonly h2ResetRate: number
  readonly streamsPerConnectionMax: number
}

/** The resets of one connection. */
export class Resets {
  /** Those by the client, and those that it makes us send (CVE-2023-44487, CVE-2025-8671). */
  readonly #budget: Budget
  /**
   * Streams that we have reset, which the client may not know yet, and how much DATA it may still send there. `null`
   * before the first.
   */
  #ours: Map<number, number> | null = null
  /** The same for all streams that are not served any more. */
  #unservedLeft: number = CONNECTION_WINDOW_BYTES
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
    this.#ours ??= new Map()
    this.#ours.set(stream, STREAM_WINDOW_BYTES)
    if (this.#ours.size > this.#keptMax) this.#ours.delete(this.#ours.keys().next().value!)
  }

  isOurs(stream: number): boolean {
    return this.#ours?.has(stream) ?? false
  }

  /**
   * DATA has come for a stream that is over. `false`: it is more than the windows allowed when the client could last
   * be unaware of that.
   */
  late(stream: number, bytes: number): boolean {
    const left = (this.#ours?.get(stream) ?? this.#unservedLeft) - bytes
    if (this.#ours?.has(stream)) this.#ours.set(stream, left)
    else this.#unservedLeft = left
    return left >= 0
  }
}
