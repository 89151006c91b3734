import * as h2 from '../../../wire/h2/frame.ts'
import type { FrameHead } from '../../../wire/h2/frame-rules.ts'
import type { Priority } from '../../../wire/h2/priority.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import { trailersToPass } from '../../connection/field-syntax.ts'
import { OUTBOX } from '../outbox.ts'
import { ABUSE } from './abuse.ts'
import { encodeHead } from './answer-fields.ts'
import { type Asked, BlockReader, isGrpc } from './block-reader.ts'
import { DROPPED_BYTES_MAX, Http2Body } from './body.ts'
import type { Http2Context } from './context.ts'
import { EarlyPriorities } from './early-priorities.ts'
import { OwnHttp2Exchange, type Turns } from './exchange.ts'
import { HeaderBlock } from './header-block.ts'
import { Inflow } from './inflow.ts'
import { OpeningNotes } from './opening-notes.ts'
import type { Outflow } from './outflow.ts'
import { Resets } from './resets.ts'

/** What the streams need from their connection. */
export interface StreamsOwner {
  readonly connection: ClientConnection
  readonly server: Http2Context
  readonly outflow: Outflow
  /** Ends the connection with this error. `name` is one of ABUSE. */
  fail(code: number, name: string): void
  /** A request has come. */
  asked(): void
  /** A stream has closed. */
  emptied(): void
}

/** The streams of one connection: their requests, bodies and resets. */
export class Streams implements Turns {
  readonly open = new Map<number, OwnHttp2Exchange>()
  /** The highest stream that the client has begun. */
  last = 0
  /** The last stream that is served. Later ones are dropped: the client was told. */
  lastServed: number = h2.U31_MAX
  /** What the client says before its first request. `null` afterwards. */
  notes: OpeningNotes | null = new OpeningNotes()
  readonly outflow: Outflow
  readonly #owner: StreamsOwner
  readonly #blocks: BlockReader
  readonly #block = new HeaderBlock()
  readonly #resets: Resets
  readonly #inflow: Inflow
  /** The window of a new answer. */
  #answerWindow: number = h2.WINDOW_BYTES_DEFAULT
  readonly #early = new EarlyPriorities()
  /** The upload that receives the current DATA frame. `null`: it is dropped. */
  #incoming: OwnHttp2Exchange | null = null
  /** Bytes of that frame still to come, padding included. */
  #frameLeft = 0

  constructor(owner: StreamsOwner) {
    this.#owner = owner
    this.outflow = owner.outflow
    this.#inflow = new Inflow(owner.outflow)
    const { limits, beat } = owner.server
    this.#blocks = new BlockReader(limits)
    this.#resets = new Resets(limits, beat.nowMs)
  }

  /** The stream whose header block has begun, or 0. */
  get blockStream(): number {
    return this.#block.stream
  }

  /** The client has not begun it (RFC 9113 §5.1). */
  isIdle(stream: number): boolean {
    return stream > this.last || (stream & 1) === 0
  }

  /** The client may send on a closed stream until it hears of our reset or GOAWAY (§5.1, §6.8). */
  #isStillSent(stream: number): boolean {
    return stream > this.lastServed || this.#resets.isOurs(stream)
  }

  // Header blocks

  /** HEADERS or CONTINUATION, before the payload is there. */
  beginBlock({ type, stream, length }: FrameHead): void {
    const { headerBytesMax } = this.#owner.server.limits
    if (this.#block.length + length > headerBytesMax + BLOCK_OVERHEAD)
      return this.#owner.fail(h2.ENHANCE_YOUR_CALM, ABUSE.longBlock)
    if (type === h2.CONTINUATION) {
      if (this.#block.continuations === CONTINUATIONS_MAX)
        this.#owner.fail(h2.ENHANCE_YOUR_CALM, ABUSE.manyContinuations)
    } else if (!this.isIdle(stream) && !this.open.has(stream) && !this.#isStillSent(stream))
      this.#owner.fail(h2.STREAM_CLOSED, ABUSE.closedStream)
  }

  headers({ stream, flags }: FrameHead, payload: Uint8Array): void {
    if (this.notes !== null) this.notes.headers(payload, flags)
    const isWhole = (flags & h2.END_HEADERS) !== 0
    if (!this.#block.begin(stream, flags, payload, isWhole))
      return this.#owner.fail(h2.PROTOCOL_ERROR, ABUSE.padding)
    if (isWhole) this.#endBlock()
  }

  continuation({ flags }: FrameHead, payload: Uint8Array): void {
    this.#block.add(payload)
    if (flags & h2.END_HEADERS) this.#endBlock()
  }

  #endBlock(): void {
    const { stream, flags, dependsOn } = this.#block
    const block = this.#block.end()
    const isDecodable = this.isIdle(stream)
      ? this.#request(stream, this.#blocks.request(block, (flags & h2.END_STREAM) !== 0), dependsOn)
      : this.#trailers(stream, flags, block)
    if (!isDecodable) this.#owner.fail(h2.COMPRESSION_ERROR, ABUSE.compression)
  }

  #request(stream: number, asked: Asked, dependsOn: number): boolean {
    if (asked.kind === 'undecodable') return false
    this.last = stream
    if (stream > this.lastServed) return true
    this.#owner.asked()
    if (this.notes !== null) this.#completePrint(this.notes, asked.fields)
    // §5.3.1 of RFC 7540.
    if (dependsOn === stream) this.faulty(stream, h2.PROTOCOL_ERROR)
    else if (this.open.size >= this.#owner.server.limits.streamsPerConnectionMax)
      this.faulty(stream, h2.REFUSED_STREAM)
    else if (asked.kind === 'refused') this.#refuse(stream, asked)
    else this.#begin(stream, asked)
    return true
  }

  #begin(stream: number, { head, facts, fields, hasEnded }: Asked & { readonly kind: 'request' }): void {
    const { limits } = this.#owner.server
    const body = hasEnded ? null : new Http2Body(() => this.#bodyWanted(exchange))
    const exchange: OwnHttp2Exchange = new OwnHttp2Exchange(
      ...([stream, this, this.#owner.connection] as const),
      { head, facts, body },
      this.#answerWindow,
    )
    this.open.set(stream, exchange)
    const priority = this.#early.take(stream)
    if (priority !== null) exchange.priority = priority
    if (body !== null && limits.bodyIdleTimeoutMs > 0 && !isGrpc(fields)) {
      exchange.isBodyAwaited = true
      this.#expectBody(exchange)
    }
    // If the client resets the stream at once, the request is never begun (CVE-2023-44487).
    OUTBOX.beforehand(exchange)
  }

  /** By a PRIORITY_UPDATE, which may come before its stream. */
  prioritize(stream: number, priority: Priority): void {
    const exchange = this.open.get(stream)
    if (exchange !== undefined) exchange.priority = priority
    else if (this.isIdle(stream)) this.#early.note(stream, priority)
  }

  /** Answers a request itself. A malformed one may get an answer before its reset (RFC 9113 §8.1.1). */
  #refuse(stream: number, { why, isMalformed, hasEnded }: Asked & { readonly kind: 'refused' }): void {
    const { server, connection } = this.#owner
    server.handlers.failed(connection, 'bad-request', why.code)
    encodeHead(this.outflow.encoder, why.status, [])
    this.outflow.headers(stream, true)
    if (isMalformed) this.faulty(stream, h2.PROTOCOL_ERROR)
    else if (!hasEnded) this.#reset(stream, h2.NO_ERROR)
    else this.#owner.emptied()
  }

  /** A second block on a stream. Returns `false` for a compression error. */
  #trailers(stream: number, flags: number, block: Uint8Array): boolean {
    const exchange = this.open.get(stream)
    const trailers = this.#blocks.trailers(block)
    if (trailers === 'undecodable') return false
    if (exchange === undefined) return true
    if (exchange.isBodyWhole) this.faulty(stream, h2.STREAM_CLOSED)
    else if (trailers === 'malformed' || (flags & h2.END_STREAM) === 0)
      this.#malformed(exchange, 'malformed-trailers')
    else {
      exchange.trailers = trailersToPass(trailers)
      this.#bodyEnded(exchange)
    }
    return true
  }

  /** The pseudo-header order is part of the connection's fingerprint, and only a request shows it. */
  #completePrint(notes: OpeningNotes, fields: readonly string[]): void {
    const { connection, server } = this.#owner
    this.notes = null
    server.opened(connection, notes.said)
    connection.print = { ...connection.print, ...notes.print(fields) }
  }

  // Bodies

  /** DATA, before its payload is there. */
  beginData({ stream, length }: FrameHead): void {
    if (this.isIdle(stream)) return this.#owner.fail(h2.PROTOCOL_ERROR, ABUSE.streamNumber)
    if (!this.#inflow.came(length)) return this.#owner.fail(h2.FLOW_CONTROL_ERROR, ABUSE.flowControl)
    const exchange = this.open.get(stream)
    this.#incoming = null
    if (exchange === undefined) {
      if (!this.#isStillSent(stream)) return this.#owner.fail(h2.STREAM_CLOSED, ABUSE.closedStream)
      return this.#inflow.free(length)
    }
    const body = exchange.incoming
    if (body === null || body.isWhole) {
      this.#inflow.free(length)
      return this.faulty(stream, h2.STREAM_CLOSED)
    }
    body.window -= length
    if (body.window < 0) {
      this.#inflow.free(length)
      return this.faulty(stream, h2.FLOW_CONTROL_ERROR)
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
    const { bodyLength } = exchange
    if (bodyLength !== null && body.received > bodyLength) return this.#malformed(exchange, 'content-length')
    if (exchange.isOver) {
      exchange.discarded += bytes.length
      // The client is held back. A reset could overtake the answer.
      if (exchange.discarded > DROPPED_BYTES_MAX) return exchange.isSent ? this.#linger(exchange) : undefined
    }
    if (exchange.isOver || body.feed(bytes)) this.#inflow.took(exchange.stream, body)
    this.#expectBody(exchange)
  }

  endData(flags: number): void {
    const exchange = this.#incoming
    if (exchange === null) return
    this.#incoming = null
    // Only its padding is left of the frame, which no reader waits for.
    this.#inflow.grant(exchange.stream, exchange.incoming!, this.#frameLeft)
    if (flags & h2.END_STREAM) this.#bodyEnded(exchange)
  }

  #bodyEnded(exchange: OwnHttp2Exchange): void {
    const body = exchange.incoming!
    if (exchange.bodyLength !== null && body.received < exchange.bodyLength)
      return this.#malformed(exchange, 'content-length')
    exchange.bodyDueMs = Number.POSITIVE_INFINITY
    body.finish()
    if (exchange.isSent) this.#forget(exchange)
  }

  #bodyWanted(exchange: OwnHttp2Exchange): void {
    this.#inflow.took(exchange.stream, exchange.incoming!)
    this.#expectBody(exchange)
  }

  #expectBody(exchange: OwnHttp2Exchange): void {
    if (!exchange.isBodyAwaited || exchange.isLingering) return
    const { beat, limits } = this.#owner.server
    exchange.bodyDueMs = beat.after(limits.bodyIdleTimeoutMs)
  }

  /** Ends requests whose body has stopped coming, unless the answer has begun: then it is a conversation. */
  sweepBodies(nowMs: number): void {
    for (const exchange of this.open.values()) if (exchange.bodyDueMs <= nowMs) this.#lateBody(exchange)
  }

  #lateBody(exchange: OwnHttp2Exchange): void {
    const { connection, server } = this.#owner
    exchange.bodyDueMs = Number.POSITIVE_INFINITY
    if (exchange.isLingering) return this.reset(exchange, h2.NO_ERROR)
    if (exchange.isBodyWhole || (exchange.answered && !exchange.isSent)) return
    if (exchange.isHeldBack && !exchange.answered) return this.#expectBody(exchange)
    server.handlers.failed(connection, 'bad-request', 'body-timeout')
    // The answer has been sent: RFC 9113 §8.1 allows to end the stream here.
    if (!exchange.answered) {
      encodeHead(this.outflow.encoder, 408, [])
      this.outflow.headers(exchange.stream, true)
    }
    this.reset(exchange, h2.NO_ERROR)
  }

  request(exchange: OwnHttp2Exchange): void {
    this.#owner.server.handlers.request(exchange)
  }

  answered(exchange: OwnHttp2Exchange): void {
    if (exchange.isBodyWhole) return this.#forget(exchange)
    const { incoming, bodyLength, discarded } = exchange
    const left = bodyLength === null ? 0 : bodyLength - incoming!.received
    if (Math.max(left, discarded) > DROPPED_BYTES_MAX) return this.#linger(exchange)
    // The rest of the body is read and dropped: many clients take a reset for an error.
    this.#inflow.took(exchange.stream, incoming!)
    if (exchange.isBodyAwaited) this.#expectBody(exchange)
    else this.#linger(exchange)
  }

  /** Asks the client to send no more (§8.1), but not at once: curl (7.88) would drop the answer. */
  #linger(exchange: OwnHttp2Exchange): void {
    if (exchange.isLingering) return
    exchange.isLingering = true
    exchange.bodyDueMs = this.#owner.server.beat.after(LINGER_MS)
  }

  /** Resets a stream and forgets it. */
  reset(exchange: OwnHttp2Exchange, code: number): void {
    exchange.lose()
    this.#reset(exchange.stream, code)
    this.#forget(exchange)
  }

  /** The client has done something wrong on this stream. */
  faulty(stream: number, code: number): void {
    const exchange = this.open.get(stream)
    if (exchange === undefined) this.#reset(stream, code)
    else this.reset(exchange, code)
    this.#countReset()
  }

  resetByClient(stream: number): void {
    const exchange = this.open.get(stream)
    if (exchange !== undefined) {
      exchange.lose()
      this.#forget(exchange)
    }
    this.#countReset()
  }

  /** The window of answers changes by SETTINGS. `false`: one becomes too large. */
  setAnswerWindow(bytes: number): boolean {
    const more = bytes - this.#answerWindow
    this.#answerWindow = bytes
    for (const exchange of this.open.values()) {
      exchange.window += more
      if (exchange.window > h2.U31_MAX) return false
    }
    if (more > 0) this.outflow.pump()
    return true
  }

  windowUpdate(stream: number, bytes: number): void {
    const exchange = this.open.get(stream)
    if (exchange === undefined) return
    if (bytes === 0) return this.faulty(stream, h2.PROTOCOL_ERROR)
    exchange.window += bytes
    if (exchange.window > h2.U31_MAX) return this.faulty(stream, h2.FLOW_CONTROL_ERROR)
    if (exchange.isWaiting) this.outflow.pump()
  }

  /** The connection has ended. */
  loseAll(): void {
    for (const exchange of this.open.values()) exchange.lose()
    this.open.clear()
  }

  #malformed(exchange: OwnHttp2Exchange, code: string): void {
    const { connection, server } = this.#owner
    server.handlers.failed(connection, 'bad-request', code)
    if (!exchange.answered) {
      encodeHead(this.outflow.encoder, 400, [])
      this.outflow.headers(exchange.stream, true)
    }
    this.faulty(exchange.stream, h2.PROTOCOL_ERROR)
  }

  #countReset(): void {
    if (!this.#resets.count(this.#owner.server.beat.nowMs))
      this.#owner.fail(h2.ENHANCE_YOUR_CALM, ABUSE.manyResets)
  }

  #reset(stream: number, code: number): void {
    this.outflow.reset(stream, code)
    this.#resets.note(stream)
  }

  #forget(exchange: OwnHttp2Exchange): void {
    this.open.delete(exchange.stream)
    this.outflow.forget(exchange)
    const { incoming } = exchange
    if (incoming !== null) {
      this.#inflow.free(incoming.held + (this.#incoming === exchange ? this.#frameLeft : 0))
      incoming.held = 0
    }
    if (this.#incoming === exchange) this.#incoming = null
    this.#owner.emptied()
  }
}

/** How long a client may take to read an answer that came before the end of its body. */
const LINGER_MS = 1_000
/** What a block may have beyond the limit of its list: lengths, and fields that are counted apart. */
const BLOCK_OVERHEAD = 16_384
/** The size of a browser's longest head takes five. */
const CONTINUATIONS_MAX = 16
