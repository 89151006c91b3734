import { INDEXED, LITERAL_WITH_INDEXING, SIZE_UPDATE } from '../field-block.ts'
import { DynamicTable, fieldBytes, TABLE_BYTES_DEFAULT } from './dynamic-table.ts'
import { huffmanBytes, writeHuffman } from './huffman.ts'
import { STATIC_INDEXES, STATIC_MAX, STATIC_NAMES, STATIC_VALUES } from './static-table.ts'

/** HPACK, RFC 7541: encodes the header blocks of one direction of an HTTP/2 connection, in order. */
export class HpackEncoder {
  readonly #table = new DynamicTable()
  #out: Buffer = Buffer.allocUnsafeSlow(OUT_BYTES_MIN)
  #at = 0
  /** The smallest size that `allow` set since the last block, and whether the next block announces sizes. */
  #smallest = TABLE_BYTES_DEFAULT
  #isResized = false

  get heldBytes(): number {
    return this.#table.bytes + this.#out.length
  }

  /**
   * What SETTINGS_HEADER_TABLE_SIZE of the peer allows. The table is never larger than 4096 bytes. The next block
   * begins with the size updates of §4.2.
   */
  allow(tableBytes: number): void {
    const bytes = Math.min(tableBytes, TABLE_BYTES_DEFAULT)
    if (bytes === this.#table.bytesMax) return
    this.#smallest = this.#isResized ? Math.min(this.#smallest, bytes) : bytes
    this.#isResized = true
    this.#table.resize(bytes)
  }

  /** Begins a block. Its buffer has `room` free bytes before the block, for the header of a frame. */
  begin(room: number): void {
    if (this.#out.length > OUT_BYTES_KEPT_MAX) this.#out = Buffer.allocUnsafeSlow(OUT_BYTES_MIN)
    this.#at = 0
    this.#ensure(room)
    this.#at = room
    if (!this.#isResized) return
    const last = this.#table.bytesMax
    if (this.#smallest < last) this.#integer(SIZE_UPDATE, 0x1f, this.#smallest)
    this.#integer(SIZE_UPDATE, 0x1f, last)
    this.#isResized = false
  }

  /** The first field of a response. */
  status(code: number): void {
    this.field(':status', String(code))
  }

  /** `name` is in lower case. Each character is a byte. */
  field(name: string, value: string): void {
    this.#ensure(name.length + value.length)
    const fixed = STATIC_INDEXES.get(name) ?? 0
    if (isSecret(name, value)) {
      this.#literal(NEVER_INDEXED, 0x0f, fixed === 0 ? this.#indexOf(name) : fixed, name, value)
      return
    }
    for (let index = fixed; index > 0 && STATIC_NAMES[index] === name; index++)
      if (STATIC_VALUES[index] === value) return this.#integer(INDEXED, 0x7f, index)
    let named = fixed
    const table = this.#table
    for (let i = 0; i < table.length; i++) {
      if (table.nameAt(i) !== name) continue
      if (table.valueAt(i) === value) return this.#integer(INDEXED, 0x7f, STATIC_MAX + 1 + i)
      if (named === 0) named = STATIC_MAX + 1 + i
    }
    const fits = fieldBytes(name, value) <= table.bytesMax * 0.75
    if (!fits || UNREPEATED.has(name)) return this.#literal(NOT_INDEXED, 0x0f, named, name, value)
    this.#literal(LITERAL_WITH_INDEXING, 0x3f, named, name, value)
    table.add(copied(name), copied(value))
  }

  /** All bytes from the front, the free ones included. Valid until the next `begin`. */
  end(): Uint8Array {
    return this.#out.subarray(0, this.#at)
  }

  #indexOf(name: string): number {
    for (let i = 0; i < this.#table.length; i++) if (this.#table.nameAt(i) === name) return STATIC_MAX + 1 + i
    return 0
  }

  /** §6.2. */
  #literal(kind: number, prefixMax: number, named: number, name: string, value: string): void {
    this.#integer(kind, prefixMax, named)
    if (named === 0) this.#string(name)
    this.#string(value)
  }

  /** §5.2. */
  #string(text: string): void {
    const bytes = huffmanBytes(text)
    if (bytes < text.length) {
      this.#integer(HUFFMAN_CODED, 0x7f, bytes)
      this.#at = writeHuffman(text, this.#out, this.#at)
      return
    }
    this.#integer(0, 0x7f, text.length)
    for (let i = 0; i < text.length; i++) this.#out[this.#at++] = text.charCodeAt(i)
  }

  /** §5.1. */
  #integer(kind: number, prefixMax: number, value: number): void {
    const out = this.#out
    if (value < prefixMax) {
      out[this.#at++] = kind | value
      return
    }
    out[this.#at++] = kind | prefixMax
    value -= prefixMax
    for (; value > 0x7f; value >>>= 7) out[this.#at++] = 0x80 | (value & 0x7f)
    out[this.#at++] = value
  }

  /** Room for a field with so many characters, or for `length` bytes and the size updates. */
  #ensure(length: number): void {
    const needed = this.#at + length + INTEGERS_BYTES_MAX
    if (needed <= this.#out.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#out.length))
    larger.set(this.#out.subarray(0, this.#at))
    this.#out = larger
  }
}

/** §7.1.3. A short cookie could be guessed. */
function isSecret(name: string, value: string): boolean {
  return SECRETS.has(name) || (name === 'cookie' && value.length < SHORT_COOKIE)
}

/** A part of a longer string keeps all of that in memory. */
function copied(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

const SECRETS: ReadonlySet<string> = new Set([
  ...[
    'set-cookie',
    'authorization',
    'proxy-authorization',
    'authentication-info',
    'proxy-authentication-info',
  ],
  ...['www-authenticate', 'proxy-authenticate', 'x-api-key', 'x-auth-token', 'x-csrf-token', 'x-xsrf-token'],
])
const SHORT_COOKIE = 20

/** Their values differ from response to response. */
const UNREPEATED: ReadonlySet<string> = new Set([
  ...['etag', 'content-length', 'content-range', 'content-location', 'content-disposition', 'last-modified'],
  ...['location', 'age', ':path'],
])

// The first byte of a field (RFC 7541 §6.2).
const NOT_INDEXED = 0x00
const NEVER_INDEXED = 0x10

/** A bit in the first byte of a string, §5.2. */
const HUFFMAN_CODED = 0x80

/** A kind and two lengths. */
const INTEGERS_BYTES_MAX = 18
const OUT_BYTES_MIN = 512
/** What is longer is rare and not kept for the next block. */
const OUT_BYTES_KEPT_MAX = 8 * 1024
