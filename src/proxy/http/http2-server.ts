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

/** HTTP/2 on accepted sockets, with Node's core stream API. */
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
   * Tells each client which of its streams will be served. A later stream is not begun, and the client knows
   * that it may retry elsewhere (RFC 9113 §8.7). Node (24.21) does not offer the earlier notice of §6.8.
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
  /** `null` after the first request, which completes it. */
  #opening: Http2Opening | null
  #requests = 0
  readonly #memory: SessionMemory
  readonly #exchanges = new Set<Http2Exchange>()
  /** The time of the next check for unread answers. */
  #lookMs = 0
  /** The bytes sent on the connection when answers were last given up. -1 if there was no such case. */
  #bytesBeforeReset = -1
  /** The time at which the session counts as idle. */
  #idleMs = Number.POSITIVE_INFINITY
  /** Counts the DATA frames of all streams. Each may carry a single byte. */
  readonly #intake: Intake
  /** The `close` listener of its streams. */
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
    this.#intake = new Intake({
      stop: () => stopReading(connection.stream),
      goOn: () => startReading(connection.stream),
    })
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
    // Not the session's own timeout: resetting that on every activity costs a tenth of a request.
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
    stream.on('error', ignore) // `close` follows and is handled
    const opening = this.#opening
    if (opening !== null) this.#completePrint(opening, rawHeaders)
    // Node announces a stream a tick late: it may have ended already.
    if (stream.destroyed) return
    if (stream.closed) return void stream.destroy() // see `aborted`
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
    const { method, target, hasOddNames } = facts
    const head = { method, target, version: '20', rawHeaders, hasOddNames } as const
    const exchange = new Http2Exchange(this.#connection, head, facts, stream)
    this.#exchanges.add(exchange)
    stream.on('close', this.#closed)
    stream.on('end', ended)
    if (!hasEnded) {
      this.#countPieces(stream)
      // Listen for `aborted`, because the body of an aborted stream ends as if it were complete.
      stream.on('aborted', aborted)
      stream.on('trailers', this.#trailersCame)
      if (limits.bodyIdleTimeoutMs > 0 && !isGrpc(rawHeaders)) this.#watchBody(stream)
    }
    // If the client resets the stream at once, the request is never begun (CVE-2023-44487).
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

  /** Counts the pieces that node:http2 pushes to the body, read or not. */
  #countPieces(stream: ServedStream): void {
    const intake = this.#intake
    const push = (piece: unknown) => !stream.destroyed && Readable.prototype.push.call(stream, piece)
    let gatherer: PieceGatherer | null = null
    stream.push = (piece: Buffer | null) => {
      if (piece !== null) intake.count(1, piece.length)
      // Pieces of data that was read before reading stopped.
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

  /** The pseudo-header order is part of the connection's fingerprint, and only a request shows it. */
  #completePrint(opening: Http2Opening, rawHeaders: readonly string[]): void {
    const print = opening.print(rawHeaders)
    this.#opening = null
    this.#connection.print = { ...this.#connection.print, ...print }
  }

  /** Ends a request whose body stops coming, unless the answer has begun: then it is a conversation. */
  #watchBody(stream: ServedStream): void {
    const { limits, handlers } = this.#server
    const expectBody = () => void stream.setTimeout(limits.bodyIdleTimeoutMs)
    expectBody()
    stream.on('resume', expectBody) // the client was held back until now
    stream.on('timeout', () => {
      const exchange = stream[EXCHANGE]
      if (!exchange || exchange.isBodyWhole || (exchange.answered && !exchange.isOver)) return
      if (exchange.isHeldBack && !exchange.answered) return expectBody()
      handlers.failed(this.#connection, 'bad-request', 'body-timeout')
      // The answer has been sent: RFC 9113 §8.1 allows to end the stream here.
      if (exchange.answered) return closeWhenSent(stream)
      exchange.lose()
      refuse(stream, 408)
    })
  }

  sweep(nowMs: number): void {
    if (nowMs >= this.#lookMs) this.#lookForUnread(nowMs)
    if (nowMs < this.#idleMs || this.#exchanges.size > 0) return
    // The client was told to go and has not closed its side.
    if (this.#session.closed) return void this.#connection.raw.destroy()
    this.#expectRequest()
    if (!this.#session.destroyed) this.#server.handlers.timedOut('keep_alive_timeout')
    this.drain()
  }

  /**
   * A client that does not read an answer ties up our memory and an app connection. Node (24.21) also loses
   * track of connections that were reset while TLS had data to write: it neither reads nor writes there again
   * and reports no error.
   */
  #lookForUnread(nowMs: number): void {
    const { answerUnreadTimeoutMs } = this.#server.limits
    const { raw } = this.#connection
    const { bytesWritten } = raw
    this.#lookMs = nowMs + answerUnreadTimeoutMs / LOOKS
    // Not even the reset has been sent since.
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
    // Other errors come from the socket.
    if (code.startsWith('ERR_HTTP2_') && code !== FAREWELL)
      this.#server.handlers.failed(this.#connection, 'h2-protocol', code)
  }
}

/**
 * Works around Node (24.21): it destroys a stream that was reset without an error only after its body has
 * been read and its answer sent. Neither happens then.
 */
function aborted(this: ServedStream): void {
  this[EXCHANGE]?.lose()
  this.destroy()
}

/**
 * The same for a stream with a complete answer, which gets no `aborted` event, and for a request without a
 * body.
 */
function ended(this: ServedStream): void {
  if (this.closed) this.destroy()
}

/** The listeners of a body refer to its request, which a closed stream must not keep. */
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
    // A client can also make us reset its streams by sending invalid frames (CVE-2025-8671).
    maxSessionInvalidFrames: limits.h2ResetBurst,
    streamResetRate: limits.h2ResetRate,
    strictSingleValueFields: false, // fields that the app repeats are passed on repeated
    strictFieldWhitespaceValidation: false, // otherwise nghttp2 drops such fields and serves the request
  }
}

/** In Node's unit for session memory. */
function megabytes(bytes: number): number {
  return Math.max(1, Math.round(bytes / 1_000_000))
}

/** Answers a request itself and ends the stream, even if the rest of the request is still to come. */
function refuse(stream: ServerHttp2Stream, status: number): void {
  if (stream.destroyed || stream.closed) return
  stream.respond({ ':status': status }, { endStream: true })
  // RFC 9113 §8.1: asks the client to stop sending. Resetting a complete request would overtake its answer.
  if (stream.state.remoteClose !== 1) closeWhenSent(stream)
  stream.resume()
}

/**
 * Node (24.21) would wait for the same. But if a stream that waits in `close` is destroyed, Node sends empty frames for it
 * forever and uses up all memory.
 */
function closeWhenSent(stream: ServerHttp2Stream): void {
  if (stream.writableFinished) stream.close(constants.NGHTTP2_NO_ERROR)
  else stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
}

/** A gRPC call may stay silent as long as both sides like. */
function isGrpc(rawHeaders: readonly string[]): boolean {
  return fieldOf(rawHeaders, 'content-type').startsWith('application/grpc')
}

function fieldOf(rawHeaders: readonly string[], name: string): string {
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i] === name) return rawHeaders[i + 1]!
  return ''
}

function ignore(): void {}

/** How much one upload may send ahead, and how much of it we buffer while its app does not read. */
const STREAM_WINDOW_BYTES = 262_144
/** The same for all uploads of a connection. Node's default of 64 KiB is too small for long distances. */
const CONNECTION_WINDOW_BYTES = 1_048_576
/** The client's own GOAWAY with an error. */
const FAREWELL = 'ERR_HTTP2_SESSION_ERROR'
/** Number of checks per timeout. */
const LOOKS = 4
/** Pseudo-headers and split cookies, which come on top of the counted headers. */
const CRUMBS_MAX = 256
