/**
 * A set of address ranges: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.1`. An IPv6 range never contains an IPv4
 * address, however wide it is, unless it is written in the mapped form (`::ffff:10.0.0.0/104`). A lookup
 * takes time logarithmic in the number of ranges.
 */
export class AddressRanges {
  /** First and last address of each range, one word each. Sorted and merged: no two ranges overlap. */
  readonly #ipv4: Uint32Array
  /** The same for IPv6, four words an address. */
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
    if (family === 4) return touches(this.#ipv4, words, words, IPV4_AT)
    return family === 6 && touches(this.#ipv6, words, words, IPV6_AT)
  }

  /** Whether the set contains any address of the range. */
  touches({ isIpv4, first, last }: AddressRange): boolean {
    return isIpv4 ? touches(this.#ipv4, first, last, IPV4_AT) : touches(this.#ipv6, first, last, IPV6_AT)
  }
}

export interface AddressRange {
  readonly isIpv4: boolean
  /** The prefix length in bits, counted as in its family: 0 to 32 or 0 to 128. */
  readonly length: number
  /** The address as written, which may differ from `first`. */
  readonly written: Words
  readonly first: Words
  readonly last: Words
}

/** Four words of 32 bits. An IPv4 address uses the last word. */
type Words = Uint32Array

/** An address that is reused: parsing the next text overwrites it, so that a request allocates nothing. */
export class Address {
  readonly words: Words = new Uint32Array(4)
  /** 0: the last text was not an address. */
  family: 0 | 4 | 6 = 0

  read(text: string): void {
    const word = ipv4Word(text, 0)
    if (word !== NO_ADDRESS) this.words[3] = word
    const isRead = word !== NO_ADDRESS || readIpv6(text, this.words)
    this.family = !isRead ? 0 : word !== NO_ADDRESS || isMapped(this.words) ? 4 : 6
  }
}

/** `null` if the text is not a range. */
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
  // If the range is wider than the mapped prefix (96 bits), it is an IPv6 range.
  const isIpv4 = read.family === 4 && bits >= 96
  const [first, last] = [masked(words, bits, 0), masked(words, bits, 0xffff_ffff)]
  return { isIpv4, length: isIpv4 ? bits - 96 : bits, written: words, first, last }
}

/**
 * A text that sorts as the address does, so that an index finds the addresses of a network: the family and the
 * address in hex. An IPv4-mapped address has the key of its IPv4 address. `null`: the text is not an address.
 */
export function addressKey(text: string): string | null {
  const address = new Address()
  address.read(text)
  return address.family === 0 ? null : keyOf(address.words, address.family === 4)
}

/** The keys of the first and the last address of the range. */
export function rangeKeys({ isIpv4, first, last }: AddressRange): readonly [first: string, last: string] {
  return [keyOf(first, isIpv4), keyOf(last, isIpv4)]
}

function keyOf(words: Words, isIpv4: boolean): string {
  return isIpv4 ? `4${hexOf(words[3]!)}` : `6${Array.from(words, hexOf).join('')}`
}

function hexOf(word: number): string {
  return word.toString(16).padStart(8, '0')
}

/** The words with all bits from `bits` on replaced by those of `fill`. */
function masked(words: Words, bits: number, fill: number): Words {
  const result = new Uint32Array(4)
  for (let i = 0; i < 4; i++) {
    const kept = Math.min(Math.max(bits - i * 32, 0), 32)
    const mask = kept === 0 ? 0 : -1 << (32 - kept)
    result[i] = (words[i]! & mask) | (fill & ~mask)
  }
  return result
}

/** `from`: index of the first word used, 3 for IPv4 and 0 for IPv6. The same in the functions below. */
function merged(ranges: readonly AddressRange[], from: number): Uint32Array {
  const compare = (a: Words, b: Words) => compareAt(a, from, b, from)
  const sorted = ranges.toSorted((a, b) => compare(a.first, b.first))
  const kept: { readonly first: Words; last: Words }[] = []
  for (const { first, last } of sorted) {
    const before = kept.at(-1)
    if (before === undefined || compare(before.last, first) < 0) kept.push({ first, last })
    else if (compare(before.last, last) < 0) before.last = last
  }
  const size = 4 - from
  const table = new Uint32Array(kept.length * 2 * size)
  for (const [i, { first, last }] of kept.entries()) {
    table.set(first.subarray(from), i * 2 * size)
    table.set(last.subarray(from), (i * 2 + 1) * size)
  }
  return table
}

function touches(table: Uint32Array, first: Words, last: Words, from: number): boolean {
  const size = 4 - from
  let low = 0
  let high = table.length / (2 * size) - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    const at = middle * 2 * size
    if (compareAt(table, at, last, from) > 0) high = middle - 1
    else if (compareAt(table, at + size, first, from) < 0) low = middle + 1
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

/**
 * The four decimal numbers from `from` to the end, as one word. Leading zeros are rejected because some
 * parsers read them as octal.
 */
function ipv4Word(text: string, from: number): number {
  let word = 0
  let number = -1
  let dots = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      if (number === -1 || dots === 3) return NO_ADDRESS
      word = word * 256 + number
      number = -1
      dots++
      continue
    }
    const digit = code - ZERO
    if (digit < 0 || digit > 9 || number === 0) return NO_ADDRESS
    number = number === -1 ? digit : number * 10 + digit
    if (number > 255) return NO_ADDRESS
  }
  return number === -1 || dots !== 3 ? NO_ADDRESS : word * 256 + number
}

/** RFC 4291 §2.2, without a zone. */
function readIpv6(text: string, words: Words): boolean {
  words.fill(0)
  let count = 0
  let gap = text.startsWith('::') ? 0 : -1
  let at = gap === 0 ? 2 : 0
  while (at < text.length) {
    let end = at
    let number = 0
    for (let digit = 0; end < text.length; end++) {
      digit = digitOf(text.charCodeAt(end))
      if (digit === NO_DIGIT) break
      number = number * 16 + digit
    }
    if (text.charCodeAt(end) === DOT) {
      const word = ipv4Word(text, at)
      if (count > 6 || word === NO_ADDRESS) return false
      setGroup(words, count++, word >>> 16)
      setGroup(words, count++, word & 0xffff)
      break
    }
    if (count === 8 || end === at || end - at > 4) return false
    setGroup(words, count++, number)
    if (end === text.length) break
    if (text.charCodeAt(end) !== COLON || end + 1 === text.length) return false
    at = end + 1
    if (text.charCodeAt(at) !== COLON) continue
    if (gap !== -1) return false
    gap = count
    at++
  }
  if (gap === -1) return count === 8
  if (count === 8) return false
  widen(words, gap, count)
  return true
}

/** Moves the groups behind `::` to the end and fills the gap with zeros. */
function widen(words: Words, gap: number, count: number): void {
  for (let from = count - 1, to = 7; from >= gap; from--, to--) {
    setGroup(words, to, (words[from >> 1]! >>> (from & 1 ? 0 : 16)) & 0xffff)
    setGroup(words, from, 0)
  }
}

/** Sets one of the eight groups of an IPv6 address. */
function setGroup(words: Words, group: number, value: number): void {
  const word = words[group >> 1]!
  words[group >> 1] = group & 1 ? (word & 0xffff_0000) | value : (word & 0xffff) | (value << 16)
}

function digitOf(code: number): number {
  if (code >= ZERO && code <= ZERO + 9) return code - ZERO
  const letter = code | 0x20
  return letter >= LOWER_A && letter <= LOWER_A + 5 ? letter - LOWER_A + 10 : NO_DIGIT
}

const IPV4_AT = 3
const IPV6_AT = 0
const RANGE = /^([0-9a-fA-F:.]+)(?:\/(0|[1-9]\d{0,2}))?$/
const ZERO = 0x30
const DOT = 0x2e
const COLON = 0x3a
const LOWER_A = 0x61
const NO_DIGIT = -1
const NO_ADDRESS = -1
