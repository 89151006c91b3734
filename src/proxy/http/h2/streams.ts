import * as h2 from '../../../wire/h2/frame.ts'
import type { FrameHead } from '../../../wire/h2/frame-rules.ts'
import type { Priority } from '../../../wire/h2/priority.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import { trailersToPass } from '../../connection/field-syntax.ts'
import type { Upgrade } from '../../connection/upgrade.ts'
import { OUTBOX } from '../outbox.ts'
import { ABUSE } from './abuse.ts'
import { type Asked, BlockReader, isGrpc } from './block-reader.ts'
import type { Http2Context } from './context.ts'
import { EarlyPriorities } from './early-priorities.ts'
import { OwnHttp2Exchange, type Turns } from './exchange.ts'
import { HeaderBlock } from './header-block.ts'
import { OpeningNotes } from './opening-notes.ts'
import type { Outflow } from './outflow.ts'
import { Resets } from './resets.ts'
import { Http2Tunnel } from './tunnel.ts'
import { StreamUploads, type UploadsOwner } from './uploads.ts'

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
export class Streams implements Turns, UploadsOwner {
  readonly open = new Map<number, OwnHttp2Exchange>()
  /** The highest stream that the client has begun. */
  last = 0
  /** The last stream that is served. Later ones are dropped: the client was told. */
  lastServed: number = h2.U31_MAX
  /** What the client says before its first request. `null` afterwards. */
  notes: OpeningNotes | null = new OpeningNotes()
  readonly outflow: Outflow
  readonly uploads: StreamUploads
  readonly #owner: StreamsOwner
  readonly #blocks: BlockReader
  readonly #block = new HeaderBlock()
  readonly #resets: Resets
  /** The window of a new answer. */
  #answerWindow: number = h2.WINDOW_BYTES_DEFAULT
  readonly #early = new EarlyPriorities()

  constructor(owner: StreamsOwner) {
    this.#owner = owner
    this.outflow = owner.outflow
    this.uploads = new StreamUploads(owner, this)
    const { limits, beat } = owner.server
    this.#blocks = new BlockReader(limits)
    this.#resets = new Resets(limits, beat.nowMs)
  }

  /** The stream whose header block has begun, or 0. */
  get blockStream(): number {
    return this.#block.stream
  }

  isIdle(stream: number): boolean {
    return stream > this.last || (stream & 1) === 0
  }

  isStillSent(stream: number): boolean {
    return stream > this.lastServed || this.#resets.isOurs(stream)
  }

  late(stream: number, bytes: number): boolean {
    return this.#resets.late(stream, bytes)
  }

  // Header blocks

  /** HEADERS or CONTINUATION, before the payload is there. */
  beginBlock(head: FrameHead): void {
    const { type, stream } = head
    const excess = this.#block.excess(head, this.#owner.server.limits.headerBytesMax)
    if (excess !== null) return this.#owner.fail(h2.ENHANCE_YOUR_CALM, excess)
    if (type === h2.CONTINUATION || this.isIdle(stream) || this.open.has(stream) || this.isStillSent(stream))
      return
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

  #begin(stream: number, asked: Asked & { readonly kind: 'request' }): void {
    const { isTunnel } = asked.facts
    if (isTunnel && this.#owner.server.hasEndedTunnels) return this.#reset(stream, h2.REFUSED_STREAM)
    const exchange = this.#opened(stream, asked, asked.hasEnded, isTunnel ? Http2Tunnel : OwnHttp2Exchange)
    const priority = this.#early.take(stream)
    if (priority !== null) exchange.priority = priority
    if (!isTunnel && !isGrpc(asked.fields)) this.#expectBody(exchange)
    // If the client resets the stream at once, the request is never begun (CVE-2023-44487).
    OUTBOX.beforehand(exchange)
  }

  #opened(
    stream: number,
    { head, facts }: Pick<Asked & { readonly kind: 'request' }, 'head' | 'facts'>,
    hasEnded: boolean,
    Made = OwnHttp2Exchange,
  ): OwnHttp2Exchange {
    const body = hasEnded ? null : new Made.Body(() => this.uploads.wanted(exchange))
    const exchange: OwnHttp2Exchange = new Made(
      ...([stream, this, this.#owner.connection] as const),
      { head, facts, body },
      this.#answerWindow,
    )
    this.open.set(stream, exchange)
    return exchange
  }

  #expectBody(exchange: OwnHttp2Exchange): void {
    if (exchange.incoming === null || this.#owner.server.limits.bodyIdleTimeoutMs === 0) return
    exchange.isBodyAwaited = true
    this.uploads.expect(exchange)
  }

  /** By a PRIORITY_UPDATE, which may come before its stream. */
  prioritize(stream: number, priority: Priority): void {
    const exchange = this.open.get(stream)
    if (exchange !== undefined) exchange.priority = priority
    else if (this.isIdle(stream)) this.#early.note(stream, priority)
  }

  /** Answers a request itself. A malformed one may get an answer before its reset (RFC 9113 §8.1.1). */
  #refuse(
    stream: number,
    { why, isMalformed, hasEnded, fields }: Asked & { readonly kind: 'refused' },
  ): void {
    const { server, connection } = this.#owner
    server.handlers.failed(connection, 'bad-request', why.code)
    const method = fields[fields.indexOf(':method') + 1]!
    const exchange = this.#opened(stream, { ...UNREAD, head: { ...UNREAD.head, method } }, hasEnded)
    this.#expectBody(exchange)
    exchange.refuse(why.status, isMalformed ? h2.PROTOCOL_ERROR : h2.NO_ERROR)
    if (isMalformed) this.#countReset()
  }

  /** A second block on a stream. Returns `false` for a compression error. */
  #trailers(stream: number, flags: number, block: Uint8Array): boolean {
    const exchange = this.open.get(stream)
    const trailers = this.#blocks.trailers(block)
    if (trailers === 'undecodable') return false
    if (exchange === undefined) return true
    // RFC 9113 §8.5.
    if (exchange instanceof Http2Tunnel) this.faulty(stream, h2.PROTOCOL_ERROR)
    else if (exchange.isBodyWhole) this.faulty(stream, h2.STREAM_CLOSED)
    else if (trailers === 'malformed' || (flags & h2.END_STREAM) === 0) {
      exchange.incoming!.isWhole = (flags & h2.END_STREAM) !== 0
      this.malformed(exchange, 'malformed-trailers')
    } else {
      exchange.trailers = trailersToPass(trailers)
      this.uploads.ended(exchange)
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

  request(exchange: OwnHttp2Exchange): void {
    this.#owner.server.handlers.request(exchange)
  }

  upgrade(upgrade: Upgrade): void {
    this.#owner.server.handlers.upgrade(upgrade)
  }

  endTunnels(): void {
    for (const exchange of this.open.values())
      if (exchange instanceof Http2Tunnel) this.reset(exchange, h2.CANCEL)
  }

  answered(exchange: OwnHttp2Exchange): void {
    if (exchange.isBodyWhole) this.over(exchange)
    else this.uploads.dropRest(exchange)
  }

  over(exchange: OwnHttp2Exchange): void {
    if (exchange.resetCode !== h2.NO_ERROR) this.#reset(exchange.stream, exchange.resetCode)
    this.#forget(exchange)
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

  /** The window of answers changes by SETTINGS, which are to be acknowledged first. `false`: one becomes too large. */
  setAnswerWindow(bytes: number): boolean {
    const more = bytes - this.#answerWindow
    this.#answerWindow = bytes
    for (const exchange of this.open.values()) {
      exchange.window += more
      if (exchange.window > h2.U31_MAX) return false
    }
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

  malformed(exchange: OwnHttp2Exchange, code: string): void {
    if (exchange.resetCode !== h2.NO_ERROR) return
    const { connection, server } = this.#owner
    server.handlers.failed(connection, 'bad-request', code)
    if (exchange.answered) return this.faulty(exchange.stream, h2.PROTOCOL_ERROR)
    exchange.refuse(400, h2.PROTOCOL_ERROR)
    this.#countReset()
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
    this.uploads.forget(exchange)
    this.#owner.emptied()
  }
}

/** Of a request that is refused unread. */
const UNREAD: Pick<Asked & { readonly kind: 'request' }, 'head' | 'facts'> = {
  head: { method: '', target: '', version: '20', rawHeaders: [], hasOddNames: false },
  facts: {
    isGood: true,
    method: '',
    authority: null,
    target: '',
    bodyLength: null,
    expectsContinue: false,
    acceptsTrailers: true,
    hasOddNames: false,
    isTunnel: false,
  },
}
