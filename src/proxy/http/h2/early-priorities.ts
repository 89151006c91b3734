import type { Priority } from '../../../wire/h2/priority.ts'

/** Priorities that a client announces before it begins the stream (RFC 9218 §7.1). */
export class EarlyPriorities {
  /** `null` before the first. Nearly no client sends them. */
  #byStream: Map<number, Priority> | null = null

  note(stream: number, priority: Priority): void {
    this.#byStream ??= new Map()
    if (this.#byStream.size < KEPT_MAX) this.#byStream.set(stream, priority)
  }

  /** The stream begins. The client has skipped those below. */
  take(stream: number): Priority | null {
    const early = this.#byStream
    if (early === null) return null
    const found = early.get(stream) ?? null
    for (const earlier of early.keys()) if (earlier <= stream) early.delete(earlier)
    if (early.size === 0) this.#byStream = null
    return found
  }
}

/** A client begins no more streams at once. */
const KEPT_MAX = 100
