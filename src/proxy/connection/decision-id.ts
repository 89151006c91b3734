import { randomBytes } from 'node:crypto'
import type { Brand } from '../../shared/brand.ts'

export type DecisionId = Brand<string, 'DecisionId'>

/**
 * Makes ids for decisions, in the form of UUIDv7 (RFC 9562 §5.7): time, a counter, and bits drawn once per process. On
 * the path of every request, so the clock is read on a beat and not here.
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

  /** The time from here on; time that goes back is not followed, or an id could come twice. */
  beat(nowMs: number): void {
    if (nowMs <= this.#ms) return
    const hex = nowMs.toString(16).padStart(12, '0')
    this.#ms = nowMs
    this.#prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
    this.#counter = 0
  }

  next(): DecisionId {
    // Time that has gone back stands still here, maybe for longer than one beat has ids.
    if (this.#counter === COUNTERS) this.beat(this.#ms + 1)
    const counter = (COUNTERS + this.#counter++).toString(16)
    return `${this.#prefix}${counter.slice(1, 4)}-8${counter.slice(4)}-${this.#tail}` as DecisionId
  }
}

/** 24 bits for the ids of one beat, behind a digit that keeps their leading zeros. */
const COUNTERS = 0x100_0000
