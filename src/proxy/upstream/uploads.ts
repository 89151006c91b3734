import type { Beat, Swept } from '../connection/beat.ts'
import type { Pool, PoolCounters, PoolSettings } from './upstream-pool.ts'
import type { Receiver, UpstreamStream } from './upstream-stream.ts'
import { type Waiter, WaitingLine } from './waiting-line.ts'

/**
 * The requests to one target whose bodies are still arriving. They may use only a part of the target's
 * connections, so that slow uploads cannot block requests without a body. Others wait in a separate line. A
 * short body arrives completely during the wait, and its request is then treated like one without a body.
 */
export class Uploads implements Swept {
  readonly #pool: Pool
  readonly #beat: Beat
  readonly #settings: PoolSettings
  readonly #counters: PoolCounters
  readonly #max: number
  readonly #underway = new Set<Receiver>()
  readonly #line = new WaitingLine()

  constructor(pool: Pool, beat: Beat, settings: PoolSettings, counters: PoolCounters) {
    this.#pool = pool
    this.#beat = beat
    this.#settings = settings
    this.#counters = counters
    this.#max = Math.max(1, Math.floor(settings.connectionsMax * UPLOADS_PART))
  }

  get waiting(): number {
    return this.#line.length
  }

  /** Like `Pool.open`. If it returns a stream, the caller must call `over` at the end of the body. */
  open(receiver: Receiver, isFresh: boolean): UpstreamStream | null {
    if (this.#underway.size < this.#max && this.#line.first === null) {
      this.#underway.add(receiver)
      return this.#pool.open(receiver, isFresh)
    }
    this.#beat.join(this)
    this.#counters.waits++
    return this.#line.join(receiver, this.#beat.after(this.#settings.connectTimeoutMs), isFresh)
  }

  /** The body has been sent, or no more of it will be. */
  over(receiver: Receiver): void {
    if (!this.#underway.delete(receiver)) return
    for (let next = this.#line.first; next !== null && this.#underway.size < this.#max; ) {
      this.#underway.add(next.receiver)
      this.#go(next)
      next = this.#line.first
    }
  }

  sweep(nowMs: number): void {
    for (const waiter of this.#line.all) if (waiter.receiver.isBodyWhole) this.#go(waiter)
    this.#line.sweep(nowMs)
    if (this.#line.length === 0) this.#beat.leave(this)
  }

  close(): void {
    this.#line.fail('closing')
  }

  #go(waiter: Waiter): void {
    waiter.cancel()
    const stream = this.#pool.open(waiter.receiver, waiter.isFresh)
    if (stream !== null) return waiter.becomes(stream)
    this.#underway.delete(waiter.receiver)
    waiter.receiver.failed('overloaded', 'never')
  }
}

/**
 * Enough for uploads. With answers of milliseconds, the rest is enough for thousands of other requests a
 * second.
 */
const UPLOADS_PART = 3 / 4
