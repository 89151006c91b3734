import { normalAddress } from './ip-address.ts'

/**
 * A host with an optional port (RFC 3986 §3.2.2), restricted to what names contain in practice: no user
 * information, no empty label, no character at which a later parser could cut or decode.
 */
export function isAuthority(text: string): boolean {
  let at = 0
  if (text.charCodeAt(0) === OPEN_BRACKET) {
    at = text.indexOf(']') + 1
    if (at < 4) return false
    for (let i = 1; i < at - 1; i++) if (!isIn(text.charCodeAt(i), ADDRESS_BYTE)) return false
  } else {
    let before = DOT
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === DOT ? before === DOT : !isIn(code, NAME_BYTE)) break
      before = code
    }
    if (at === 0) return false
  }
  if (at === text.length) return true
  if (text.charCodeAt(at) !== COLON || text.length - at > 6) return false
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x30 || code > 0x39) return false
  }
  return true
}

/** The end of the host in an authority: before the port and before the final dot (the DNS root). */
export function hostEnd(authority: string): number {
  const colon = authority.lastIndexOf(':')
  // The last colon of a bracketed address does not begin a port.
  const end = colon === -1 || authority.indexOf(']', colon) !== -1 ? authority.length : colon
  return authority.charCodeAt(end - 1) === DOT ? end - 1 : end
}

/**
 * The host of an authority in the form in which hosts are compared: lower case, without port and final dot,
 * an IPv6 address in its shortest spelling.
 */
export function hostOf(authority: string): string {
  const end = hostEnd(authority)
  const host = (end === authority.length ? authority : authority.slice(0, end)).toLowerCase()
  return host.charCodeAt(0) === OPEN_BRACKET ? literal(host) : host
}

function literal(host: string): string {
  const address = normalAddress(host.slice(1, -1))
  if (address === null) return host
  return address.includes(':') ? `[${address}]` : address
}

/** A hint for an error message: the ASCII form of a host that was written with other characters. */
export function asciiHint(host: string): string {
  const ascii = NOT_ASCII.test(host) ? URL.parse(`http://${host}/`)?.hostname : undefined
  return ascii === undefined ? '' : ` (write ${ascii})`
}

/** For messages about a text that is not a host pattern. */
export const HOST_PATTERN_EXPECTED =
  'a host name, *. and a host name, or an address like 192.0.2.1 or [2001:db8::1], without a port'

/** A host name, `*.` and a host name (any one label in front), or an address as in a Host header. */
export function isHostPattern(text: string): boolean {
  const isBracketed = text.startsWith('[') && text.endsWith(']')
  const address = isBracketed ? text.slice(1, -1) : text
  if (!address.includes('%') && normalAddress(address) !== null) return address.includes(':') === isBracketed
  return isHostName(isWildcard(text) ? text.slice(2) : text)
}

export function isHostName(text: string): boolean {
  return text.length <= 253 && HOST_NAME.test(text) && !/^[\d.]+$/.test(text)
}

/** The form in which patterns are compared: two patterns with the same form match the same hosts. */
export function hostPatternKey(pattern: string): string {
  return isWildcard(pattern) ? `*.${hostOf(pattern.slice(2))}` : hostOf(pattern)
}

/** Values by host pattern. In a pattern `*.` stands for exactly one label; a host without it is more specific. */
export class HostMap<Value> {
  readonly #hosts: ReadonlyMap<string, Value>
  readonly #parents: ReadonlyMap<string, Value>

  constructor(entries: readonly (readonly [pattern: string, value: Value])[]) {
    const exact = entries.filter(([pattern]) => !isWildcard(pattern))
    const wild = entries.filter(([pattern]) => isWildcard(pattern))
    this.#hosts = new Map(exact.map(([host, value]) => [hostOf(host), value]))
    this.#parents = new Map(wild.map(([pattern, value]) => [hostOf(pattern.slice(2)), value]))
  }

  get isEmpty(): boolean {
    return this.#hosts.size + this.#parents.size === 0
  }

  /** `host` is in the form of `hostOf`. The cost does not depend on the number of patterns. */
  get(host: string): Value | undefined {
    const exact = this.#hosts.get(host)
    if (exact !== undefined || this.#parents.size === 0) return exact
    const dot = host.indexOf('.')
    return dot > 0 ? this.#parents.get(host.slice(dot + 1)) : undefined
  }
}

/** Hosts and patterns. */
export class HostSet {
  readonly #hosts: HostMap<true>

  constructor(patterns: readonly string[]) {
    this.#hosts = new HostMap(patterns.map((pattern) => [pattern, true]))
  }

  get isEmpty(): boolean {
    return this.#hosts.isEmpty
  }

  /** `host` is in the form of `hostOf`. */
  has(host: string): boolean {
    return this.#hosts.get(host) === true
  }
}

function isWildcard(pattern: string): boolean {
  return pattern.startsWith('*.')
}

function isIn(code: number, kind: number): boolean {
  return code < 128 && (KINDS[code]! & kind) !== 0
}

const HOST_NAME = /^(?!-)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?$/
const NOT_ASCII = /[^ -~]/
const COLON = 0x3a
const DOT = 0x2e
const OPEN_BRACKET = 0x5b
const NAME_BYTE = 1
const ADDRESS_BYTE = 2
const NAME_CHARACTER = /[\w~-]/
const ADDRESS_CHARACTER = /[\da-f:.]/i
/** By character code. */
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  return (
    (NAME_CHARACTER.test(character) ? NAME_BYTE : 0) | (ADDRESS_CHARACTER.test(character) ? ADDRESS_BYTE : 0)
  )
})
