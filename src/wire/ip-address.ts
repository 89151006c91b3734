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
    if (this.isEmpty) return false
    const read = readAddress(address)
    return read !== null && this.#ranges.has(read)
  }
}

/**
 * The family in which the text is written: `::ffff:192.0.2.1` is 6. A zone (`%eth0`) is allowed. 0: not an
 * address.
 */
export function ipFamily(text: string): 0 | 4 | 6 {
  return readAddress(text) === null ? 0 : isWrittenAsIpv6(text) ? 6 : 4
}

/**
 * The form in which the proxy writes an address: IPv4-mapped IPv6 becomes IPv4, IPv6 is written as in RFC
 * 5952 without a zone. `null` if the text is not an address.
 */
export function normalAddress(text: string): string | null {
  const address = readAddress(text)
  if (address === null || !isWrittenAsIpv6(text)) return address === null ? null : text
  return address.family === 4 ? ipv4Text(address.words[3]!) : ipv6Text(address.words)
}

/**
 * The key by which limits count clients: an IPv4 address, or the /64 of an IPv6 address, the smallest network
 * a client gets.
 */
export function clientNetwork(address: string): string {
  const read = isWrittenAsIpv6(address) ? readAddress(address) : null
  if (read === null) return address
  const { words } = read
  if (read.family === 4) return ipv4Text(words[3]!)
  return `${words[0]!.toString(16)}:${words[1]!.toString(16)}::/64`
}

/** The network shown instead of an address to callers that may not see addresses: IPv4 /24, IPv6 /48. */
export function shownNetwork(address: string): string | null {
  const read = readAddress(address)
  if (read === null) return null
  const { words, family } = read
  if (family === 4) return `${ipv4Text((words[3]! & 0xffff_ff00) >>> 0)}/24`
  return `${ipv6Text([words[0]!, (words[1]! & 0xffff_0000) >>> 0, 0, 0])}/48`
}

/** A zone is allowed, and ignored. `null` if the text is not an address. */
function readAddress(text: string): Address | null {
  if (text.length > TEXT_LENGTH_MAX) return null
  const zone = isWrittenAsIpv6(text) ? text.indexOf('%') : -1
  if (zone !== -1 && !ZONE.test(text.slice(zone))) return null
  const address = new Address()
  address.read(zone === -1 ? text : text.slice(0, zone))
  return address.family === 0 ? null : address
}

function isWrittenAsIpv6(text: string): boolean {
  return text.includes(':')
}

export function ipv4Text(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

/** RFC 5952 §4: `::` replaces the first of the longest runs of two or more zero groups. */
export function ipv6Text(words: ArrayLike<number>): string {
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

/** Enough for an address (45 characters) and a zone. */
const TEXT_LENGTH_MAX = 128
const ZONE = /^%[0-9a-zA-Z.:-]+$/
