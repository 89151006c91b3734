import { Readable } from 'node:stream'
import { FRAME_BYTES_MAX, INTERNAL_ERROR, NO_ERROR } from '../../../wire/h2/frame.ts'
import { DEFAULT_PRIORITY, parsePriority, type Priority } from '../../../wire/h2/priority.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import type { Exchange } from '../../connection/exchange.ts'
import type { ReceivedHead } from '../../connection/received-head.ts'
import type { RequestFacts } from '../../connection/request-check.ts'
import { STATUS_CODES } from '../../../shared/node-http.ts'
import { encodeHead, encodeTrailers } from './answer-fields.ts'
import type { Http2Body } from './body.ts'
import type { Answering, Outflow } from './outflow.ts'

/** What an exchange needs from its connection. */
export interface Turns {
  readonly outflow: Outflow
  request(exchange: OwnHttp2Exchange): void
  /** The whole answer has been passed on. */
  answered(exchange: OwnHttp2Exchange): void
  /** Resets the stream and forgets it. */
  reset(exchange: OwnHttp2Exchange, code: number): void
}

/** One request and its answer, on one stream of our own HTTP/2 server. */
export class OwnHttp2Exchange implements Exchange, Answering {
  readonly stream: number
  readonly connection: ClientConnection
  readonly head: ReceivedHead
  readonly authority: string | null
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers = true
  trailers: readonly string[] = NONE
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null
  /** How much DATA of this answer the client takes. It may be negative (RFC 9113 §6.9.2). */
  window: number
  /** `null`: the request has no body. */
  readonly incoming: Http2Body | null
  /** Whether END_STREAM has been sent. */
  isSent = false
  /** Whether its body must come in time, and the time by which more of it is due. */
  isBodyAwaited = false
  bodyDueMs = Number.POSITIVE_INFINITY
  /** Bytes of the body that came after the answer and were dropped. */
  discarded = 0
  /** The answer has been sent, and the client will be asked to stop sending. */
  isLingering = false
  /** What the stream is reset with once the client had time to read the answer. */
  resetCode: number = NO_ERROR
  readonly #turns: Turns
  #state: State = 'open'
  /** Bytes of the answer's body still to come. `null` if unknown. */
  #due: number | null = null
  /** Parts of the answer that wait for a window or the socket, and where the first begins. */
  #parts: Uint8Array[] | null = null
  #partAt = 0
  #trailersOut: readonly string[] = NONE
  #waitingBytes = 0
  #sentBytes = 0
  /** The bytes sent when the client had last taken some, and when that was. -1 before the first check. */
  #seenBytes = -1
  #seenMs = 0
  #isAwaited: boolean
  /** `null` until it matters, which is seldom. */
  #priority: Priority | null = null

  constructor(
    stream: number,
    turns: Turns,
    connection: ClientConnection,
    asked: { readonly head: ReceivedHead; readonly facts: RequestFacts; readonly body: Http2Body | null },
    window: number,
  ) {
    const { head, facts, body } = asked
    this.stream = stream
    this.#turns = turns
    this.connection = connection
    this.head = head
    this.authority = facts.authority
    this.bodyLength = facts.bodyLength
    this.expectsContinue = facts.expectsContinue
    this.#isAwaited = !facts.expectsContinue
    this.incoming = body
    this.window = window
  }

  get body(): Readable {
    return this.incoming ?? Readable.from([])
  }

  get answered(): boolean {
    return this.#state !== 'open'
  }

  /** Whether the exchange has ended and the holder has nothing left to do. */
  get isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'gone'
  }

  get isBodyWhole(): boolean {
    return this.incoming === null || this.incoming.isWhole
  }

  /** The client cannot send more of its body: it waits for a 100, or the body's buffer is full. */
  get isHeldBack(): boolean {
    return !this.#isAwaited || this.incoming?.isFull === true
  }

  get priority(): Priority {
    this.#priority ??= priorityIn(this.head.rawHeaders)
    return this.#priority
  }

  /** By a PRIORITY_UPDATE, which replaces that of the header. */
  set priority(priority: Priority) {
    this.#priority = priority
  }

  get isWaiting(): boolean {
    return this.#waitingBytes > 0
  }

  get canSend(): boolean {
    return this.window > 0
  }

  /** Called by the outbox at the end of the turn in which the request came. */
  begin(): void {
    if (!this.isOver) this.#turns.request(this)
  }

  inform(status: number, headers: readonly string[]): void {
    if (this.#state !== 'open' || status === 101) return
    if (status === 100) this.#isAwaited = true
    const { outflow } = this.#turns
    // An interim answer with an invalid header may be omitted.
    if (encodeHead(outflow.encoder, status, headers)) outflow.headers(this.stream, false)
  }

  answer(status: number, headers: readonly string[], bodyLength: number | null): void {
    if (this.#state !== 'open') return
    this.#state = 'answering'
    this.#due = bodyLength
    const { outflow } = this.#turns
    if (!encodeHead(outflow.encoder, status, headers)) return this.#breakOff()
    outflow.headers(this.stream, bodyLength === 0)
    if (bodyLength !== 0) return
    this.#finished()
    this.#sent()
  }

  /**
   * Answers instead of the holder, to which the client has left. A client that still sends gets a text and its
   * length: without it curl (7.88) waits on.
   */
  refuse(status: number, resetCode: number): void {
    const tell = this.onGone
    this.resetCode = resetCode
    this.incoming?.destroy()
    if (this.isBodyWhole || this.head.method === 'HEAD') this.answer(status, NONE, 0)
    else {
      const text = Buffer.from(`${STATUS_CODES[status]}\n`)
      const length = String(text.length)
      this.answer(status, ['content-type', 'text/plain', 'content-length', length], text.length)
      this.write(text)
    }
    tell?.()
  }

  write(chunk: Uint8Array): boolean {
    if (this.#state !== 'answering' || chunk.length === 0) return true
    if (this.#due !== null) {
      this.#due -= chunk.length
      if (this.#due < 0) {
        this.#breakOff()
        return true
      }
    }
    const isLast = this.#due === 0
    if (isLast) this.#finished()
    const { outflow } = this.#turns
    outflow.parts++
    const taken = this.#waitingBytes === 0 && outflow.isOpen ? this.#take(chunk, isLast) : 0
    if (taken < chunk.length) this.#wait(chunk, taken)
    else if (isLast) this.#sent()
    if (isLast || (this.#waitingBytes === 0 && outflow.isOpen)) return true
    outflow.hold(this)
    return false
  }

  end(trailers: readonly string[]): void {
    if (this.#state !== 'answering') return
    if (this.#due !== null && this.#due > 0) return this.#breakOff()
    this.#finished()
    this.#trailersOut = trailers
    if (this.#waitingBytes === 0) this.#sendEnd()
  }

  abort(): void {
    if (this.isOver) return
    this.#state = 'gone'
    this.#turns.reset(this, INTERNAL_ERROR)
  }

  sendWaiting(): void {
    const { outflow } = this.#turns
    const part = this.#parts![0]!
    const left = part.length - this.#partAt
    const length = Math.min(left, FRAME_BYTES_MAX, this.window, outflow.window)
    const isLast = this.#due === 0 && length === this.#waitingBytes
    const bytes = part.subarray(this.#partAt, this.#partAt + length)
    this.#partAt += length
    if (length === left) {
      this.#parts!.shift()
      this.#partAt = 0
    }
    this.window -= length
    this.#waitingBytes -= length
    this.#sentBytes += length
    outflow.data(this.stream, bytes, isLast)
    if (isLast) this.#sent()
    else if (this.#waitingBytes === 0 && this.#state === 'ended') this.#sendEnd()
  }

  drained(): void {
    this.onDrain?.()
  }

  /** Since when the client has taken next to nothing that waits. `nowMs` if nothing waits. Called periodically. */
  unreadSince(nowMs: number): number {
    const isFirst = this.#seenBytes < 0
    if (isFirst || this.#waitingBytes === 0 || this.#sentBytes - this.#seenBytes >= READ_BYTES_MIN) {
      this.#seenBytes = this.#sentBytes
      this.#seenMs = nowMs
    }
    return this.#seenMs
  }

  /** The client has disconnected or reset the stream, or the rest of its request is invalid. */
  lose(): void {
    this.#drop()
    if (this.isOver) return
    this.#state = 'gone'
    const tell = this.onGone
    this.onGone = null
    this.onDrain = null
    this.incoming?.destroy()
    tell?.()
  }

  /** Sends what the windows let out and returns how much that is. */
  #take(chunk: Uint8Array, isLast: boolean): number {
    const { outflow } = this.#turns
    const length = Math.min(chunk.length, this.window, outflow.window)
    if (length <= 0) return 0
    const isWhole = length === chunk.length
    this.window -= length
    this.#sentBytes += length
    outflow.data(this.stream, isWhole ? chunk : chunk.subarray(0, length), isLast && isWhole)
    return length
  }

  /** A copy: the chunk is valid only during the call. */
  #wait(chunk: Uint8Array, from: number): void {
    const part = Uint8Array.prototype.slice.call(chunk, from)
    this.#parts ??= []
    this.#parts.push(part)
    if (this.#waitingBytes === 0) this.#turns.outflow.wait(this)
    this.#waitingBytes += part.length
  }

  #sendEnd(): void {
    const { outflow } = this.#turns
    if (this.#trailersOut.length > 0 && encodeTrailers(outflow.encoder, this.#trailersOut))
      outflow.headers(this.stream, true)
    else outflow.data(this.stream, NOTHING, true)
    this.#sent()
  }

  #sent(): void {
    this.isSent = true
    this.#turns.answered(this)
  }

  #finished(): void {
    this.#state = 'ended'
    this.onGone = null
    this.onDrain = null
  }

  #drop(): void {
    this.#parts = null
    this.#waitingBytes = 0
    this.#partAt = 0
  }

  /** A mistake of the holder, or an invalid header. The client sees a truncated answer. */
  #breakOff(): void {
    const tell = this.onGone
    this.onGone = null
    this.abort()
    tell?.()
  }
}

function priorityIn(rawHeaders: readonly string[]): Priority {
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i] === 'priority') return parsePriority(rawHeaders[i + 1]!) ?? DEFAULT_PRIORITY
  return DEFAULT_PRIORITY
}

type State = 'open' | 'answering' | 'ended' | 'gone'

const NONE: readonly string[] = []
/** A client that opens its window byte by byte does not read. */
const READ_BYTES_MIN = 16_384
const NOTHING = Uint8Array.of()
