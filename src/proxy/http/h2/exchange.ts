import { Readable } from 'node:stream'
import { CANCEL, INTERNAL_ERROR, NO_ERROR } from '../../../wire/h2/frame.ts'
import { DEFAULT_PRIORITY, parsePriority, type Priority } from '../../../wire/h2/priority.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import type { Exchange } from '../../connection/exchange.ts'
import type { ReceivedHead } from '../../connection/received-head.ts'
import type { RequestFacts } from '../../connection/request-check.ts'
import type { Upgrade } from '../../connection/upgrade.ts'
import { STATUS_CODES } from '../../../shared/node-http.ts'
import { encodeHead } from './answer-fields.ts'
import { Http2Body } from './body.ts'
import { OutgoingBody } from './outgoing-body.ts'
import type { Outflow } from './outflow.ts'

/** What an exchange needs from its connection. */
export interface Turns {
  readonly outflow: Outflow
  request(exchange: OwnHttp2Exchange): void
  upgrade(upgrade: Upgrade): void
  /** The client has done something wrong on this stream, or what costs as much. */
  faulty(stream: number, code: number): void
  /** The whole answer has been passed on. */
  answered(exchange: OwnHttp2Exchange): void
  /** Resets the stream and forgets it. */
  reset(exchange: OwnHttp2Exchange, code: number): void
}

/** One request and its answer, on one stream of our own HTTP/2 server. */
export class OwnHttp2Exchange extends OutgoingBody implements Exchange {
  static readonly Body = Http2Body
  readonly connection: ClientConnection
  readonly head: ReceivedHead
  readonly authority: string | null
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers = true
  trailers: readonly string[] = NONE
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null
  /** `null`: the request has no body. */
  readonly incoming: Http2Body | null
  /** Whether its body must come in time, and the time by which more of it is due. */
  isBodyAwaited = false
  bodyDueMs = Number.POSITIVE_INFINITY
  /** Bytes of the body that came after the answer and were dropped. */
  discarded = 0
  /** The answer has been sent, and the client will be asked to stop sending. */
  isLingering = false
  /** What the stream is reset with once the client had time to read the answer. */
  resetCode: number = NO_ERROR
  protected readonly turns: Turns
  #state: State = 'open'
  /** Bytes of the answer's body still to come. `null` if unknown. */
  #due: number | null = null
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
    super(stream, turns.outflow, window)
    this.turns = turns
    this.connection = connection
    this.head = head
    this.authority = facts.authority
    this.bodyLength = facts.bodyLength
    this.expectsContinue = facts.expectsContinue
    this.#isAwaited = !facts.expectsContinue
    this.incoming = body
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

  /** Called by the outbox at the end of the turn in which the request came. */
  begin(): void {
    if (!this.isOver) this.turns.request(this)
  }

  inform(status: number, headers: readonly string[]): void {
    if (this.#state !== 'open' || status === 101) return
    if (status === 100) this.#isAwaited = true
    const { outflow } = this.turns
    // An interim answer with an invalid header may be omitted.
    if (encodeHead(outflow.encoder, status, headers, NONE)) outflow.headers(this.stream, false)
  }

  answer(
    status: number,
    headers: readonly string[],
    bodyLength: number | null,
    _reason: string | null = null,
    neverIndexed: readonly string[] = NONE,
  ): void {
    if (this.#state !== 'open') return
    this.#state = 'answering'
    this.#due = bodyLength
    const { outflow } = this.turns
    if (!encodeHead(outflow.encoder, status, headers, neverIndexed)) return this.#breakOff()
    outflow.headers(this.stream, bodyLength === 0)
    if (bodyLength !== 0) return
    this.#finished()
    this.isSent = true
    this.sent()
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
    return this.send(chunk, isLast)
  }

  end(trailers: readonly string[]): void {
    if (this.#state !== 'answering') return
    if (this.#due !== null && this.#due > 0) return this.#breakOff()
    this.#finished()
    this.finish(trailers)
  }

  abort(): void {
    this.#reset(INTERNAL_ERROR)
  }

  /** The client's side of a tunnel is not wanted any longer. */
  cancel(): void {
    this.#reset(CANCEL)
  }

  override drained(): void {
    this.onDrain?.()
  }

  /** Since when the client has taken next to nothing that waits. `nowMs` if nothing waits. Called periodically. */
  unreadSince(nowMs: number): number {
    const isFirst = this.#seenBytes < 0
    if (isFirst || !this.isWaiting || this.sentBytes - this.#seenBytes >= READ_BYTES_MIN) {
      this.#seenBytes = this.sentBytes
      this.#seenMs = nowMs
    }
    return this.#seenMs
  }

  /** The client has disconnected or reset the stream, or the rest of its request is invalid. */
  lose(): void {
    this.drop()
    if (this.isOver) return
    this.#state = 'gone'
    const tell = this.onGone
    this.onGone = null
    this.onDrain = null
    this.incoming?.destroy()
    tell?.()
  }

  protected override sent(): void {
    this.turns.answered(this)
  }

  /** A copy: the chunk is valid only during the call. */
  protected override kept(chunk: Uint8Array, from: number): Uint8Array {
    return Uint8Array.prototype.slice.call(chunk, from)
  }

  #finished(): void {
    this.#state = 'ended'
    this.onGone = null
    this.onDrain = null
  }

  #reset(code: number): void {
    if (this.isOver) return
    this.#state = 'gone'
    this.turns.reset(this, code)
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
