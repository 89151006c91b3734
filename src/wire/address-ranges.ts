/**
 * A set of address ranges: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.1`. A range of IPv6 never holds an IPv4 address,
 * however wide it is, unless it is written in the mapped form (`::ffff:10.0.0.0/104`). Made once, asked often: in time
 * logarithmic in the number of ranges.
 */
export class AddressRanges {
  /** Start and end, sorted, none touching another: one word each. */
  readonly #ipv4: Uint32Array
  /** The same, four words each. */
  readonly #ipv6: Uint32Array

  constructor(ranges: readonly AddressRange[]) {
    const isIpv4 = (range: AddressRange) => range.isIpv4
    this.#ipv4 = merged(ranges.filter(isIpv4), IPV4_AT)
    this.#ipv6 = merged(
      ranges.filter((range) => !isIpv4(range)),
      IPV6_AT,
    )
  }

  has({ words, family }: Address): boolean {
    if (family === 4) return isWithin(this.#ipv4, words, IPV4_AT)
    return family === 6 && isWithin(this.#ipv6, words, IPV6_AT)
  }
}

/** The first and the last address. */
export interface AddressRange {
  readonly isIpv4: boolean
  readonly first: Words
  readonly last: Words
}

/** Four words of 32 bits; an IPv4 address is the last one. */
type Words = Uint32Array

/** An address that can be read anew, over and over: no request makes one of its own. */
export class Address {
  readonly words: Words = new Uint32Array(4)
  /** 0: what was read last is no address. */
  family: 0 | 4 | 6 = 0

  read(text: string): void {
    this.family = readIpv4(text, 0, text.length, this.words) ? 4 : 0
    if (this.family === 4 || !readIpv6(text, this.words)) return
    this.family = isMapped(this.words) ? 4 : 6
  }
}

/** `null` for what is no range. */
export function parseAddressRange(text: string): AddressRange | null {
  const [, address, length] = RANGE.exec(text) ?? []
  if (address === undefined) return null
  const read = new Address()
  read.read(address)
  if (read.family === 0) return null
  const { words } = read
  const isDotted = !address.includes(':')
  const bits = length === undefined ? 128 : Number(length) + (isDotted ? 96 : 0)
  if (bits > 128) return null
  // Wider than the prefix of the mapped form, it is a range of IPv6 after all.
  const isIpv4 = read.family === 4 && bits >= 96
  return { isIpv4, first: masked(words, bits, 0), last: masked(words, bits, 0xffff_ffff) }
}

/** The words with all bits from `bits` on set to those of `fill`. */
function masked(words: Words, bits: number, fill: number): Words {
  return words.map((word, index) => {
    const kept = Math.min(Math.max(bits - index * 32, 0), 32)
    const mask = kept === 0 ? 0 : (-1 << (32 - kept)) >>> 0
    return ((word & mask) | (fill & ~mask)) >>> 0
  })
}

/** `from`: where in the words these addresses begin, here and below. */
function merged(ranges: readonly AddressRange[], from: number): Uint32Array {
  const compare = (a: Words, b: Words) => compareAt(a, from, b, from)
  const sorted = ranges.toSorted((a, b) => compare(a.first, b.first))
  const kept: { readonly first: Words; last: Words }[] = []
  for (const { first, last } of sorted) {
    const before = kept.at(-1)
    if (before === undefined || compare(before.last, first) < 0) kept.push({ first, last })
    else if (compare(before.last, last) < 0) before.last = last
  }
  return Uint32Array.from(kept.flatMap(({ first, last }) => [...first.slice(from), ...last.slice(from)]))
}

function isWithin(table: Uint32Array, words: Words, from: number): boolean {
  const size = 4 - from
  let low = 0
  let high = table.length / (2 * size) - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    const at = middle * 2 * size
    if (compareAt(table, at, words, from) > 0) high = middle - 1
    else if (compareAt(table, at + size, words, from) < 0) low = middle + 1
    else return true
  }
  return false
}

function compareAt(table: Uint32Array, at: number, words: Words, from: number): number {
  for (let i = 0; from + i < 4; i++) {
    const difference = table[at + i]! - words[from + i]!
    if (difference !== 0) return difference
  }
  return 0
}

function isMapped(words: Words): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0xffff
}

/** Four decimal numbers without leading zeros, which some take for octal. */
function readIpv4(text: string, from: number, to: number, words: Words): boolean {
  let word = 0
  let number = -1
  let dots = 0
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      if (number === -1 || dots === 3) return false
      word = word * 256 + number
      number = -1
      dots++
      continue
    }
    const digit = code - ZERO
    if (digit < 0 || digit > 9 || number === 0) return false
    number = number === -1 ? digit : number * 10 + digit
    if (number > 255) return false
  }
  if (number === -1 || dots !== 3) return false
  words[3] = word * 256 + number
  return true
}

/** RFC 4291 §2.2, without a zone. */
function readIpv6(text: string, words: Words): boolean {
  GROUPS.fill(0)
  let count = 0
  let gap = text.startsWith('::') ? 0 : -1
  let at = gap === 0 ? 2 : 0
  while (at < text.length) {
    const end = endOfGroup(text, at)
    if (text.charCodeAt(end) === DOT) {
      if (count > 6 || !readIpv4(text, at, text.length, words)) return false
      GROUPS[count++] = words[3]! >>> 16
      GROUPS[count++] = words[3]! & 0xffff
      break
    }
    if (count === 8 || end === at || end - at > 4) return false
    GROUPS[count++] = hexNumber(text, at, end)
    if (end === text.length) break
    if (text.charCodeAt(end) !== COLON || end + 1 === text.length) return false
    at = end + 1
    if (text.charCodeAt(at) !== COLON) continue
    if (gap !== -1) return false
    gap = count
    at++
  }
  if (gap === -1 ? count !== 8 : count === 8) return false
  if (gap !== -1) widen(gap, count)
  for (let i = 0; i < 4; i++) words[i] = GROUPS[2 * i]! * 0x1_0000 + GROUPS[2 * i + 1]!
  return true
}

/** The groups behind `::` move to the end; what it stands for is zero. */
function widen(gap: number, count: number): void {
  const tailAt = 8 - (count - gap)
  GROUPS.copyWithin(tailAt, gap, count)
  GROUPS.fill(0, gap, tailAt)
}

function endOfGroup(text: string, from: number): number {
  let at = from
  while (at < text.length && digitOf(text.charCodeAt(at)) !== NO_DIGIT) at++
  return at
}

function hexNumber(text: string, from: number, to: number): number {
  let number = 0
  for (let at = from; at < to; at++) number = number * 16 + digitOf(text.charCodeAt(at))
  return number
}

function digitOf(code: number): number {
  if (code >= ZERO && code <= ZERO + 9) return code - ZERO
  const letter = code | 0x20
  return letter >= LOWER_A && letter <= LOWER_A + 5 ? letter - LOWER_A + 10 : NO_DIGIT
}

const IPV4_AT = 3
const IPV6_AT = 0
const RANGE = /^([0-9a-fA-F:.]+)(?:\/(0|[1-9]\d{0,2}))?$/
/** What is being read of an IPv6 address. */
const GROUPS = new Uint16Array(8)
const ZERO = 0x30
const DOT = 0x2e
const COLON = 0x3a
const LOWER_A = 0x61
const NO_DIGIT = -1
