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

/** What an exchange asks of the connection it has its turn on. */
export interface Http1Turn {
  /** The connection takes no further requests: the answer has to say so. */
  readonly isLast: boolean
  /** The connection is to end after the answer, although more of the request may still come. */
  closeSoftly(): void
}

/** One request of HTTP/1 and its answer, over the request and response of node:http. */
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
  /** Bytes of the answer's body still to come; `null` when nobody knows. */
  #due: number | null = null
  #isHeadSent = false
  #hearsDrain = false
  /** The client may send its body. */
  #isAwaited: boolean

  constructor(
    connection: ClientConnection,
    head: ReceivedHead,
    facts: RequestFacts,
    request: IncomingMessage,
    response: ServerResponse,
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
    // node:http has no stream for a request without a body: it is not even begun.
    return this.bodyLength === 0 ? Readable.from([]) : this.#request
  }

  get trailers(): readonly string[] {
    return trailersToPass(this.#request.rawTrailers)
  }

  get answered(): boolean {
    return this.#state !== 'open'
  }

  /** Nothing more is to be done for it, by whoever holds it. */
  get isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'gone'
  }

  get isBodyWhole(): boolean {
    return this.bodyLength === 0 || this.#request.complete
  }

  /** The client cannot send more of its body: it waits for a 100, or as much as is buffered of it is not read. */
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
      // A header that cannot be written, of an answer that may be left out.
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
    // Nor does anybody know whether a body comes that nobody has asked for: Node closes behind it, too.
    else if (!this.#isAwaited) this.#turn.closeSoftly()
    // Node would take a client of 1.0 at its word that it understands chunks (RFC 9112 §6.1 does not).
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

  /** The client has gone, or has broken the rest of its request. */
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

  /** Of the outbox: the answer, or, where whoever answers has paused, its head, which must not wait for an event stream. */
  send(text: string): void {
    if (text === '') this.#flushHead()
    else this.#response.end(text, 'latin1')
  }

  /** The holder's own mistake, or a header that cannot be written: to the client it is an answer cut off. */
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
      // They cannot be written; what they were about has been.
    }
  }

  #hearDrain(): void {
    if (this.#hearsDrain) return
    this.#hearsDrain = true
    this.#response.on('drain', () => this.onDrain?.())
  }
}

type State = 'open' | 'answering' | 'ended' | 'gone'
