import { INDEXED, LITERAL_WITH_INDEXING, SIZE_UPDATE } from '../field-block.ts'
import { ownText } from '../own-text.ts'
import { DynamicTable, fieldBytes, TABLE_BYTES_DEFAULT } from './dynamic-table.ts'
import { writeHuffman } from './huffman.ts'
import { HpackScratch } from './scratch.ts'
import { STATIC_INDEXES, STATIC_MAX, STATIC_NAMES, STATIC_VALUES } from './static-table.ts'

/** HPACK, RFC 7541: encodes the header blocks of one direction of an HTTP/2 connection, in order. */
export class HpackEncoder {
  readonly #table = new DynamicTable()
  /** Whether a field of the table was sent again, by its number modulo TABLE_FIELDS_MAX, which no two of them share. */
  readonly #isRepeated = new Bits(TABLE_FIELDS_MAX)
  /** The number after the last field found. A response mostly repeats the fields of an earlier one in their order. */
  #expected = 0
  /** Holds the block, from the free bytes before it to `#at`. */
  readonly #scratch: HpackScratch
  #at = 0
  /** The smallest size that `allow` set since the last block, and whether the next block announces sizes. */
  #smallest = TABLE_BYTES_DEFAULT
  #isResized = false

  constructor(scratch: HpackScratch = new HpackScratch()) {
    this.#scratch = scratch
  }

  get heldBytes(): number {
    return this.#table.bytes
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

  /**
   * Begins a block, before which are `room` free bytes for the header of a frame. No other encoder with the same
   * scratch may begin one before `end`.
   */
  begin(room: number): void {
    this.#scratch.trim()
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
    const index = STATUS_INDEXES.get(code)
    if (index === undefined) return this.field(':status', String(code))
    this.#ensure(0)
    this.#scratch.bytes[this.#at++] = INDEXED | index
  }

  /** `name` is in lower case. Each character is a byte. */
  field(name: string, value: string): void {
    this.#ensure(name.length + value.length)
    const table = this.#table
    const next = table.added - 1 - this.#expected
    if (next >= 0 && next < table.length && table.valueAt(next) === value && table.nameAt(next) === name)
      return this.#found(next)
    const known = KNOWN_NAMES.get(name)
    if (known === undefined) return this.#search(0, name, value)
    const { index, kind } = known
    for (let i = index; i > 0 && STATIC_NAMES[i] === name; i++)
      if (STATIC_VALUES[i] === value) return this.#integer(INDEXED, 0x7f, i)
    const isShortCookie = index === COOKIE_INDEX && value.length < SHORT_COOKIE
    if (isShortCookie) return this.#literal(NEVER_INDEXED, index, name, value)
    if (kind !== LITERAL_WITH_INDEXING) return this.#literal(kind, index, name, value)
    this.#search(index, name, value)
  }

  /** A field whose sender wants its value in no table, on any hop (§7.1.3). */
  neverIndexed(name: string, value: string): void {
    this.#ensure(name.length + value.length)
    this.#literal(NEVER_INDEXED, KNOWN_NAMES.get(name)?.index ?? 0, name, value)
  }

  /** All bytes from the front, the free ones included. Valid until the next `begin` with this scratch. */
  end(): Uint8Array {
    return this.#scratch.bytes.subarray(0, this.#at)
  }

  /** `named` is the index of the name in the static table, or 0. Adds the field if it may come again. */
  #search(named: number, name: string, value: string): void {
    const table = this.#table
    let unrepeatedBytes = 0
    for (let index = 0; index < table.length; index++) {
      if (table.nameAt(index) !== name) continue
      const earlier = table.valueAt(index)
      if (earlier === value) return this.#found(index)
      if (named === 0) named = STATIC_MAX + 1 + index
      if (!this.#isRepeated.has((table.added - 1 - index) & FIELD_NUMBER_MASK))
        unrepeatedBytes += fieldBytes(name, earlier)
    }
    const bytes = fieldBytes(name, value)
    const isUnlikely = unrepeatedBytes > 0 && unrepeatedBytes + bytes > UNREPEATED_BYTES_MAX
    if (isUnlikely || bytes > table.bytesMax * FIELD_SHARE_MAX)
      return this.#literal(NOT_INDEXED, named, name, value)
    this.#literal(LITERAL_WITH_INDEXING, named, name, value)
    this.#isRepeated.delete(table.added & FIELD_NUMBER_MASK)
    table.add(this.#nameOf(named) ?? ownText(name), ownText(value))
    this.#expected = table.added
  }

  /** The name at an index of both tables, null at 0. */
  #nameOf(index: number): string | null {
    if (index <= STATIC_MAX) return index === 0 ? null : STATIC_NAMES[index]!
    return this.#table.nameAt(index - STATIC_MAX - 1)
  }

  #found(index: number): void {
    const number = this.#table.added - 1 - index
    this.#isRepeated.add(number & FIELD_NUMBER_MASK)
    this.#expected = number + 1
    this.#integer(INDEXED, 0x7f, STATIC_MAX + 1 + index)
  }

  /** §6.2. */
  #literal(kind: number, named: number, name: string, value: string): void {
    this.#integer(kind, kind === LITERAL_WITH_INDEXING ? 0x3f : 0x0f, named)
    if (named === 0) this.#string(name)
    this.#string(value)
  }

  /** §5.2. In Huffman code where that is shorter. */
  #string(text: string): void {
    const out = this.#scratch.bytes
    const at = this.#at
    // Written behind a length of one byte, which is nearly always enough.
    const end = writeHuffman(text, out, at + 1)
    const bytes = end - at - 1
    if (bytes < text.length) {
      if (bytes >= 0x7f) out.copyWithin(at + lengthBytes(bytes), at + 1, end)
      this.#integer(HUFFMAN_CODED, 0x7f, bytes)
      this.#at += bytes
      return
    }
    this.#integer(0, 0x7f, text.length)
    for (let i = 0; i < text.length; i++) out[this.#at++] = text.charCodeAt(i)
  }

  /** §5.1. */
  #integer(kind: number, prefixMax: number, value: number): void {
    const out = this.#scratch.bytes
    if (value < prefixMax) {
      out[this.#at++] = kind | value
      return
    }
    out[this.#at++] = kind | prefixMax
    let left = value - prefixMax
    for (; left > 0x7f; left >>>= 7) out[this.#at++] = 0x80 | (left & 0x7f)
    out[this.#at++] = left
  }

  /** Room for a field with so many characters, or for `length` bytes and the size updates. */
  #ensure(length: number): void {
    this.#scratch.ensure(this.#at + length + INTEGERS_BYTES_MAX, this.#at)
  }
}

/** A set of small numbers. V8 keeps so few bytes within the array object. */
class Bits {
  readonly #bytes: Uint8Array

  constructor(count: number) {
    this.#bytes = new Uint8Array(count >> 3)
  }

  has(number: number): boolean {
    return (this.#bytes[number >> 3]! & (1 << (number & 7))) !== 0
  }

  add(number: number): void {
    this.#bytes[number >> 3]! |= 1 << (number & 7)
  }

  delete(number: number): void {
    this.#bytes[number >> 3]! &= ~(1 << (number & 7))
  }
}

/** The bytes of the length `value` of a string, at least 0x7f (§5.1). */
function lengthBytes(value: number): number {
  let bytes = 2
  for (let left = value - 0x7f; left > 0x7f; left >>>= 7) bytes++
  return bytes
}

interface KnownName {
  /** In the static table, or 0. */
  readonly index: number
  /** How its literals are written. */
  readonly kind: number
}

function knownNames(): ReadonlyMap<string, KnownName> {
  const names = new Map<string, KnownName>()
  const add = (name: string, kind: number) => names.set(name, { index: STATIC_INDEXES.get(name) ?? 0, kind })
  for (const name of STATIC_INDEXES.keys()) add(name, LITERAL_WITH_INDEXING)
  for (const name of UNREPEATED) add(name, NOT_INDEXED)
  for (const name of SECRETS) add(name, NEVER_INDEXED)
  return names
}

// The first byte of a field (RFC 7541 §6.2).
const NOT_INDEXED = 0x00
const NEVER_INDEXED = 0x10

/** A bit in the first byte of a string, §5.2. */
const HUFFMAN_CODED = 0x80

/** §7.1.3: no one on the way may write them in another way. */
const SECRETS: readonly string[] = [
  ...['set-cookie', 'authorization', 'proxy-authorization', 'www-authenticate', 'proxy-authenticate'],
  ...['authentication-info', 'proxy-authentication-info'],
  ...['x-api-key', 'x-auth-token', 'x-csrf-token', 'x-xsrf-token'],
]
/** §7.1.3: a short cookie could be guessed. */
const SHORT_COOKIE = 20
const COOKIE_INDEX = STATIC_INDEXES.get('cookie')!

/** Their values differ from one resource to the next. */
const UNREPEATED: readonly string[] = [
  ...['etag', 'content-length', 'content-range', 'content-location', 'content-disposition', 'last-modified'],
  ...['location', 'age', 'if-none-match', 'if-modified-since', ':path'],
]

const KNOWN_NAMES: ReadonlyMap<string, KnownName> = knownNames()
const STATUS_INDEXES: ReadonlyMap<number, number> = new Map(
  STATIC_NAMES.flatMap((name, index) => (name === ':status' ? [[Number(STATIC_VALUES[index]), index]] : [])),
)

/** A field larger than this share of the table would evict too many others. */
const FIELD_SHARE_MAX = 0.75
/** Fields of one name that were not sent again take no more of the table than this, or are one. */
const UNREPEATED_BYTES_MAX = 512

/** A field takes at least 32 bytes of the table (§4.1). */
const TABLE_FIELDS_MAX = TABLE_BYTES_DEFAULT / 32
const FIELD_NUMBER_MASK = TABLE_FIELDS_MAX - 1

/** A kind and two lengths. */
const INTEGERS_BYTES_MAX = 18
