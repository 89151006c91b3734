import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import type { Beat } from '../connection/beat.ts'
import { isFieldValue, isToken } from '../connection/field-syntax.ts'
import { INTERIM_MAX } from './response-reader.ts'
import type { UpstreamTimes } from './upstream-h1.ts'
import type { Receiver, Retry, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'

/** What a stream needs from its connection. */
export interface H2StreamOwner {
  readonly session: ClientHttp2Session
  readonly beat: Beat
  readonly times: UpstreamTimes
  /** Whether the connection carried a request before this one. */
  readonly isReused: boolean
  /** The last stream that a GOAWAY lets through. The app has not seen later ones (RFC 9113 §6.8). */
  readonly lastStreamId: number
  closed(stream: H2Stream, failure: UpstreamFailure | null): void
  /**
   * The connection should take no more requests. A Node server (24.21) refuses all new streams of a
   * connection on which downloads were cancelled, because it keeps counting the bytes it could not send.
   */
  wornOut(): void
  /** A part of an answer has arrived. */
  came(bytes: number): void
  /** Node has closed the stream. */
  gone(stream: ClientHttp2Stream): void
}

/** One request over HTTP/2. */
export class H2Stream implements UpstreamStream {
  /** The time at which the pool's sweep must call `expire`. */
  deadlineMs = Number.POSITIVE_INFINITY
  readonly #owner: H2StreamOwner
  readonly #stream: ClientHttp2Stream
  readonly #isReused: boolean
  #receiver: Receiver | null
  #phase: 'head' | 'body' | 'closed' = 'head'
  #hasSentAll: boolean
  #isFull = false
  #isPaused = false
  /** Bytes of the body passed to Node, and how many of them had left at the last sweep. */
  #written = 0
  #left = 0
  /** Whether the whole request has left, including its end, which also needs room in the windows. */
  #hasLeft: boolean
  #awaitsContinue: boolean
  #interim = 0
  /** Remaining bytes of the response's Content-Length. `null` without one. */
  #due: number | null = null
  #trailers: readonly string[] = NO_TRAILERS
  #requestTrailers: readonly string[] = NO_TRAILERS

  /** `list` comes from `requestList`. Throws if Node rejects the request. */
  constructor(owner: H2StreamOwner, receiver: Receiver, list: readonly string[]) {
    const hasBody = receiver.request.bodyLength !== 0
    this.#owner = owner
    this.#receiver = receiver
    this.#isReused = owner.isReused
    this.#hasSentAll = !hasBody
    this.#hasLeft = !hasBody
    this.#awaitsContinue = receiver.request.expectsContinue
    this.#stream = owner.session.request(list, { endStream: !hasBody, waitForTrailers: hasBody })
    this.#listen(this.#stream)
    this.#expectHead()
  }

  /** Called after construction, so that the receiver knows the stream. */
  open(): void {
    this.#receiver?.opened(this, this.#isReused)
  }

  write(chunk: Uint8Array): boolean {
    this.#awaitsContinue = false
    this.#written += chunk.length
    this.#isFull = !this.#stream.write(chunk)
    this.#expectHead()
    return !this.#isFull
  }

  end(trailers: readonly string[]): void {
    this.#hasSentAll = true
    this.#requestTrailers = trailers
    this.#stream.end()
    this.#expectHead()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#expectMore()
    this.#stream.resume()
  }

  cancel(): void {
    this.#close(null)
  }

  abandon(): void {
    this.#broke('closing')
  }

  /** Whether a part of the request waits for the upstream to take it. */
  get isSending(): boolean {
    return this.#phase === 'head' && !this.#hasLeft && (this.#hasSentAll || this.#stream.writableLength > 0)
  }

  /**
   * Whether any of the body has left since the last call. If so, the upstream's deadline restarts. Node only
   * reports whole writes, which can be 64 KiB of joined pieces.
   */
  hasMoved(): boolean {
    if (this.#phase !== 'head' || this.#hasLeft) return false
    const unsent = this.#stream.writableLength
    this.#hasLeft = this.#hasSentAll && unsent === 0 && this.#stream.state.localClose === 1
    const hasMoved = this.#hasLeft || this.#written - unsent > this.#left
    this.#left = this.#written - unsent
    if (hasMoved) this.#expectHead()
    return hasMoved
  }

  /**
   * The body waits for other streams of this connection, so the app is not to blame: restarts the deadline.
   */
  waitInLine(): void {
    if (this.isSending) this.#expectHead()
  }

  expire(): void {
    // Unsent bytes may also block other uploads on this connection.
    if (this.isSending) this.#owner.wornOut()
    this.#broke(this.#phase === 'head' ? 'head-timeout' : 'idle-timeout')
  }

  #listen(stream: ClientHttp2Stream): void {
    stream.on('headers', (headers, _flags, raw) => this.#informed(Number(headers[':status']), raw))
    stream.on('response', (headers, flags, raw) => this.#answered(Number(headers[':status']), flags, raw))
    stream.on('trailers', (_headers, _flags, raw) => {
      this.#trailers = raw
    })
    stream.on('end', () => this.#ended())
    stream.on('drain', () => this.#drained())
    stream.on('wantTrailers', () => sendTrailers(stream, this.#requestTrailers))
    stream.on('error', () => {})
    stream.on('close', () => {
      this.#broke(failureOfCode(stream.rstCode))
      this.#owner.gone(stream)
    })
  }

  #informed(status: number, raw: readonly string[]): void {
    const receiver = this.#receiver
    if (receiver === null || this.#phase !== 'head') return
    if (status === 101 || ++this.#interim > INTERIM_MAX) return this.#broke('bad-response')
    if (status === 100 && !receiver.request.expectsContinue) return
    const headers = fieldsOf(raw, false)
    if (headers === null) return this.#broke('bad-response')
    if (status === 100) this.#awaitsContinue = false
    this.#expectHead()
    receiver.informed(status, headers)
  }

  #answered(status: number, flags: number, raw: readonly string[]): void {
    const receiver = this.#receiver
    if (receiver === null || this.#phase !== 'head') return
    const isBodyless = status === 204 || status === 304 || receiver.request.method === 'HEAD'
    const hasEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    const length = isBodyless || hasEnded ? 0 : contentLength(raw)
    const headers = fieldsOf(raw, length === null && receiver.request.acceptsTrailers)
    if (!(status >= 200 && status <= 599) || headers === null) return this.#broke('bad-response')
    this.#phase = 'body'
    this.#due = hasEnded ? 0 : isBodyless ? null : length
    this.#expectMore()
    receiver.answered(status, null, headers, length)
    this.#stream.on('data', (chunk: Buffer) => this.#received(chunk, isBodyless))
  }

  #received(chunk: Buffer, isBodyless: boolean): void {
    this.#owner.came(chunk.length)
    if (this.#receiver === null) return
    if (this.#due !== null) this.#due -= chunk.length
    if (isBodyless || (this.#due ?? 0) < 0) return this.#broke('bad-response')
    this.#expectMore()
    if (this.#receiver.received(chunk)) return
    this.#isPaused = true
    this.deadlineMs = Number.POSITIVE_INFINITY
    this.#stream.pause()
  }

  /**
   * Node also emits `end` for a stream that was reset. A reset without an error counts as a complete answer
   * unless the length proves otherwise: under flow control, Node servers end streams that way instead of with
   * END_STREAM.
   */
  #ended(): void {
    // After a reset without an error, Node (24.21) waits for the rest of the request to be sent, which never
    // happens.
    if (this.#stream.closed && !this.#stream.writableFinished) setImmediate(cancel, this.#stream)
    const receiver = this.#receiver
    if (receiver === null) return
    if (this.#phase === 'head') return this.#broke('reset')
    // Node (24.21) also ends streams without an error when their connection closes after a GOAWAY. It ends
    // complete ones before that.
    const isLost = this.#stream.destroyed && this.#due === null
    const isReset = (isLost || (this.#stream.rstCode ?? 0) !== 0) && this.#trailers === NO_TRAILERS
    if (isReset || (this.#due ?? 0) > 0) return this.#broke(failureOfCode(this.#stream.rstCode))
    const trailers = fieldsOf(this.#trailers, false)
    if (trailers === null) return this.#broke('bad-response')
    this.#close(null)
    receiver.completed(trailers)
  }

  #drained(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#expectHead()
    this.#receiver?.writable()
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

  #broke(failure: UpstreamFailure): void {
    if (this.#phase === 'closed') return
    const receiver = this.#receiver
    const retry = this.#retryAfter(failure)
    this.#close(failure)
    receiver?.failed(failure, retry)
  }

  #retryAfter(failure: UpstreamFailure): Retry {
    if (failure !== 'reset' || this.#phase !== 'head' || this.#interim > 0) return 'never'
    const id = this.#stream.id ?? 0
    const { rstCode } = this.#stream
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM || id > this.#owner.lastStreamId) return 'safe'
    const isOldAge = this.#owner.session.destroyed || rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM
    return this.#isReused && isOldAge ? 'idempotent' : 'never'
  }

  #close(failure: UpstreamFailure | null): void {
    if (this.#phase === 'closed') return
    const isWhole = this.#phase === 'body' && this.#stream.readableEnded && this.#hasSentAll
    this.#phase = 'closed'
    this.#receiver = null
    this.deadlineMs = Number.POSITIVE_INFINITY
    if (this.#stream.rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM) this.#owner.wornOut()
    if (!isWhole && !this.#stream.destroyed) setImmediate(cancel, this.#stream)
    this.#owner.closed(this, failure)
  }
}

/**
 * Must be called outside Node's session callbacks. If a stream is closed inside one while bytes wait for the
 * upstream's window, Node (24.21) loops forever in its sending code and uses up all memory.
 */
function cancel(stream: ClientHttp2Stream): void {
  if (stream.closed) stream.destroy()
  else stream.close(constants.NGHTTP2_CANCEL)
}

/** The fields without pseudo-headers and connection-specific fields. `null` if one cannot be passed on. */
function fieldsOf(raw: readonly string[], keepsTrailer: boolean): string[] | null {
  const fields: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    if (name.charCodeAt(0) === COLON || DROPPED.has(name) || (name === 'trailer' && !keepsTrailer)) continue
    if (!isToken(name) || !isFieldValue(raw[i + 1]!)) return null
    fields.push(name, raw[i + 1]!)
  }
  return fields
}

/** nghttp2 accepts only a single decimal value. */
function contentLength(raw: readonly string[]): number | null {
  const at = raw.indexOf('content-length')
  return at === -1 ? null : Number(raw[at + 1])
}

function sendTrailers(stream: ClientHttp2Stream, trailers: readonly string[]): void {
  if (stream.destroyed || stream.closed) return
  // An object without a prototype: a client may name a trailer `constructor`.
  const fields: Record<string, string[]> = Object.create(null)
  for (let i = 0; i < trailers.length; i += 2) {
    const name = trailers[i]!.toLowerCase()
    fields[name] = [...(fields[name] ?? []), trailers[i + 1]!]
  }
  stream.sendTrailers(fields)
}

function failureOfCode(code: number | undefined): UpstreamFailure {
  return code !== undefined && BROKEN.has(code) ? 'bad-response' : 'reset'
}

const COLON = 0x3a
const NO_TRAILERS: readonly string[] = []
const DROPPED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])
/** nghttp2's codes for a malformed response. */
const BROKEN: ReadonlySet<number> = new Set([
  constants.NGHTTP2_PROTOCOL_ERROR,
  constants.NGHTTP2_FLOW_CONTROL_ERROR,
  constants.NGHTTP2_FRAME_SIZE_ERROR,
  constants.NGHTTP2_COMPRESSION_ERROR,
])
