import http2 from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Beat, Swept } from '../connection/beat.ts'
import { SessionMemory } from '../http/http2-memory.ts'
import { Intake } from '../http/intake.ts'
import { startReading, stopReading } from '../http/socket-reading.ts'
import { FIELDS_MAX } from './response-head.ts'
import { HEAD_BYTES_MAX } from './response-reader.ts'
import { type Dialer, failureOf } from './upstream-dial.ts'
import { H2Stream, type H2StreamOwner } from './upstream-h2-stream.ts'
import type { Pool, PoolCounters, PoolCounts, PoolSettings } from './upstream-pool.ts'
import { requestList } from './upstream-request.ts'
import type { Receiver, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'
import { WaitingLine } from './waiting-line.ts'

/** HTTP/2 to one target: a few connections, each with as many streams as the upstream allows. */
export class H2Pool implements Pool, Swept {
  readonly dialer: Dialer
  readonly beat: Beat
  readonly times: PoolSettings
  readonly #ownHost: string | null
  readonly #counters: PoolCounters
  readonly #connections = new Set<H2Connection>()
  readonly #line = new WaitingLine()
  #isDraining = false

  constructor(
    dialer: Dialer,
    beat: Beat,
    settings: PoolSettings,
    ownHost: string | null,
    counters: PoolCounters,
  ) {
    this.dialer = dialer
    this.beat = beat
    this.times = settings
    this.#ownHost = ownHost
    this.#counters = counters
  }

  get counts(): PoolCounts {
    let idle = 0
    for (const connection of this.#connections) if (connection.streamCount === 0) idle++
    return { connections: this.#connections.size, idle, waiting: this.#line.length }
  }

  get isSaturated(): boolean {
    return this.#line.first !== null
  }

  /** `isFresh` asks nothing here: a connection that failed takes no more requests. */
  open(receiver: Receiver): UpstreamStream | null {
    const connection = this.#line.first === null ? this.#roomy(receiver.request.bodyLength !== 0) : null
    return connection === null ? this.#wait(receiver) : this.#carry(connection, receiver)
  }

  probe(receiver: Receiver): UpstreamStream | null {
    for (const connection of this.#connections) {
      if (connection.isOpen) return this.#carry(connection, receiver)
    }
    return this.#wait(receiver)
  }

  drain(): void {
    this.#isDraining = true
    for (const connection of this.#connections) if (connection.streamCount === 0) connection.close()
  }

  close(): void {
    this.#isDraining = true
    this.#line.fail('closing')
    for (const connection of this.#connections) connection.abandon()
  }

  sweep(nowMs: number): void {
    for (const connection of this.#connections) connection.sweep(nowMs)
    this.#line.sweep(nowMs)
  }

  /** The connection can take requests, or another one. */
  ready(connection: H2Connection): void {
    for (let waiter = this.#line.first; waiter !== null; waiter = this.#line.first) {
      if (!this.#hasRoom(connection)) return this.#connect()
      waiter.cancel()
      waiter.becomes(this.#carry(connection, waiter.receiver))
    }
    if (this.#isDraining && connection.streamCount === 0) connection.close()
  }

  /** Called once for each connection, with why it was never open. Nobody waits for what cannot be reached. */
  closed(connection: H2Connection, failure: UpstreamFailure | null): void {
    this.#connections.delete(connection)
    if (this.#connections.size === 0) this.beat.leave(this)
    if (failure === null) {
      if (this.#line.first !== null) this.#connect()
    } else if (this.#connections.size === 0) this.#line.fail(failure)
  }

  #wait(receiver: Receiver): UpstreamStream | null {
    this.#counters.waits++
    const deadlineMs = this.beat.after(this.times.connectTimeoutMs)
    const waiter = this.#line.join(receiver, deadlineMs, false)
    if (waiter !== null) this.#connect()
    return waiter
  }

  /** One at a time: it may have room for all who wait. */
  #connect(): void {
    let staying = 0
    for (const connection of this.#connections) {
      if (connection.isConnecting) return
      if (connection.isOpen) staying++
    }
    if (staying >= CONNECTIONS_MAX || this.#streamCount() >= this.times.connectionsMax) return
    this.beat.join(this)
    this.#counters.connectionsOpened++
    this.#connections.add(new H2Connection(this, this.beat.after(this.times.connectTimeoutMs)))
  }

  #carry(connection: H2Connection, receiver: Receiver): UpstreamStream {
    const { request } = receiver
    const { authority, tls } = this.dialer.address
    if (connection.isReused) this.#counters.connectionsReused++
    return connection.carry(
      receiver,
      requestList(request, tls === null ? 'http' : 'https', authority, this.#ownHost),
    )
  }

  /** For an upload, which others would hold up, there is soon one more when all are full of them. */
  #roomy(isUpload: boolean): H2Connection | null {
    let least: H2Connection | null = null
    for (const connection of this.#connections) {
      if (!this.#hasRoom(connection)) continue
      if (!isUpload || !connection.isCongested) return connection
      if (least === null || connection.streamCount < least.streamCount) least = connection
    }
    if (least !== null) this.#connect()
    return least
  }

  #hasRoom(connection: H2Connection): boolean {
    return connection.hasRoom && this.#streamCount() < this.times.connectionsMax
  }

  #streamCount(): number {
    let count = 0
    for (const connection of this.#connections) count += connection.streamCount
    return count
  }
}

/** One connection and its streams. */
class H2Connection implements H2StreamOwner {
  readonly beat: Beat
  readonly times: PoolSettings
  isReused = false
  lastStreamId = Number.POSITIVE_INFINITY
  /** Uploads waited for the connection's window when the sweep last looked. */
  isCongested = false
  readonly #pool: H2Pool
  readonly #socket: Socket
  readonly #streams = new Set<H2Stream>()
  #session: http2.ClientHttp2Session | null = null
  #phase: 'connecting' | 'open' | 'leaving' | 'closed' = 'connecting'
  #streamsMax = STREAMS_MAX
  /** A stream got no answer in time, and the connection is asked whether it is alive. */
  #isDoubtful = false
  readonly #memory = new SessionMemory(SESSION_MEGABYTES_MAX)
  readonly #intake: Intake
  /** Of the connecting; later when it has been idle for long enough. */
  #deadlineMs: number

  constructor(pool: H2Pool, deadlineMs: number) {
    this.#pool = pool
    this.beat = pool.beat
    this.times = pool.times
    this.#deadlineMs = deadlineMs
    this.#socket = pool.dialer.dial(null, () => this.#connected())
    this.#intake = new Intake(
      () => stopReading(this.#socket),
      () => startReading(this.#socket),
    )
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

  /** A stream has ended, for the reason given. */
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

  /** Of all its streams. An app may send a byte in each frame. */
  came(bytes: number): void {
    if (this.#phase !== 'closed') this.#intake.count(bytes < TINY_BYTES ? 1 : 0, 0)
  }

  /** Node has closed the stream, which may be some time after it has ended for us. */
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
    // Without TLS the operator has said that it speaks HTTP/2 (RFC 9113 §3.3).
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
      // Node says so a tick later, also of one that has been destroyed since, and then throws.
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

  /** Its SETTINGS are there: how many streams it takes is known, and that it speaks HTTP/2 at all. */
  #opened(): void {
    if (this.#phase !== 'connecting') return
    this.#phase = 'open'
    // Whoever it was opened for may have gone elsewhere.
    this.#deadlineMs = this.beat.after(this.times.keepAliveMs)
    this.#pool.ready(this)
  }

  /**
   * All uploads share the connection's window. Where that is used up, nghttp2 (1.70) serves the first of them and lets
   * the last wait until those are done, however long that takes: as long as one of them moves, none is late. Nor is one
   * then that the app does not take: Node does not tell which window a stream waits for.
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

  /** A stream got no answer. Where the connection does not answer either, nobody else should try it. */
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

  /** Later the session sees to its socket. */
  #brokeEarly(failure: UpstreamFailure): void {
    if (this.#session === null) this.#broke(failure)
  }

  /** Why is for those who wait for the connection; its streams each have a reason of their own. */
  #broke(failure: UpstreamFailure): void {
    this.#close(this.#phase === 'connecting' ? failure : null)
  }

  /** Streams still under way hear of it by themselves. */
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
 * In the place of a session's `close`, which Node (24.21) calls at a GOAWAY: one that is closed so now and then reads no
 * more while streams are under way, and their uploads wait for a window that was opened long ago. We let go of it
 * ourselves when its last stream has ended.
 */
function keepOpen(): void {}

/** Whether Node says that this is no request to send. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_')
}

/** What Node would not send. */
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

/**
 * With 100 streams on each, beside those that only bring what is under way to its end. More than one, as a lost packet
 * holds up all streams of a connection.
 */
const CONNECTIONS_MAX = 8
/** What RFC 9113 §6.5.2 has every server allow. */
const STREAMS_MAX = 100
/** What an upstream may send ahead of a client that reads slowly: on one stream, and on all of a connection. */
const STREAM_WINDOW_BYTES = 256 * 1024
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
const SESSION_MEGABYTES_MAX = 64
const PING_TIMEOUT_MS = 5000
/** Answers as most apps send them are larger. */
const TINY_BYTES = 64

const SESSION_OPTIONS: http2.ClientSessionOptions & { strictSingleValueFields: boolean } = {
  settings: {
    enablePush: false,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxHeaderListSize: HEAD_BYTES_MAX,
  },
  peerMaxConcurrentStreams: STREAMS_MAX,
  maxHeaderListPairs: FIELDS_MAX,
  // More than the windows let in.
  maxSessionMemory: SESSION_MEGABYTES_MAX,
  // A client's duplicates are its own affair, and the app's.
  strictSingleValueFields: false,
}
