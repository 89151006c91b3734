import { INDEXED, LITERAL_WITH_INDEXING, SIZE_UPDATE } from '../field-block.ts'
import { DynamicTable, fieldBytes } from './dynamic-table.ts'
import { huffmanTextMax, readHuffman } from './huffman.ts'
import { HpackScratch } from './scratch.ts'
import { STATIC_MAX, STATIC_NAMES, STATIC_VALUES } from './static-table.ts'

export type Decoded =
  | 'whole'
  /** The list exceeds a limit and is cut. The table is right, so that decoding can go on. */
  | 'too-large'
  /** A compression error. This state is final. */
  | 'malformed'

export interface HpackLimits {
  /** The largest size that a size update may set, at least 4096: until a size update, the table has that size. */
  readonly tableBytesMax: number
  /** Of one list. Counts 32 extra bytes per field, like SETTINGS_MAX_HEADER_LIST_SIZE. */
  readonly listBytesMax: number
  readonly fieldsMax: number
}

/** HPACK, RFC 7541: decodes the header blocks of one direction of an HTTP/2 connection, in order. */
export class HpackDecoder {
  readonly #table = new DynamicTable()
  readonly #limits: HpackLimits
  readonly #scratch: HpackScratch
  /** Names of the last block whose sender wants their values in no table, on any hop (§7.1.3). `null`: none. */
  neverIndexed: string[] | null = null
  #failed = false
  /** The block being decoded, and the position in it. -1 after an error. */
  #block: Uint8Array = NOTHING
  #at = 0

  /** `scratch` is where Huffman code is decoded to. */
  constructor(limits: HpackLimits = HPACK_LIMITS, scratch: HpackScratch = new HpackScratch()) {
    this.#limits = limits
    this.#scratch = scratch
  }

  get heldBytes(): number {
    return this.#table.bytes
  }

  /**
   * Decodes one whole header block into `list`: name, value, name, value …, one UTF-16 unit per byte. After
   * `malformed` it always returns that, because the table no longer matches the encoder's.
   */
  decode(block: Uint8Array, list: string[]): Decoded {
    if (this.#failed) return 'malformed'
    this.neverIndexed = null
    this.#block = block
    this.#at = 0
    const decoded = this.#read(block, list)
    this.#block = NOTHING
    this.#scratch.trim()
    this.#failed = decoded === 'malformed'
    return decoded
  }

  #read(block: Uint8Array, list: string[]): Decoded {
    const { listBytesMax, fieldsMax } = this.#limits
    const table = this.#table
    let fields = 0
    let listBytes = 0
    while (this.#at < block.length) {
      const first = block[this.#at++]!
      let name: string | null
      let value: string | null
      if (first >= INDEXED) {
        const index = first < 0xff ? first & 0x7f : this.#integer(first, 0x7f)
        const later = index - STATIC_MAX - 1
        if (index === 0 || later >= table.length) return 'malformed'
        name = later < 0 ? STATIC_NAMES[index]! : table.nameAt(later)
        value = later < 0 ? STATIC_VALUES[index]! : table.valueAt(later)
      } else if (first < SIZE_UPDATE || first >= LITERAL_WITH_INDEXING) {
        name = this.#literalName(first)
        value = this.#string()
        if (name === null || value === null) return 'malformed'
        if (first >= LITERAL_WITH_INDEXING) table.add(name, value)
        else if (first >= NEVER_INDEXED) this.#neverIndex(name)
      } else {
        if (fields > 0 || !this.#resize(first)) return 'malformed'
        continue
      }
      fields++
      listBytes += fieldBytes(name, value)
      if (listBytes <= listBytesMax && fields <= fieldsMax) list.push(name, value)
    }
    return listBytes <= listBytesMax && fields <= fieldsMax ? 'whole' : 'too-large'
  }

  #neverIndex(name: string): void {
    this.neverIndexed ??= []
    if (this.neverIndexed.length < this.#limits.fieldsMax) this.neverIndexed.push(name)
  }

  /** §6.2. */
  #literalName(first: number): string | null {
    const index = this.#integer(first, first >= LITERAL_WITH_INDEXING ? 0x3f : 0x0f)
    if (index === 0) return this.#string()
    if (index <= STATIC_MAX) return STATIC_NAMES[index]!
    return index <= STATIC_MAX + this.#table.length ? this.#table.nameAt(index - STATIC_MAX - 1) : null
  }

  #resize(first: number): boolean {
    const bytes = this.#integer(first, 0x1f)
    if (bytes > this.#limits.tableBytesMax) return false
    this.#table.resize(bytes)
    return true
  }

  /** §5.1. Infinity if it is cut short or too long, which is invalid as index, length and size. */
  #integer(first: number, prefixMax: number): number {
    let value = first & prefixMax
    if (value < prefixMax) return value
    for (let shift = 0; shift < INTEGER_BITS_MAX && this.#at < this.#block.length; shift += 7) {
      const byte = this.#block[this.#at++]!
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    return Number.POSITIVE_INFINITY
  }

  /** §5.2. */
  #string(): string | null {
    const block = this.#block
    if (this.#at >= block.length) return null
    const first = block[this.#at++]!
    const length = this.#integer(first, 0x7f)
    const from = this.#at
    if (length > block.length - from) return null
    this.#at = from + length
    if (first < HUFFMAN_CODED) return latin1(block, from, this.#at)
    const textMax = huffmanTextMax(length)
    this.#scratch.ensure(textMax, 0)
    const text = this.#scratch.bytes
    const textLength = readHuffman(block, from, this.#at, text)
    return textLength < 0 ? null : text.toString('latin1', 0, textLength)
  }
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  const buffer = bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return buffer.toString('latin1', from, to)
}

/** Servers offer a table of 4 KiB, seldom more than 64 KiB. The other limits are those of HTTP/1. */
export const HPACK_LIMITS: HpackLimits = {
  tableBytesMax: 64 * 1024,
  listBytesMax: 256 * 1024,
  fieldsMax: 2000,
}

/** Enough for every valid length. */
const INTEGER_BITS_MAX = 28

/** The first byte of a literal that is never indexed, §6.2.3. */
const NEVER_INDEXED = 0x10

/** A bit in the first byte of a string, §5.2. */
const HUFFMAN_CODED = 0x80

const NOTHING: Buffer = Buffer.alloc(0)
