import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ClientConnection } from '../connection/connection.ts'
import {
  DISCARDED_BYTES_MAX,
  framedHeaders,
  JOINED_BYTES_MAX,
  latin1,
  TAKEN_BYTES_MIN,
} from './answer-framing.ts'
import { cutOff } from '../connection/cut-off.ts'
import type { Exchange } from '../connection/exchange.ts'
import { trailersToPass } from '../connection/field-syntax.ts'
import { OUTBOX, type Sender } from './outbox.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { RequestFacts } from '../connection/request-check.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** What an exchange needs from its connection. */
export interface Http1Turn {
  /** The connection takes no further requests: the answer must announce it. */
  readonly isLast: boolean
  /** Closes the connection after the answer, although more of the request may still come. */
  closeSoftly(): void
}

/** One HTTP/1 request and its answer, based on the request and response of node:http. */
/** A request and its answer, as node:http gives them. */
export interface Http1Messages {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export class Http1Exchange implements Exchange, Sender {
  readonly connection: ClientConnection
  readonly head: ReceivedHead
  readonly authority: string | null
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers: boolean
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #turn: Http1Turn
  #state: State = 'open'
  /** Bytes of the answer's body still to come. `null` if unknown. */
  #due: number | null = null
  #isHeadSent = false
  #hearsDrain = false
  /** Whether the client may send its body. */
  #isAwaited: boolean

  constructor(
    connection: ClientConnection,
    head: ReceivedHead,
    facts: RequestFacts,
    { request, response }: Http1Messages,
    turn: Http1Turn,
  ) {
    this.connection = connection
    this.head = head
    this.authority = facts.authority
    this.bodyLength = facts.bodyLength
    this.expectsContinue = facts.expectsContinue
    this.#isAwaited = !facts.expectsContinue
    this.acceptsTrailers = facts.acceptsTrailers
    this.#request = request
    this.#response = response
    this.#turn = turn
  }

  get body(): Readable {
    // node:http does not begin a stream for a request without a body.
    return this.bodyLength === 0 ? Readable.from([]) : this.#request
  }

  get trailers(): readonly string[] {
    return trailersToPass(this.#request.rawTrailers)
  }

  get answered(): boolean {
    return this.#state !== 'open'
  }

  /** Whether the exchange has ended and the holder has nothing left to do. */
  get isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'gone'
  }

  get isBodyWhole(): boolean {
    return this.bodyLength === 0 || this.#request.complete
  }

  /** The client cannot send more of its body: it waits for a 100, or the body's buffer is full. */
  get isHeldBack(): boolean {
    return !this.#isAwaited || this.#request.readableLength >= this.#request.readableHighWaterMark
  }

  inform(status: number, headers: readonly string[]): void {
    if (this.#state !== 'open' || this.head.version === '10') return
    if (status === 100) this.#isAwaited = true
    try {
      if (status === 100) this.#response.writeContinue()
      else this.#response.writeInformation(status, headers as string[])
    } catch {
      // An invalid header. An interim answer may be omitted.
    }
  }

  answer(
    status: number,
    headers: readonly string[],
    bodyLength: number | null,
    reason: string | null = null,
  ): void {
    if (this.#state !== 'open') return
    this.#state = 'answering'
    this.#due = bodyLength
    const response = this.#response
    if (this.#turn.isLast) response.shouldKeepAlive = false
    if (!this.isBodyWhole && (this.bodyLength === null || this.bodyLength > DISCARDED_BYTES_MAX)) {
      response.shouldKeepAlive = false
      this.#turn.closeSoftly()
    }
    // A client that waits for a 100 may still send its body or not. Node closes the connection in this case
    // too.
    else if (!this.#isAwaited) this.#turn.closeSoftly()
    // Node would send chunks to an HTTP/1.0 client that claims to accept them, against RFC 9112 §6.1.
    if (this.head.version === '10') response.useChunkedEncodingByDefault = false
    try {
      response.writeHead(
        status,
        reason ?? STATUS_CODES[status],
        framedHeaders(this.head, status, headers, bodyLength),
      )
    } catch {
      return this.#breakOff()
    }
    if (bodyLength === 0) this.#finish(null)
    else OUTBOX.put(this, '')
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
    this.#isHeadSent = true
    const socket = this.connection.stream
    if (this.#due === 0 && chunk.length <= JOINED_BYTES_MAX) {
      this.#finish(latin1(chunk))
      return true
    }
    const isTaken = chunk.length >= TAKEN_BYTES_MIN && this.connection.isTls && socket.writableLength === 0
    const bytes = isTaken ? chunk : Buffer.from(chunk)
    if (this.#due === 0) {
      this.#finish(bytes)
      return true
    }
    if (isTaken) socket.cork()
    const hasRoom = this.#response.write(bytes)
    if (isTaken) socket.uncork()
    if (!hasRoom) this.#hearDrain()
    return hasRoom
  }

  end(trailers: readonly string[]): void {
    if (this.#state !== 'answering') return
    if (this.#due !== null && this.#due > 0) return this.#breakOff()
    if (trailers.length > 0) this.#addTrailers(trailers)
    this.#finish(null)
  }

  abort(): void {
    if (this.isOver) return
    this.#state = 'gone'
    cutOff(this.connection.stream)
  }

  /** The client has disconnected, or the rest of its request is invalid. */
  lose(): void {
    if (this.isOver) return
    this.#state = 'gone'
    const tell = this.onGone
    this.onGone = null
    this.onDrain = null
    tell?.()
  }

  #flushHead(): void {
    if (this.#state !== 'answering' || this.#isHeadSent) return
    this.#isHeadSent = true
    this.#response.flushHeaders()
  }

  #finish(last: Uint8Array | string | null): void {
    this.#state = 'ended'
    this.onGone = null
    this.onDrain = null
    if (last === null) this.#response.end()
    else if (typeof last === 'string') OUTBOX.put(this, last)
    else this.#response.end(last)
  }

  /**
   * Called by the outbox. Sends the end of the answer, or, if the body has paused, the head: the head of an
   * event stream must not wait.
   */
  send(text: string): void {
    if (text === '') this.#flushHead()
    else this.#response.end(text, 'latin1')
  }

  /** A mistake of the holder, or an invalid header. The client sees a truncated answer. */
  #breakOff(): void {
    const tell = this.onGone
    this.onGone = null
    this.abort()
    tell?.()
  }

  #addTrailers(trailers: readonly string[]): void {
    const pairs: [string, string][] = []
    for (let i = 0; i < trailers.length; i += 2) pairs.push([trailers[i]!, trailers[i + 1]!])
    try {
      this.#response.addTrailers(pairs)
    } catch {
      // Invalid trailers are dropped. The body has been sent.
    }
  }

  #hearDrain(): void {
    if (this.#hearsDrain) return
    this.#hearsDrain = true
    this.#response.on('drain', () => this.onDrain?.())
  }
}

type State = 'open' | 'answering' | 'ended' | 'gone'
