import { INDEXED, LITERAL_WITH_INDEXING, readInteger, SIZE_UPDATE } from '../wire/field-block.ts'
import { Reader } from '../wire/reader.ts'

/**
 * HPACK, RFC 7541: decodes the header blocks of one direction of an HTTP/2 connection, in order.
 *
 * The limit of the dynamic table comes from SETTINGS_HEADER_TABLE_SIZE of the other direction. The decoder
 * does not need it: an encoder announces every size it uses (§4.2), and any size up to TABLE_BYTES_MAX is
 * accepted.
 */
export class HpackDecoder {
  readonly #table = new DynamicTable()
  #failed = false

  get heldBytes(): number {
    return this.#table.bytes
  }

  /**
   * Name, value, name, value …, one UTF-16 unit per byte. `null` on a compression error or if the list
   * exceeds a limit. After that it always returns `null`, because the table no longer matches the encoder's.
   */
  decode(block: Uint8Array): string[] | null {
    if (this.#failed) return null
    const list = this.#read(new Reader(block))
    this.#failed = list === null
    return list
  }

  #read(r: Reader): string[] | null {
    const list: string[] = []
    let listBytes = 0
    while (r.left > 0) {
      const first = r.u8()
      if (isSizeUpdate(first)) {
        if (list.length > 0 || !this.#table.resize(readInteger(r, first, 5))) return null // §4.2: only at its start
        continue
      }
      const field = first >= INDEXED ? this.#field(readInteger(r, first, 7)) : this.#literal(r, first)
      if (field === null || !r.ok) return null
      listBytes += sizeOf(field)
      if (listBytes > LIST_BYTES_MAX || list.length === 2 * FIELDS_MAX) return null
      list.push(field.name, field.value)
    }
    return r.ok ? list : null
  }

  /** §6.2. The three kinds differ in whether the field enters the table. */
  #literal(r: Reader, first: number): Field | null {
    const indexing = first >= LITERAL_WITH_INDEXING
    const index = readInteger(r, first, indexing ? 6 : 4)
    const name = index === 0 ? readString(r) : (this.#field(index)?.name ?? null)
    const value = readString(r)
    if (name === null || value === null) return null
    const field = { name, value }
    if (indexing) this.#table.add(field)
    return field
  }

  /** §2.3.3: one index space, the static table first. */
  #field(index: number): Field | null {
    return STATIC_TABLE[index - 1] ?? this.#table.at(index - STATIC_TABLE.length - 1)
  }
}

interface Field {
  readonly name: string
  readonly value: string
}

/** §2.3.2 and §4. */
class DynamicTable {
  /** Oldest first. */
  readonly #fields: Field[] = []
  #bytes = 0
  #bytesMax = TABLE_BYTES_DEFAULT

  get bytes(): number {
    return this.#bytes
  }

  /** Index 0 is the newest field. */
  at(index: number): Field | null {
    return this.#fields[this.#fields.length - 1 - index] ?? null
  }

  /** §4.4: a field larger than the table empties it, which is not an error. */
  add(field: Field): void {
    const bytes = sizeOf(field)
    this.#evictTo(this.#bytesMax - bytes)
    if (bytes > this.#bytesMax) return
    this.#fields.push(field)
    this.#bytes += bytes
  }

  resize(bytesMax: number): boolean {
    if (bytesMax > TABLE_BYTES_MAX) return false
    this.#bytesMax = bytesMax
    this.#evictTo(bytesMax)
    return true
  }

  #evictTo(bytes: number): void {
    while (this.#bytes > bytes && this.#fields.length > 0) this.#bytes -= sizeOf(this.#fields.shift()!)
  }
}

/** §4.1. */
function sizeOf(field: Field): number {
  return field.name.length + field.value.length + 32
}

function isSizeUpdate(first: number): boolean {
  return first >= SIZE_UPDATE && first < LITERAL_WITH_INDEXING
}

/** §5.2. */
function readString(r: Reader): string | null {
  const first = r.u8()
  const bytes = r.take(readInteger(r, first, 7))
  return first >= HUFFMAN_CODED ? huffman(bytes) : asBuffer(bytes).toString('latin1')
}

/** Appendix B, decoded four bits at a time. */
function huffman(bytes: Uint8Array): string | null {
  const text = Buffer.allocUnsafe(Math.floor((bytes.length * 8) / SHORTEST_CODE_BITS))
  let length = 0
  let node = ROOT
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!
    const high = STEPS[node * 16 + (byte >> 4)]!
    if (high & SYMBOL) text[length++] = high >> 8
    const low = STEPS[(high & NODE) * 16 + (byte & 0x0f)]!
    if (low & SYMBOL) text[length++] = low >> 8
    if ((high | low) & END_OF_STRING) return null
    node = low & NODE
  }
  return PADDING_NODES.has(node) ? text.toString('latin1', 0, length) : null
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * The code as a binary tree. A node has two children; each is an inner node or the complement of a symbol.
 */
function codeTree(): Int16Array {
  const tree = new Int16Array(2 * INNER_NODES)
  let nodes = 1
  let code = 0
  for (let bits = SHORTEST_CODE_BITS; bits <= LONGEST_CODE_BITS; bits++, code *= 2) {
    for (let symbol = 0; symbol < CODE_BITS.length; symbol++) {
      if (CODE_BITS[symbol] !== bits) continue
      let node = ROOT
      for (let bit = bits - 1; bit > 0; bit--) {
        const child = 2 * node + ((code >> bit) & 1)
        if (tree[child] === 0) tree[child] = nodes++
        node = tree[child]!
      }
      tree[2 * node + (code & 1)] = ~symbol
      code++
    }
  }
  return tree
}

/**
 * For each inner node and four bits: the node reached and the symbol completed. At most one symbol, because
 * every code has at least five bits.
 */
function stepTable(tree: Int16Array): Uint32Array {
  const steps = new Uint32Array(INNER_NODES * 16)
  for (let i = 0; i < steps.length; i++) {
    let node = i >> 4
    let completed = 0
    for (let bit = 3; bit >= 0; bit--) {
      const child = tree[2 * node + ((i >> bit) & 1)]!
      node = child < 0 ? ROOT : child
      if (child < 0) completed = ~child === EOS ? END_OF_STRING : SYMBOL | (~child << 8)
    }
    steps[i] = node | completed
  }
  return steps
}

/** §5.2: a string ends between symbols, or with at most seven bits of padding, all ones. */
function paddingNodes(tree: Int16Array): Set<number> {
  const nodes = new Set([ROOT])
  for (let node = ROOT; nodes.size < 8; nodes.add(node)) node = tree[2 * node + 1]!
  return nodes
}

/** RFC 9113 §6.5.2: the size until a size update changes it. */
const TABLE_BYTES_DEFAULT = 4096
/** Servers offer 4 KiB, seldom more than 64 KiB. */
export const TABLE_BYTES_MAX = 64 * 1024
/** The same limit as for HTTP/1. Counts 32 extra bytes per field, like SETTINGS_MAX_HEADER_LIST_SIZE. */
export const LIST_BYTES_MAX = 256 * 1024
export const FIELDS_MAX = 2000

/** A bit in the first byte of a string, §5.2. */
const HUFFMAN_CODED = 0x80

/** Appendix A. */
// biome-ignore format: a table
const STATIC_TABLE: readonly Field[] = [
  [':authority', ''], [':method', 'GET'], [':method', 'POST'], [':path', '/'], [':path', '/index.html'],
  [':scheme', 'http'], [':scheme', 'https'], [':status', '200'], [':status', '204'], [':status', '206'],
  [':status', '304'], [':status', '400'], [':status', '404'], [':status', '500'], ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'], ['accept-language', ''], ['accept-ranges', ''], ['accept', ''],
  ['access-control-allow-origin', ''], ['age', ''], ['allow', ''], ['authorization', ''], ['cache-control', ''],
  ['content-disposition', ''], ['content-encoding', ''], ['content-language', ''], ['content-length', ''],
  ['content-location', ''], ['content-range', ''], ['content-type', ''], ['cookie', ''], ['date', ''], ['etag', ''],
  ['expect', ''], ['expires', ''], ['from', ''], ['host', ''], ['if-match', ''], ['if-modified-since', ''],
  ['if-none-match', ''], ['if-range', ''], ['if-unmodified-since', ''], ['last-modified', ''], ['link', ''],
  ['location', ''], ['max-forwards', ''], ['proxy-authenticate', ''], ['proxy-authorization', ''], ['range', ''],
  ['referer', ''], ['refresh', ''], ['retry-after', ''], ['server', ''], ['set-cookie', ''],
  ['strict-transport-security', ''], ['transfer-encoding', ''], ['user-agent', ''], ['vary', ''], ['via', ''],
  ['www-authenticate', ''],
].map(([name, value]) => ({ name: name!, value: value! }))

/** Appendix B: the code length of each symbol. The code is canonical, so the lengths determine the bits. */
// biome-ignore format: 16 to a row
const CODE_BITS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
]
const EOS = 256
const SHORTEST_CODE_BITS = 5
const LONGEST_CODE_BITS = 30

/** A binary tree with 257 leaves has 256 inner nodes. */
const INNER_NODES = 256
const ROOT = 0
// A step: the node it leads to, in the second byte the symbol it completes, and a flag for a completed
// symbol.
const NODE = 0xff
const SYMBOL = 1 << 16
const END_OF_STRING = 1 << 17
const CODE_TREE = codeTree()
const STEPS = stepTable(CODE_TREE)
const PADDING_NODES = paddingNodes(CODE_TREE)
