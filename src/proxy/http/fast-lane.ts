import type { Socket } from 'node:net'
import { type CommonFields, readCommonHead } from '../../wire/common-head.ts'
import { Beat, type Swept } from '../connection/beat.ts'
import type { ClientConnection, FailureReason } from '../connection/connection.ts'
import { type Ending, FastExchange, type FastTurn } from './exchange-fast.ts'
import { closeSoftly, lastWords } from '../connection/farewell.ts'
import { FastBody } from './fast-body.ts'
import type { Http1Handlers, Http1Limits } from './http1-connection.ts'
import type { Http1Server } from './http1-server.ts'
import { Intake } from './intake.ts'
import { checkHttp1 } from '../connection/request-check.ts'
import { listenTo, type SocketListener, stopListening } from './socket-listener.ts'
import { startReading, stopReading } from './socket-reading.ts'

/**
 * HTTP/1.1 without node:http, for requests in the form that nearly all clients send: read straight from the
 * socket and answered straight to it. Any other request moves the connection to the robust lane for good,
 * with all bytes not yet answered. So a single parser decides on everything unusual or invalid.
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

  /** The connection has closed or was handed over. */
  left(connection: FastConnection): void {
    this.#open.delete(connection)
    if (this.#open.size === 0) this.beat.leave(this)
  }

  sweep(nowMs: number): void {
    for (const connection of this.#open) if (connection.deadlineMs <= nowMs) connection.expire()
  }

  /** No connection takes another request. Idle ones end now. */
  drain(): void {
    this.isDraining = true
    for (const connection of this.#open) connection.drain()
  }
}

/** One connection. It serves its requests one after another, also if the client pipelines them. */
class FastConnection implements FastTurn, SocketListener {
  deadlineMs: number
  readonly #connection: ClientConnection
  readonly #stream: Socket
  readonly #lane: FastLane
  #current: FastExchange | null = null
  /**
   * The body that receives the bytes now: of the current request, or of the previous one if it was answered
   * early.
   */
  #incoming: FastBody | null = null
  /** Bytes after the current request. */
  #behind: Buffer | null = null
  #requests = 0
  /** No further request is taken. */
  #isClosing = false
  /** The current bytes arrived before the answer to the previous request. */
  #isBehind = false
  /** The reader of the body, or the buffer for pipelined requests, has no room. */
  #isPaused = false
  /** Counts the pieces of bodies. `null` before the first. */
  #intake: Intake | null = null
  #ignoredBytes = 0
  /** Of the last request. */
  #lastFields: CommonFields | null = null

  constructor(connection: ClientConnection, lane: FastLane) {
    this.#connection = connection
    this.#stream = connection.stream
    this.#lane = lane
    this.deadlineMs = lane.beat.after(lane.limits.headerTimeoutMs)
    listenTo(this.#stream, this)
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
    // If a drain began meanwhile, the answer could not announce that the connection closes.
    const isLast = ending !== 'stays' || this.#lane.isDraining
    this.#isClosing ||= isLast
    if (ending === 'closes') return this.#stream.destroySoon()
    // The rest of a body that is no longer read is dropped.
    this.#incoming?.destroy()
    this.#resume()
    if (isLast) return closeSoftly(this.#stream)
    if (this.#incoming === null) this.#expectRequest()
    else this.#expectBody()
    if (this.#incoming === null) this.#goOn()
  }

  /** Ends the connection if it is idle. The last answer may still be on its way. */
  drain(): void {
    if (this.#current !== null) return
    this.#isClosing = true
    this.#stream.destroySoon()
  }

  /** Called when the deadline has passed. */
  expire(): void {
    const exchange = this.#current
    this.deadlineMs = Number.POSITIVE_INFINITY
    if (exchange === null) this.#expireUnasked()
    else if (exchange.isBodyWhole || exchange.answered) return
    else if (this.#isPaused) this.#expectBody()
    else this.#breakDown(exchange, 408, 'body-timeout')
  }

  /** There is no current request, but perhaps the rest of a body whose request was answered. */
  #expireUnasked(): void {
    if (this.#incoming !== null) this.#fail('bad-request', 'body-timeout')
    else if (this.#stream.writableLength > 0) return this.#expectRequest()
    else if (this.#requests === 0) this.#fail('header-timeout', 'silent')
    else this.#lane.handlers.timedOut('keep_alive_timeout')
    this.#stream.destroy()
  }

  came(chunk: Buffer): void {
    const rest = this.#incoming === null ? chunk : this.#feed(this.#incoming, chunk)
    if (rest === null) return
    if (this.#isClosing) this.#ignore(rest)
    else if (this.#current === null && this.#behind === null) {
      this.#isBehind = false
      this.#begin(rest)
    } else this.#keep(rest)
  }

  drained(): void {
    if (this.#current !== null) this.#current.onDrain?.()
    else this.#goOn()
  }

  ended(): void {
    this.#isClosing = true
    const exchange = this.#current
    if (exchange !== null && !exchange.isBodyWhole && !exchange.answered)
      return this.#breakDown(exchange, 400, 'HPE_INVALID_EOF_STATE')
    exchange?.lose()
    this.#stream.end()
  }

  closed(): void {
    this.#isClosing = true
    this.#lane.left(this)
    this.#current?.lose()
    this.#current = null
    this.#incoming?.destroy()
    this.#intake?.close()
  }

  /** Begins the request at the start of these bytes, or hands over the connection. */
  #begin(bytes: Buffer): void {
    const { limits, handlers } = this.#lane
    const head = readCommonHead(bytes, this.#lastFields)
    if (head === null) return this.#handOver(bytes)
    const { method, target, fields } = head
    const { rawHeaders, hasOddNames } = fields
    this.#lastFields = fields.text.length <= REMEMBERED_LENGTH_MAX ? fields : null
    const facts = checkHttp1(method, target, '11', rawHeaders, limits)
    if (!facts.isGood) return this.#handOver(bytes)
    this.#isClosing = ++this.#requests >= limits.requestsPerConnectionMax || !fields.keepsAlive
    const length = facts.bodyLength ?? 0
    const body = length === 0 ? null : new FastBody(length, () => this.#resume())
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

  /** Feeds the body its part of the bytes and returns the rest. */
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

  /** The client may not know yet that the connection is closing. */
  #ignore(bytes: Buffer): void {
    this.#ignoredBytes += bytes.length
    if (this.#ignoredBytes > BEHIND_BYTES_MAX) this.#stream.destroy()
  }

  #keep(bytes: Buffer): void {
    this.#count(bytes.length)
    this.#behind = this.#behind === null ? bytes : Buffer.concat([this.#behind, bytes])
    if (this.#behind.length > BEHIND_BYTES_MAX) this.#pause()
  }

  /** Continues with the bytes that arrived meanwhile, once there is room for the answer. */
  #goOn(): void {
    const bytes = this.#behind
    if (bytes === null || this.#isClosing || this.#stream.writableNeedDrain) return
    this.#behind = null
    this.#isBehind = true
    this.#resume()
    this.#begin(bytes)
  }

  /** Hands the connection to the robust lane, with these bytes unread. */
  #handOver(bytes: Buffer): void {
    const stream = this.#stream
    stopListening(stream)
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

  /** Sets the deadline for more of the body. */
  #expectBody(): void {
    const { bodyIdleTimeoutMs } = this.#lane.limits
    this.deadlineMs =
      this.#incoming === null ? Number.POSITIVE_INFINITY : this.#lane.beat.after(bodyIdleTimeoutMs)
  }

  #pause(): void {
    this.#isPaused = true
    this.#stop()
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    // The client was held back until now.
    if (this.#incoming !== null) this.#expectBody()
    this.#goOnReading()
  }

  /** Counts a piece of a body or of pipelined data. A TLS record may carry a single byte. */
  #count(bytes: number): void {
    this.#intake ??= new Intake({ stop: () => this.#stop(), goOn: () => this.#goOnReading() })
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
    // After it is stopped, TLS still delivers the records it has already read, one by one. This read delivers
    // them as `data` in one piece.
    if (stream.readableLength > 0) stream.read(stream.readableLength)
    if (this.#isStopped) return
    startReading(stream)
    stream.resume()
  }

  /** The rest of the request will not come, or not in time. */
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

/**
 * A second more than announced, as in node:http. Otherwise a client's next request could cross with our
 * close.
 */
const KEPT_LONGER_MS = 1000
/**
 * Bytes that may wait behind a request. A client that sends more is held back, or cut off if the bytes will
 * not be read.
 */
const BEHIND_BYTES_MAX = 32_768
/** Limits what an idle connection keeps of its last request. */
const REMEMBERED_LENGTH_MAX = 1_024
