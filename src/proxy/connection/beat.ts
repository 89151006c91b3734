/** An object that checks its deadlines when swept. */
export interface Swept {
  sweep(nowMs: number): void
}

/**
 * A coarse clock for deadlines. One timer serves all deadlines and runs only while there are members. Setting
 * a deadline only stores a number, because nearly all deadlines are met.
 */
export class Beat {
  /** Milliseconds on a monotonic clock. Up to BEAT_MS old while the timer runs. */
  nowMs = performance.now()
  readonly #members = new Set<Swept>()
  #timer: NodeJS.Timeout | null = null

  join(member: Swept): void {
    this.#members.add(member)
    if (this.#timer !== null) return
    this.nowMs = performance.now()
    this.#timer = setInterval(() => this.#sweep(), BEAT_MS).unref()
  }

  leave(member: Swept): void {
    this.#members.delete(member)
    if (this.#members.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  /** The deadline `delayMs` from now: never early, at most two beats late. A delay of 0 means never. */
  after(delayMs: number): number {
    if (this.#timer === null) this.nowMs = performance.now() // without the timer the value may be stale
    return delayMs === 0 ? Number.POSITIVE_INFINITY : this.nowMs + delayMs + BEAT_MS
  }

  #sweep(): void {
    this.nowMs = performance.now()
    for (const member of this.#members) member.sweep(this.nowMs)
  }
}

/** Fine enough for timeouts of seconds. Each beat walks over the open connections. */
export const BEAT_MS = 100
