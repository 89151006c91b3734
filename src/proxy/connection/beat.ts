/** Something with deadlines to look after. */
export interface Swept {
  sweep(nowMs: number): void
}

/**
 * A coarse clock for deadlines: one timer for all of them, which runs only while somebody has joined. Setting a
 * deadline is a store, not a timer of its own, as nearly all of them are met.
 */
export class Beat {
  /** Milliseconds on a clock that never goes back; up to BEAT_MS old while the timer runs. */
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

  /** The deadline `delayMs` from now, never early, at most two beats late; 0 is never. */
  after(delayMs: number): number {
    if (this.#timer === null) this.nowMs = performance.now() // nobody has looked at it for who knows how long
    return delayMs === 0 ? Number.POSITIVE_INFINITY : this.nowMs + delayMs + BEAT_MS
  }

  #sweep(): void {
    this.nowMs = performance.now()
    for (const member of this.#members) member.sweep(this.nowMs)
  }
}

/** Fine enough for time-outs of seconds; each one costs a walk over the open connections. */
export const BEAT_MS = 100
