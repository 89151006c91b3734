import { ByteQueue } from '../../wire/byte-queue.ts'
import {
  type ResponseContext,
  type HeadFault,
  type ResponseHead,
  readResponseHead,
  readTrailers,
} from './response-head.ts'

/**
 * The output of a ResponseReader, in order. After `ended` or `faulted`, no call comes until the next `begin`.
 */
export interface ResponseEvents {
  /** An interim response. Its headers are filtered like those of a final one. */
  informed(status: number, headers: readonly string[]): void
  headRead(head: ResponseHead): void
  /** A view of the input, valid during the call. */
  bodyRead(bytes: Buffer): void
  /** `isSurplus`: bytes follow that do not belong to the response. */
  ended(trailers: readonly string[], isSurplus: boolean): void
  faulted(fault: ResponseFault): void
}

export type ResponseFault =
  | HeadFault
  | 'head-too-large'
  | 'too-many-interim'
  | 'bad-chunk'
  | 'bad-trailers'
  | 'trailers-too-large'
  | 'truncated'

/** Parses HTTP/1 responses one after another, from pieces of any size. Buffers at most a head. */
export class ResponseReader {
  /** The number of chunks read, over all responses. */
  chunks = 0
  readonly #events: ResponseEvents
  #asked: ResponseContext = NOTHING_ASKED
  #state: State = 'idle'
  /** Remaining bytes of the body or chunk. While a chunk size is read, the size so far. */
  #left = 0
  /** The number of digits of a chunk size, or of bytes of its extensions. */
  #counted = 0
  #interim = 0
  /** An incomplete head or trailer section. */
  readonly #held = new ByteQueue()
  #bytes: Buffer = NO_BYTES
  #at = 0
  #end = 0
  /** The range of the input with chunk data that was read and not yet passed on. */
  #dataFrom = 0
  #dataEnd = 0

  constructor(events: ResponseEvents) {
    this.#events = events
  }

  begin(asked: ResponseContext): void {
    this.#asked = asked
    this.#state = 'head'
    this.#interim = 0
  }

  /**
   * Parses the first `length` bytes. They are not kept. The data of small chunks is moved together within
   * them.
   */
  read(bytes: Buffer, length: number): void {
    this.#bytes = bytes
    this.#at = 0
    this.#end = length
    while (this.#at < this.#end && this.#state !== 'idle') this.#step()
    this.#handOver()
    this.#bytes = NO_BYTES
  }

  /** The connection has closed: no more bytes will come. */
  close(): void {
    if (this.#state === 'idle') return
    if (this.#state === 'until-close') this.#finish(NO_TRAILERS)
    else this.#fault('truncated')
  }

  /** Drops a response that is no longer needed. */
  stop(): void {
    this.#rest()
    this.#held.clear()
  }

  /**
   * Drops the request data, which may be large: a connection lives on, and a closed one stays in memory until
   * V8 collects its old generation.
   */
  #rest(): void {
    this.#state = 'idle'
    this.#asked = NOTHING_ASKED
  }

  #step(): void {
    switch (this.#state) {
      case 'head':
        return this.#readHead()
      case 'length':
      case 'chunk':
        return this.#readBody(Math.min(this.#left, this.#end - this.#at))
      case 'until-close':
        return this.#readBody(this.#end - this.#at)
      case 'trailers':
        return this.#readTrailers()
      default:
        return this.#readChunkLine(this.#bytes[this.#at++]!)
    }
  }

  #readHead(): void {
    const text = this.#section(HEAD_BYTES_MAX, 'head-too-large')
    if (text === null) return
    const head = readResponseHead(text, this.#asked)
    if (typeof head === 'string') return this.#fault(head)
    if (head.status < 200) return this.#inform(head)
    this.#left = head.length
    this.#state = head.body === 'chunked' ? 'size' : head.body === 'none' ? 'head' : head.body
    this.#counted = 0
    this.#events.headRead(head)
    // The receiver of the head may have cancelled the response.
    if (head.body === 'none' && this.#state === 'head') this.#finish(NO_TRAILERS)
  }

  #inform(head: ResponseHead): void {
    if (++this.#interim > INTERIM_MAX) return this.#fault('too-many-interim')
    this.#events.informed(head.status, head.headers)
  }

  #readBody(length: number): void {
    const from = this.#at
    this.#at += length
    if (this.#state !== 'until-close') this.#left -= length
    if (this.#state === 'chunk') return this.#readChunk(from, length)
    const whole = from === 0 && length === this.#bytes.length
    this.#events.bodyRead(whole ? this.#bytes : this.#bytes.subarray(from, this.#at))
    if (this.#left === 0 && this.#state === 'length') this.#finish(NO_TRAILERS)
  }

  /** The data of all small chunks of a read is passed on together, because an app may send single bytes. */
  #readChunk(from: number, length: number): void {
    if (this.#left === 0) this.#state = 'chunk-cr'
    const end = this.#dataEnd
    if (end > this.#dataFrom && length <= MOVED_BYTES_MAX) {
      if (length > 1) this.#bytes.copyWithin(end, from, from + length)
      else this.#bytes[end] = this.#bytes[from]!
      this.#dataEnd = end + length
      return
    }
    this.#handOver()
    this.#dataFrom = from
    this.#dataEnd = from + length
  }

  #handOver(): void {
    const from = this.#dataFrom
    const end = this.#dataEnd
    if (end === from) return
    this.#dataFrom = 0
    this.#dataEnd = 0
    // The receiver may have cancelled the response.
    if (this.#state !== 'idle') this.#events.bodyRead(this.#bytes.subarray(from, end))
  }

  /** Parses a byte between the chunk data (RFC 9112 §7.1). */
  #readChunkLine(byte: number): void {
    switch (this.#state) {
      case 'size':
        return this.#readSize(byte)
      case 'blank':
        if (byte === SEMICOLON) this.#state = 'extension'
        else if (++this.#counted > EXTENSION_BYTES_MAX || !isBlank(byte)) this.#fault('bad-chunk')
        return
      case 'extension':
        // Extensions are ignored. A quoted one may contain anything except control characters.
        if (byte === CR) this.#state = 'size-lf'
        else if (++this.#counted > EXTENSION_BYTES_MAX || !isText(byte)) this.#fault('bad-chunk')
        return
      case 'size-lf':
        if (byte !== LF) return this.#fault('bad-chunk')
        this.chunks++
        this.#state = this.#left === 0 ? 'trailers' : 'chunk'
        return
      case 'chunk-cr':
        if (byte !== CR) return this.#fault('bad-chunk')
        this.#state = 'chunk-lf'
        return
      default:
        if (byte !== LF) return this.#fault('bad-chunk')
        this.#state = 'size'
        this.#counted = 0
    }
  }

  #readSize(byte: number): void {
    const digit = hexDigit(byte)
    if (digit !== -1) {
      if (++this.#counted > SIZE_DIGITS_MAX) return this.#fault('bad-chunk')
      this.#left = this.#left * 16 + digit
      return
    }
    if (this.#counted === 0) return this.#fault('bad-chunk')
    this.#counted = 0
    if (byte === CR) this.#state = 'size-lf'
    else if (byte === SEMICOLON) this.#state = 'extension'
    else if (!isBlank(byte)) this.#fault('bad-chunk')
    else {
      this.#state = 'blank'
      this.#counted = 1
    }
  }

  #readTrailers(): void {
    if (this.#held.length === 0) {
      if (this.#end - this.#at >= 2 && this.#bytes[this.#at] === CR && this.#bytes[this.#at + 1] === LF) {
        this.#at += 2
        return this.#finish(NO_TRAILERS)
      }
      // The previous line end is the first half of the empty line that ends a section.
      this.#held.push(CRLF)
    }
    const text = this.#section(TRAILER_BYTES_MAX, 'trailers-too-large')
    if (text === null) return
    const trailers: string[] = []
    if (readTrailers(text, trailers) !== null) return this.#fault('bad-trailers')
    this.#finish(trailers)
  }

  /** The lines up to an empty line, once complete. */
  #section(bytesMax: number, tooLarge: ResponseFault): string | null {
    const before = this.#held.length
    if (before === 0) {
      // The fast path: everything arrived at once. Bytes after `#end` belong to an earlier read.
      const blank = this.#bytes.indexOf(EMPTY_LINE, this.#at)
      const end = blank + EMPTY_LINE.length
      if (blank !== -1 && end <= this.#end && end - this.#at <= bytesMax) {
        const text = this.#bytes.toString('latin1', this.#at, end)
        this.#at = end
        return text
      }
    }
    const piece = this.#bytes.subarray(this.#at, Math.min(this.#end, this.#at + bytesMax - before))
    this.#held.push(piece)
    const held = asBuffer(this.#held.rest())
    const blank = held.indexOf(EMPTY_LINE, Math.max(0, before - EMPTY_LINE.length + 1))
    if (blank !== -1) {
      const length = blank + EMPTY_LINE.length
      this.#at += length - before
      const text = held.toString('latin1', 0, length)
      this.#held.clear()
      return text
    }
    this.#at += piece.length
    // Fail early if the head cannot become valid.
    if (this.#state === 'head' && !beginsWell(held)) this.#fault('bad-head')
    else if (hasBareLineFeed(held, before)) this.#fault(this.#state === 'head' ? 'bad-head' : 'bad-trailers')
    else if (held.length === bytesMax) this.#fault(tooLarge)
    else this.#held.keep()
    return null
  }

  #finish(trailers: readonly string[]): void {
    this.#handOver()
    if (this.#state === 'idle') return
    this.#rest()
    this.#events.ended(trailers, this.#at < this.#end)
  }

  #fault(fault: ResponseFault): void {
    this.#handOver()
    if (this.#state === 'idle') return
    this.stop()
    this.#events.faulted(fault)
  }
}

type State =
  | 'idle'
  | 'head'
  | 'length'
  | 'until-close'
  | 'size'
  | 'blank'
  | 'extension'
  | 'size-lf'
  | 'chunk'
  | 'chunk-cr'
  | 'chunk-lf'
  | 'trailers'

/** Whether a status line may begin like this. */
function beginsWell(held: Buffer): boolean {
  const length = Math.min(held.length, VERSION.length)
  return held.compare(VERSION, 0, length, 0, length) === 0
}

function hasBareLineFeed(held: Buffer, from: number): boolean {
  for (let at = held.indexOf(LF, from); at !== -1; at = held.indexOf(LF, at + 1)) {
    if (at === 0 || held[at - 1] !== CR) return true
  }
  return false
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB
}

function isText(byte: number): boolean {
  return byte === TAB || (byte >= SPACE && byte !== DELETE)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** nginx and HAProxy accept 4 to 16 KiB. Some apps set more cookies than that. */
export const HEAD_BYTES_MAX = 64 * 1024
export const TRAILER_BYTES_MAX = 16 * 1024
/** One 100 and a few hints are usual. An app that keeps sending them never answers. */
export const INTERIM_MAX = 32
/** Extensions are not used in practice, and a long one is not worth reading. */
export const EXTENSION_BYTES_MAX = 256
/** 256 TiB, still an exact number. */
export const SIZE_DIGITS_MAX = 12

/** Larger chunks are passed on in place. */
const MOVED_BYTES_MAX = 2_048

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const SEMICOLON = 0x3b
const DELETE = 0x7f
const CRLF = Buffer.from('\r\n')
const EMPTY_LINE = Buffer.from('\r\n\r\n')
const VERSION = Buffer.from('HTTP/1.')
const NO_BYTES = Buffer.alloc(0)
const NO_TRAILERS: readonly string[] = []
const NOTHING_ASKED: ResponseContext = { method: 'GET', acceptsTrailers: false }
