import * as h2 from '../../../wire/h2/frame.ts'
import type { FrameReader } from '../../../wire/h2/frame-reader.ts'
import { frameError, readSettings } from '../../../wire/h2/frame-rules.ts'
import { readPriorityUpdate } from '../../../wire/h2/priority.ts'
import { HTTP2_PREFACE } from '../../../wire/http2-preface.ts'
import type { Swept } from '../../connection/beat.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import { closeSoftly } from '../../connection/farewell.ts'
import { listenTo, type SocketListener } from '../socket-listener.ts'
import { startReading } from '../socket-reading.ts'
import { ABUSE, IdleFrames } from './abuse.ts'
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from './body.ts'
import type { Http2Context } from './context.ts'
import { FrameIntake, type FrameTaker } from './frame-intake.ts'
import { Outflow } from './outflow.ts'
import { Streams, type StreamsOwner } from './streams.ts'

/** One HTTP/2 connection: reads its frames straight from the socket. */
export class Http2Session implements Swept, StreamsOwner, FrameTaker, SocketListener {
  readonly connection: ClientConnection
  readonly server: Http2Context
  readonly outflow: Outflow
  readonly streams: Streams
  readonly #frames: FrameIntake
  readonly #idleFrames: IdleFrames
  #prefaceLeft = HTTP2_PREFACE.length
  #hasSettings = false
  #isSettled = false
  /** Must not change after the first SETTINGS (RFC 9218 §2.1). `null` before. */
  #noPriorities: number | null = null
  #requests = 0
  #phase: Phase = 'open'
  #isOver = false
  /** The client does not read: nothing is read from it either. */
  #isCongested = false
  /** The time at which the opening is late, or the connection has been idle for long. */
  #idleMs: number
  #leavingMs = Number.POSITIVE_INFINITY
  #lookMs = 0
  /** The bytes sent at the last look, and since when that number is unchanged. */
  #sentBytes = -1
  #sentMs = 0

  constructor(connection: ClientConnection, server: Http2Context) {
    this.connection = connection
    this.server = server
    const { limits, beat } = server
    const { stream, isTls } = connection
    this.outflow = new Outflow(stream, isTls)
    this.streams = new Streams(this)
    this.#idleFrames = new IdleFrames(this.outflow, beat.nowMs)
    this.#frames = new FrameIntake(stream, this)
    this.#idleMs = beat.after(limits.headerTimeoutMs)
    listenTo(stream, this)
    this.outflow.settings([
      [h2.MAX_CONCURRENT_STREAMS, limits.streamsPerConnectionMax],
      [h2.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES],
      [h2.MAX_HEADER_LIST_SIZE, limits.headerBytesMax],
      [h2.ENABLE_CONNECT_PROTOCOL, 1],
    ])
    this.outflow.windowUpdate(0, CONNECTION_WINDOW_BYTES - h2.WINDOW_BYTES_DEFAULT)
  }

  /**
   * Tells the client to begin no more streams, and serves those on their way until it has heard that (RFC 9113
   * §6.8).
   */
  drain(): void {
    if (this.#phase !== 'open' || this.#isOver) return
    this.#phase = 'leaving'
    this.#leavingMs = this.server.beat.after(LEAVING_MS)
    this.outflow.goAway(h2.U31_MAX, h2.NO_ERROR)
    this.outflow.ping(LEAVING_PING, false)
  }

  fail(code: number, name: string): void {
    if (this.#isOver) return
    this.server.handlers.failed(this.connection, 'h2-protocol', name)
    this.outflow.goAway(Math.min(this.streams.last, this.streams.lastServed), code)
    this.#end()
  }

  asked(): void {
    this.#requests++
    this.#idleFrames.asked()
    this.#expectRequest()
    if (this.#requests === this.server.limits.requestsPerConnectionMax) this.drain()
  }

  emptied(): void {
    this.#expectRequest()
    if (this.#phase === 'left' && this.streams.open.size === 0) this.#end()
  }

  sweep(nowMs: number): void {
    if (nowMs >= this.#lookMs) this.#lookForUnread(nowMs)
    if (nowMs >= this.#leavingMs) this.#leave()
    this.streams.uploads.sweep(nowMs)
    if (nowMs < this.#idleMs || this.streams.open.size > 0) return
    this.#idleMs = Number.POSITIVE_INFINITY
    if (!this.#hasSettings) this.#lateOpening()
    else {
      this.server.handlers.timedOut('keep_alive_timeout')
      this.#leave()
    }
  }

  came(chunk: Buffer): void {
    if (this.#isOver) return
    this.#frames.came(this.#prefaceLeft === 0 ? chunk : this.#readPreface(chunk))
  }

  drained(): void {
    this.outflow.drained()
    if (!this.#isCongested || this.outflow.unsentBytes > UNSENT_BYTES_MAX) return
    this.#isCongested = false
    this.#frames.goOn()
  }

  ended(): void {
    if (!this.#isOver) this.#end()
  }

  closed(): void {
    this.#isOver = true
    this.#frames.close()
    this.streams.loseAll()
    this.outflow.close()
    this.server.left(this)
  }

  #readPreface(chunk: Buffer): Buffer {
    const from = HTTP2_PREFACE.length - this.#prefaceLeft
    const length = Math.min(chunk.length, this.#prefaceLeft)
    this.#prefaceLeft -= length
    if (HTTP2_PREFACE.compare(chunk, 0, length, from, from + length) !== 0)
      this.fail(h2.PROTOCOL_ERROR, ABUSE.preface)
    return chunk.subarray(length)
  }

  /** Checks a frame before its payload has come. */
  head(head: FrameReader): void {
    const { type, flags, stream, length } = head
    this.#frames.count(1, length)
    const code = frameError(head)
    if (code !== 0)
      return this.fail(code, code === h2.FRAME_SIZE_ERROR ? ABUSE.frameSize : ABUSE.streamNumber)
    const { blockStream } = this.streams
    // §6.10: only CONTINUATION follows an open block, and nothing else.
    if (blockStream !== 0 ? type !== h2.CONTINUATION || stream !== blockStream : type === h2.CONTINUATION)
      return this.fail(h2.PROTOCOL_ERROR, ABUSE.frameOrder)
    // §3.4: SETTINGS come first.
    if (!this.#hasSettings && (type !== h2.SETTINGS || flags & h2.ACK))
      return this.fail(h2.PROTOCOL_ERROR, ABUSE.preface)
    if (type === h2.HEADERS || type === h2.CONTINUATION) return this.streams.beginBlock(head)
    if (type !== h2.DATA || (length === 0 && (flags & h2.END_STREAM) === 0)) this.#spend()
    if (this.#isOver) return
    if (type === h2.DATA) return this.streams.uploads.beginData(head)
    const needsStream = type === h2.RST_STREAM || (type === h2.WINDOW_UPDATE && stream !== 0)
    if (needsStream && this.streams.isIdle(stream)) this.fail(h2.PROTOCOL_ERROR, ABUSE.streamNumber)
  }

  payload(frame: FrameReader): void {
    const { type, flags, stream, bytes } = frame
    switch (type) {
      case h2.HEADERS:
        return this.streams.headers(frame, bytes)
      case h2.CONTINUATION:
        return this.streams.continuation(frame, bytes)
      case h2.PRIORITY:
        this.streams.notes?.priority(stream, bytes)
        if (h2.u31At(bytes, 0) === stream) this.#dependsOnItself(stream)
        return
      case h2.RST_STREAM:
        return this.streams.resetByClient(stream)
      case h2.SETTINGS:
        return flags & h2.ACK ? this.#settled() : this.#settings(bytes)
      case h2.PING:
        return flags & h2.ACK ? this.#pinged(bytes) : this.outflow.ping(bytes, true)
      case h2.WINDOW_UPDATE:
        return this.#windowUpdate(stream, h2.u31At(bytes, 0))
      case h2.PRIORITY_UPDATE:
        return this.#priorityUpdate(bytes)
      // GOAWAY says which of our streams the client takes, and we begin no streams.
    }
  }

  piece(bytes: Uint8Array): void {
    this.streams.uploads.piece(bytes)
  }

  endData(flags: number): void {
    this.streams.uploads.endData(flags)
  }

  badPadding(): void {
    this.fail(h2.PROTOCOL_ERROR, ABUSE.padding)
  }

  /** RFC 7540 §5.3.1. */
  #dependsOnItself(stream: number): void {
    if (this.streams.isIdle(stream)) this.fail(h2.PROTOCOL_ERROR, ABUSE.streamNumber)
    else this.streams.faulty(stream, h2.PROTOCOL_ERROR)
  }

  /** RFC 9218 §7.1: only a stream of the client can be meant, as we push nothing. */
  #priorityUpdate(payload: Uint8Array): void {
    const { stream, priority } = readPriorityUpdate(payload)!
    if ((stream & 1) === 0) this.fail(h2.PROTOCOL_ERROR, ABUSE.streamNumber)
    else if (priority !== null) this.streams.prioritize(stream, priority)
  }

  #settings(payload: Uint8Array): void {
    if (!this.#hasSettings) {
      this.#hasSettings = true
      this.streams.notes?.settings(payload)
      this.#expectRequest()
    }
    if (payload.length > SETTINGS_BYTES_MAX) return this.fail(h2.ENHANCE_YOUR_CALM, ABUSE.settings)
    const code = readSettings(payload, (id, value) => this.#setting(id, value))
    if (code !== 0) return this.fail(code, ABUSE.settings)
    this.#noPriorities ??= 0
    this.outflow.settingsAck()
    this.outflow.pump()
  }

  /** Returns the error that it is, or 0. */
  #setting(id: number, value: number): number {
    if (id === h2.HEADER_TABLE_SIZE) this.outflow.encoder.allow(value)
    if (id === h2.NO_RFC7540_PRIORITIES) {
      if (this.#noPriorities !== null && this.#noPriorities !== value) return h2.PROTOCOL_ERROR
      this.#noPriorities = value
    }
    const isGood = id !== h2.INITIAL_WINDOW_SIZE || this.streams.setAnswerWindow(value)
    return isGood ? 0 : h2.FLOW_CONTROL_ERROR
  }

  #settled(): void {
    // We send SETTINGS once.
    if (this.#isSettled) this.fail(h2.PROTOCOL_ERROR, ABUSE.settings)
    this.#isSettled = true
  }

  #pinged(payload: Uint8Array): void {
    if (this.#phase === 'leaving' && LEAVING_PING.equals(payload)) this.#leave()
  }

  #windowUpdate(stream: number, bytes: number): void {
    if (stream !== 0) return this.streams.windowUpdate(stream, bytes)
    this.streams.notes?.windowUpdate(bytes)
    if (bytes === 0) return this.fail(h2.PROTOCOL_ERROR, ABUSE.flowControl)
    this.outflow.window += bytes
    if (this.outflow.window > h2.U31_MAX) return this.fail(h2.FLOW_CONTROL_ERROR, ABUSE.flowControl)
    this.outflow.pump()
  }

  /** Counts a frame that carries nothing. */
  #spend(): void {
    if (!this.#idleFrames.spend(this.server.beat.nowMs)) this.fail(h2.ENHANCE_YOUR_CALM, ABUSE.manyFrames)
    else if (this.outflow.unsentBytes > UNSENT_BYTES_MAX) this.#congest()
  }

  /** The client has heard that it should go, or had the time to. */
  #leave(): void {
    if (this.#isOver || this.#phase === 'left') return
    this.#phase = 'left'
    this.#leavingMs = Number.POSITIVE_INFINITY
    this.streams.lastServed = this.streams.last
    this.outflow.goAway(this.streams.last, h2.NO_ERROR)
    if (this.streams.open.size === 0) this.#end()
  }

  /** Sends what is left, and reads on for a moment: a reset would overtake it. */
  #end(): void {
    this.#isOver = true
    const { stream } = this.connection
    this.streams.loseAll()
    this.outflow.flush()
    this.#frames.close()
    startReading(stream)
    closeSoftly(stream)
  }

  #lateOpening(): void {
    const { connection, server } = this
    const isSilent = this.#prefaceLeft === HTTP2_PREFACE.length
    server.handlers.failed(connection, 'header-timeout', isSilent ? 'silent' : 'cut')
    connection.stream.destroy()
  }

  /**
   * A client that does not read an answer ties up our memory and an app connection. Node (24.21) also loses
   * track of connections that were reset while TLS had data to write: it neither reads nor writes there again
   * and reports no error.
   */
  #lookForUnread(nowMs: number): void {
    const { answerUnreadTimeoutMs } = this.server.limits
    this.#lookMs = nowMs + answerUnreadTimeoutMs / LOOKS
    const { bytesWritten } = this.connection.raw
    if (bytesWritten !== this.#sentBytes || this.connection.stream.writableLength === 0) {
      this.#sentBytes = bytesWritten
      this.#sentMs = nowMs
    } else if (nowMs - this.#sentMs >= answerUnreadTimeoutMs) {
      this.server.handlers.timedOut('answer_unread_timeout')
      return void this.connection.raw.destroy()
    }
    for (const exchange of this.streams.open.values()) {
      if (exchange.unreadSince(nowMs) > nowMs - answerUnreadTimeoutMs) continue
      this.server.handlers.timedOut('answer_unread_timeout')
      this.streams.reset(exchange, h2.CANCEL)
    }
  }

  #expectRequest(): void {
    this.#idleMs = this.server.beat.after(this.server.limits.keepAliveTimeoutMs)
    if (this.outflow.unsentBytes > UNSENT_BYTES_MAX) this.#congest()
  }

  get isStopped(): boolean {
    return this.#isOver || this.#isCongested
  }

  #congest(): void {
    if (this.#isCongested || this.connection.stream.writableLength === 0) return
    this.#isCongested = true
    this.#frames.stop()
  }
}

/** `leaving`: told to begin no more streams. `left`: later streams are not served. */
type Phase = 'open' | 'leaving' | 'left'

/** How long a client may take to hear that it should go. */
const LEAVING_MS = 1_000
const LEAVING_PING = Buffer.from('leaving.', 'latin1')
/** Above this, a client that does not read is not read from. */
const UNSENT_BYTES_MAX = 1_048_576
/** 32 settings. Browsers send up to 7. */
const SETTINGS_BYTES_MAX = 192
/** Number of checks per timeout. */
const LOOKS = 4
