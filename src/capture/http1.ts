import { ByteQueue } from '../wire/byte-queue.ts'
import type { RequestHead } from '../wire/request-head.ts'

export type Http1State =
  | 'reading'
  /** Bytes are missing where they mattered: reading goes on at the next chunk that begins with a request line. */
  | 'lost'
  /** What follows is not HTTP/1, or not any more: `rest()` has it. */
  | 'opaque'

/**
 * Reads the requests out of the client's direction of an HTTP/1 connection, in whatever pieces it arrives. CONNECT
 * and Upgrade need no case of their own: whether the connection still speaks HTTP/1 shows at the next byte.
 *
 * The sink gets a request when its message has ended, body and all, with the capture's frame in which it did: that
 * is the frame tshark shows it in. One that never ends is given when that is known.
 */
export class Http1Requests {
  #state: Http1State = 'reading'
  /** Between calls, never more than the line being read: bodies pass by uncopied. */
  readonly #queue = new ByteQueue()
  /** How many bytes at the front of the queue are known to hold no line end. */
  #scanned = 0
  /** Bytes of a body or chunk to pass over before the next line. */
  #bodyLeft = 0
  #next: Line = 'request-line'
  /** How long the head, or the trailer section, is so far. */
  #sectionBytes = 0
  #head: OpenHead = { method: '', target: '', version: '11', rawHeaders: [] }
  /** Whether `#head` is whole, and only its message is not. */
  #headRead = false
  /** The capture's frame that brought the last byte read. */
  #frame = 0
  readonly #sink: (head: RequestHead, frame: number) => void

  constructor(sink: (head: RequestHead, frame: number) => void) {
    this.#sink = sink
  }

  /** Of requests that are not all there yet. */
  get heldBytes(): number {
    return this.#queue.heldBytes + this.#sectionBytes
  }

  /** `frame` is the number of the capture's frame that brought these bytes. */
  push(bytes: Uint8Array, frame: number): Http1State {
    if (this.#state === 'opaque') return 'opaque'
    if (this.#state === 'lost' && looksLikeRequest(bytes) !== 'yes') return 'lost'
    this.#state = 'reading'
    this.#queue.push(bytes)
    const view = asBuffer(this.#queue.rest())
    let at = 0
    while (at < view.length && this.#state === 'reading') {
      const reached = this.#bodyLeft > 0 ? this.#passBody(view, at) : this.#readLine(view, at)
      if (reached === at) break
      at = reached
      this.#frame = frame
      this.#reportWhole()
    }
    this.#queue.skip(at)
    this.#queue.keep()
    return this.#state
  }

  /**
   * `length` bytes are missing from the capture here: no harm within a body of known length, elsewhere the reader
   * is lost. Says whether it kept its place.
   */
  skip(length: number): boolean {
    if (this.#state !== 'reading') return false
    if (length > this.#bodyLeft) return this.#lose()
    this.#bodyLeft -= length
    this.#reportWhole()
    return true
  }

  /** The connection is over: a request whose body is not all there is given now. */
  end(): void {
    this.#report()
  }

  /** Once opaque: all bytes not read, from the first line that is not HTTP/1. */
  rest(): Uint8Array {
    return this.#queue.rest()
  }

  #passBody(view: Buffer, at: number): number {
    const length = Math.min(this.#bodyLeft, view.length - at)
    this.#bodyLeft -= length
    return at + length
  }

  /** Returns where the next line begins, or `at` when this one is not all there or not HTTP/1. */
  #readLine(view: Buffer, at: number): number {
    const lineFeed = view.indexOf(LF, at + this.#scanned)
    const end = lineFeed === -1 ? view.length : lineFeed + 1
    const sectionBytes = this.#sectionBytes + end - at
    if (sectionBytes > HEAD_BYTES_MAX) return this.#giveUp(at)
    if (lineFeed === -1) {
      this.#scanned = view.length - at
      return this.#next === 'request-line' && !mayBeRequest(view, at) ? this.#giveUp(at) : at
    }
    this.#scanned = 0
    if (!this.#takeLine(textOf(view, at, lineFeed))) return this.#giveUp(at)
    this.#sectionBytes = this.#next === 'header' || this.#next === 'trailer' ? sectionBytes : 0
    return end
  }

  /** `false`: this is not HTTP/1. */
  #takeLine(line: string): boolean {
    switch (this.#next) {
      case 'request-line':
        return line === '' || this.#begin(parseRequestLine(line)) // RFC 9112 §2.2: empty lines go before it
      case 'header':
        return line === '' ? this.#finish() : this.#header(line)
      case 'chunk-size':
        return this.#chunk(chunkSize(line))
      case 'chunk-end':
        this.#next = 'chunk-size'
        return line === ''
      case 'trailer':
        if (line === '') this.#next = 'request-line'
        return true
    }
  }

  #begin(head: OpenHead | null): boolean {
    if (head === null) return false
    this.#head = head
    this.#next = 'header'
    return true
  }

  #header(line: string): boolean {
    const raw = this.#head.rawHeaders
    if (isBlank(line.charCodeAt(0))) {
      // RFC 9112 §5.2, obs-fold: the line goes on with the value before it.
      if (raw.length > 0) raw.push(`${raw.pop()} ${trimmed(line, 0)}`)
      return true
    }
    const colon = line.indexOf(':')
    if (colon < 1) return true // no header: the ones around it still tell who sent them
    if (raw.length === 2 * HEADERS_MAX) return false
    raw.push(line.slice(0, colon), trimmed(line, colon + 1))
    return true
  }

  #finish(): boolean {
    this.#headRead = true
    const body = bodyOf(this.#head)
    this.#next = body === 'chunked' ? 'chunk-size' : 'request-line'
    if (body === 'unreadable') this.#state = 'opaque'
    else if (body !== 'chunked') this.#bodyLeft = body
    return true
  }

  #chunk(size: number): boolean {
    this.#bodyLeft = size
    this.#next = size === 0 ? 'trailer' : 'chunk-end'
    return Number.isSafeInteger(size)
  }

  #reportWhole(): void {
    if (this.#next === 'request-line' && this.#bodyLeft === 0) this.#report()
  }

  #report(): void {
    if (this.#headRead) this.#sink(this.#head, this.#frame)
    this.#headRead = false
  }

  #lose(): false {
    this.#report()
    this.#state = 'lost'
    this.#queue.clear()
    this.#scanned = 0
    this.#bodyLeft = 0
    this.#next = 'request-line'
    this.#sectionBytes = 0
    return false
  }

  #giveUp(at: number): number {
    this.#report()
    this.#state = 'opaque'
    return at
  }
}

/**
 * Whether a stream that begins with these bytes is HTTP/1. `yes` and, for other text protocols, `no` come with the
 * end of the first line; most binary ones are refused at their first byte.
 */
export function looksLikeRequest(bytes: Uint8Array): 'yes' | 'no' | 'maybe' {
  const view = asBuffer(bytes)
  let at = 0
  while (view[at] === LF || (view[at] === CR && view[at + 1] === LF)) at++
  if (!mayBeRequest(view, at)) return 'no'

  const limit = at + REQUEST_LINE_BYTES_MAX
  const lineFeed = view.subarray(0, limit).indexOf(LF, at)
  if (lineFeed === -1) return view.length < limit ? 'maybe' : 'no'
  return parseRequestLine(textOf(view, at, lineFeed)) === null ? 'no' : 'yes'
}

/** What the next line is. */
type Line = 'request-line' | 'header' | 'chunk-size' | 'chunk-end' | 'trailer'

/** A head still being read. */
interface OpenHead extends RequestHead {
  readonly rawHeaders: string[]
}

/** Whether a request line, or an empty line before one, may begin like this. Looks at a few bytes only. */
function mayBeRequest(view: Buffer, at: number): boolean {
  return REQUEST_START.test(view.toString('latin1', at, at + METHOD_BYTES_MAX + 1))
}

function parseRequestLine(line: string): OpenHead | null {
  const parts = REQUEST_LINE.exec(line)
  if (parts === null) return null
  return { method: parts[1]!, target: parts[2]!, version: parts[3] === '0' ? '10' : '11', rawHeaders: [] }
}

/** RFC 9112 §6.3. */
function bodyOf(head: RequestHead): number | 'chunked' | 'unreadable' {
  if (head.method === 'CONNECT') return 0 // RFC 9110 §9.3.6: what follows is the tunnel's
  const codings = valuesOf(head, 'transfer-encoding')
  if (codings.length > 0) return codings.at(-1)!.toLowerCase() === 'chunked' ? 'chunked' : 'unreadable'

  const lengths = valuesOf(head, 'content-length')
  if (lengths.length === 0) return 0
  const length = DIGITS.test(lengths[0]!) ? Number(lengths[0]) : Number.NaN
  const agreed = Number.isSafeInteger(length) && lengths.every((value) => value === lengths[0])
  return agreed ? length : 'unreadable'
}

/** The members of a header that is a comma-separated list, over all its lines. */
function valuesOf(head: RequestHead, lowerCaseName: string): string[] {
  const values: string[] = []
  for (let i = 0; i < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i]!
    if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue
    for (const value of head.rawHeaders[i + 1]!.split(',')) values.push(trimmed(value, 0))
  }
  return values
}

/** RFC 9112 §7.1; extensions are passed over. `NaN` when it is none. */
function chunkSize(line: string): number {
  const size = CHUNK_SIZE.exec(line)
  return size === null ? Number.NaN : Number.parseInt(size[1]!, 16)
}

/** The line that ends at `lineFeed`; RFC 9112 §2.2 lets a bare LF end it. */
function textOf(view: Buffer, at: number, lineFeed: number): string {
  const end = lineFeed > at && view[lineFeed - 1] === CR ? lineFeed - 1 : lineFeed
  return view.toString('latin1', at, end)
}

/** From `start` on, without the blanks around it (OWS, RFC 9110 §5.6.3): `trim()` would take latin1's 0xa0 too. */
function trimmed(text: string, start: number): string {
  let end = text.length
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

const LF = 0x0a
const CR = 0x0d

/** Servers refuse heads beyond 8 to 64 KiB; what is longer is not worth the memory. */
export const HEAD_BYTES_MAX = 256 * 1024
/** Servers refuse more than 100 to 1000. */
export const HEADERS_MAX = 2000
/** How far a stream of unknown protocol is searched for the end of its first line. */
export const REQUEST_LINE_BYTES_MAX = 64 * 1024
/** The longest registered method has 17 bytes. It bounds what is looked at before the first space. */
const METHOD_BYTES_MAX = 64

/** RFC 9110 §5.6.2: the characters of a token. */
const TOKEN_CHARACTER = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]"
const METHOD = `${TOKEN_CHARACTER}{1,${METHOD_BYTES_MAX}}`
const REQUEST_START = new RegExp(`^(?:\\r?$|\\r?\\n|${METHOD}(?: |$))`)
const REQUEST_LINE = new RegExp(`^(${METHOD}) (.+) HTTP/1\\.([01])$`, 's')
const CHUNK_SIZE = /^([0-9a-f]{1,16})[ \t]*(?:;|$)/i
const DIGITS = /^[0-9]+$/
