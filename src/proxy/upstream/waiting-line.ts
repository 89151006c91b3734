import type { Receiver, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** Requests that wait for a connection to be free: first come, first served, and never more than a bound. */
export class WaitingLine {
  readonly #waiting = new Set<Waiter>()

  get length(): number {
    return this.#waiting.size
  }

  /** `null` when the line is too long to be worth joining. */
  join(receiver: Receiver, deadlineMs: number, isFresh: boolean): UpstreamStream | null {
    if (this.#waiting.size >= WAITING_MAX) return null
    const waiter = new Waiter(this.#waiting, receiver, deadlineMs, isFresh)
    this.#waiting.add(waiter)
    return waiter
  }

  /** All who wait. They may leave meanwhile. */
  get all(): Iterable<Waiter> {
    return this.#waiting
  }

  get first(): Waiter | null {
    for (const waiter of this.#waiting) return waiter
    return null
  }

  /** Sends away whoever has waited too long. */
  sweep(nowMs: number): void {
    for (const waiter of this.#waiting) {
      if (waiter.deadlineMs > nowMs) continue
      waiter.cancel()
      waiter.receiver.failed('overloaded', 'never')
    }
  }

  /** Sends all of them away who are waiting now. */
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
  /** Only a connection of its own will do. */
  readonly isFresh: boolean
  readonly #line: Set<Waiter>
  #next: UpstreamStream | null = null

  constructor(line: Set<Waiter>, receiver: Receiver, deadlineMs: number, isFresh: boolean) {
    this.receiver = receiver
    this.deadlineMs = deadlineMs
    this.isFresh = isFresh
    this.#line = line
  }

  /** Leaves the line, or lets go of what has come of it. */
  cancel(): void {
    this.#line.delete(this)
    this.#next?.cancel()
  }

  /** Has left the line for a stream that is not open yet: until it is, whoever has waited knows of this one alone. */
  becomes(next: UpstreamStream): void {
    this.#next = next
  }

  // It has not been opened: nothing can be written to it.
  write(): boolean {
    return false
  }
  end(): void {}
  resume(): void {}
}

/** At 1 ms an answer, 256 connections work this off in 4 ms; an app that is stuck should not fill our memory. */
export const WAITING_MAX = 1024
