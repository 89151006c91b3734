import { isOurHeader, plainHeaderName } from '../classify/our-headers.ts'
import type { Proof } from '../classify/proof.ts'
import type { Verdict } from '../classify/verdict.ts'
import type { Print } from '../fingerprint/print.ts'
import type { Connection } from './connection.ts'

/** A request's headers, taken apart once. */
export interface ReceivedHeaders {
  /** The client's own, in its order and case: without hop-by-hop fields, framing, and everything in our namespace. */
  readonly kept: string[]
  /** Names in our namespace that the client sent, lower case with hyphens: it tried to tag itself. */
  readonly forged: readonly string[]
  /** What an earlier hop says: to be believed from a trusted one only. */
  readonly hop: Readonly<HopHeaders>
}

export interface HopHeaders {
  forwardedFor: string | null
  forwardedProto: string | null
  forwardedHost: string | null
  forwardedPort: string | null
  forwarded: string | null
}

/**
 * What may go on to the app: the client's headers less hop-by-hop fields (RFC 9110 §7.6.1), less framing, which is
 * written anew, and less every spelling of the headers we set, also where we have nothing to set. A client must never
 * be able to tag itself. `authority` is the host the request is for, which an absolute target may have decided; `expected`
 * is a name in our namespace that this client may send, as a hop in front of us may.
 */
export function receiveHeaders(
  rawHeaders: readonly string[],
  authority: string | null,
  expected: string | null = null,
): ReceivedHeaders {
  const listed = connectionListed(rawHeaders)
  const kept: string[] = authority === null ? [] : ['Host', authority]
  const hop: HopHeaders = { ...NO_HOP }
  let forged: string[] | null = null
  let cookieAt = -1
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    if (listed === null && !mayBeSpecial(name)) {
      kept.push(name, value)
      continue
    }
    const plain = plainHeaderName(name)
    const hopField = HOP_FIELDS.get(plain)
    if (hopField !== undefined && !name.includes('_')) hop[hopField] = joined(hop[hopField], value, ', ')
    else if (plain === expected) continue
    else if (isOurHeader(plain)) forged = forged === null ? [plain] : [...forged, plain]
    else if (HOP_BY_HOP.has(plain) || listed?.has(plain) === true || plain.startsWith(':')) continue
    else if (plain === 'te') pushTrailers(kept, value)
    else if (plain === 'host') setHost(kept, name)
    else if (plain === 'cookie' && cookieAt >= 0) kept[cookieAt] = `${kept[cookieAt]}; ${value}`
    else {
      // HTTP/2 cuts the cookie header in crumbs; it is one again behind us (RFC 9113 §8.2.3).
      if (plain === 'cookie') cookieAt = kept.length + 1
      kept.push(name, value)
    }
  }
  return { kept, forged: forged ?? NONE, hop }
}

/** Who the client is and how it came, for the app: anew, or carried on where the hop before us is trusted. */
export function pushForwarding(
  headers: string[],
  connection: Connection,
  authority: string | null,
  hop: Readonly<HopHeaders> | null,
): void {
  const proto = connection.isTls ? 'https' : 'http'
  const forwardedFor = hop?.forwardedFor ?? null
  headers.push('X-Forwarded-For', joined(forwardedFor, connection.address, ', '))
  headers.push('X-Forwarded-Proto', hop?.forwardedProto ?? proto)
  const host = hop?.forwardedHost ?? authority
  if (host !== null) headers.push('X-Forwarded-Host', host)
  headers.push('X-Forwarded-Port', hop?.forwardedPort ?? String(connection.localPort))
  headers.push(
    'Forwarded',
    joined(hop?.forwarded ?? null, forwardedElement(connection.address, authority, proto), ', '),
  )
}

/** What we know of the client, for the app. What is not known has no header. */
export function pushTags(headers: string[], print: Print, verdict: Verdict, action: string): void {
  const { ja4, ja4s, http2, ja4Source } = print.connection
  if (ja4 !== null) headers.push('X-JA4-Fingerprint', ja4)
  if (ja4Source === 'hop') headers.push('X-JA4-Source', ja4Source)
  if (print.ja4h !== null) headers.push('X-JA4H-Fingerprint', print.ja4h)
  if (ja4s !== null) headers.push('X-JA4S-Fingerprint', ja4s)
  if (http2 !== null) headers.push('X-HTTP2-Fingerprint', http2)
  headers.push('X-Agent-Verdict', verdict.kind)
  if (verdict.agent !== null) {
    headers.push('X-Agent-Name', verdict.agent.name, 'X-Agent-Category', verdict.agent.category)
  }
  headers.push('X-Agent-Confidence', verdict.confidence.toFixed(2))
  if (verdict.proof !== null) pushProof(headers, verdict.proof)
  if (verdict.conflicts.length > 0) headers.push('X-Agent-Conflict', verdict.conflicts.join(', '))
  headers.push('X-Agent-Action', action)
}

/** Who has signed need be nobody we know: he is told by where his keys are. */
function pushProof(headers: string[], { method, agent, key }: Proof): void {
  headers.push('X-Agent-Verified', method)
  if (method === 'web-bot-auth') headers.push('X-Agent-Identity', agent)
  if (key !== null) headers.push('X-Agent-Key', key)
}

/** Most names pass at their first letter and length; the others are looked at closely. */
export function mayBeSpecial(name: string): boolean {
  switch (name.charCodeAt(0) | 0x20) {
    case 0x78: // x-agent-…, x-ja4-…, x-forwarded-…
    case 0x66: // forwarded
    case 0x3a: // a pseudo-header
      return true
    case 0x63: // connection, content-length, cookie
      return name.length === 10 || name.length === 14 || name.length === 6
    case 0x74: // te, transfer-encoding
      return name.length === 2 || name.length === 17
    case 0x68: // host, http2-settings
      return name.length === 4 || name.length === 14
    case 0x65: // expect
    case 0x75: // upgrade
      return name.length === 6 || name.length === 7
    case 0x6b: // keep-alive
    case 0x70: // proxy-connection
      return name.length === 10 || name.length === 16
    default:
      return false
  }
}

/** Names the Connection header takes away; `null` where it takes none. It cannot take the host. */
function connectionListed(rawHeaders: readonly string[]): ReadonlySet<string> | null {
  let listed: Set<string> | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue
    const value = rawHeaders[i + 1]!
    if (value === 'keep-alive' || value === 'close') continue
    listed ??= new Set()
    for (const token of value.split(',')) {
      const plain = plainHeaderName(token.trim())
      if (plain !== 'host') listed.add(plain)
    }
  }
  return listed
}

/** The app is asked for trailers when the client can take them; no other transfer coding is passed on. */
function pushTrailers(kept: string[], value: string): void {
  if (TRAILERS.test(value)) kept.push('TE', 'trailers')
}

/** The host keeps the spelling the client gave it. */
function setHost(kept: string[], name: string): void {
  if (kept.length > 0) kept[0] = name
}

/** RFC 7239 §4 and §6: an IPv6 address in brackets and quotes, a host in quotes for its colon. */
function forwardedElement(address: string, authority: string | null, proto: string): string {
  const node = address.includes(':') ? `"[${address}]"` : address
  return authority === null ? `for=${node};proto=${proto}` : `for=${node};host="${authority}";proto=${proto}`
}

function joined(before: string | null, value: string, separator: string): string {
  return before === null ? value : before + separator + value
}

const CONNECTION = 'connection'
const TRAILERS = /(?:^|,)[ \t]*trailers[ \t]*(?:,|$)/i
const NONE: readonly string[] = []
const NO_HOP: Readonly<HopHeaders> = {
  forwardedFor: null,
  forwardedProto: null,
  forwardedHost: null,
  forwardedPort: null,
  forwarded: null,
}

/** Content-Length and Transfer-Encoding are framing; Expect and Upgrade have doors of their own. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  CONNECTION,
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])
const HOP_FIELDS: ReadonlyMap<string, keyof HopHeaders> = new Map([
  ['x-forwarded-for', 'forwardedFor'],
  ['x-forwarded-proto', 'forwardedProto'],
  ['x-forwarded-host', 'forwardedHost'],
  ['x-forwarded-port', 'forwardedPort'],
  ['forwarded', 'forwarded'],
])
