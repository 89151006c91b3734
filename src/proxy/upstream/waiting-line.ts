import type { Receiver, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** Requests that wait for a free connection: first come, first served, up to a limit. */
export class WaitingLine {
  readonly #waiting = new Set<Waiter>()

  get length(): number {
    return this.#waiting.size
  }

  /** `null` if the line is too long. */
  join(receiver: Receiver, deadlineMs: number, isFresh: boolean): UpstreamStream | null {
    if (this.#waiting.size >= WAITING_MAX) return null
    const waiter = new Waiter(this.#waiting, receiver, deadlineMs, isFresh)
    this.#waiting.add(waiter)
    return waiter
  }

  /** All waiters. They may leave during the iteration. */
  get all(): Iterable<Waiter> {
    return this.#waiting
  }

  get first(): Waiter | null {
    for (const waiter of this.#waiting) return waiter
    return null
  }

  /** Fails the requests that have waited too long. */
  sweep(nowMs: number): void {
    for (const waiter of this.#waiting) {
      if (waiter.deadlineMs > nowMs) continue
      waiter.cancel()
      waiter.receiver.failed('overloaded', 'never')
    }
  }

  /** Fails all waiting requests. */
  fail(failure: UpstreamFailure): void {
    for (const waiter of [...this.#waiting]) {
      waiter.cancel()
      waiter.receiver.failed(failure, 'safe')
    }
  }
}

/** A place in the line. */
export class Waiter implements UpstreamStream {
  readonly receiver: Receiver
  readonly deadlineMs: number
  /** Needs a new connection. */
  readonly isFresh: boolean
  readonly #line: Set<Waiter>
  #next: UpstreamStream | null = null

  constructor(line: Set<Waiter>, receiver: Receiver, deadlineMs: number, isFresh: boolean) {
    this.receiver = receiver
    this.deadlineMs = deadlineMs
    this.isFresh = isFresh
    this.#line = line
  }

  /** Leaves the line, or cancels the stream it has become. */
  cancel(): void {
    this.#line.delete(this)
    this.#next?.cancel()
  }

  /**
   * Leaves the line for a stream that is not open yet. Until it opens, the receiver only knows this object.
   */
  becomes(next: UpstreamStream): void {
    this.#next = next
  }

  // The stream is not open yet, so nothing can be written.
  write(): boolean {
    return false
  }
  end(): void {}
  resume(): void {}
}

/**
 * At 1 ms per answer, 256 connections work this off in 4 ms. The limit protects memory if an app is stuck.
 */
export const WAITING_MAX = 1024
