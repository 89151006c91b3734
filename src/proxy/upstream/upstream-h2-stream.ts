import * as h2 from '../../wire/h2/frame.ts'
import { ByteQueue } from '../../wire/byte-queue.ts'
import type { Priority } from '../../wire/h2/priority.ts'
import type { Beat } from '../connection/beat.ts'
import type { Inflow, Receiving } from '../http/h2/inflow.ts'
import { OutgoingBody } from '../http/h2/outgoing-body.ts'
import type { Outflow } from '../http/h2/outflow.ts'
import { INTERIM_MAX } from './response-reader.ts'
import type { UpstreamTimes } from './upstream-h1.ts'
import type { Receiver, Retry, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** What a stream needs from its connection. */
export interface H2StreamOwner {
  readonly outflow: Outflow
  readonly inflow: Inflow
  readonly beat: Beat
  readonly times: UpstreamTimes
  /** Whether the connection has closed. */
  readonly isClosed: boolean
  /** The last stream that a GOAWAY lets through. The app has not seen later ones (RFC 9113 §6.8). */
  readonly lastStream: number
  /** Both sides are done with the stream, or it failed: it is to be reset with `code`, unless that is NO_ERROR. */
  over(stream: H2Stream, code: number, failure: UpstreamFailure | null): void
  /** The connection should take no more requests. */
  wornOut(): void
}

/** One request and its answer over HTTP/2. */
export class H2Stream extends OutgoingBody implements UpstreamStream {
  /** The time at which the sweep of its connection must call `expire`. */
  deadlineMs = Number.POSITIVE_INFINITY
  /** Uploads share the window of their connection. */
  readonly priority = TURNS
  readonly incoming: Receiving & { isWhole: boolean } = {
    window: STREAM_WINDOW_BYTES,
    held: 0,
    owed: 0,
    isWhole: false,
  }
  readonly #owner: H2StreamOwner
  readonly #isReused: boolean
  #receiver: Receiver | null
  #phase: 'head' | 'body' | 'closed' = 'head'
  #hasSentAll: boolean
  #isFull = false
  #isPaused = false
  /** Bytes of the request body that had left at the last sweep. */
  #left = 0
  #awaitsContinue: boolean
  #interim = 0
  /** Whether this answer cannot have a body. */
  #isBodyless = false
  /** Remaining bytes of the answer's Content-Length. `null` without one. */
  #due: number | null = null
  /** What came while the receiver had no room. */
  #waiting: ByteQueue | null = null
  #trailers: readonly string[] = NO_TRAILERS
  /** The code of the app's RST_STREAM. */
  #resetCode: number | null = null

  constructor(stream: number, owner: H2StreamOwner, receiver: Receiver, window: number, isReused: boolean) {
    super(stream, owner.outflow, window)
    const { bodyLength, expectsContinue } = receiver.request
    this.#owner = owner
    this.#receiver = receiver
    this.#isReused = isReused
    this.#hasSentAll = bodyLength === 0
    this.isSent = bodyLength === 0
    this.#awaitsContinue = expectsContinue
    this.#expectHead()
  }

  /** The head has been sent. */
  open(): void {
    this.#receiver?.opened(this, this.#isReused)
  }

  write(chunk: Uint8Array): boolean {
    if (this.#phase === 'closed' || chunk.length === 0) return true
    this.#awaitsContinue = false
    this.#isFull = !this.send(chunk, false)
    this.#expectHead()
    return !this.#isFull
  }

  end(trailers: readonly string[]): void {
    if (this.#phase === 'closed') return
    this.#hasSentAll = true
    this.finish(trailers)
    this.#expectHead()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    const waiting = this.#waiting
    this.#waiting = null
    if (waiting !== null && this.#receiver?.received(waiting.rest()) === false) this.#isPaused = true
    if (this.#isPaused || this.#phase === 'closed') return
    this.#owner.inflow.took(this.stream, this.incoming)
    if (this.incoming.isWhole) return this.#complete()
    if (this.#resetCode !== null) return this.#resetBy(this.#resetCode)
    this.#expectMore()
  }

  cancel(): void {
    this.#close(h2.CANCEL, null)
  }

  /** Fails the request because the gateway closes. */
  abandon(): void {
    this.broke('closing')
  }

  /** Whether the head of the answer has come, so that only trailers can follow. */
  get hasHead(): boolean {
    return this.#phase === 'body'
  }

  /** Whether a part of the request waits for the app to take it. */
  get isSending(): boolean {
    return this.#phase === 'head' && !this.isSent && (this.#hasSentAll || this.isWaiting)
  }

  /** Restarts the app's deadline if any of the body has left since the last call. */
  watchUpload(): void {
    if (this.#phase !== 'head' || this.sentBytes === this.#left) return
    this.#left = this.sentBytes
    this.#expectHead()
  }

  /** The body waits for other streams of this connection, so the app is not to blame: restarts the deadline. */
  waitInLine(): void {
    if (this.isSending) this.#expectHead()
  }

  expire(): void {
    // Unsent bytes may also block other uploads on this connection.
    if (this.isSending) this.#owner.wornOut()
    this.broke(this.#phase === 'head' ? 'head-timeout' : 'idle-timeout')
  }

  /** The app takes so much more of the request body. `false`: that is more than a window can be. */
  opensWindow(bytes: number): boolean {
    this.window += bytes
    return this.window <= h2.U31_MAX
  }

  /** A header block of the answer, in the form that HTTP/2 wants it to have. */
  cameHeaders(fields: readonly string[], hasEnded: boolean, neverIndexed: readonly string[]): void {
    if (this.#phase === 'body') return this.#cameTrailers(fields, hasEnded)
    const status = STATUS.test(fields[1]!) ? Number(fields[1]) : 0
    if (status >= 200) this.#answered(status, fields, hasEnded, neverIndexed)
    else if (hasEnded || status < 100) this.malformed()
    else this.#informed(status, fields)
  }

  cameData(bytes: Uint8Array): void {
    if (this.#receiver === null) return
    this.incoming.held += bytes.length
    if (this.#due !== null) this.#due -= bytes.length
    if (this.#phase === 'head' || this.#isBodyless || (this.#due ?? 0) < 0) return this.malformed()
    if (this.#isPaused) {
      this.#waiting ??= new ByteQueue()
      this.#waiting.push(bytes)
      return this.#waiting.keep()
    }
    this.#expectMore()
    if (this.#receiver.received(bytes)) return this.#owner.inflow.took(this.stream, this.incoming)
    this.#isPaused = true
    // Now the answer waits for the client, so the app has no deadline.
    this.deadlineMs = Number.POSITIVE_INFINITY
  }

  /** END_STREAM has come. */
  cameEnd(): void {
    if (this.#phase === 'head' || (this.#due ?? 0) > 0) return this.malformed()
    this.incoming.isWhole = true
    if (this.#waiting === null) this.#complete()
  }

  /** The app has reset the stream. */
  cameReset(code: number): void {
    if (code === h2.ENHANCE_YOUR_CALM) this.#owner.wornOut()
    this.#resetCode = code
    if (this.#waiting === null) return this.#resetBy(code)
    // The rest of the answer waits for the client. The app wants no more of the request.
    this.drop()
    this.isSent = true
  }

  /** The answer breaks a rule of HTTP/2 or HTTP. */
  malformed(): void {
    this.#fail('bad-response', h2.PROTOCOL_ERROR)
  }

  broke(failure: UpstreamFailure): void {
    // The rest of the answer is here, and waits for the client.
    if (this.incoming.isWhole && failure === 'reset') return
    this.#fail(failure, h2.CANCEL)
  }

  override drained(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#expectHead()
    this.#receiver?.writable()
  }

  protected override sent(): void {
    this.#expectHead()
  }

  protected override kept(chunk: Uint8Array, from: number): Uint8Array {
    return chunk.subarray(from)
  }

  #informed(status: number, fields: readonly string[]): void {
    const receiver = this.#receiver
    if (receiver === null) return
    if (status === 101 || ++this.#interim > INTERIM_MAX) return this.malformed()
    if (status === 100 && !receiver.request.expectsContinue) return
    if (status === 100) this.#awaitsContinue = false
    this.#expectHead()
    receiver.informed(status, fieldsOf(fields, false))
  }

  #answered(
    status: number,
    fields: readonly string[],
    hasEnded: boolean,
    neverIndexed: readonly string[],
  ): void {
    const receiver = this.#receiver
    if (receiver === null) return
    const { method, acceptsTrailers } = receiver.request
    this.#isBodyless = status === 204 || status === 304 || method === 'HEAD'
    const length = contentLength(fields)
    if (length === BAD_LENGTH || status > 599) return this.malformed()
    this.#due = this.#isBodyless ? null : length
    if (hasEnded && (this.#due ?? 0) > 0) return this.malformed()
    this.#phase = 'body'
    this.#expectMore()
    const bodyLength = this.#isBodyless || hasEnded ? 0 : length
    const sent = fieldsOf(fields, bodyLength === null && acceptsTrailers)
    receiver.answered(status, null, sent, bodyLength, neverIndexed)
    if (hasEnded) this.cameEnd()
  }

  #cameTrailers(fields: readonly string[], hasEnded: boolean): void {
    if (!hasEnded) return this.malformed()
    this.#trailers = fields
    this.cameEnd()
  }

  #complete(): void {
    const receiver = this.#receiver
    this.#close(this.isSent ? h2.NO_ERROR : h2.CANCEL, null)
    receiver?.completed(this.#trailers)
  }

  /**
   * A reset without an error counts as a complete answer unless the length proves otherwise: under flow control, Node
   * servers (24.21) end streams that way instead of with END_STREAM.
   */
  #resetBy(code: number): void {
    const isWhole = code === h2.NO_ERROR && this.#phase === 'body' && (this.#due ?? 0) === 0
    if (isWhole) {
      this.incoming.isWhole = true
      return this.#complete()
    }
    this.#fail(BROKEN.has(code) ? 'bad-response' : 'reset', h2.NO_ERROR)
  }

  #fail(failure: UpstreamFailure, code: number): void {
    if (this.#phase === 'closed') return
    const receiver = this.#receiver
    const retry = this.#retryAfter(failure)
    this.#close(code, failure)
    receiver?.failed(failure, retry)
  }

  #retryAfter(failure: UpstreamFailure): Retry {
    if (failure !== 'reset' || this.#phase !== 'head' || this.#interim > 0) return 'never'
    if (this.#resetCode === h2.REFUSED_STREAM || this.stream > this.#owner.lastStream) return 'safe'
    const isOldAge = this.#owner.isClosed || this.#resetCode === h2.ENHANCE_YOUR_CALM
    return this.#isReused && isOldAge ? 'idempotent' : 'never'
  }

  #close(code: number, failure: UpstreamFailure | null): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#receiver = null
    this.#waiting = null
    this.deadlineMs = Number.POSITIVE_INFINITY
    this.drop()
    this.#owner.over(this, code, failure)
  }

  #expectHead(): void {
    if (this.#phase !== 'head') return
    const isOwed = this.#hasSentAll || this.#isFull || this.#awaitsContinue
    this.deadlineMs = isOwed
      ? this.#owner.beat.after(this.#owner.times.headTimeoutMs)
      : Number.POSITIVE_INFINITY
  }

  #expectMore(): void {
    if (this.#phase === 'body') this.deadlineMs = this.#owner.beat.after(this.#owner.times.idleTimeoutMs)
  }
}

/** The fields for the client, without `:status`. */
function fieldsOf(fields: readonly string[], keepsTrailer: boolean): string[] {
  const kept: string[] = []
  for (let i = 2; i < fields.length; i += 2) {
    const name = fields[i]!
    if (name !== 'te' && (name !== 'trailer' || keepsTrailer)) kept.push(name, fields[i + 1]!)
  }
  return kept
}

/** `null` without one. */
function contentLength(fields: readonly string[]): number | null | typeof BAD_LENGTH {
  let length: number | null = null
  for (let i = 2; i < fields.length; i += 2) {
    if (fields[i] !== 'content-length') continue
    if (length !== null || !LENGTH.test(fields[i + 1]!)) return BAD_LENGTH
    length = Number(fields[i + 1])
  }
  return length
}

/** How much an app may send ahead of a slow client. */
export const STREAM_WINDOW_BYTES = 262_144
const TURNS: Priority = { urgency: 3, isIncremental: true }
const NO_TRAILERS: readonly string[] = []
const STATUS = /^[0-9]{3}$/
/** Fifteen digits exceed any body and still are an exact number. */
const LENGTH = /^[0-9]{1,15}$/
const BAD_LENGTH = -1
/** What an app says of an answer of its own, or of us. */
const BROKEN: ReadonlySet<number> = new Set([
  h2.PROTOCOL_ERROR,
  h2.FLOW_CONTROL_ERROR,
  h2.FRAME_SIZE_ERROR,
  h2.COMPRESSION_ERROR,
])
