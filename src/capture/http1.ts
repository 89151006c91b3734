import { ByteQueue } from '../wire/byte-queue.ts'
import type { RequestHead } from '../wire/request-head.ts'

export type Http1State =
  | 'reading'
  /**
   * Bytes are missing that the reader needed. It resumes at the next chunk that begins with a request line.
   */
  | 'lost'
  /** What follows is not HTTP/1, or no longer. `rest()` returns it. */
  | 'opaque'

/**
 * Reads the requests from the client's direction of an HTTP/1 connection, in pieces of any size. CONNECT and
 * Upgrade need no special case: the next byte shows whether the connection still speaks HTTP/1.
 *
 * The sink gets a request at the end of its message, including the body, with the number of the frame that
 * ended it, in which tshark shows it too. A request that never ends is reported at the end.
 */
export class Http1Requests {
  #state: Http1State = 'reading'
  /** Between calls it holds at most the current line. Bodies are skipped without a copy. */
  readonly #queue = new ByteQueue()
  /** The number of bytes at the front of the queue known to contain no line end. */
  #scanned = 0
  /** Remaining bytes of a body or chunk to skip. */
  #bodyLeft = 0
  #next: Line = 'request-line'
  /** Bytes of the head or trailer section so far. */
  #sectionBytes = 0
  #head: OpenHead = { method: '', target: '', version: '11', rawHeaders: [] }
  /** Whether `#head` is complete but its message is not. */
  #headRead = false
  /** The frame that brought the last byte read. */
  #frame = 0
  readonly #sink: (head: RequestHead, frame: number) => void

  constructor(sink: (head: RequestHead, frame: number) => void) {
    this.#sink = sink
  }

  /** The memory of incomplete requests. */
  get heldBytes(): number {
    return this.#queue.heldBytes + this.#sectionBytes
  }

  /** `frame` is the number of the frame that brought these bytes. */
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
   * `length` bytes are missing from the capture here. Inside a body of known length this is harmless;
   * elsewhere the reader is lost. Returns whether it kept its place.
   */
  skip(length: number): boolean {
    if (this.#state !== 'reading') return false
    if (length > this.#bodyLeft) return this.#lose()
    this.#bodyLeft -= length
    this.#reportWhole()
    return true
  }

  /** Ends the connection: reports a request whose body is incomplete. */
  end(): void {
    this.#report()
  }

  /** In state `opaque`: all unread bytes, from the first line that is not HTTP/1. */
  rest(): Uint8Array {
    return this.#queue.rest()
  }

  #passBody(view: Buffer, at: number): number {
    const length = Math.min(this.#bodyLeft, view.length - at)
    this.#bodyLeft -= length
    return at + length
  }

  /** Returns where the next line begins, or `at` if this line is incomplete or not HTTP/1. */
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

  /** Returns `false` if this is not HTTP/1. */
  #takeLine(line: string): boolean {
    switch (this.#next) {
      case 'request-line':
        return line === '' || this.#begin(parseRequestLine(line)) // RFC 9112 §2.2: empty lines may precede it
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
      // RFC 9112 §5.2, obs-fold: the line continues the previous value.
      if (raw.length > 0) raw.push(`${raw.pop()} ${trimmed(line, 0)}`)
      return true
    }
    const colon = line.indexOf(':')
    if (colon < 1) return true // not a header; the other headers still identify the client
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
 * Whether a stream that begins with these bytes is HTTP/1. The answer `yes`, and `no` for other text
 * protocols, needs the whole first line. Most binary protocols get `no` at their first byte.
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

/** What the next line should be. */
type Line = 'request-line' | 'header' | 'chunk-size' | 'chunk-end' | 'trailer'

/** A head that is still incomplete. */
interface OpenHead extends RequestHead {
  readonly rawHeaders: string[]
}

/** Whether a request line, or an empty line before one, may begin like this. Checks only a few bytes. */
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
  if (head.method === 'CONNECT') return 0 // RFC 9110 §9.3.6: the tunnel follows
  const codings = valuesOf(head, 'transfer-encoding')
  if (codings.length > 0) return codings.at(-1)!.toLowerCase() === 'chunked' ? 'chunked' : 'unreadable'

  const lengths = valuesOf(head, 'content-length')
  if (lengths.length === 0) return 0
  const length = DIGITS.test(lengths[0]!) ? Number(lengths[0]) : Number.NaN
  const agreed = Number.isSafeInteger(length) && lengths.every((value) => value === lengths[0])
  return agreed ? length : 'unreadable'
}

/** The members of a comma-separated header, over all its lines. */
function valuesOf(head: RequestHead, lowerCaseName: string): string[] {
  const values: string[] = []
  for (let i = 0; i < head.rawHeaders.length; i += 2) {
    const name = head.rawHeaders[i]!
    if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue
    for (const value of head.rawHeaders[i + 1]!.split(',')) values.push(trimmed(value, 0))
  }
  return values
}

/** RFC 9112 §7.1, extensions ignored. `NaN` if the line is not a chunk size. */
function chunkSize(line: string): number {
  const size = CHUNK_SIZE.exec(line)
  return size === null ? Number.NaN : Number.parseInt(size[1]!, 16)
}

/** The line that ends at `lineFeed`. RFC 9112 §2.2 allows a bare LF as line end. */
function textOf(view: Buffer, at: number, lineFeed: number): string {
  const end = lineFeed > at && view[lineFeed - 1] === CR ? lineFeed - 1 : lineFeed
  return view.toString('latin1', at, end)
}

/**
 * The text from `start` on without surrounding blanks (OWS, RFC 9110 §5.6.3). `trim()` would also remove
 * 0xa0.
 */
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

/** Servers reject heads larger than 8 to 64 KiB. Longer ones are not worth the memory. */
export const HEAD_BYTES_MAX = 256 * 1024
/** Servers reject more than 100 to 1000. */
export const HEADERS_MAX = 2000
/** How far a stream of unknown protocol is searched for the end of its first line. */
export const REQUEST_LINE_BYTES_MAX = 64 * 1024
/** The longest registered method has 17 bytes. Limits the search for the first space. */
const METHOD_BYTES_MAX = 64

/** RFC 9110 §5.6.2: the characters of a token. */
const TOKEN_CHARACTER = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]"
const METHOD = `${TOKEN_CHARACTER}{1,${METHOD_BYTES_MAX}}`
const REQUEST_START = new RegExp(`^(?:\\r?$|\\r?\\n|${METHOD}(?: |$))`)
const REQUEST_LINE = new RegExp(`^(${METHOD}) (.+) HTTP/1\\.([01])$`, 's')
const CHUNK_SIZE = /^([0-9a-f]{1,16})[ \t]*(?:;|$)/i
const DIGITS = /^[0-9]+$/
