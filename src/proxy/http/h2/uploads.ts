import * as h2 from '../../../wire/h2/frame.ts'
import type { FrameHead } from '../../../wire/h2/frame-rules.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import { ABUSE } from './abuse.ts'
import { CONNECTION_WINDOW_BYTES, DROPPED_BYTES_MAX, STREAM_WINDOW_BYTES } from './body.ts'
import type { Http2Context } from './context.ts'
import type { OwnHttp2Exchange } from './exchange.ts'
import { Inflow } from './inflow.ts'
import type { Outflow } from './outflow.ts'

/** What bodies need from the streams of their connection. */
export interface UploadsOwner {
  readonly open: ReadonlyMap<number, OwnHttp2Exchange>
  /** The client has not begun it (RFC 9113 §5.1). */
  isIdle(stream: number): boolean
  /** The client may send on a closed stream until it hears of our reset or GOAWAY (§5.1, §6.8). */
  isStillSent(stream: number): boolean
  /** DATA has come for such a stream. `false`: it is more than the client could send before it has heard. */
  late(stream: number, bytes: number): boolean
  /** The client has done something wrong on this stream. */
  faulty(stream: number, code: number): void
  /** The request is malformed. `code` says why. */
  malformed(exchange: OwnHttp2Exchange, code: string): void
  /** Resets a stream and forgets it. */
  reset(exchange: OwnHttp2Exchange, code: number): void
  /** Both sides have said everything. */
  over(exchange: OwnHttp2Exchange): void
}

interface Place {
  readonly connection: ClientConnection
  readonly server: Http2Context
  readonly outflow: Outflow
  fail(code: number, name: string): void
}

/** The request bodies of one connection. */
export class StreamUploads {
  readonly #place: Place
  readonly #owner: UploadsOwner
  readonly #inflow: Inflow
  /** The upload that receives the current DATA frame. `null`: it is dropped. */
  #incoming: OwnHttp2Exchange | null = null
  /** Bytes of that frame still to come, padding included. */
  #frameLeft = 0

  constructor(place: Place, owner: UploadsOwner) {
    this.#place = place
    this.#owner = owner
    this.#inflow = new Inflow(place.outflow, WINDOWS)
  }

  /** DATA, before its payload is there. */
  beginData({ stream, length }: FrameHead): void {
    const owner = this.#owner
    if (owner.isIdle(stream)) return this.#place.fail(h2.PROTOCOL_ERROR, ABUSE.streamNumber)
    if (!this.#inflow.came(length)) return this.#place.fail(h2.FLOW_CONTROL_ERROR, ABUSE.flowControl)
    const exchange = owner.open.get(stream)
    this.#incoming = null
    if (exchange === undefined) {
      if (!owner.isStillSent(stream)) return this.#place.fail(h2.STREAM_CLOSED, ABUSE.closedStream)
      if (!owner.late(stream, length)) return this.#place.fail(h2.STREAM_CLOSED, ABUSE.lateData)
      return this.#inflow.free(length)
    }
    const body = exchange.incoming
    if (body === null || body.isWhole) {
      this.#inflow.free(length)
      return owner.faulty(stream, h2.STREAM_CLOSED)
    }
    body.window -= length
    if (body.window < 0) {
      this.#inflow.free(length)
      return owner.faulty(stream, h2.FLOW_CONTROL_ERROR)
    }
    this.#incoming = exchange
    this.#frameLeft = length
  }

  piece(bytes: Uint8Array): void {
    const exchange = this.#incoming
    if (exchange === null) return
    const body = exchange.incoming!
    this.#frameLeft -= bytes.length
    body.held += bytes.length
    body.received += bytes.length
    if (exchange.bodyLength !== null && body.received > exchange.bodyLength) {
      this.#owner.malformed(exchange, 'content-length')
      if (this.#incoming === null) return
    }
    if (exchange.isOver) {
      exchange.discarded += bytes.length
      // The client is held back. A reset could overtake the answer.
      if (exchange.discarded > DROPPED_BYTES_MAX) return exchange.isSent ? this.#linger(exchange) : undefined
    }
    if (exchange.isOver || body.feed(bytes)) this.#inflow.took(exchange.stream, body)
    this.expect(exchange)
  }

  endData(flags: number): void {
    const exchange = this.#incoming
    if (exchange === null) return
    this.#incoming = null
    // Only its padding is left of the frame, which no reader waits for.
    this.#inflow.grant(exchange.stream, exchange.incoming!, this.#frameLeft)
    if (flags & h2.END_STREAM) this.ended(exchange)
  }

  /** END_STREAM has come. */
  ended(exchange: OwnHttp2Exchange): void {
    const body = exchange.incoming!
    exchange.bodyDueMs = Number.POSITIVE_INFINITY
    if (exchange.bodyLength !== null && body.received < exchange.bodyLength) {
      body.isWhole = true
      return this.#owner.malformed(exchange, 'content-length')
    }
    body.finish()
    if (exchange.isSent) this.#owner.over(exchange)
  }

  /** The reader of a body wants more. */
  wanted(exchange: OwnHttp2Exchange): void {
    this.#inflow.took(exchange.stream, exchange.incoming!)
    this.expect(exchange)
  }

  /** More of the body must come in time. */
  expect(exchange: OwnHttp2Exchange): void {
    if (!exchange.isBodyAwaited || exchange.isLingering) return
    const { beat, limits } = this.#place.server
    exchange.bodyDueMs = beat.after(limits.bodyIdleTimeoutMs)
  }

  /** Ends requests whose body has stopped coming, unless the answer has begun: then it is a conversation. */
  sweep(nowMs: number): void {
    for (const exchange of this.#owner.open.values()) if (exchange.bodyDueMs <= nowMs) this.#late(exchange)
  }

  /**
   * The answer is sent, and the body has not ended. The rest is read and dropped, and a client that has much of it or
   * waits is asked to stop: but not at once, as many take a reset for an error and curl (7.88) drops the answer.
   */
  dropRest(exchange: OwnHttp2Exchange): void {
    const { incoming, bodyLength, discarded, isBodyAwaited, resetCode } = exchange
    const left = bodyLength === null ? 0 : bodyLength - incoming!.received
    if (Math.max(left, discarded) > DROPPED_BYTES_MAX) return this.#linger(exchange)
    this.#inflow.took(exchange.stream, incoming!)
    if (isBodyAwaited && resetCode === h2.NO_ERROR) this.expect(exchange)
    else this.#linger(exchange)
  }

  /** Nothing of it is kept any longer. */
  forget(exchange: OwnHttp2Exchange): void {
    const { incoming } = exchange
    if (incoming === null) return
    this.#inflow.free(incoming.held + (this.#incoming === exchange ? this.#frameLeft : 0))
    incoming.held = 0
    if (this.#incoming === exchange) this.#incoming = null
  }

  #late(exchange: OwnHttp2Exchange): void {
    const { connection, server } = this.#place
    exchange.bodyDueMs = Number.POSITIVE_INFINITY
    if (exchange.isLingering) return this.#owner.reset(exchange, exchange.resetCode)
    if (exchange.isBodyWhole || (exchange.answered && !exchange.isSent)) return
    if (exchange.isHeldBack && !exchange.answered) return this.expect(exchange)
    server.handlers.failed(connection, 'bad-request', 'body-timeout')
    // The answer has been sent: RFC 9113 §8.1 allows to end the stream here.
    if (exchange.answered) return this.#owner.reset(exchange, h2.NO_ERROR)
    exchange.refuse(408, h2.NO_ERROR)
    this.#linger(exchange)
  }

  #linger(exchange: OwnHttp2Exchange): void {
    if (exchange.isLingering) return
    exchange.isLingering = true
    exchange.bodyDueMs = this.#place.server.beat.after(LINGER_MS)
  }
}

const WINDOWS = { stream: STREAM_WINDOW_BYTES, connection: CONNECTION_WINDOW_BYTES } as const
/** How long a client may take to read an answer that came before the end of its body. */
const LINGER_MS = 1_000
