import { isIP } from 'node:net'
import type { Ja4 } from '../fingerprint/ja4.ts'
import { ownText } from '../wire/own-text.ts'
import type { Connection } from './connection.ts'

/**
 * Whose word is taken: a set of addresses and ranges (`10.0.0.0/8`, `2001:db8::/32`, `192.0.2.1`). A range of IPv6 never
 * holds an IPv4 address, however wide it is, unless it is written in the mapped form (`::ffff:10.0.0.0/104`).
 */
export class AddressSet {
  readonly #ranges: readonly Range[]

  private constructor(ranges: readonly Range[]) {
    this.#ranges = ranges
  }

  /** `null` for a list with something in it that is no address and no range. */
  static parse(ranges: readonly string[]): AddressSet | null {
    const parsed: Range[] = []
    for (const text of ranges) {
      const range = parseRange(text)
      if (range === null) return null
      parsed.push(range)
    }
    return new AddressSet(parsed)
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0
  }

  /** What is no address is in no set. */
  has(address: string): boolean {
    if (this.#ranges.length === 0) return false
    const words = parseAddress(address)
    return words !== null && this.#ranges.some((range) => isWithin(words, range))
  }
}

/**
 * The form in which we write an address: an IPv4 address that a socket of both families shows as IPv6 is IPv4 again, and
 * IPv6 is as RFC 5952 has it, without a zone. `null` for what is none.
 */
export function normalAddress(text: string): string | null {
  if (isIP(text) === 4) return text
  const words = parseAddress(text)
  return words === null ? null : isMapped(words) ? dotted(words[3]) : colons(words)
}

/** What connections are counted by: an address, or of IPv6 its /64, which is the least that one client is given. */
export function clientNetwork(address: string): string {
  if (isIP(address) !== 6) return address
  const words = parseAddress(address)!
  return `${words[0].toString(16)}:${words[1].toString(16)}::/64`
}

/** What earlier hops say about where a request comes from; repeated headers are joined by commas. */
export interface HopClaims {
  readonly forwardedFor: string | null
  readonly forwarded: string | null
}

/**
 * The client's address: from the connection back through X-Forwarded-For for as long as the hop that wrote an entry is
 * trusted, so that the first one that is not trusted is the client, whatever it claims about others. Forwarded (RFC
 * 7239) is asked only where there is no X-Forwarded-For: a trusted hop has to write or remove both, and nearly all write
 * the older one. An entry that names no address (`unknown`, `_hidden`) ends the walk at the hop that wrote it.
 */
export function clientAddress(connection: Connection, claims: HopClaims, trusted: AddressSet): string {
  if (!connection.isTrusted) return connection.address
  const { forwardedFor, forwarded } = claims
  const hops = forwardedFor !== null ? lastEntries(forwardedFor) : forwardedNodes(forwarded ?? '')
  let client = connection.address
  for (let i = hops.length - 1; i >= 0; i--) {
    const address = nodeAddress(hops[i]!)
    if (address === null) break
    client = address
    if (!trusted.has(client)) break
  }
  return client === connection.address ? client : ownText(client)
}

/**
 * The JA4 that the hop before us computed, which saw the client's own hello: from the hops listed for it only, said
 * once, and written like a JA4. `header` is in lower case.
 */
export function hopJa4(connection: Connection, rawHeaders: readonly string[], header: string): Ja4 | null {
  if (!connection.isJa4Hop) return null
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== header.length || name.toLowerCase() !== header) continue
    if (found !== null) return null // two of them: who wrote which cannot be told
    found = rawHeaders[i + 1]!
  }
  return found !== null && JA4.test(found) ? (found as Ja4) : null
}

/** Four 32-bit words; IPv4 is in the last one, behind the prefix of the mapped form (RFC 4291 §2.5.5.2). */
type Words = readonly [number, number, number, number]

interface Range {
  readonly words: Words
  readonly bits: number
}

function parseRange(text: string): Range | null {
  const slash = text.indexOf('/')
  const words = parseAddress(slash === -1 ? text : text.slice(0, slash))
  if (words === null) return null
  if (slash === -1) return { words, bits: 128 }
  const length = text.slice(slash + 1)
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length)) return null
  const isDotted = isIP(text.slice(0, slash)) === 4
  const bits = Number(length) + (isDotted ? 96 : 0)
  return bits > 128 ? null : { words, bits }
}

function isWithin(words: Words, range: Range): boolean {
  if (isMapped(words) && range.bits < 96) return false
  for (let word = 0, left = range.bits; left > 0; word++, left -= 32) {
    const mask = left >= 32 ? -1 : ~(-1 >>> left)
    if (((words[word]! ^ range.words[word]!) & mask) !== 0) return false
  }
  return true
}

function isMapped(words: Words): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0xffff
}

function parseAddress(text: string): Words | null {
  const family = isIP(text)
  if (family === 0) return null
  if (family === 4) return [0, 0, 0xffff, ipv4Word(text)]
  const zone = text.indexOf('%')
  return ipv6Words(zone === -1 ? text : text.slice(0, zone))
}

/** Of text that is known to be an IPv4 address. */
function ipv4Word(text: string): number {
  const [a, b, c, d] = text.split('.').map(Number)
  return ((a! << 24) | (b! << 16) | (c! << 8) | d!) >>> 0
}

/** Of text that is known to be an IPv6 address. */
function ipv6Words(text: string): Words {
  const gap = text.indexOf('::')
  const head = groups(gap === -1 ? text : text.slice(0, gap))
  const tail = gap === -1 ? [] : groups(text.slice(gap + 2))
  const all = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail]
  const word = (at: number) => ((all[at]! << 16) | all[at + 1]!) >>> 0
  return [word(0), word(2), word(4), word(6)]
}

function groups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const word = ipv4Word(group)
    return [word >>> 16, word & 0xffff]
  })
}

function dotted(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

/** RFC 5952 §4: the first of the longest runs of two or more zero groups is `::`. */
function colons(words: Words): string {
  const all = words.flatMap((word) => [word >>> 16, word & 0xffff])
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

/** In order. What a client has written before them may be long. */
function lastEntries(list: string): string[] {
  let before = list.length
  for (let count = 0; count < HOPS_MAX && before > 0; count++) before = list.lastIndexOf(',', before - 1)
  return list.slice(before + 1).split(',')
}

/**
 * The `for` of each element of a Forwarded header, in order, `''` where it has none. One that is not written as RFC
 * 7239 §4 wants it, or longer than hops make it, has no elements: what it says cannot be told from what it was made to
 * seem to say.
 */
function forwardedNodes(value: string): string[] {
  if (value.length > FORWARDED_LENGTH_MAX) return []
  const nodes: string[] = []
  let node = ''
  let at = 0
  for (;;) {
    let next = value[at]
    if (next !== ';' && next !== ',') {
      PAIR.lastIndex = at
      const [text, name, token, quoted] = PAIR.exec(value)! // it matches nothing at all, too
      at += text.length
      if (name?.toLowerCase() === 'for') {
        if (node !== '') return [] // RFC 7239 §4: no parameter twice in an element
        node = token ?? quoted!.replace(/\\(.)/g, '$1')
      }
      next = value[at]
    }
    at++
    if (next === ';') continue
    nodes.push(node)
    node = ''
    if (next === undefined) return nodes
    if (next !== ',') return []
  }
}

/** The address in an entry: bare, with a port, or in brackets. */
function nodeAddress(text: string): string | null {
  const node = text.trim()
  if (node.startsWith('[')) {
    const end = node.indexOf(']')
    if (end === -1 || !PORT.test(node.slice(end + 1))) return null
    const inner = node.slice(1, end)
    return isIP(inner) === 6 ? normalAddress(inner) : null
  }
  const colon = node.indexOf(':')
  // Of two colons or more, none begins a port: that is a bare IPv6 address.
  if (colon === -1 || node.includes(':', colon + 1)) return normalAddress(node)
  if (!PORT.test(node.slice(colon))) return null
  const host = node.slice(0, colon)
  return isIP(host) === 4 ? host : null
}

/** More trusted hops than any request passes. */
const HOPS_MAX = 64
/** Of some thirty hops, with all that RFC 7239 has to say of each. */
const FORWARDED_LENGTH_MAX = 4_096
/** RFC 7239 §4: `name=token` or `name="quoted"`, or nothing at all; blanks around it. Sticky: one step at a time. */
const PAIR =
  /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w:[\]-]+)|"([^"\\]*(?:\\.[^"\\]*)*)"))?[ \t]*/y
/** RFC 7239 §6.2: a number, or a name that hides it. */
const PORT = /^(?::(?:\d{1,5}|_[\w.-]+))?$/
const JA4 = /^[tqd](?:1[0-3]|s[23]|d[123]|00)[di]\d{4}[0-9a-zA-Z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/
