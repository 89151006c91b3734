import { ByteQueue } from '../../wire/byte-queue.ts'
import {
  type Asked,
  type HeadFault,
  type ResponseHead,
  readResponseHead,
  readTrailers,
} from './response-head.ts'

/** What comes out of a ResponseReader, in order. No call follows `ended` or `faulted` until the next `begin`. */
export interface ResponseEvents {
  /** An interim response; its headers as those of a final one. */
  informed(status: number, headers: readonly string[]): void
  headRead(head: ResponseHead): void
  /** A view of what was read: it is gone when the call returns. */
  bodyRead(bytes: Buffer): void
  /** `isSurplus`: more bytes came behind the response than belong to it. */
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

/** Reads one HTTP/1 response after the other from bytes that come in any pieces. Holds no more than a head of them. */
export class ResponseReader {
  /** Chunks that have been read, of all responses. */
  chunks = 0
  readonly #events: ResponseEvents
  #asked: Asked = NOTHING_ASKED
  #state: State = 'idle'
  /** What is left of the body, or of the chunk; while its size is read, the size. */
  #left = 0
  /** Digits of a chunk's size, or bytes of its extensions. */
  #counted = 0
  #interim = 0
  /** The part of a head, or of trailers, that came so far. */
  readonly #held = new ByteQueue()
  #bytes: Buffer = NO_BYTES
  #at = 0
  #end = 0
  /** Where in the bytes the data of chunks stands that has been read and not been handed over. */
  #dataFrom = 0
  #dataEnd = 0

  constructor(events: ResponseEvents) {
    this.#events = events
  }

  begin(asked: Asked): void {
    this.#asked = asked
    this.#state = 'head'
    this.#interim = 0
  }

  /** The first `length` of the bytes; they are not kept, and the data of small chunks is moved together within them. */
  read(bytes: Buffer, length: number): void {
    this.#bytes = bytes
    this.#at = 0
    this.#end = length
    while (this.#at < this.#end && this.#state !== 'idle') this.#step()
    this.#handOver()
    this.#bytes = NO_BYTES
  }

  /** No more bytes will come. */
  close(): void {
    if (this.#state === 'idle') return
    if (this.#state === 'until-close') this.#finish(NO_TRAILERS)
    else this.#fault('truncated')
  }

  /** Lets go of a response that nobody waits for any more. */
  stop(): void {
    this.#rest()
    this.#held.clear()
  }

  /** What was asked may be long, and a connection lives on: also one that is closed, until V8 looks at what has grown old. */
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
    // Whoever got the head may have let go of the rest.
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

  /** Data of all small chunks of a read is handed over at once: an app may send a byte at a time. */
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
    // Whoever reads may have let go of the response.
    if (this.#state !== 'idle') this.#events.bodyRead(this.#bytes.subarray(from, end))
  }

  /** A byte between the chunks (RFC 9112 §7.1). */
  #readChunkLine(byte: number): void {
    switch (this.#state) {
      case 'size':
        return this.#readSize(byte)
      case 'blank':
        if (byte === SEMICOLON) this.#state = 'extension'
        else if (++this.#counted > EXTENSION_BYTES_MAX || !isBlank(byte)) this.#fault('bad-chunk')
        return
      case 'extension':
        // Extensions mean nothing to us; within a quoted one there may be anything but control characters.
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
      // The end of the line before is the first half of the empty line that ends a section.
      this.#held.push(CRLF)
    }
    const text = this.#section(TRAILER_BYTES_MAX, 'trailers-too-large')
    if (text === null) return
    const trailers: string[] = []
    if (readTrailers(text, trailers) !== null) return this.#fault('bad-trailers')
    this.#finish(trailers)
  }

  /** The lines up to an empty one, once they are all there. */
  #section(bytesMax: number, tooLarge: ResponseFault): string | null {
    const before = this.#held.length
    if (before === 0) {
      // Nearly always all of it has come at once. What lies behind the end of what was read is of an earlier read.
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
    // What can be nothing good is not waited for.
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

/** What nginx and HAProxy take is 4 to 16 KiB; some apps set more cookies than that. */
export const HEAD_BYTES_MAX = 64 * 1024
export const TRAILER_BYTES_MAX = 16 * 1024
/** One 100 and a few hints are usual; an app that keeps on sending them never answers. */
export const INTERIM_MAX = 32
/** Nobody sends extensions; the rest of one is nothing worth waiting for. */
export const EXTENSION_BYTES_MAX = 256
/** 256 TiB, and still an exact number. */
export const SIZE_DIGITS_MAX = 12

/** A larger chunk is handed over where it is. */
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
const NOTHING_ASKED: Asked = { method: 'GET', acceptsTrailers: false }
