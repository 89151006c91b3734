import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Fault } from '../../shared/fault.ts'
import type { AddressRange } from '../../wire/address-ranges.ts'
import { Reader } from '../../wire/reader.ts'

/** The value types that callers need; values of other types are `null`. */
export type MmdbValue =
  | string
  | number
  | boolean
  | null
  | readonly MmdbValue[]
  | ReadonlyMap<string, MmdbValue>

/**
 * A MaxMind DB file (MaxMind DB File Format Specification 2.0) in memory: networks and a record for each. A
 * lookup never throws and its time is bounded by the limits below, whatever the file contains.
 */
export class Mmdb {
  /** The database type from the metadata: `GeoLite2-ASN`. */
  readonly type: string
  readonly builtAtS: number
  readonly #bytes: Buffer
  readonly #nodeCount: number
  readonly #recordBits: number
  readonly #dataAt: number
  /** The node at which the search for an IPv4 address starts. `null`: the tree holds IPv4 addresses only. */
  readonly #ipv4Node: number | null

  /** Throws a Fault if the bytes are not a MaxMind DB file, or if the file is truncated. */
  constructor(bytes: Buffer) {
    const markAt = bytes.lastIndexOf(MARK)
    if (markAt === -1 || bytes.length - markAt > METADATA_BYTES_MAX)
      throw invalid('it is not a MaxMind DB, or was cut short')
    const metadataAt = markAt + MARK.length
    const metadata = new Decoder(bytes.subarray(metadataAt)).decode(0)
    const number = (name: string) => {
      const value = metadata instanceof Map ? metadata.get(name) : null
      return typeof value === 'number' ? value : Number.NaN
    }
    const type = metadata instanceof Map ? metadata.get('database_type') : null
    const [version, ipVersion] = [number('binary_format_major_version'), number('ip_version')]
    if (version !== 2) throw invalid('it is of another format version than 2')
    this.#nodeCount = number('node_count')
    this.#recordBits = number('record_size')
    if (![24, 28, 32].includes(this.#recordBits) || ![4, 6].includes(ipVersion) || !(this.#nodeCount > 0))
      throw invalid('what it says of itself is not of the format')
    const treeBytes = (this.#nodeCount * this.#recordBits) / 4
    if (!Number.isSafeInteger(treeBytes) || treeBytes + GAP_BYTES > markAt)
      throw invalid('it is shorter than it says: it was cut short')
    this.#bytes = bytes.subarray(0, markAt)
    this.#dataAt = treeBytes + GAP_BYTES
    this.type = typeof type === 'string' ? type : ''
    this.builtAtS = number('build_epoch') || 0
    this.#ipv4Node = ipVersion === 4 ? null : this.#walk(0, ZEROS, 96)
  }

  /** The record of an address; `null`: it has no record. */
  find(address: string): MmdbValue {
    const family = isIP(address)
    if (family === 0 || (family === 6 && this.#ipv4Node === null)) return null
    const bits = ipaddr.parse(address).toByteArray()
    const from = family === 4 ? (this.#ipv4Node ?? 0) : 0
    return this.#valueOf(this.#walk(from, bits, bits.length * 8))
  }

  /** The place of the record that all addresses of a range have. `null`: they have none, or not all the same. */
  placeOf({ isIpv4, first, length }: AddressRange): number | null {
    if (!isIpv4 && this.#ipv4Node === null) return null
    const [from, words] = isIpv4 ? [this.#ipv4Node ?? 0, first.subarray(3)] : [0, first]
    let node = from
    for (let at = 0; at < length && node < this.#nodeCount; at++)
      node = this.#next(node, (words[at >> 5]! >>> (31 - (at & 31))) & 1)
    return node > this.#nodeCount ? node : null
  }

  /** The record in a place. */
  at(place: number): MmdbValue {
    return this.#valueOf(place)
  }

  /** All ranges that have a record, in order, as keys of addresses (see `addressKey`). */
  *ranges(): Generator<MmdbRange, void, undefined> {
    yield* this.#rangesIn(this.#ipv4Node ?? 0, true)
    // The IPv4 addresses stand in the tree of IPv6, also under other names.
    if (this.#ipv4Node !== null) yield* this.#rangesIn(0, false)
  }

  *#rangesIn(root: number, isIpv4: boolean): Generator<MmdbRange, void, undefined> {
    const bits = isIpv4 ? 32 : 128
    const words = new Uint32Array(isIpv4 ? 1 : 4)
    const stack: [node: number, depth: number, bit: 0 | 1][] = [[root, 0, 0]]
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [node, depth, bit] = next
      if (depth > 0) setBit(words, depth - 1, bit)
      if (node < this.#nodeCount && depth < bits && (isIpv4 || node !== this.#ipv4Node)) {
        // The left child last: the stack visits it first.
        stack.push([this.#next(node, 1), depth + 1, 1], [this.#next(node, 0), depth + 1, 0])
        yield NO_RECORD
      } else if (node > this.#nodeCount)
        yield { place: node, first: keyAt(words, depth, 0), last: keyAt(words, depth, 0xffff_ffff) }
    }
  }

  /** Records of the first networks in the tree. They show what kind of file it is. */
  sample(countMax: number): readonly MmdbValue[] {
    const values: MmdbValue[] = []
    const nodes = [0]
    for (let seen = 0; nodes.length > 0 && values.length < countMax && seen < SAMPLED_NODES_MAX; seen++) {
      const node = nodes.pop()!
      // Push the left child last: the stack visits it first.
      for (const next of [this.#next(node, 1), this.#next(node, 0)])
        if (next < this.#nodeCount) nodes.push(next)
        else if (next > this.#nodeCount && values.length < countMax) values.push(this.#valueOf(next))
    }
    return values
  }

  /** The node, or the record in its place, after `count` bits. */
  #walk(from: number, bits: ArrayLike<number>, count: number): number {
    let node = from
    for (let at = 0; at < count && node < this.#nodeCount; at++)
      node = this.#next(node, (bits[at >> 3]! >> (7 - (at & 7))) & 1)
    return node
  }

  #next(node: number, bit: number): number {
    const bytes = this.#bytes
    const at = (node * this.#recordBits) / 4
    switch (this.#recordBits) {
      case 24:
        return bytes.readUIntBE(at + bit * 3, 3)
      case 28: {
        const middle = bytes[at + 3]!
        return bytes.readUIntBE(at + bit * 4, 3) + (bit === 0 ? middle >> 4 : middle & 15) * 0x100_0000
      }
      default:
        return bytes.readUInt32BE(at + bit * 4)
    }
  }

  #valueOf(node: number): MmdbValue {
    if (node <= this.#nodeCount) return null
    const at = node - this.#nodeCount - GAP_BYTES
    return at < 0 ? null : new Decoder(this.#bytes.subarray(this.#dataAt)).decode(at)
  }
}

/** `place` 0: a step without a record, so that a walk can pause. */
export interface MmdbRange {
  readonly place: number
  readonly first: string
  readonly last: string
}

/** Sets a bit, and clears those behind it in its word. */
function setBit(words: Uint32Array, at: number, bit: 0 | 1): void {
  const mask = (0xffff_ffff << (31 - (at & 31))) >>> 0
  const own = (1 << (31 - (at & 31))) >>> 0
  words[at >> 5] = ((words[at >> 5]! & mask & ~own) | (bit === 1 ? own : 0)) >>> 0
}

/** The key of the first or the last address of a network of this length. */
function keyAt(words: Uint32Array, length: number, fill: number): string {
  let key = words.length === 1 ? '4' : '6'
  for (let at = 0; at < words.length; at++) {
    const kept = Math.min(Math.max(length - at * 32, 0), 32)
    const mask = kept === 0 ? 0 : -1 << (32 - kept)
    key += (((words[at]! & mask) | (fill & ~mask)) >>> 0).toString(16).padStart(8, '0')
  }
  return key
}

/** Reads one value of a section. If any part is malformed, the whole value is `null`. */
class Decoder {
  readonly #section: Uint8Array
  #left = VALUES_MAX
  #textLeft = TEXT_BYTES_MAX
  #ok = true

  constructor(section: Uint8Array) {
    this.#section = section
  }

  decode(at: number): MmdbValue {
    const value = this.#value(new Reader(this.#section, at), 0, false)
    return this.#ok ? value : null
  }

  #value(reader: Reader, depth: number, isPointedTo: boolean): MmdbValue {
    if (--this.#left < 0 || depth > DEPTH_MAX || reader.left === 0) return this.#fail()
    const control = reader.u8()
    const type = control >> 5 === 0 ? reader.u8() + 7 : control >> 5
    // "A pointer must not point to another pointer": this rules out cycles.
    if (type === POINTER && !isPointedTo) return this.#pointed(reader, control, depth)
    const size = sizeIn(reader, control)
    if (!reader.ok) return this.#fail()
    switch (type) {
      case TEXT:
        this.#textLeft -= size
        return this.#textLeft < 0 ? this.#fail() : this.#taken(reader, size).toString('utf8')
      case UINT16:
      case UINT32:
      case UINT64:
        return size > 8 ? this.#fail() : numberIn(this.#taken(reader, size))
      case DOUBLE:
      case FLOAT:
      case BYTES:
      case INT32:
      case UINT128:
        this.#taken(reader, size)
        return null
      case BOOLEAN:
        return size !== 0
      case MAP:
        return this.#map(reader, size, depth)
      case ARRAY:
        return this.#array(reader, size, depth)
      default:
        return this.#fail()
    }
  }

  #pointed(reader: Reader, control: number, depth: number): MmdbValue {
    const bytes = (control >> 3) & 3
    const high = bytes === 3 ? 0 : control & 7
    const low = numberIn(this.#taken(reader, bytes + 1))
    const at = high * 2 ** (8 * (bytes + 1)) + low + POINTER_FROM[bytes]!
    if (!reader.ok || at >= this.#section.length) return this.#fail()
    return this.#value(new Reader(this.#section, at), depth + 1, true)
  }

  #map(reader: Reader, size: number, depth: number): MmdbValue {
    const map = new Map<string, MmdbValue>()
    for (let i = 0; i < size && this.#ok; i++) {
      const key = this.#value(reader, depth + 1, false)
      if (typeof key !== 'string') return this.#fail()
      map.set(key, this.#value(reader, depth + 1, false))
    }
    return map
  }

  #array(reader: Reader, size: number, depth: number): MmdbValue {
    const values: MmdbValue[] = []
    for (let i = 0; i < size && this.#ok; i++) values.push(this.#value(reader, depth + 1, false))
    return values
  }

  #taken(reader: Reader, size: number): Buffer {
    const { buffer, byteOffset, byteLength } = reader.take(size)
    if (!reader.ok) this.#fail()
    return Buffer.from(buffer, byteOffset, byteLength)
  }

  #fail(): null {
    this.#ok = false
    return null
  }
}

/** Size of a value: bytes for a text, pairs for a map. */
function sizeIn(reader: Reader, control: number): number {
  const size = control & 31
  if (size < 29) return size
  if (size === 29) return 29 + reader.u8()
  if (size === 30) return 285 + reader.u16()
  return 65_821 + reader.u24()
}

function numberIn(bytes: Buffer): number {
  let number = 0
  for (const byte of bytes) number = number * 256 + byte
  return number
}

function invalid(why: string): Fault {
  return new Fault('MMDB_INVALID', why)
}

const MARK = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
/** Limit from the specification. */
const METADATA_BYTES_MAX = 131_072
/** Number of zero bytes between the tree and the data. */
const GAP_BYTES = 16
const [POINTER, TEXT, DOUBLE, BYTES, UINT16, UINT32, MAP] = [1, 2, 3, 4, 5, 6, 7]
const [INT32, UINT64, UINT128, ARRAY, BOOLEAN, FLOAT] = [8, 9, 10, 11, 14, 15]
const POINTER_FROM = [0, 2_048, 526_336, 0]
const ZEROS = new Uint8Array(12)
/**
 * A network record has a handful of values. A malicious file could use pointers to build a record with
 * billions.
 */
const VALUES_MAX = 2_000
/**
 * For all texts of a value together: pointers could repeat one text of 16 MB a thousand times. The metadata
 * has some kilobytes.
 */
const TEXT_BYTES_MAX = 131_072
const DEPTH_MAX = 16
const NO_RECORD: MmdbRange = { place: 0, first: '', last: '' }
const SAMPLED_NODES_MAX = 10_000
