import { randomBytes } from 'node:crypto'
import type { Brand } from '../../shared/brand.ts'

export type DecisionId = Brand<string, 'DecisionId'>

/**
 * Makes decision ids in UUIDv7 form (RFC 9562 §5.7): time, a counter, and random bits drawn once per process.
 * Every request needs one, so the clock is read on a beat, not per id.
 */
export class DecisionIds {
  #ms = -1
  #prefix = ''
  #counter = 0
  readonly #tail: string

  constructor(nowMs: number, random: Buffer = randomBytes(6)) {
    this.#tail = random.toString('hex')
    this.beat(nowMs)
  }

  /** Sets the time. A time in the past is ignored, because an id could repeat. */
  beat(nowMs: number): void {
    if (nowMs <= this.#ms) return
    const hex = nowMs.toString(16).padStart(12, '0')
    this.#ms = nowMs
    this.#prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
    this.#counter = 0
  }

  next(): DecisionId {
    // If the clock went back, the time stands still, perhaps longer than the ids of one beat last.
    if (this.#counter === COUNTERS) this.beat(this.#ms + 1)
    const counter = (COUNTERS + this.#counter++).toString(16)
    return `${this.#prefix}${counter.slice(1, 4)}-8${counter.slice(4)}-${this.#tail}` as DecisionId
  }
}

/** 24 bits for the ids of one beat. The leading 1 keeps the leading zeros of the hex form. */
const COUNTERS = 0x100_0000
