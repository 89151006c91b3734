import { HTTP2_PREFACE } from '../wire/http2-preface.ts'
import { ByteQueue } from '../wire/byte-queue.ts'
import { blockFragment, END_HEADERS } from '../wire/field-block.ts'
import { HpackDecoder } from '../wire/h2/hpack-decoder.ts'
import { ASKS_UPGRADE, type RequestHead } from '../wire/request-head.ts'

export type Http2State =
  | 'reading'
  /** Not HTTP/2, malformed, or bytes are missing that header compression needs. This state is final. */
  | 'opaque'

/**
 * Reads the requests from the client's direction of an HTTP/2 connection, preface first, in pieces of any
 * size. After an upgrade from HTTP/1.1, stream 1 is the request that asked for the upgrade and is not sent
 * again.
 */
export class Http2Requests {
  #state: Http2State = 'reading'
  /**
   * Between calls it holds at most one frame of a header block. Other payloads are skipped without a copy.
   */
  readonly #queue = new ByteQueue()
  #prefaceSeen = false
  /** Remaining bytes of a payload to skip. */
  #payloadLeft = 0
  /** The incomplete header block and its stream, 0 without one. */
  readonly #block = new ByteQueue()
  #blockStream = 0
  #lastStream = 0
  /** The remaining budget for header lists, in bytes. */
  #listBytesLeft = LIST_BYTES_FREE
  readonly #hpack = new HpackDecoder()
  readonly #sink: (head: RequestHead, frame: number, stream: number) => void

  constructor(sink: (head: RequestHead, frame: number, stream: number) => void) {
    this.#sink = sink
  }

  /** The memory of an incomplete block and of the compression table. */
  get heldBytes(): number {
    return this.#queue.heldBytes + this.#block.heldBytes + this.#hpack.heldBytes
  }

  /**
   * `frame` is the number of the frame that brought these bytes. A request is reported with its last frame.
   */
  push(bytes: Uint8Array, frame: number): Http2State {
    if (this.#state === 'opaque') return 'opaque'
    this.#queue.push(bytes)
    let advanced = true
    while (advanced) advanced = this.#step(frame)
    this.#queue.keep()
    return this.#state
  }

  /**
   * `length` bytes are missing from the capture here. Inside a skipped payload this is harmless. Elsewhere
   * reading ends, because the compression table would lack the missing headers. Returns whether reading goes
   * on.
   */
  skip(length: number): boolean {
    if (this.#state === 'opaque') return false
    if (length > this.#payloadLeft) return this.#giveUp()
    this.#payloadLeft -= length
    return true
  }

  /** Returns `false` if more bytes are needed or reading has ended. */
  #step(frame: number): boolean {
    if (this.#payloadLeft > 0) return this.#passPayload()
    return this.#prefaceSeen ? this.#readFrame(frame) : this.#readPreface()
  }

  #passPayload(): boolean {
    const length = Math.min(this.#payloadLeft, this.#queue.length)
    this.#queue.skip(length)
    this.#payloadLeft -= length
    return this.#payloadLeft === 0
  }

  #readPreface(): boolean {
    if (this.#queue.length < HTTP2_PREFACE.length) return false
    this.#prefaceSeen = HTTP2_PREFACE.equals(this.#queue.take(HTTP2_PREFACE.length))
    return this.#prefaceSeen || this.#giveUp()
  }

  /** RFC 9113 §4.1. */
  #readFrame(frame: number): boolean {
    const queue = this.#queue
    if (queue.length < FRAME_HEADER_BYTES) return false
    const length = queue.u24At(0)
    const type = queue.byteAt(3)
    const flags = queue.byteAt(4)
    const stream = ((queue.byteAt(5) & 0x7f) << 24) | queue.u24At(6)
    if (!this.#mayFollow(type, stream)) return this.#giveUp()
    if (type !== HEADERS && type !== CONTINUATION) {
      queue.skip(FRAME_HEADER_BYTES)
      this.#payloadLeft = length
      return true
    }
    if (this.#block.length + length > BLOCK_BYTES_MAX) return this.#giveUp()
    if (queue.length < FRAME_HEADER_BYTES + length) return false
    queue.skip(FRAME_HEADER_BYTES)
    this.#listBytesLeft += (FRAME_HEADER_BYTES + length) * LIST_BYTES_PER_BYTE
    const payload = queue.take(length)
    const fragment = type === HEADERS ? blockFragment(payload, flags) : payload
    if (fragment === null) return this.#giveUp()
    this.#block.push(fragment)
    return flags & END_HEADERS ? this.#endBlock(stream, frame) : this.#keepBlock(stream)
  }

  /**
   * §4.3: no frame may come between the frames of a header block. §8.4: a client does not send PUSH_PROMISE.
   */
  #mayFollow(type: number, stream: number): boolean {
    if (this.#blockStream !== 0) return type === CONTINUATION && stream === this.#blockStream
    return type === HEADERS ? stream !== 0 : type !== CONTINUATION && type !== PUSH_PROMISE
  }

  #keepBlock(stream: number): true {
    this.#blockStream = stream
    this.#block.keep()
    return true
  }

  #endBlock(stream: number, frame: number): boolean {
    const rawHeaders: string[] = []
    const decoded = this.#hpack.decode(this.#block.rest(), rawHeaders)
    this.#block.clear()
    this.#blockStream = 0
    if (decoded !== 'whole' || !this.#pays(rawHeaders)) return this.#giveUp()
    // §5.1.1: client streams are odd and ascending, so a block on an older stream is trailers.
    if (stream % 2 === 0 || stream <= this.#lastStream) return true
    this.#lastStream = stream
    const head = requestHead(rawHeaders)
    if (head !== null) this.#sink(head, frame, stream)
    return true
  }

  /**
   * One byte may repeat a header sent earlier. The budget limits that, so that a few bytes cannot cause
   * endless work.
   */
  #pays(rawHeaders: readonly string[]): boolean {
    for (let i = 0; i < rawHeaders.length; i++) this.#listBytesLeft -= rawHeaders[i]!.length
    return this.#listBytesLeft >= 0
  }

  #giveUp(): false {
    this.#state = 'opaque'
    this.#queue.clear()
    this.#block.clear()
    return false
  }
}

/** §8.3.1. CONNECT has no `:path`; its target is the authority (§8.5). For a WebSocket it is read as the proxy does. */
function requestHead(rawHeaders: readonly string[]): RequestHead | null {
  const method = pseudoHeader(rawHeaders, ':method')
  const target = pseudoHeader(rawHeaders, ':path') ?? pseudoHeader(rawHeaders, ':authority')
  if (method === null || target === null) return null
  const isTunnel =
    method === 'CONNECT' && pseudoHeader(rawHeaders, ':protocol')?.toLowerCase() === 'websocket'
  if (!isTunnel) return { method, target, version: '20', rawHeaders }
  return { method: 'GET', target, version: '20', rawHeaders: [...rawHeaders, ...ASKS_UPGRADE] }
}

function pseudoHeader(rawHeaders: readonly string[], name: string): string | null {
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i] === name) return rawHeaders[i + 1]!
  return null
}

/** §3.4. */

/** The same limit as for an HTTP/1 head, for all frames of a block together. */
export const BLOCK_BYTES_MAX = 256 * 1024

/** A browser's request with 8 KiB of cookies takes some 50 bytes once the table contains them. */
const LIST_BYTES_PER_BYTE = 256
const LIST_BYTES_FREE = 4 * 1024 * 1024

const FRAME_HEADER_BYTES = 9
// Frame types, §6.
const HEADERS = 0x1
const PUSH_PROMISE = 0x5
const CONTINUATION = 0x9
