import http2 from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Beat } from '../connection/beat.ts'
import { SessionMemory } from '../http/http2-memory.ts'
import { Intake } from '../http/intake.ts'
import { startReading, stopReading } from '../http/socket-reading.ts'
import { FIELDS_MAX } from './response-head.ts'
import { HEAD_BYTES_MAX } from './response-reader.ts'
import { type Dialer, failureOf } from './upstream-dial.ts'
import { H2Stream, type H2StreamOwner } from './upstream-h2-stream.ts'
import type { PoolSettings } from './upstream-pool.ts'
import type { Receiver, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** The pool of a connection. */
export interface H2ConnectionOwner {
  readonly dialer: Dialer
  readonly beat: Beat
  readonly times: PoolSettings
  /** The connection has room for requests. */
  ready(connection: H2Connection): void
  /** Called once for each connection. `failure` is set if it never opened. */
  closed(connection: H2Connection, failure: UpstreamFailure | null): void
}

/** One connection and its streams. */
export class H2Connection implements H2StreamOwner {
  readonly beat: Beat
  readonly times: PoolSettings
  isReused = false
  lastStreamId = Number.POSITIVE_INFINITY
  /** Whether uploads waited for the connection's window at the last sweep. */
  isCongested = false
  readonly #pool: H2ConnectionOwner
  readonly #socket: Socket
  readonly #streams = new Set<H2Stream>()
  #session: http2.ClientHttp2Session | null = null
  #phase: 'connecting' | 'open' | 'leaving' | 'closed' = 'connecting'
  #streamsMax = STREAMS_MAX
  /** A stream got no answer in time, and a ping checks whether the connection is alive. */
  #isDoubtful = false
  readonly #memory = new SessionMemory(SESSION_MEGABYTES_MAX)
  readonly #intake: Intake
  /** The deadline for connecting, later for being idle. */
  #deadlineMs: number

  constructor(pool: H2ConnectionOwner, deadlineMs: number) {
    this.#pool = pool
    this.beat = pool.beat
    this.times = pool.times
    this.#deadlineMs = deadlineMs
    this.#socket = pool.dialer.dial(null, () => this.#connected())
    this.#intake = new Intake({
      stop: () => stopReading(this.#socket),
      goOn: () => startReading(this.#socket),
    })
    this.#socket.on('error', (error) => this.#brokeEarly(failureOf(error, true)))
    this.#socket.on('close', () => this.#brokeEarly('reset'))
  }

  get session(): http2.ClientHttp2Session {
    return this.#session!
  }

  get streamCount(): number {
    return this.#streams.size
  }

  get isConnecting(): boolean {
    return this.#phase === 'connecting'
  }

  get isOpen(): boolean {
    return this.#phase === 'open' && !this.session.closed && !this.session.destroyed
  }

  get hasRoom(): boolean {
    return this.isOpen && !this.#isDoubtful && this.#streams.size < this.#streamsMax
  }

  carry(receiver: Receiver, list: readonly string[]): UpstreamStream {
    this.#deadlineMs = Number.POSITIVE_INFINITY
    try {
      const stream = new H2Stream(this, receiver, list)
      this.#streams.add(stream)
      this.isReused = true
      stream.open()
      return stream
    } catch (error) {
      if (!isRefusal(error)) throw error
      return new RefusedStream(receiver)
    }
  }

  sweep(nowMs: number): void {
    this.#watchUploads()
    for (const stream of this.#streams) if (stream.deadlineMs <= nowMs) stream.expire()
    if (this.#deadlineMs > nowMs) return
    if (this.#phase === 'connecting') this.#broke('connect-timeout')
    else this.close()
  }

  /** A stream has ended, with its failure if any. */
  closed(stream: H2Stream, failure: UpstreamFailure | null): void {
    this.#streams.delete(stream)
    if (this.#phase === 'closed') return
    if (failure === 'head-timeout') this.#check()
    if (this.#streams.size === 0) {
      if (this.#phase === 'leaving') return this.#close(null)
      this.isCongested = false
      if (!this.#isDoubtful) this.#deadlineMs = this.beat.after(this.times.keepAliveMs)
    }
    this.#pool.ready(this)
  }

  /** Counts for all streams: an app may send a byte per frame. */
  came(bytes: number): void {
    if (this.#phase !== 'closed') this.#intake.count(bytes < TINY_BYTES ? 1 : 0, 0)
  }

  /** Node has closed the stream, possibly long after it ended for us. */
  gone(stream: http2.ClientHttp2Stream): void {
    this.#memory.closed(stream)
    if (this.#memory.isWornOut) this.wornOut()
  }

  wornOut(): void {
    if (this.#phase !== 'open') return
    this.#phase = 'leaving'
    if (this.#streams.size === 0) this.#close(null)
  }

  close(): void {
    this.#close(null)
  }

  abandon(): void {
    for (const stream of this.#streams) stream.abandon()
    this.#close('closing')
  }

  #connected(): void {
    if (this.#phase !== 'connecting') return
    // Without TLS the operator has configured HTTP/2 (RFC 9113 §3.3).
    const isH2 = this.#pool.dialer.address.tls === null || (this.#socket as TLSSocket).alpnProtocol === 'h2'
    if (!isH2) return this.#broke('tls')
    this.#session = http2.connect('http://upstream', {
      ...SESSION_OPTIONS,
      createConnection: () => this.#socket,
    })
    this.#session.close = keepOpen
    this.#listen(this.#session)
  }

  #listen(session: http2.ClientHttp2Session): void {
    session.on('connect', () => {
      // Node emits this a tick late, even if the session was destroyed meanwhile, and would then throw.
      if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
    })
    session.on('remoteSettings', ({ maxConcurrentStreams }) => {
      this.#streamsMax = Math.min(STREAMS_MAX, maxConcurrentStreams ?? STREAMS_MAX)
      this.#opened()
    })
    session.on('goaway', (_code, lastStreamId) => {
      this.lastStreamId = Math.min(this.lastStreamId, lastStreamId)
      if (this.#phase !== 'closed') this.#phase = 'leaving'
      if (this.#streams.size === 0) this.#close(null)
    })
    session.on('error', () => this.#broke('bad-response'))
    session.on('close', () => this.#broke('reset'))
  }

  /** The upstream's SETTINGS have arrived: it speaks HTTP/2, and its stream limit is known. */
  #opened(): void {
    if (this.#phase !== 'connecting') return
    this.#phase = 'open'
    // The request that opened it may be gone.
    this.#deadlineMs = this.beat.after(this.times.keepAliveMs)
    this.#pool.ready(this)
  }

  /**
   * All uploads share the connection's window. If it is used up, nghttp2 (1.70) serves the first upload and
   * the last ones wait, however long. So while any upload moves, no upload is late. This includes one that
   * the app does not read, because Node does not report which window a stream waits for.
   */
  #watchUploads(): void {
    let isMoving = false
    let isSending = false
    for (const stream of this.#streams) {
      if (stream.hasMoved()) isMoving = true
      if (stream.isSending) isSending = true
    }
    this.isCongested = isSending && this.session.state.remoteWindowSize === 0
    if (!isMoving || !this.isCongested) return
    for (const stream of this.#streams) stream.waitInLine()
  }

  /**
   * A stream got no answer. If the connection does not answer a ping either, no other request should use it.
   */
  #check(): void {
    if (!this.isOpen || this.#isDoubtful) return
    this.#isDoubtful = true
    this.#deadlineMs = this.beat.after(PING_TIMEOUT_MS)
    this.session.ping((error) => {
      if (error !== null || this.#phase === 'closed') return
      this.#isDoubtful = false
      this.#deadlineMs =
        this.#streams.size === 0 ? this.beat.after(this.times.keepAliveMs) : Number.POSITIVE_INFINITY
      this.#pool.ready(this)
    })
  }

  /** Once there is a session, its events report failures. */
  #brokeEarly(failure: UpstreamFailure): void {
    if (this.#session === null) this.#broke(failure)
  }

  /** The failure is for requests that wait for the connection. Its streams report their own. */
  #broke(failure: UpstreamFailure): void {
    this.#close(this.#phase === 'connecting' ? failure : null)
  }

  /** Current streams get their own events. */
  #close(failure: UpstreamFailure | null): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#deadlineMs = Number.POSITIVE_INFINITY
    this.#intake.close()
    if (this.#session === null) this.#socket.destroy()
    else this.#session.destroy()
    this.#pool.closed(this, failure)
  }
}

/**
 * Replaces a session's `close`, which Node (24.21) calls at a GOAWAY. A session closed that way sometimes
 * stops reading while streams are active, and their uploads wait for a window that was opened long ago. The
 * pool closes the session itself after its last stream.
 */
function keepOpen(): void {}

/** Whether Node rejected the request. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_')
}

/** A request that Node rejected. */
class RefusedStream implements UpstreamStream {
  #receiver: Receiver | null

  constructor(receiver: Receiver) {
    this.#receiver = receiver
    process.nextTick(() => this.#receiver?.failed('bad-request', 'never'))
  }

  cancel(): void {
    this.#receiver = null
  }

  write(): boolean {
    return false
  }
  end(): void {}
  resume(): void {}
}

/** The minimum that RFC 9113 §6.5.2 recommends servers to allow. */
const STREAMS_MAX = 100
/** How much an upstream may send ahead of a slow client, per stream and per connection. */
const STREAM_WINDOW_BYTES = 256 * 1024
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
const SESSION_MEGABYTES_MAX = 64
const PING_TIMEOUT_MS = 5000
/** Frames of usual answers are larger. */
const TINY_BYTES = 64

const SESSION_OPTIONS: http2.ClientSessionOptions & { strictSingleValueFields: boolean } = {
  settings: {
    enablePush: false,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxHeaderListSize: HEAD_BYTES_MAX,
  },
  peerMaxConcurrentStreams: STREAMS_MAX,
  maxHeaderListPairs: FIELDS_MAX,
  // More than the windows allow.
  maxSessionMemory: SESSION_MEGABYTES_MAX,
  // Duplicate fields are left to the client and the app.
  strictSingleValueFields: false,
}
