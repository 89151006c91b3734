import type { Pressure } from '../bus.ts'

/**
 * How much faster batches come than they are stored. The pressure rises if more of them wait than are stored in
 * some seconds, and do not become fewer. A backlog that becomes smaller, as after an outage, raises nothing.
 * It counts batches and compares no clocks, which may differ.
 */
export class Backlog {
  #pressure: Pressure = 'none'
  #sinceMs = 0
  #stored = 0
  /** How many waited at the ends of the last seconds; oldest first. */
  #waited: readonly number[] = []

  /** Falls when the backlog is gone. */
  get pressure(): Pressure {
    return this.#pressure
  }

  /** Notes that a batch is stored. `waiting`: the number of those that are not. */
  stored(waiting: number, nowMs: number): void {
    const elapsedMs = nowMs - this.#sinceMs
    if (elapsedMs > PAUSE_MS) this.#begin(nowMs, []) // nothing could be stored, or nothing came
    this.#stored++
    if (elapsedMs < WINDOW_MS || elapsedMs > PAUSE_MS) return
    const seconds = (waiting / this.#stored) * (elapsedMs / 1000)
    const hasNotFallen = this.#waited.length === WINDOWS && waiting >= this.#waited[0]!
    if (seconds < GONE_S) this.#pressure = 'none'
    else if (seconds > BEHIND_S && hasNotFallen) {
      this.#pressure = this.#pressure === 'none' ? 'high' : 'extreme'
      return this.#begin(nowMs, []) // what is done about it needs some time to have an effect
    }
    this.#begin(nowMs, [...this.#waited, waiting].slice(-WINDOWS))
  }

  #begin(nowMs: number, waited: readonly number[]): void {
    this.#sinceMs = nowMs
    this.#stored = 0
    this.#waited = waited
  }
}

const WINDOW_MS = 1_000
const PAUSE_MS = 3_000
const WINDOWS = 2
/** Statistics of other apps must be complete within ten seconds. */
const BEHIND_S = 3
const GONE_S = 1
