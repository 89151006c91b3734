import type { Socket } from 'node:net'
import type { Beat } from '../connection/beat.ts'
import { Intake } from '../http/intake.ts'
import { OUTBOX, type Sender } from '../http/outbox.ts'
import type { ResponseHead } from './response-head.ts'
import { type ResponseEvents, type ResponseFault, ResponseReader } from './response-reader.ts'
import { type Dialer, failureOf, type OnRead } from './upstream-dial.ts'
import { requestText } from './upstream-request.ts'
import type { Receiver, Retry, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** What all connections of a pool share. */
export interface H1Owner {
  readonly dialer: Dialer
  readonly beat: Beat
  readonly times: UpstreamTimes
  /** Says the upstream's own name as Host, in place of the client's. */
  readonly ownHost: string | null
  /** The connection has done its work and may be given the next one. */
  released(connection: H1Connection): void
  /** Called once: the connection is gone, or never was. */
  closed(connection: H1Connection): void
}

/** In milliseconds; 0 is for ever. */
export interface UpstreamTimes {
  /** From the wish for a connection to its first byte: a wait for one counts too. */
  readonly connectTimeoutMs: number
  /** From when the last of the request left to the head of its answer, and for how long its body may not move. */
  readonly headTimeoutMs: number
  /** Between two parts of an answer. */
  readonly idleTimeoutMs: number
  /** How long a connection without work is kept. */
  readonly keepAliveMs: number
}

/** One connection to an upstream, HTTP/1.1, which carries one request at a time. */
export class H1Connection implements UpstreamStream, ResponseEvents, Sender {
  /** When the sweep of its pool has to call `expire`. */
  deadlineMs: number
  readonly #owner: H1Owner
  readonly #socket: Socket
  readonly #reader = new ResponseReader(this)
  /** Counts the chunks of answers; `null` until there are many in one read. */
  #intake: Intake | null = null
  #phase: Phase = 'connecting'
  #receiver: Receiver | null
  #isReused = false
  #head: ResponseHead | null = null
  /** Bytes of the request's body still to come; `null` for a chunked one until its end. */
  #bodyLeft: number | null = 0
  /** A byte of an answer to this request has come. */
  #hasAnswered = false
  #isPaused = false
  /** A write said to wait: the upstream owes us its reading. */
  #isFull = false
  /** Bytes of the request that had not left yet when the sweep last looked. */
  #unsent = 0
  /** What is written waits for the end of this turn of the event loop. */
  #isGathering = false
  /** The request waits in the outbox, or for its sign. */
  #isUnsent = false
  /** The client holds its body back until the upstream says 100. */
  #awaitsContinue = false

  constructor(owner: H1Owner, receiver: Receiver, deadlineMs: number) {
    this.#owner = owner
    this.#receiver = receiver
    this.deadlineMs = deadlineMs
    this.#socket = owner.dialer.dial(this.#onread(), () => this.#connected())
    this.#socket.on('error', (error) => this.#broke(failureOf(error, this.#phase === 'connecting')))
    this.#socket.on('end', () => this.#ended())
    this.#socket.on('close', () => this.#broke('reset'))
    this.#socket.on('drain', () => this.#drained())
  }

  /** It can be given a request at once. */
  get isIdle(): boolean {
    return this.#phase === 'idle' && this.#socket.writable
  }

  /** Sends a request; on an idle connection only. */
  carry(receiver: Receiver): void {
    const { request } = receiver
    const { dialer, ownHost } = this.#owner
    this.#phase = 'head'
    this.#receiver = receiver
    this.#head = null
    this.#hasAnswered = false
    this.#isFull = false
    this.#awaitsContinue = request.expectsContinue
    this.#bodyLeft = request.bodyLength
    this.#reader.begin(request)
    const text = requestText(request, dialer.address.authority, ownHost)
    // What is there to be read before that cannot be the answer.
    this.#isUnsent = true
    if (request.bodyLength === 0) OUTBOX.put(this, text)
    else {
      // Head and first bytes of the body in one write: those that came with the head are there by then.
      this.#socket.cork()
      this.#socket.write(text, 'latin1')
      OUTBOX.put(this, '')
    }
    this.#expectHead()
    receiver.opened(this, this.#isReused)
  }

  /** Of the outbox: the request goes now, if it is still wanted. */
  send(text: string): void {
    this.#isUnsent = false
    if (text === '') this.#socket.uncork()
    else if (this.#phase === 'head') this.#socket.write(text, 'latin1')
  }

  write(chunk: Uint8Array): boolean {
    this.#awaitsContinue = false
    if (chunk.length >= GATHERED_BYTES_MIN) this.#gather()
    if (this.#bodyLeft !== null) this.#bodyLeft -= chunk.length
    const hasRoom = this.#bodyLeft === null ? this.#writeChunk(chunk) : this.#socket.write(chunk)
    this.#isFull = !hasRoom && !this.#letOut()
    this.#expectHead()
    return !this.#isFull
  }

  end(trailers: readonly string[]): void {
    if (this.#bodyLeft === null) {
      let text = '0\r\n'
      for (let i = 0; i < trailers.length; i += 2) text += `${trailers[i]}: ${trailers[i + 1]}\r\n`
      this.#bodyLeft = 0
      this.#socket.write(`${text}\r\n`, 'latin1')
    }
    this.#expectHead()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#expectMore()
    this.#goOnReading()
  }

  cancel(): void {
    this.#close()
  }

  /** Fails what is under way, and closes. */
  abandon(): void {
    this.#broke('closing')
  }

  sweep(nowMs: number): void {
    if (this.#phase === 'head') this.#watchUpload()
    if (this.deadlineMs <= nowMs) this.#expire()
  }

  /** A deadline has passed. */
  #expire(): void {
    switch (this.#phase) {
      case 'connecting':
        return this.#broke('connect-timeout')
      case 'head':
        return this.#broke('head-timeout')
      case 'body':
        return this.#broke('idle-timeout')
      default:
        this.#close()
    }
  }

  informed(status: number, headers: readonly string[]): void {
    // A 100 that nobody asked for is nobody's (RFC 9110 §15.2).
    if (status === 100 && this.#receiver?.request.expectsContinue !== true) return
    if (status === 100) this.#awaitsContinue = false
    this.#expectHead()
    this.#receiver?.informed(status, headers)
  }

  headRead(head: ResponseHead): void {
    this.#head = head
    this.#phase = 'body'
    this.#expectMore()
    const length = head.body === 'none' ? 0 : head.body === 'length' ? head.length : null
    this.#receiver?.answered(head.status, head.reason, head.headers, length)
  }

  bodyRead(bytes: Buffer): void {
    if (this.#receiver?.received(bytes) !== false) return
    this.#isPaused = true
    // Now it is the client that is waited for.
    this.deadlineMs = Number.POSITIVE_INFINITY
  }

  ended(trailers: readonly string[], isSurplus: boolean): void {
    const receiver = this.#receiver
    const { keepsAlive, keepAliveMs } = this.#head!
    this.#receiver = null
    // TLS hands over a last record after it was told to wait, which may have been the end.
    this.resume()
    // An answer that came before the whole request was read leaves nobody knows what on the way.
    const isWhole = this.#bodyLeft === 0 && this.#socket.writableLength === 0
    if (keepsAlive && isWhole && !isSurplus) this.#release(keepAliveMs)
    else this.#close()
    receiver?.completed(trailers)
  }

  faulted(fault: ResponseFault): void {
    this.#broke(fault === 'truncated' ? 'reset' : 'bad-response')
  }

  #connected(): void {
    if (this.#phase !== 'connecting') return
    this.#phase = 'idle'
    this.carry(this.#receiver!)
  }

  /** TLS hands over a record of 16 KiB at a time: those that came in together go out in one write. */
  #gather(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#socket.cork()
    setImmediate(this.#letGo)
  }

  readonly #letGo = (): void => {
    this.#isGathering = false
    this.#socket.uncork()
  }

  /**
   * As much as the socket holds goes out before the turn is over, while the processor's cache has it still. Whether there is
   * room again: mostly the kernel takes it all, and then the client need not be told to wait.
   */
  #letOut(): boolean {
    if (!this.#isGathering) return false
    const socket = this.#socket
    socket.uncork()
    socket.cork()
    return socket.writableLength < socket.writableHighWaterMark
  }

  #writeChunk(chunk: Uint8Array): boolean {
    // A chunk of no bytes would end the body (RFC 9112 §7.1).
    if (chunk.length === 0) return true
    this.#socket.cork()
    this.#socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    this.#socket.write(chunk)
    const hasRoom = this.#socket.write('\r\n', 'latin1')
    this.#socket.uncork()
    return hasRoom
  }

  /** While the client is sending it is the client that is waited for, unless the upstream does not read. */
  #expectHead(): void {
    if (this.#phase !== 'head') return
    const isOwed = this.#bodyLeft === 0 || this.#isFull || this.#awaitsContinue
    this.deadlineMs = isOwed
      ? this.#owner.beat.after(this.#owner.times.headTimeoutMs)
      : Number.POSITIVE_INFINITY
  }

  /** While bytes of the request leave, the upstream's time begins anew. */
  #watchUpload(): void {
    const unsent = this.#socket.writableLength
    if (unsent < this.#unsent) this.#expectHead()
    this.#unsent = unsent
  }

  #expectMore(): void {
    if (this.#phase === 'body') this.deadlineMs = this.#owner.beat.after(this.#owner.times.idleTimeoutMs)
  }

  #onread(): OnRead {
    // The reader, and whoever it calls, is done with the bytes before the next read: all connections share a buffer,
    // which stays in the processor's cache. TLS hands over no more than one record, and may do so while we write.
    const buffer =
      this.#owner.dialer.address.tls === null ? SHARED_BUFFER : Buffer.allocUnsafe(TLS_RECORD_BYTES)
    return { buffer, callback: (length, bytes) => this.#read(length, bytes as Buffer) }
  }

  /** `false` stops the reading. */
  #read(length: number, bytes: Buffer): boolean {
    if (this.#receiver === null) {
      // Nobody has asked: whatever this is, it must not be taken for the answer to the next request.
      this.#close()
      return false
    }
    if (this.#isUnsent) {
      this.#broke('reset')
      return false
    }
    this.#hasAnswered = true
    if (!this.#isPaused) this.#expectMore()
    const before = this.#reader.chunks
    this.#reader.read(bytes, length)
    const chunks = this.#reader.chunks - before
    if (chunks >= CHUNKS_OF_A_PIECE) this.#countChunks(chunks)
    return !this.#isPaused && this.#intake?.isStopped !== true
  }

  #countChunks(chunks: number): void {
    if (this.#phase === 'closed') return
    this.#intake ??= new Intake(
      () => undefined, // by what `#read` returns
      () => this.#goOnReading(),
    )
    this.#intake.count(Math.floor(chunks / CHUNKS_OF_A_PIECE), 0)
  }

  #goOnReading(): void {
    if (!this.#isPaused && this.#intake?.isStopped !== true) this.#socket.resume()
  }

  #drained(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#expectHead()
    this.#receiver?.writable()
  }

  /** The upstream has closed its side. */
  #ended(): void {
    if (this.#phase === 'body') this.#reader.close()
    this.#broke('reset')
  }

  #release(hintMs: number | null): void {
    const keptMs = this.#owner.times.keepAliveMs || Number.POSITIVE_INFINITY
    // The upstream closes when its time is over; ours has to be over before, or the two cross (HARD-SPOTS: stale).
    const idleMs = hintMs === null ? keptMs : Math.min(keptMs, hintMs - KEEP_ALIVE_MARGIN_MS)
    if (idleMs <= 0) return this.#close()
    this.#phase = 'idle'
    this.#isReused = true
    this.deadlineMs = this.#owner.beat.nowMs + idleMs
    this.#owner.released(this)
  }

  #broke(failure: UpstreamFailure): void {
    if (this.#phase === 'closed') return
    const receiver = this.#receiver
    const retry = this.#retryAfter(failure)
    this.#close()
    receiver?.failed(failure, retry)
  }

  #retryAfter(failure: UpstreamFailure): Retry {
    if (this.#phase === 'connecting') return 'safe'
    return failure === 'reset' && this.#isReused && !this.#hasAnswered ? 'idempotent' : 'never'
  }

  #close(): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#receiver = null
    this.deadlineMs = Number.POSITIVE_INFINITY
    this.#reader.stop()
    this.#intake?.close()
    this.#socket.destroy()
    this.#owner.closed(this)
  }
}

type Phase = 'connecting' | 'idle' | 'head' | 'body' | 'closed'

/** 16 KiB triples the cost of large bodies. */
const SHARED_BUFFER = Buffer.allocUnsafeSlow(256 * 1024)
const TLS_RECORD_BYTES = 16 * 1024
const GATHERED_BYTES_MIN = 4096
/** As many chunks of an answer, which our own reader takes apart, cost as much as one piece of a request's body. */
const CHUNKS_OF_A_PIECE = 16
const KEEP_ALIVE_MARGIN_MS = 1000
