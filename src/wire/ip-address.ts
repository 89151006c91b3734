import { Address, type AddressRange, AddressRanges, parseAddressRange } from './address-ranges.ts'

/**
 * A set of addresses and ranges (`10.0.0.0/8`, `2001:db8::/32`, `192.0.2.1`), for example the proxies whose headers are
 * trusted. An IPv6 range never contains an IPv4 address, unless it is written in the mapped form (`::ffff:10.0.0.0/104`).
 */
export class AddressSet {
  readonly isEmpty: boolean
  readonly #ranges: AddressRanges

  private constructor(ranges: readonly AddressRange[]) {
    this.isEmpty = ranges.length === 0
    this.#ranges = new AddressRanges(ranges)
  }

  /** `null` if an entry is neither an address nor a range. */
  static parse(ranges: readonly string[]): AddressSet | null {
    const parsed: AddressRange[] = []
    for (const text of ranges) {
      const range = parseAddressRange(text)
      if (range === null) return null
      parsed.push(range)
    }
    return new AddressSet(parsed)
  }

  /** False for text that is not an address. */
  has(address: string): boolean {
    return !this.isEmpty && ipFamily(address) !== 0 && this.#ranges.has(READ)
  }
}

/**
 * The family in which the text is written: `::ffff:192.0.2.1` is 6. A zone (`%eth0`) is allowed. 0: not an
 * address.
 */
export function ipFamily(text: string): 0 | 4 | 6 {
  if (text.length > TEXT_LENGTH_MAX) return 0
  if (!text.includes(':')) {
    READ.read(text)
    return READ.family
  }
  const zone = text.indexOf('%')
  READ.read(zone === -1 ? text : text.slice(0, zone))
  if (READ.family === 0 || (zone !== -1 && !ZONE.test(text.slice(zone)))) return 0
  return 6
}

/**
 * The form in which the proxy writes an address: IPv4-mapped IPv6 becomes IPv4, IPv6 is written as in RFC
 * 5952 without a zone. `null` if the text is not an address.
 */
export function normalAddress(text: string): string | null {
  const family = ipFamily(text)
  if (family === 0) return null
  if (family === 4) return text
  return READ.family === 4 ? dotted(READ.words[3]!) : colons(READ.words)
}

/**
 * The key by which limits count clients: an IPv4 address, or the /64 of an IPv6 address, the smallest network
 * a client gets.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(':') || ipFamily(address) === 0) return address
  const { words } = READ
  if (READ.family === 4) return dotted(words[3]!)
  return `${words[0]!.toString(16)}:${words[1]!.toString(16)}::/64`
}

/** The network shown instead of an address to callers that may not see addresses: IPv4 /24, IPv6 /48. */
export function shownNetwork(address: string): string | null {
  if (ipFamily(address) === 0) return null
  const { words, family } = READ
  if (family === 4) return `${dotted((words[3]! & 0xffff_ff00) >>> 0)}/24`
  return `${colons([words[0]!, (words[1]! & 0xffff_0000) >>> 0, 0, 0])}/48`
}

function dotted(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

/** RFC 5952 §4: `::` replaces the first of the longest runs of two or more zero groups. */
function colons(words: ArrayLike<number>): string {
  const all: number[] = []
  for (let i = 0; i < 4; i++) all.push(words[i]! >>> 16, words[i]! & 0xffff)
  let from = 0
  let length = 1
  for (let start = 0; start < 8; start++) {
    let end = start
    while (all[end] === 0) end++
    if (end - start > length) {
      from = start
      length = end - start
    }
  }
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':')
  return length === 1 ? hex(all) : `${hex(all.slice(0, from))}::${hex(all.slice(from + length))}`
}

/** Shared by all calls and used at once, so that no call allocates an address. */
const READ = new Address()
/** Enough for an address (45 characters) and a zone. */
const TEXT_LENGTH_MAX = 128
const ZONE = /^%[0-9a-zA-Z.:-]+$/
