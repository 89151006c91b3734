import type { Socket } from 'node:net'
import { readCommonHead } from '../../wire/common-head.ts'
import { Beat, type Swept } from '../connection/beat.ts'
import type { ClientConnection, FailureReason } from '../connection/connection.ts'
import { type Ending, FastExchange, type FastTurn } from './exchange-fast.ts'
import { closeSoftly, lastWords } from '../connection/farewell.ts'
import { FastBody } from './fast-body.ts'
import type { Http1Handlers, Http1Limits, Http1Server } from './http1-server.ts'
import { Intake } from './intake.ts'
import { checkHttp1 } from '../connection/request-check.ts'
import { startReading, stopReading } from './socket-reading.ts'

/**
 * HTTP/1.1 without node:http, for requests as nearly all clients write them: read straight from the socket, and answered
 * straight to it. A connection that shows anything else goes to the robust lane, with every byte that is not answered, and
 * stays there: what is odd, and what is to be refused, is one parser's business.
 */
export class FastLane implements Swept {
  isDraining = false
  readonly limits: Http1Limits
  readonly handlers: Http1Handlers
  readonly robust: Http1Server
  readonly beat = new Beat()
  readonly #open = new Set<FastConnection>()

  constructor(limits: Http1Limits, handlers: Http1Handlers, robust: Http1Server) {
    this.limits = limits
    this.handlers = handlers
    this.robust = robust
  }

  accept(connection: ClientConnection): void {
    connection.stage = 'h1'
    this.beat.join(this)
    this.#open.add(new FastConnection(connection, this))
  }

  /** It has closed, or has been handed over. */
  left(connection: FastConnection): void {
    this.#open.delete(connection)
    if (this.#open.size === 0) this.beat.leave(this)
  }

  sweep(nowMs: number): void {
    for (const connection of this.#open) if (connection.deadlineMs <= nowMs) connection.expire()
  }

  /** No connection takes another request; those that wait for one end now. */
  drain(): void {
    this.isDraining = true
    for (const connection of this.#open) connection.drain()
  }
}

/** One connection: its requests have their turns one after another, also when a client sends them without waiting. */
class FastConnection implements FastTurn {
  deadlineMs: number
  readonly #connection: ClientConnection
  readonly #stream: Socket
  readonly #lane: FastLane
  #current: FastExchange | null = null
  /** Where bytes go now: of the request under way, or of the one before, which was answered early. */
  #incoming: FastBody | null = null
  /** What has come behind the request under way. */
  #behind: Buffer | null = null
  #requests = 0
  /** No further request is taken. */
  #isClosing = false
  /** What is read now has come before the answer to the request before it. */
  #isBehind = false
  /** Whoever reads the body, or the turn behind this one, has no room. */
  #isPaused = false
  /** Counts the pieces of bodies; `null` until the first. */
  #intake: Intake | null = null
  #ignoredBytes = 0

  constructor(connection: ClientConnection, lane: FastLane) {
    this.#connection = connection
    this.#stream = connection.stream
    this.#lane = lane
    this.deadlineMs = lane.beat.after(lane.limits.headerTimeoutMs)
    this.#stream.on('data', this.#came).on('drain', this.#drained).on('end', this.#ended)
    this.#stream.on('close', this.#closed)
  }

  get isLast(): boolean {
    this.#isClosing ||= this.#lane.isDraining
    return this.#isClosing
  }

  get keptS(): number {
    return Math.floor(this.#lane.limits.keepAliveTimeoutMs / 1000)
  }

  answered(ending: Ending): void {
    this.#current = null
    // Where a drain has begun since, the answer did not say so in time.
    const isLast = ending !== 'stays' || this.#lane.isDraining
    this.#isClosing ||= isLast
    if (ending === 'closes') return this.#stream.destroySoon()
    // What is left of a body that nobody reads any more is dropped.
    this.#incoming?.destroy()
    this.#resume()
    if (isLast) return closeSoftly(this.#stream)
    if (this.#incoming === null) this.#expectRequest()
    else this.#expectBody()
    if (this.#incoming === null) this.#goOn()
  }

  /** Nothing more is asked for on it. What was answered last may be on its way still. */
  drain(): void {
    if (this.#current !== null) return
    this.#isClosing = true
    this.#stream.destroySoon()
  }

  /** Its deadline has passed. */
  expire(): void {
    const exchange = this.#current
    this.deadlineMs = Number.POSITIVE_INFINITY
    if (exchange === null) this.#expireUnasked()
    else if (exchange.isBodyWhole || exchange.answered) return
    else if (this.#isPaused) this.#expectBody()
    else this.#breakDown(exchange, 408, 'body-timeout')
  }

  /** No request is under way; the rest of the body of one that has been answered may be. */
  #expireUnasked(): void {
    if (this.#incoming !== null) this.#fail('bad-request', 'body-timeout')
    else if (this.#stream.writableLength > 0) return this.#expectRequest()
    else if (this.#requests === 0) this.#fail('header-timeout', 'silent')
    else this.#lane.handlers.timedOut('keep_alive_timeout')
    this.#stream.destroy()
  }

  readonly #came = (chunk: Buffer): void => {
    const rest = this.#incoming === null ? chunk : this.#feed(this.#incoming, chunk)
    if (rest === null) return
    if (this.#isClosing) this.#ignore(rest)
    else if (this.#current === null && this.#behind === null) {
      this.#isBehind = false
      this.#begin(rest)
    } else this.#keep(rest)
  }

  readonly #drained = (): void => {
    if (this.#current !== null) this.#current.onDrain?.()
    else this.#goOn()
  }

  readonly #ended = (): void => {
    this.#isClosing = true
    const exchange = this.#current
    if (exchange !== null && !exchange.isBodyWhole && !exchange.answered)
      return this.#breakDown(exchange, 400, 'HPE_INVALID_EOF_STATE')
    exchange?.lose()
    this.#stream.end()
  }

  readonly #closed = (): void => {
    this.#isClosing = true
    this.#lane.left(this)
    this.#current?.lose()
    this.#current = null
    this.#incoming?.destroy()
    this.#intake?.close()
  }

  /** The request that these bytes begin with, or whatever else it is. */
  #begin(bytes: Buffer): void {
    const { limits, handlers } = this.#lane
    const head = readCommonHead(bytes)
    if (head === null) return this.#handOver(bytes)
    const { method, target, rawHeaders, hasOddNames } = head
    const facts = checkHttp1(method, target, '11', rawHeaders, limits)
    if (!facts.isGood) return this.#handOver(bytes)
    this.#isClosing = ++this.#requests >= limits.requestsPerConnectionMax || !head.keepsAlive
    const length = facts.bodyLength ?? 0
    const body = length === 0 ? null : new FastBody(length, this.#bodyWanted)
    const asked = { method, target, version: '11', rawHeaders, hasOddNames } as const
    const exchange = new FastExchange(this.#connection, asked, facts, body, this)
    this.#current = exchange
    this.#incoming = body
    this.deadlineMs = Number.POSITIVE_INFINITY
    if (body !== null) this.#expectBody()
    let rest = head.end === bytes.length ? null : bytes.subarray(head.end)
    if (rest !== null && body !== null) rest = this.#feed(body, rest)
    if (!this.#isClosing) this.#behind = rest
    handlers.request(exchange)
    if (rest !== null && this.#isClosing) this.#ignore(rest)
  }

  /** Gives a body what of the bytes is its own; the others are left. */
  #feed(body: FastBody, bytes: Buffer): Buffer | null {
    this.#count(bytes.length)
    const length = Math.min(body.left, bytes.length)
    const hasRoom = body.feed(length === bytes.length ? bytes : bytes.subarray(0, length))
    if (body.isWhole) this.#incoming = null
    else if (!hasRoom) this.#pause()
    if (this.#incoming === null && this.#current === null) this.#expectRequest()
    else this.#expectBody()
    return length === bytes.length ? null : bytes.subarray(length)
  }

  /** A client may not have heard yet that the connection is closing. */
  #ignore(bytes: Buffer): void {
    this.#ignoredBytes += bytes.length
    if (this.#ignoredBytes > BEHIND_BYTES_MAX) this.#stream.destroy()
  }

  #keep(bytes: Buffer): void {
    this.#count(bytes.length)
    this.#behind = this.#behind === null ? bytes : Buffer.concat([this.#behind, bytes])
    if (this.#behind.length > BEHIND_BYTES_MAX) this.#pause()
  }

  /** With what has come meanwhile; once there is room for its answer. */
  #goOn(): void {
    const bytes = this.#behind
    if (bytes === null || this.#isClosing || this.#stream.writableNeedDrain) return
    this.#behind = null
    this.#isBehind = true
    this.#resume()
    this.#begin(bytes)
  }

  /** To the robust lane, unread. */
  #handOver(bytes: Buffer): void {
    const stream = this.#stream
    stream
      .off('data', this.#came)
      .off('drain', this.#drained)
      .off('end', this.#ended)
      .off('close', this.#closed)
    this.#lane.left(this)
    this.#intake?.close()
    stream.pause()
    stream.unshift(bytes)
    this.#lane.robust.accept(this.#connection, { requests: this.#requests, isBehind: this.#isBehind })
    stream.resume()
  }

  #expectRequest(): void {
    const { keepAliveTimeoutMs } = this.#lane.limits
    this.deadlineMs = this.#lane.beat.after(keepAliveTimeoutMs && keepAliveTimeoutMs + KEPT_LONGER_MS)
  }

  /** The client has to send more of it, in time. */
  #expectBody(): void {
    const { bodyIdleTimeoutMs } = this.#lane.limits
    this.deadlineMs =
      this.#incoming === null ? Number.POSITIVE_INFINITY : this.#lane.beat.after(bodyIdleTimeoutMs)
  }

  readonly #bodyWanted = (): void => this.#resume()

  #pause(): void {
    this.#isPaused = true
    this.#stop()
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    // The client has been held back until now.
    if (this.#incoming !== null) this.#expectBody()
    this.#goOnReading()
  }

  /** Counts a piece of a body, or of what comes behind a request: a TLS record may carry a single byte. */
  #count(bytes: number): void {
    this.#intake ??= new Intake(
      () => this.#stop(),
      () => this.#goOnReading(),
    )
    this.#intake.count(1, bytes)
  }

  get #isStopped(): boolean {
    return this.#isPaused || this.#intake?.isStopped === true
  }

  #stop(): void {
    this.#stream.pause()
    stopReading(this.#stream)
  }

  #goOnReading(): void {
    if (this.#isStopped) return
    const stream = this.#stream
    // TLS hands over the rest of what it has read, record by record, after it was told to stop. To read it has it come as
    // `data`, in one piece.
    if (stream.readableLength > 0) stream.read(stream.readableLength)
    if (this.#isStopped) return
    startReading(stream)
    stream.resume()
  }

  /** The rest of its request will not come, or not in time. */
  #breakDown(exchange: FastExchange, status: number, code: string): void {
    this.#fail('bad-request', code)
    this.#isClosing = true
    exchange.lose()
    if (this.#stream.writable) this.#stream.write(lastWords(status))
    closeSoftly(this.#stream)
  }

  #fail(reason: FailureReason, code: string): void {
    if (!this.#connection.hasFailed) this.#lane.handlers.failed(this.#connection, reason, code)
  }
}

/** Beyond what is told to the client, as node:http does: else its next request and our end cross. */
const KEPT_LONGER_MS = 1000
/** What may wait behind a request; whoever sends more waits himself, or, where nobody will read it, is cut off. */
const BEHIND_BYTES_MAX = 32_768
