import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import { Readable } from 'node:stream'
import { Beat, type Swept } from '../connection/beat.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ClientConnection, FailureReason } from '../connection/connection.ts'
import type { Exchange } from '../connection/exchange.ts'
import { EXCHANGE, Http2Exchange, type ServedStream } from './exchange-h2.ts'
import { trailersToPass } from '../connection/field-syntax.ts'
import type { Http2Opening } from './http2-opening.ts'
import { SessionMemory } from './http2-memory.ts'
import { Intake } from './intake.ts'
import { OUTBOX } from './outbox.ts'
import { checkHttp2, hasBlankEnds, MALFORMED_FIELD, type RequestLimits } from '../connection/request-check.ts'
import { PieceGatherer, SMALL_PIECE_BYTES_MAX } from './piece-gatherer.ts'
import { startReading, stopReading } from './socket-reading.ts'

export interface Http2Limits extends RequestLimits {
  readonly bodyIdleTimeoutMs: number
  readonly answerUnreadTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly requestsPerConnectionMax: number
  readonly streamsPerConnectionMax: number
  readonly h2ResetBurst: number
  readonly h2ResetRate: number
  readonly h2SessionMemoryBytes: number
}

export interface Http2Handlers {
  request(exchange: Exchange): void
  failed(connection: ClientConnection, reason: FailureReason, code: string): void
  timedOut(timeout: ClientTimeout): void
}

/** HTTP/2 on sockets that are handed over, by the core stream API. */
export class Http2Server {
  readonly limits: Http2Limits
  readonly handlers: Http2Handlers
  readonly beat = new Beat()
  readonly #options: ServerOptions
  readonly #sessions = new Set<Http2Connection>()
  #isDraining = false

  constructor(limits: Http2Limits, handlers: Http2Handlers) {
    this.limits = limits
    this.handlers = handlers
    this.#options = sessionOptions(limits)
  }

  get sessionCount(): number {
    return this.#sessions.size
  }

  get streamCount(): number {
    let count = 0
    for (const session of this.#sessions) count += session.streamCount
    return count
  }

  accept(connection: ClientConnection, opening: Http2Opening): void {
    connection.stage = 'h2'
    connection.protocol = 'h2'
    const handshake = performServerHandshake(connection.stream, this.#options)
    const session = new Http2Connection(connection, handshake, opening, this)
    this.#sessions.add(session)
    this.beat.join(session)
    handshake.on('close', () => {
      this.#sessions.delete(session)
      this.beat.leave(session)
    })
    if (this.#isDraining) session.drain()
  }

  /**
   * Each client is told which of its streams will be served; one that it opens before it has heard is not begun, and the
   * client knows that it may ask elsewhere (RFC 9113 §8.7). The earlier notice of §6.8 cannot be had from Node (24.21).
   */
  drain(): void {
    this.#isDraining = true
    for (const session of this.#sessions) session.drain()
  }
}

/** One session. */
class Http2Connection implements Swept {
  readonly #connection: ClientConnection
  readonly #session: ServerHttp2Session
  readonly #server: Http2Server
  /** Until the first request has completed it. */
  #opening: Http2Opening | null
  #requests = 0
  readonly #memory: SessionMemory
  readonly #exchanges = new Set<Http2Exchange>()
  /** When answers that nobody reads are looked for next. */
  #lookMs = 0
  /** What had gone out on the connection when answers were last given up; -1 where none were. */
  #bytesBeforeReset = -1
  /** When it has been without a request for long enough. */
  #idleMs = Number.POSITIVE_INFINITY
  /** Counts the DATA frames of all its streams, each of which may carry one byte. */
  readonly #intake: Intake
  /** Of its streams, when they close. */
  readonly #closed: (this: ServedStream) => void
  readonly #trailersCame: (
    this: ServedStream,
    headers: unknown,
    flags: number,
    raw: readonly string[],
  ) => void

  constructor(
    connection: ClientConnection,
    session: ServerHttp2Session,
    opening: Http2Opening,
    server: Http2Server,
  ) {
    this.#connection = connection
    this.#session = session
    this.#opening = opening
    this.#server = server
    this.#memory = new SessionMemory(megabytes(server.limits.h2SessionMemoryBytes))
    this.#intake = new Intake(
      () => stopReading(connection.stream),
      () => startReading(connection.stream),
    )
    session.once('close', () => this.#intake.close())
    const end = (stream: ServedStream) => this.#ended(stream)
    this.#closed = function () {
      end(this)
    }
    const takeTrailers = (stream: ServedStream, raw: readonly string[]) => this.#trailers(stream, raw)
    this.#trailersCame = function (_headers, _flags, raw) {
      takeTrailers(this, raw)
    }
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
    // Not by the session's own time-out: to set that anew for whatever moves is a tenth of a request.
    this.#expectRequest()
    session.on('error', (error: Error & { code?: string }) => this.#error(error))
    session.on('stream', (stream, _headers, flags, rawHeaders) => this.#stream(stream, flags, rawHeaders))
  }

  get streamCount(): number {
    return this.#exchanges.size
  }

  drain(): void {
    if (!this.#session.closed && !this.#session.destroyed) this.#session.close()
  }

  #stream(stream: ServedStream, flags: number, rawHeaders: readonly string[]): void {
    stream.on('error', ignore) // its close says all there is to say
    const opening = this.#opening
    if (opening !== null) this.#completePrint(opening, rawHeaders)
    // Announced a tick later than it came: it may be over by now.
    if (stream.destroyed) return
    if (stream.closed) return void stream.destroy() // see aborted
    const { limits, handlers } = this.#server
    this.#requests++
    this.#expectRequest()
    const hasEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    const isLacking = opening?.lacksField(stream.id!, rawHeaders.length / 2) === true
    const facts = isLacking ? MALFORMED_FIELD : checkHttp2(rawHeaders, hasEnded, limits)
    if (!facts.isGood) {
      handlers.failed(this.#connection, 'bad-request', facts.code)
      return refuse(stream, facts.status)
    }
    const method = fieldOf(rawHeaders, ':method')
    const { target, hasOddNames } = facts
    const head = { method, target, version: '20', rawHeaders, hasOddNames } as const
    const exchange = new Http2Exchange(this.#connection, head, facts, stream)
    this.#exchanges.add(exchange)
    stream.on('close', this.#closed)
    stream.on('end', ended)
    if (!hasEnded) {
      this.#countPieces(stream)
      // The body ends before the stream closes, as if it were whole.
      stream.on('aborted', aborted)
      stream.on('trailers', this.#trailersCame)
      if (limits.bodyIdleTimeoutMs > 0 && !isGrpc(rawHeaders)) this.#watchBody(stream)
    }
    // Whoever takes it back at once has nothing done for it (CVE-2023-44487).
    OUTBOX.beforehand({ begin: () => exchange.isOver || handlers.request(exchange) })
    if (this.#requests === limits.requestsPerConnectionMax) this.#session.close()
  }

  #trailers(stream: ServedStream, raw: readonly string[]): void {
    const exchange = stream[EXCHANGE]
    if (!exchange) return
    if (!hasBlankEnds(raw)) {
      exchange.trailers = trailersToPass(raw)
      return
    }
    this.#server.handlers.failed(this.#connection, 'bad-request', MALFORMED_FIELD.code)
    const isAnswered = exchange.answered
    exchange.lose()
    if (isAnswered) stream.destroy(new Error('malformed trailers'))
    else refuse(stream, MALFORMED_FIELD.status)
  }

  /** By what node:http2 hands over of its body, read or not. */
  #countPieces(stream: ServedStream): void {
    const intake = this.#intake
    const push = (piece: unknown) => !stream.destroyed && Readable.prototype.push.call(stream, piece)
    let gatherer: PieceGatherer | null = null
    stream.push = (piece: Buffer | null) => {
      if (piece !== null) intake.count(1, piece.length)
      // What is left of what has been read already.
      if (piece !== null && intake.isStopped && piece.length <= SMALL_PIECE_BYTES_MAX) {
        gatherer ??= new PieceGatherer(push)
        gatherer.add(piece)
        return true
      }
      gatherer?.flush()
      return push(piece)
    }
  }

  #ended(stream: ServedStream): void {
    this.#expectRequest()
    const exchange = stream[EXCHANGE]!
    this.#exchanges.delete(exchange)
    stream[EXCHANGE] = null
    exchange.lose()
    if (exchange.bodyLength !== 0) forgetListeners(stream)
    this.#memory.closed(stream)
    if (this.#memory.isWornOut) this.drain()
  }

  /** The order of the pseudo-headers belongs to the fingerprint of the connection, and only a request shows it. */
  #completePrint(opening: Http2Opening, rawHeaders: readonly string[]): void {
    const http2 = opening.text(rawHeaders)
    this.#opening = null
    this.#connection.print = { ...this.#connection.print, http2 }
  }

  /** A body that has stopped coming ends its request, unless the answer has begun: then it is a conversation. */
  #watchBody(stream: ServedStream): void {
    const { limits, handlers } = this.#server
    const expectBody = () => void stream.setTimeout(limits.bodyIdleTimeoutMs)
    expectBody()
    stream.on('resume', expectBody) // the client has been held back until now
    stream.on('timeout', () => {
      const exchange = stream[EXCHANGE]
      if (!exchange || exchange.isBodyWhole || (exchange.answered && !exchange.isOver)) return
      if (exchange.isHeldBack && !exchange.answered) return expectBody()
      handlers.failed(this.#connection, 'bad-request', 'body-timeout')
      // Its answer is out: RFC 9113 §8.1 lets it end here.
      if (exchange.answered) return stream.close(constants.NGHTTP2_NO_ERROR)
      exchange.lose()
      refuse(stream, 408)
    })
  }

  sweep(nowMs: number): void {
    if (nowMs >= this.#lookMs) this.#lookForUnread(nowMs)
    if (nowMs < this.#idleMs || this.#exchanges.size > 0) return
    // It has been told to go, and has not: a client need not close its side.
    if (this.#session.closed) return void this.#connection.raw.destroy()
    this.#expectRequest()
    if (!this.#session.destroyed) this.#server.handlers.timedOut('keep_alive_timeout')
    this.drain()
  }

  /**
   * A client may leave an answer in its window or its socket, and with it all that waits behind: our memory, and a
   * connection to the app. Node (24.21) also forgets connections that were reset while TLS had something to write: it
   * neither reads nor writes there again, and says nothing.
   */
  #lookForUnread(nowMs: number): void {
    const { answerUnreadTimeoutMs } = this.#server.limits
    const { raw } = this.#connection
    const { bytesWritten } = raw
    this.#lookMs = nowMs + answerUnreadTimeoutMs / LOOKS
    // Not even the reset has gone out since.
    if (bytesWritten === this.#bytesBeforeReset) return void raw.destroy()
    this.#bytesBeforeReset = -1
    for (const exchange of this.#exchanges) {
      if (exchange.unreadSince(nowMs) > nowMs - answerUnreadTimeoutMs) continue
      this.#bytesBeforeReset = bytesWritten
      this.#server.handlers.timedOut('answer_unread_timeout')
      exchange.giveUp()
    }
  }

  #expectRequest(): void {
    this.#idleMs = this.#server.beat.after(this.#server.limits.keepAliveTimeoutMs)
  }

  #error(error: Error & { code?: string }): void {
    const code = error.code ?? 'ERROR'
    // Any other is the socket's.
    if (code.startsWith('ERR_HTTP2_') && code !== FAREWELL)
      this.#server.handlers.failed(this.#connection, 'h2-protocol', code)
  }
}

/**
 * Node (24.21) destroys a stream that was reset without an error only when its body has been read and all of its answer
 * has gone out, which then never happens. Nothing more can come of it.
 */
function aborted(this: ServedStream): void {
  this[EXCHANGE]?.lose()
  this.destroy()
}

/** The same for one whose answer is whole, which is not said to be aborted, and for a request without a body. */
function ended(this: ServedStream): void {
  if (this.closed) this.destroy()
}

/** Those of a body belong to its request, which a closed stream should not keep. */
function forgetListeners(stream: ServerHttp2Stream): void {
  stream.removeAllListeners()
  stream.on('error', ignore)
}

function sessionOptions(limits: Http2Limits): ServerOptions {
  return {
    settings: {
      enablePush: false,
      enableConnectProtocol: false,
      maxConcurrentStreams: limits.streamsPerConnectionMax,
      maxHeaderListSize: limits.headerBytesMax,
      initialWindowSize: STREAM_WINDOW_BYTES,
    },
    maxHeaderListPairs: limits.headerCountMax + CRUMBS_MAX,
    maxSessionMemory: megabytes(limits.h2SessionMemoryBytes),
    streamResetBurst: limits.h2ResetBurst,
    // A client can also have us reset its streams, by breaking them (CVE-2025-8671).
    maxSessionInvalidFrames: limits.h2ResetBurst,
    streamResetRate: limits.h2ResetRate,
    strictSingleValueFields: false, // what the app repeats is passed on repeated
    strictFieldWhitespaceValidation: false, // nghttp2 would leave such fields out, and their requests would go on
  }
}

/** As Node counts the memory of a session. */
function megabytes(bytes: number): number {
  return Math.max(1, Math.round(bytes / 1_000_000))
}

/** An answer of our own that ends the stream, also where the rest of the request is still to come. */
function refuse(stream: ServerHttp2Stream, status: number): void {
  if (stream.destroyed || stream.closed) return
  stream.respond({ ':status': status }, { endStream: true })
  // RFC 9113 §8.1: the client need not send what nobody reads. A reset of a request that is whole overtakes its answer.
  if (stream.state.remoteClose !== 1) stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
  stream.resume()
}

/** A call may wait for its caller for as long as both like. */
function isGrpc(rawHeaders: readonly string[]): boolean {
  return fieldOf(rawHeaders, 'content-type').startsWith('application/grpc')
}

function fieldOf(rawHeaders: readonly string[], name: string): string {
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i] === name) return rawHeaders[i + 1]!
  return ''
}

function ignore(): void {}

/** What one upload may have under way without waiting for us, and be held of in memory while its app does not read. */
const STREAM_WINDOW_BYTES = 262_144
/** The same for all uploads of a connection: the window that Node's 64 KiB would make of a long way is too small. */
const CONNECTION_WINDOW_BYTES = 1_048_576
/** The client's own: a GOAWAY with an error. */
const FAREWELL = 'ERR_HTTP2_SESSION_ERROR'
/** As often within its time an answer is looked at. */
const LOOKS = 4
/** Pseudo-headers, and the crumbs that cookies are cut into: beside the headers that are counted. */
const CRUMBS_MAX = 256
