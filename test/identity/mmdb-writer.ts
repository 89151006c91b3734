import { parseAddressRange } from '../../src/wire/address-ranges.ts'

export type MmdbGiven =
  | string
  | number
  | bigint
  | boolean
  | readonly MmdbGiven[]
  | { readonly [key: string]: MmdbGiven }

export interface MmdbOptions {
  readonly type?: string
  readonly recordBits?: 24 | 28 | 32
  readonly ipVersion?: 4 | 6
  readonly builtAtS?: number
  /** What goes into the metadata instead. */
  readonly metadata?: Readonly<Record<string, MmdbGiven>>
}

/** A MaxMind DB of these ranges, none in another: for tests, without the data of others. */
export function mmdbOf(
  entries: readonly (readonly [range: string, value: MmdbGiven | Buffer])[],
  options: MmdbOptions = {},
): Buffer {
  const {
    type = 'Test-ASN',
    recordBits = 24,
    ipVersion = 6,
    builtAtS = 1_795_000_000,
    metadata = {},
  } = options
  const tree: TreeNode[] = [[null, null]]
  const pieces: Buffer[] = []
  const places = new Map<string, number>()
  let length = 0
  for (const [range, value] of entries) {
    const bytes = Buffer.isBuffer(value) ? value : encodeValue(value)
    const key = bytes.toString('hex')
    const at = places.get(key) ?? length
    if (!places.has(key)) {
      places.set(key, at)
      pieces.push(bytes)
      length += bytes.length
    }
    insert(tree, bitsOf(range, ipVersion), at)
  }
  const records = tree.map((node) =>
    node.map((next) => (next === null ? tree.length : next.isNode ? next.at : tree.length + 16 + next.at)),
  )
  return Buffer.concat([
    ...records.map(([left, right]) => encodeNode(left!, right!, recordBits)),
    Buffer.alloc(16),
    ...pieces,
    Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'),
    encodeValue({
      node_count: tree.length,
      record_size: recordBits,
      ip_version: ipVersion,
      database_type: type,
      languages: ['en'],
      binary_format_major_version: 2,
      binary_format_minor_version: 0,
      build_epoch: BigInt(builtAtS),
      description: { en: 'made by a test' },
      ...metadata,
    }),
  ])
}

/** A value as the format has it; what stands in a Buffer by itself is up to who gives it. */
export function encodeValue(value: MmdbGiven): Buffer {
  switch (typeof value) {
    case 'string':
      return Buffer.concat([control(2, Buffer.byteLength(value)), Buffer.from(value)])
    case 'number':
      return sized(6, value.toString(16))
    case 'bigint':
      return sized(9, value.toString(16))
    case 'boolean':
      return control(14, value ? 1 : 0)
    default:
      break
  }
  if (Array.isArray(value)) return Buffer.concat([control(11, value.length), ...value.map(encodeValue)])
  const members = Object.entries(value)
  return Buffer.concat([
    control(7, members.length),
    ...members.flatMap(([key, each]) => [encodeValue(key), encodeValue(each)]),
  ])
}

/** To a place in the section. */
export function pointerTo(at: number): Buffer {
  const bytes = Buffer.alloc(5)
  bytes[0] = (1 << 5) | (3 << 3)
  bytes.writeUInt32BE(at, 1)
  return bytes
}

export function control(type: number, size: number): Buffer {
  const [low, more] =
    size < 29
      ? [size, []]
      : size < 285
        ? [29, [size - 29]]
        : size < 65_821
          ? [30, [(size - 285) >> 8, (size - 285) & 255]]
          : [31, [(size - 65_821) >> 16, ((size - 65_821) >> 8) & 255, (size - 65_821) & 255]]
  return Buffer.from(type < 8 ? [(type << 5) | low, ...more] : [low, type - 7, ...more])
}

type TreeNode = [Next, Next]
type Next = { readonly isNode: boolean; readonly at: number } | null

function sized(type: number, hex: string): Buffer {
  const bytes =
    hex === '0' ? Buffer.alloc(0) : Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([control(type, bytes.length), bytes])
}

function bitsOf(range: string, ipVersion: 4 | 6): readonly (0 | 1)[] {
  const { first, length, isIpv4 } = parseAddressRange(range)!
  const bits = [...first].flatMap((word) =>
    [...word.toString(2).padStart(32, '0')].map((bit) => (bit === '1' ? 1 : 0)),
  )
  if (!isIpv4) return bits.slice(0, length)
  // In a tree of both, those of IPv4 are behind 96 zeros.
  const own = bits.slice(96, 96 + length)
  return ipVersion === 4 ? own : [...new Array<0>(96).fill(0), ...own]
}

function insert(tree: TreeNode[], bits: readonly (0 | 1)[], at: number): void {
  let node = 0
  for (const bit of bits.slice(0, -1)) {
    const next = tree[node]![bit]
    if (next !== null) node = next.at
    else {
      tree[node]![bit] = { isNode: true, at: tree.length }
      node = tree.length
      tree.push([null, null])
    }
  }
  tree[node]![bits.at(-1)!] = { isNode: false, at }
}

function encodeNode(left: number, right: number, recordBits: 24 | 28 | 32): Buffer {
  const bytes = Buffer.alloc(recordBits / 4)
  if (recordBits === 32) {
    bytes.writeUInt32BE(left, 0)
    bytes.writeUInt32BE(right, 4)
  } else {
    bytes.writeUIntBE(left & 0xff_ffff, 0, 3)
    bytes.writeUIntBE(right & 0xff_ffff, bytes.length - 3, 3)
    if (recordBits === 28) bytes[3] = ((left >>> 24) << 4) | (right >>> 24)
  }
  return bytes
}
