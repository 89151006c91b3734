/** Numbers that look random and are the same for the same seed (xorshift32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1
  }

  below(limit: number): number {
    this.#state ^= this.#state << 13
    this.#state ^= this.#state >>> 17
    this.#state ^= this.#state << 5
    return (this.#state >>> 0) % limit
  }

  of<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }
}

/** `bytes` with one to eight changes; some of them bring in parts of another input. */
export function mutate(bytes: Buffer, others: readonly Buffer[], random: Random): Buffer {
  let changed: Buffer = Buffer.from(bytes)
  for (let left = 1 << random.below(4); left > 0; left--) {
    changed = random.of(CHANGES)(changed, random, others)
  }
  return changed.subarray(0, BYTES_MAX)
}

type Change = (bytes: Buffer, random: Random, others: readonly Buffer[]) => Buffer

const flipBit: Change = (bytes, random) => {
  if (bytes.length > 0) bytes[random.below(bytes.length)]! ^= 1 << random.below(8)
  return bytes
}

const setByte: Change = (bytes, random) => {
  if (bytes.length > 0)
    bytes[random.below(bytes.length)] = random.below(2) ? random.below(256) : random.of(EDGES)
  return bytes
}

/** A number of 1 to 3 bytes, as lengths are, becomes a little more or less. */
const addToNumber: Change = (bytes, random) => {
  const width = 1 + random.below(3)
  if (bytes.length < width) return bytes
  const at = random.below(bytes.length - width + 1)
  const limit = 2 ** (8 * width)
  const sum = bytes.readUIntBE(at, width) + random.below(33) - 16
  bytes.writeUIntBE((sum + limit) % limit, at, width)
  return bytes
}

const cut: Change = (bytes, random) => {
  const [at, length] = range(bytes, random)
  return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
}

const double: Change = (bytes, random) => {
  const [at, length] = range(bytes, random)
  return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)])
}

const insert: Change = (bytes, random) => {
  const at = random.below(bytes.length + 1)
  const fill = Buffer.from(Array.from({ length: 1 + random.below(8) }, () => random.below(256)))
  return Buffer.concat([bytes.subarray(0, at), fill, bytes.subarray(at)])
}

/** A part of another input, over this one or put in between. */
const splice: Change = (bytes, random, others) => {
  const other = random.of(others)
  const [from, length] = range(other, random)
  const at = random.below(bytes.length + 1)
  const rest = random.below(2) ? at : at + length
  return Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + length), bytes.subarray(rest)])
}

const CHANGES: readonly Change[] = [
  flipBit,
  setByte,
  setByte,
  addToNumber,
  addToNumber,
  cut,
  double,
  insert,
  splice,
]

/** Where something begins and how long it is: mostly short. */
function range(bytes: Buffer, random: Random): [at: number, length: number] {
  const at = random.below(bytes.length + 1)
  const longest = Math.min(bytes.length - at, 1 << random.below(12))
  return [at, random.below(longest + 1)]
}

const EDGES = [0x00, 0x01, 0x03, 0x0a, 0x0d, 0x16, 0x20, 0x7f, 0x80, 0xff]
/** The longest hello and a little more. */
const BYTES_MAX = 70_000
