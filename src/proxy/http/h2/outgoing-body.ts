import { FRAME_BYTES_MAX } from '../../../wire/h2/frame.ts'
import type { Priority } from '../../../wire/h2/priority.ts'
import { encodeTrailers } from './answer-fields.ts'
import type { Outflow, Sending } from './outflow.ts'

/** What one side of a stream sends after its head: DATA as far as the windows allow, then END_STREAM. */
export abstract class OutgoingBody implements Sending {
  readonly stream: number
  readonly outflow: Outflow
  /** How much DATA of this stream the other side takes. It may be negative (RFC 9113 §6.9.2). */
  window: number
  /** Whether END_STREAM has been sent. */
  isSent = false
  abstract readonly priority: Priority
  /** Bytes that have left. */
  protected sentBytes = 0
  /** Parts that wait for a window or the socket, and where the first begins. */
  #parts: Uint8Array[] | null = null
  #partAt = 0
  #waitingBytes = 0
  /** What follows the parts: END_STREAM with the last of them or after it. */
  #end: End = NO_END
  #trailers: readonly string[] = NONE

  constructor(stream: number, outflow: Outflow, window: number) {
    this.stream = stream
    this.outflow = outflow
    this.window = window
  }

  get isWaiting(): boolean {
    return this.#waitingBytes > 0
  }

  get canSend(): boolean {
    return this.window > 0
  }

  /** Sends one frame of what waits. Called by the outflow. */
  sendWaiting(): void {
    const { outflow } = this
    const part = this.#parts![0]!
    const left = part.length - this.#partAt
    const length = Math.min(left, FRAME_BYTES_MAX, this.window, outflow.window)
    const isLast = this.#end === WITH_DATA && length === this.#waitingBytes
    const bytes = part.subarray(this.#partAt, this.#partAt + length)
    this.#partAt += length
    if (length === left) {
      this.#parts!.shift()
      this.#partAt = 0
    }
    this.window -= length
    this.#waitingBytes -= length
    this.sentBytes += length
    outflow.data(this.stream, bytes, isLast)
    if (isLast) this.#hasSent()
    else if (this.#waitingBytes === 0 && this.#end === AFTER_DATA) this.#sendEnd()
  }

  abstract drained(): void

  /** END_STREAM has left. */
  protected abstract sent(): void

  /** The part that waits, beginning at `from`. */
  protected abstract kept(chunk: Uint8Array, from: number): Uint8Array

  /** Returns `false` if the writer should wait for `drained`. */
  protected send(chunk: Uint8Array, isLast: boolean): boolean {
    const { outflow } = this
    outflow.parts++
    if (isLast) this.#end = WITH_DATA
    const taken = this.#waitingBytes === 0 && outflow.isOpen ? this.#take(chunk, isLast) : 0
    if (taken < chunk.length) this.#wait(this.kept(chunk, taken))
    else if (isLast) this.#hasSent()
    if (isLast || (this.#waitingBytes === 0 && outflow.isOpen)) return true
    outflow.hold(this)
    return false
  }

  protected finish(trailers: readonly string[]): void {
    this.#end = AFTER_DATA
    this.#trailers = trailers
    if (this.#waitingBytes === 0) this.#sendEnd()
  }

  /** Nothing more of it is sent. */
  protected drop(): void {
    this.#parts = null
    this.#waitingBytes = 0
    this.#partAt = 0
  }

  /** Sends what the windows let out and returns how much that is. */
  #take(chunk: Uint8Array, isLast: boolean): number {
    const { outflow } = this
    const length = Math.min(chunk.length, this.window, outflow.window)
    if (length <= 0) return 0
    const isWhole = length === chunk.length
    this.window -= length
    this.sentBytes += length
    outflow.data(this.stream, isWhole ? chunk : chunk.subarray(0, length), isLast && isWhole)
    return length
  }

  #wait(part: Uint8Array): void {
    this.#parts ??= []
    this.#parts.push(part)
    if (this.#waitingBytes === 0) this.outflow.wait(this)
    this.#waitingBytes += part.length
  }

  #sendEnd(): void {
    const { outflow } = this
    if (this.#trailers.length > 0 && encodeTrailers(outflow.encoder, this.#trailers))
      outflow.headers(this.stream, true)
    else outflow.data(this.stream, NOTHING, true)
    this.#hasSent()
  }

  #hasSent(): void {
    this.isSent = true
    this.sent()
  }
}

type End = typeof NO_END | typeof WITH_DATA | typeof AFTER_DATA

const NO_END = 0
const WITH_DATA = 1
const AFTER_DATA = 2
const NONE: readonly string[] = []
const NOTHING = Uint8Array.of()
