import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import * as h2 from '../../wire/h2/frame.ts'
import { HTTP2_PREFACE } from '../../wire/http2-preface.ts'
import type { Beat } from '../connection/beat.ts'
import { IdleFrames } from '../http/h2/abuse.ts'
import { FieldRules } from '../http/h2/field-rules.ts'
import { Inflow } from '../http/h2/inflow.ts'
import { Outflow } from '../http/h2/outflow.ts'
import { listenTo, type SocketListener } from '../http/socket-listener.ts'
import { HEAD_BYTES_MAX } from './response-reader.ts'
import { type Dialer, failureOf, type OnRead, SHARED_BUFFER } from './upstream-dial.ts'
import { type FramesOwner, UpstreamFrames } from './upstream-h2-frames.ts'
import { H2Stream, type H2StreamOwner, STREAM_WINDOW_BYTES } from './upstream-h2-stream.ts'
import type { PoolSettings } from './upstream-pool.ts'
import { encodeRequest } from './upstream-request.ts'
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
export class H2Connection implements H2StreamOwner, SocketListener, FramesOwner {
  readonly beat: Beat
  readonly times: PoolSettings
  readonly outflow: Outflow
  readonly inflow: Inflow
  isReused = false
  lastStream: number = h2.U31_MAX
  /** Whether uploads waited for the connection's window at the last sweep. */
  isCongested = false
  readonly #pool: H2ConnectionOwner
  readonly #socket: Socket
  readonly #streams = new Map<number, H2Stream>()
  readonly #frames: UpstreamFrames
  readonly #rules = new FieldRules()
  readonly #idleFrames: IdleFrames
  /** DATA bytes sent at the last sweep. */
  #watchedBytes = 0
  #phase: 'connecting' | 'open' | 'leaving' | 'closed' = 'connecting'
  /** The number of the next stream. */
  #next = 1
  #streamsMax = STREAMS_MAX
  /** The window of a new request body. */
  #bodyWindow: number = h2.WINDOW_BYTES_DEFAULT
  /** The stream that receives the current DATA frame. `null`: it is dropped. */
  #incoming: H2Stream | null = null
  /** Bytes of that frame still to come, padding included. */
  #frameLeft = 0
  /** A stream got no answer in time, and a ping checks whether the connection is alive. */
  #isDoubtful = false
  /** The deadline for connecting, later for being idle. */
  #deadlineMs: number

  constructor(pool: H2ConnectionOwner, deadlineMs: number) {
    this.#pool = pool
    this.beat = pool.beat
    this.times = pool.times
    this.#deadlineMs = deadlineMs
    const { dialer } = pool
    this.#socket = dialer.dial(this.#onread(), () => this.#connected())
    this.outflow = new Outflow(this.#socket, dialer.address.tls !== null)
    this.inflow = new Inflow(this.outflow, WINDOWS)
    this.#idleFrames = new IdleFrames(this.outflow, performance.now())
    this.#socket.on('error', (error) => this.#lost(failureOf(error, this.#phase === 'connecting')))
    this.#frames = new UpstreamFrames(this.#socket, this)
    listenTo(this.#socket, this)
  }

  get streamCount(): number {
    return this.#streams.size
  }

  get isConnecting(): boolean {
    return this.#phase === 'connecting'
  }

  get isOpen(): boolean {
    return this.#phase === 'open' && this.#socket.writable
  }

  get isClosed(): boolean {
    return this.#phase === 'closed'
  }

  get hasRoom(): boolean {
    const isUsable = this.isOpen && !this.#isDoubtful && !this.#frames.isInBlock
    return isUsable && this.#streams.size < this.#streamsMax
  }

  /** `list` comes from `requestList`. */
  carry(receiver: Receiver, list: readonly string[]): UpstreamStream {
    const { bodyLength, neverIndexed } = receiver.request
    this.#deadlineMs = Number.POSITIVE_INFINITY
    const stream = new H2Stream(this.#next, this, receiver, this.#bodyWindow, this.isReused)
    this.#next += 2
    this.#streams.set(stream.stream, stream)
    this.isReused = true
    this.#idleFrames.asked()
    encodeRequest(this.outflow.encoder, list, neverIndexed)
    this.outflow.headers(stream.stream, bodyLength === 0)
    if (this.#next > h2.U31_MAX) this.wornOut()
    stream.open()
    return stream
  }

  sweep(nowMs: number): void {
    this.#watchUploads()
    for (const stream of this.#streams.values()) if (stream.deadlineMs <= nowMs) stream.expire()
    if (this.#deadlineMs > nowMs) return
    this.#lost(this.#phase === 'connecting' ? 'connect-timeout' : 'reset')
  }

  over(stream: H2Stream, code: number, failure: UpstreamFailure | null): void {
    this.#streams.delete(stream.stream)
    this.outflow.forget(stream)
    this.inflow.free(stream.incoming.held + (this.#incoming === stream ? this.#frameLeft : 0))
    stream.incoming.held = 0
    if (this.#incoming === stream) this.#incoming = null
    if (this.#phase === 'closed') return
    if (code !== h2.NO_ERROR) this.outflow.reset(stream.stream, code)
    if (failure === 'head-timeout') this.#check()
    if (this.#streams.size === 0) {
      if (this.#phase === 'leaving') return this.close()
      this.isCongested = false
      if (!this.#isDoubtful) this.#deadlineMs = this.beat.after(this.times.keepAliveMs)
    }
    this.#pool.ready(this)
  }

  wornOut(): void {
    if (this.#phase !== 'open') return
    this.#phase = 'leaving'
    if (this.#streams.size === 0) this.close()
  }

  /** No stream is open. */
  close(): void {
    this.#close(h2.NO_ERROR, null)
  }

  abandon(): void {
    for (const stream of this.#streams.values()) stream.abandon()
    this.#close(h2.NO_ERROR, 'closing')
  }

  // The socket

  came(chunk: Buffer): void {
    this.#frames.came(chunk)
  }

  drained(): void {
    this.outflow.drained()
  }

  ended(): void {
    this.#lost('reset')
  }

  closed(): void {
    this.#lost('reset')
  }

  /** `null` with TLS, which may deliver a record during one of our writes, while the one before is read. */
  #onread(): OnRead | null {
    if (this.#pool.dialer.address.tls !== null) return null
    const callback = (length: number, bytes: Uint8Array) =>
      this.#frames.cameBorrowed((bytes as Buffer).subarray(0, length))
    return { buffer: SHARED_BUFFER, callback }
  }

  #connected(): void {
    if (this.#phase !== 'connecting') return
    // Without TLS the operator has configured HTTP/2 (RFC 9113 §3.3).
    const isH2 = this.#pool.dialer.address.tls === null || (this.#socket as TLSSocket).alpnProtocol === 'h2'
    if (!isH2) return this.#lost('tls')
    this.#socket.write(HTTP2_PREFACE)
    this.outflow.settings([
      [h2.ENABLE_PUSH, 0],
      [h2.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES],
      [h2.MAX_HEADER_LIST_SIZE, HEAD_BYTES_MAX],
    ])
    this.outflow.windowUpdate(0, WINDOWS.connection - h2.WINDOW_BYTES_DEFAULT)
  }

  /** The app's SETTINGS have arrived: it speaks HTTP/2, and its stream limit is known. */
  #opened(): void {
    this.#phase = 'open'
    // The request that opened it may be gone.
    this.#deadlineMs = this.beat.after(this.times.keepAliveMs)
    this.#pool.ready(this)
  }

  // Frames, as the reader passes them on

  fields(
    stream: number,
    fields: readonly string[],
    hasEnded: boolean,
    neverIndexed: readonly string[],
  ): void {
    const found = this.#streams.get(stream)
    if (found === undefined) return
    if (found.incoming.isWhole) return this.fail(h2.STREAM_CLOSED)
    const fault = found.hasHead ? FieldRules.trailers(fields) : this.#rules.answer(fields)
    if (fault === null) found.cameHeaders(fields, hasEnded, neverIndexed)
    else found.malformed()
  }

  tooManyFields(stream: number): void {
    this.#streams.get(stream)?.malformed()
  }

  beginData(stream: number, length: number): void {
    if (!this.inflow.came(length)) return this.fail(h2.FLOW_CONTROL_ERROR)
    const found = this.#streams.get(stream) ?? null
    this.#incoming = null
    // The app may send on until it has heard of our reset.
    if (found === null) return this.inflow.free(length)
    if (found.incoming.isWhole) return this.fail(h2.STREAM_CLOSED)
    found.incoming.window -= length
    if (found.incoming.window < 0) {
      this.inflow.free(length)
      return found.malformed()
    }
    this.#incoming = found
    this.#frameLeft = length
  }

  piece(bytes: Uint8Array): void {
    const stream = this.#incoming
    if (stream === null) return
    this.#frameLeft -= bytes.length
    stream.cameData(bytes)
  }

  endData(hasEnded: boolean): void {
    const stream = this.#incoming
    if (stream === null) return
    this.#incoming = null
    // Only its padding is left of the frame, which no reader waits for.
    this.inflow.grant(stream.stream, stream.incoming, this.#frameLeft)
    if (hasEnded) stream.cameEnd()
  }

  settled(): void {
    this.outflow.settingsAck()
    this.outflow.pump()
    if (this.#phase === 'connecting') this.#opened()
  }

  setting(id: number, value: number): number {
    switch (id) {
      case h2.HEADER_TABLE_SIZE:
        this.outflow.encoder.allow(value)
        return 0
      case h2.ENABLE_PUSH:
        return value === 0 ? 0 : h2.PROTOCOL_ERROR // a server does not get pushes (§6.5.2)
      case h2.MAX_CONCURRENT_STREAMS:
        this.#streamsMax = Math.min(STREAMS_MAX, value)
        return 0
      case h2.INITIAL_WINDOW_SIZE:
        return this.#setBodyWindow(value) ? 0 : h2.FLOW_CONTROL_ERROR
      default:
        return 0
    }
  }

  /** §6.9.2: it changes the windows of open streams, too. What they let out follows the acknowledgement. */
  #setBodyWindow(bytes: number): boolean {
    const more = bytes - this.#bodyWindow
    this.#bodyWindow = bytes
    for (const stream of this.#streams.values()) if (!stream.opensWindow(more)) return false
    return true
  }

  windowUpdate(stream: number, bytes: number): void {
    if (stream !== 0) {
      const found = this.#streams.get(stream)
      if (found === undefined) return
      if (bytes === 0 || !found.opensWindow(bytes)) return found.malformed()
      if (found.isWaiting) this.outflow.pump()
      return
    }
    if (bytes === 0) return this.fail(h2.PROTOCOL_ERROR)
    this.outflow.window += bytes
    if (this.outflow.window > h2.U31_MAX) return this.fail(h2.FLOW_CONTROL_ERROR)
    this.outflow.pump()
  }

  goAway(lastStream: number): void {
    this.lastStream = Math.min(this.lastStream, lastStream)
    if (this.#phase === 'open') this.#phase = 'leaving'
    for (const stream of this.#streams.values()) if (stream.stream > this.lastStream) stream.broke('reset')
    if (this.#streams.size === 0) this.close()
  }

  pinging(payload: Uint8Array): void {
    this.outflow.ping(payload, true)
  }

  reset(stream: number, code: number): void {
    this.#streams.get(stream)?.cameReset(code)
  }

  isIdle(stream: number): boolean {
    return stream >= this.#next
  }

  idleFrame(): void {
    if (!this.#idleFrames.spend(this.beat.nowMs)) this.fail(h2.ENHANCE_YOUR_CALM)
  }

  /**
   * All uploads share the connection's window. While any of them moves and the window is used up, the others wait for
   * it and not for the app, so none is late.
   */
  #watchUploads(): void {
    let isSending = false
    for (const stream of this.#streams.values()) {
      stream.watchUpload()
      if (stream.isSending) isSending = true
    }
    const { dataBytes } = this.outflow
    const isMoving = dataBytes > this.#watchedBytes
    this.#watchedBytes = dataBytes
    this.isCongested = isSending && this.outflow.window <= 0
    if (!isMoving || !this.isCongested) return
    for (const stream of this.#streams.values()) stream.waitInLine()
  }

  /** A stream got no answer. If the connection does not answer a ping either, no other request should use it. */
  #check(): void {
    if (!this.isOpen || this.#isDoubtful) return
    this.#isDoubtful = true
    this.#deadlineMs = this.beat.after(PING_TIMEOUT_MS)
    this.outflow.ping(PING, false)
  }

  pinged(): void {
    if (!this.#isDoubtful) return
    this.#isDoubtful = false
    this.#deadlineMs =
      this.#streams.size === 0 ? this.beat.after(this.times.keepAliveMs) : Number.POSITIVE_INFINITY
    this.#pool.ready(this)
  }

  fail(code: number): void {
    this.#lose('bad-response', code)
  }

  /** The connection has closed, or never opened. */
  #lost(failure: UpstreamFailure): void {
    this.#lose(failure, h2.NO_ERROR)
  }

  #lose(failure: UpstreamFailure, code: number): void {
    if (this.isClosed) return
    const streams = [...this.#streams.values()]
    this.#close(code, this.#phase === 'connecting' ? failure : null)
    for (const stream of streams) stream.broke(failure)
  }

  /** The failure is for requests that wait for the connection. */
  #close(code: number, failure: UpstreamFailure | null): void {
    if (this.isClosed) return
    this.#phase = 'closed'
    this.#deadlineMs = Number.POSITIVE_INFINITY
    this.#frames.close()
    const { hasSettings } = this.#frames
    if (hasSettings) this.outflow.goAway(0, code)
    this.outflow.flush()
    this.outflow.close()
    // An app that does not read must not keep it.
    if (hasSettings && this.#socket.writableLength === 0) this.#socket.destroySoon()
    else this.#socket.destroy()
    this.#pool.closed(this, failure)
  }
}

/** The minimum that RFC 9113 §6.5.2 recommends servers to allow. */
const STREAMS_MAX = 100
/** How much an app may send ahead of slow clients, per stream and per connection. */
const WINDOWS = { stream: STREAM_WINDOW_BYTES, connection: 16 * 1024 * 1024 } as const
const PING_TIMEOUT_MS = 5000
const PING = Buffer.from('in doubt', 'latin1')
