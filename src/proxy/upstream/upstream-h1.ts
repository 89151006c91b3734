import type { Socket } from 'node:net'
import type { Beat } from '../connection/beat.ts'
import { Intake } from '../http/intake.ts'
import { OUTBOX, type Sender } from '../http/outbox.ts'
import type { ResponseHead } from './response-head.ts'
import { type ResponseEvents, type ResponseFault, ResponseReader } from './response-reader.ts'
import { type Dialer, failureOf, type OnRead, SHARED_BUFFER } from './upstream-dial.ts'
import { requestText } from './upstream-request.ts'
import type { Receiver, Retry, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** What all connections of a pool share. */
export interface H1Owner {
  readonly dialer: Dialer
  readonly beat: Beat
  readonly times: UpstreamTimes
  /** The upstream's own name, to send as Host instead of the client's. */
  readonly ownHost: string | null
  /** The connection is free for the next request. */
  released(connection: H1Connection): void
  /** Called once: the connection has closed or could not be opened. */
  closed(connection: H1Connection): void
}

/** In milliseconds. 0: no limit. */
export interface UpstreamTimes {
  /** From the request for a connection until it is open. Includes waiting for a free one. */
  readonly connectTimeoutMs: number
  /**
   * From the end of the sent request to the head of the answer. Also how long the request body may be stuck.
   */
  readonly headTimeoutMs: number
  /** Between two parts of an answer. */
  readonly idleTimeoutMs: number
  /** How long an idle connection is kept. */
  readonly keepAliveMs: number
}

/** One HTTP/1.1 connection to an upstream, which carries one request at a time. */
export class H1Connection implements UpstreamStream, ResponseEvents, Sender {
  /** The time at which `sweep` ends the current phase. */
  deadlineMs: number
  readonly #owner: H1Owner
  readonly #socket: Socket
  readonly #reader = new ResponseReader(this)
  /** Counts the chunks of answers. `null` until one read contains many. */
  #intake: Intake | null = null
  #phase: Phase = 'connecting'
  #receiver: Receiver | null
  #isReused = false
  #head: ResponseHead | null = null
  /** Remaining bytes of the request body. `null` for a chunked body before its end. */
  #bodyLeft: number | null = 0
  /** Whether a byte of the answer has arrived. */
  #hasAnswered = false
  #isPaused = false
  /** A write returned `false`: the upstream is slow to read. */
  #isFull = false
  /** Unsent bytes of the request at the last sweep. */
  #unsent = 0
  /** The request body comes in large pieces. The small ones between them are parts of frames. */
  #isBulk = false
  /** Writes are held until the end of this event loop turn. */
  #isGathering = false
  /** The request is still in the outbox, or the socket is corked. */
  #isUnsent = false
  /** The client waits for the upstream's 100 before it sends the body. */
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

  /** Whether it can take a request at once. */
  get isIdle(): boolean {
    return this.#phase === 'idle' && this.#socket.writable
  }

  /** Sends a request. Only for an idle connection. */
  carry(receiver: Receiver): void {
    const { request } = receiver
    const { dialer, ownHost } = this.#owner
    this.#phase = 'head'
    this.#receiver = receiver
    this.#head = null
    this.#hasAnswered = false
    this.#isFull = false
    this.#isBulk = false
    this.#awaitsContinue = request.expectsContinue
    this.#bodyLeft = request.bodyLength
    this.#reader.begin(request)
    const text = requestText(request, dialer.address.authority, ownHost)
    // Bytes that arrive before the request is sent cannot be its answer.
    this.#isUnsent = true
    if (request.bodyLength === 0) OUTBOX.put(this, text)
    else {
      // Joins the head and the first bytes of the body into one write: bytes that came with the head are
      // available by then.
      this.#socket.cork()
      this.#socket.write(text, 'latin1')
      OUTBOX.put(this, '')
    }
    this.#expectHead()
    receiver.opened(this, this.#isReused)
  }

  /** Called by the outbox: sends the request if it is still wanted. */
  send(text: string): void {
    this.#isUnsent = false
    if (text === '') this.#socket.uncork()
    else if (this.#phase === 'head') this.#socket.write(text, 'latin1')
  }

  write(chunk: Uint8Array): boolean {
    this.#awaitsContinue = false
    if (chunk.length >= GATHERED_BYTES_MIN) this.#isBulk = true
    if (this.#isBulk) this.#gather()
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

  /** Fails the current request and closes. */
  abandon(): void {
    this.#broke('closing')
  }

  sweep(nowMs: number): void {
    if (this.#phase === 'head') this.#watchUpload()
    if (this.deadlineMs <= nowMs) this.#expire()
  }

  /** Called when the deadline has passed. */
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
    // An unrequested 100 is ignored (RFC 9110 §15.2).
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
    // Now the connection waits for the client, so the upstream has no deadline.
    this.deadlineMs = Number.POSITIVE_INFINITY
  }

  ended(trailers: readonly string[], isSurplus: boolean): void {
    const receiver = this.#receiver
    const { keepsAlive, keepAliveMs } = this.#head!
    this.#receiver = null
    // After a pause TLS may still deliver one record, which may have been the end of the answer.
    this.resume()
    // If the answer came before the whole request was sent, the connection cannot be reused.
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

  /** TLS delivers records of 16 KiB. Records that arrived together leave in one write. */
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
   * Writes out what fits into the socket before the turn ends, while it is in the processor's cache. Returns
   * whether there is room again: usually the kernel takes everything, and the client need not wait.
   */
  #letOut(): boolean {
    if (!this.#isGathering) return false
    const socket = this.#socket
    socket.uncork()
    socket.cork()
    return socket.writableLength < socket.writableHighWaterMark
  }

  #writeChunk(chunk: Uint8Array): boolean {
    // An empty chunk would end the body (RFC 9112 §7.1).
    if (chunk.length === 0) return true
    this.#socket.cork()
    this.#socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    this.#socket.write(chunk)
    const hasRoom = this.#socket.write('\r\n', 'latin1')
    this.#socket.uncork()
    return hasRoom
  }

  /** While the client is sending, the upstream has no deadline, unless it does not read. */
  #expectHead(): void {
    if (this.#phase !== 'head') return
    const isOwed = this.#bodyLeft === 0 || this.#isFull || this.#awaitsContinue
    this.deadlineMs = isOwed
      ? this.#owner.beat.after(this.#owner.times.headTimeoutMs)
      : Number.POSITIVE_INFINITY
  }

  /** Restarts the upstream's deadline while bytes of the request leave. */
  #watchUpload(): void {
    const unsent = this.#socket.writableLength
    if (unsent < this.#unsent) this.#expectHead()
    this.#unsent = unsent
  }

  #expectMore(): void {
    if (this.#phase === 'body') this.deadlineMs = this.#owner.beat.after(this.#owner.times.idleTimeoutMs)
  }

  #onread(): OnRead {
    // The reader and its receivers are done with the bytes before the next read, so all connections share one
    // buffer, which stays in the processor's cache. TLS connections need their own: TLS may deliver a record
    // during one of our writes, and never more than one.
    const buffer =
      this.#owner.dialer.address.tls === null ? SHARED_BUFFER : Buffer.allocUnsafe(TLS_RECORD_BYTES)
    return { buffer, callback: (length, bytes) => this.#read(length, bytes as Buffer) }
  }

  /** Returns `false` to stop reading. */
  #read(length: number, bytes: Buffer): boolean {
    if (this.#receiver === null) {
      // Unrequested data, which must not be taken for the answer to the next request.
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
    this.#intake ??= new Intake({
      stop: () => undefined, // the return value of `#read` stops it
      goOn: () => this.#goOnReading(),
    })
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
    // Our idle timeout must end before the upstream's. Otherwise its close and our next request could cross.
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

const TLS_RECORD_BYTES = 16 * 1024
const GATHERED_BYTES_MIN = 4096
/** So many chunks of an answer, which our own parser reads, cost as much as one piece of a request body. */
const CHUNKS_OF_A_PIECE = 16
const KEEP_ALIVE_MARGIN_MS = 1000
