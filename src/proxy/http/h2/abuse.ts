import type { Outflow } from './outflow.ts'

/**
 * What the other side may do without asking for anything. A budget grows with time and with useful work, and each
 * frame of no use takes from it (RFC 9113 §10.5).
 */
export class Budget {
  readonly #max: number
  readonly #perMs: number
  #left: number
  #atMs: number

  constructor(max: number, perSecond: number, nowMs: number) {
    this.#max = max
    this.#perMs = perSecond / 1000
    this.#left = max
    this.#atMs = nowMs
  }

  /** Whether there was enough. */
  spend(nowMs: number): boolean {
    this.earn((nowMs - this.#atMs) * this.#perMs)
    this.#atMs = nowMs
    return --this.#left >= 0
  }

  earn(amount: number): void {
    this.#left = Math.min(this.#max, this.#left + amount)
  }
}

/** The budget of one connection for frames that carry nothing. */
export class IdleFrames {
  readonly #budget: Budget
  readonly #outflow: Outflow
  /** DATA bytes and parts of bodies sent when frames were last paid with them. */
  #paidBytes = 0
  #paidParts = 0

  constructor(outflow: Outflow, nowMs: number) {
    this.#outflow = outflow
    this.#budget = new Budget(IDLE_FRAMES.max, IDLE_FRAMES.perSecond, nowMs)
  }

  /** A request has been made. */
  asked(): void {
    this.#budget.earn(PER_REQUEST)
  }

  /** Whether there was enough for one more. */
  spend(nowMs: number): boolean {
    const { dataBytes, parts } = this.#outflow
    this.#budget.earn((dataBytes - this.#paidBytes) / SENT_BYTES_PER_FRAME)
    this.#budget.earn((parts - this.#paidParts) * PER_PART)
    this.#paidBytes = dataBytes
    this.#paidParts = parts
    return this.#budget.spend(nowMs)
  }
}

/** The names under which failures of HTTP/2 connections are counted. */
export const ABUSE = {
  preface: 'preface',
  frameSize: 'frame-size',
  frameOrder: 'frame-order',
  streamNumber: 'stream-number',
  closedStream: 'closed-stream',
  lateData: 'late-data',
  padding: 'padding',
  settings: 'settings-value',
  flowControl: 'flow-control',
  compression: 'compression',
  longBlock: 'long-header-block',
  manyContinuations: 'many-continuations',
  manyResets: 'many-resets',
  manyFrames: 'many-idle-frames',
} as const

/** Frames that carry nothing: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA and those of unknown types. */
const IDLE_FRAMES = { max: 1_000, perSecond: 200 } as const
/** How many of them a request allows. Clients that follow RFC 7540 send a PRIORITY or two. */
const PER_REQUEST = 8
/** The other side may send a WINDOW_UPDATE for so many bytes of DATA from us, on its stream and its connection. */
const SENT_BYTES_PER_FRAME = 512
/** And so many for each part of a body, however small: those of gRPC send a PING to measure the round trip. */
const PER_PART = 4
