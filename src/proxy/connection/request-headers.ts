import { isForwardingHeader } from '../../classify/verdict/our-headers.ts'
import type { Proof } from '../../classify/verdict/proof.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { Print } from '../../fingerprint/print.ts'
import { foldHeaderName, isPlainName } from '../../wire/header-name.ts'
import type { Connection } from './connection.ts'
import { trailersToPass } from './field-syntax.ts'
import type { HeaderRules, NameKind } from './header-rules.ts'
import type { ReceivedHead } from './received-head.ts'

/** The headers of a request, sorted by their treatment. */
export interface ReceivedHeaders {
  /**
   * The client's own headers, in its order and case: without hop-by-hop fields, framing, and headers that it
   * must not send to the app.
   */
  readonly kept: string[]
  /** Folded names of proxy headers that the client sent: an attempt to tag itself. */
  readonly forged: readonly string[]
  /** What a trusted proxy reports. Empty if the client is not a trusted proxy. */
  readonly hop: Readonly<HopHeaders>
  /** The number of names with a character other than letters, digits and hyphens. */
  readonly oddNames: number
}

/** Headers from a trusted proxy that `proxy.trusted_headers` lists. `null` if not sent. */
export interface HopHeaders {
  forwardedFor: string | null
  forwardedProto: string | null
  forwardedHost: string | null
  forwardedPort: string | null
  realIp: string | null
  /** Also read for the client's address if it is not listed. Then it is not passed on. */
  forwarded: string | null
}

/** The origin of a request that a trusted proxy sent. */
export interface RelayedFrom {
  readonly hop: Readonly<HopHeaders>
  /** Whether `Forwarded` is passed on unchanged. */
  readonly passesForwarded: boolean
  /** Addresses, from the client to the proxy that sent the request. */
  readonly path: readonly string[]
}

/**
 * The client's headers that may go on to the app. It removes hop-by-hop fields (RFC 9110 §7.6.1), framing
 * (written anew), and every spelling of the headers that only the proxy sets, even if the proxy has no value
 * for them. `authority` is the host of the request, which may come from an absolute target.
 */
export function receiveHeaders(
  rules: HeaderRules,
  connection: Pick<Connection, 'isTrusted' | 'isJa4Hop'>,
  { rawHeaders, hasOddNames }: Pick<ReceivedHead, 'rawHeaders' | 'hasOddNames'>,
  authority: string | null,
  removesMethodOverrides: boolean,
): ReceivedHeaders {
  const listed = connectionListed(rawHeaders)
  const looksAtAll = hasOddNames || listed !== null
  const expected = connection.isJa4Hop ? rules.ja4Header : null
  const kept: string[] = authority === null ? [] : ['Host', authority]
  let hop: HopHeaders | null = null
  let forged: string[] | null = null
  let oddNames = 0
  let cookieAt = -1
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    if (!looksAtAll && !rules.mayBeSpecial(name)) {
      kept.push(name, value)
      continue
    }
    if (name.charCodeAt(0) === COLON) continue
    const isOdd = hasOddNames && !isPlainName(name)
    const lower = name.toLowerCase()
    if (lower === expected) continue
    if (isOdd) oddNames++
    const folded = isOdd ? foldHeaderName(name) : lower
    const kind = rules.kindOf(folded)
    if (kind === 'ours' || (isOdd && isForged(kind, folded))) {
      if (forged === null) forged = [folded]
      else forged.push(folded)
    } else if (listed?.has(folded) === true && kind !== 'forwarding' && kind !== 'host') continue
    else if (isOdd) {
      if (rules.passesOdd(folded)) kept.push(name, value)
    } else {
      switch (kind) {
        case null:
          kept.push(name, value)
          break
        case 'forwarding':
          if (!connection.isTrusted) break
          hop ??= { ...NO_HOP }
          readHop(hop, rules, folded, value)
          break
        case 'untrusted':
          if (connection.isTrusted && rules.isTrusted(folded)) kept.push(name, value)
          break
        case 'method-override':
          if (!removesMethodOverrides) kept.push(name, value)
          break
        case 'hop-by-hop':
          break
        case 'te':
          pushTrailers(kept, value)
          break
        case 'host':
          setHost(kept, name)
          break
        case 'cookie':
          // HTTP/2 splits the cookie header. The app gets it as one header again (RFC 9113 §8.2.3).
          if (cookieAt >= 0) kept[cookieAt] = `${kept[cookieAt]}; ${value}`
          else {
            cookieAt = kept.length + 1
            kept.push(name, value)
          }
          break
      }
    }
  }
  return { kept, forged: forged ?? NONE, hop: hop ?? NO_HOP, oddNames }
}

/**
 * The request trailers that go on to the app. Servers may merge them into the headers, so trailers with a
 * meaning there, or with a name that a server could read as such, are dropped. `refuse` only drops odd names
 * here, because the app already has the request.
 */
export function receiveTrailers(
  rules: HeaderRules,
  trailers: readonly string[],
  countOdd: (count: number) => void,
): readonly string[] {
  const passed = trailersToPass(trailers)
  const kept: string[] = []
  let oddNames = 0
  for (let i = 0; i < passed.length; i += 2) {
    const name = passed[i]!
    const folded = foldHeaderName(name)
    const isOdd = !isPlainName(name)
    if (isOdd) oddNames++
    const mayPass = isOdd ? rules.passesOdd(folded) : rules.kindOf(folded) === null
    if (mayPass) kept.push(name, passed[i + 1]!)
  }
  if (oddNames > 0) countOdd(oddNames)
  return kept
}

/**
 * Adds the headers on where the request comes from: as the connection shows, or as a trusted proxy reports.
 */
export function pushForwarding(
  headers: string[],
  connection: Connection,
  authority: string | null,
  relayed: RelayedFrom | null,
): void {
  const proto = connection.isTls ? 'https' : 'http'
  const { address } = connection
  const hop = relayed?.hop ?? NO_HOP
  const known = relayed === null ? address : relayed.path.join(', ')
  headers.push('X-Forwarded-For', hop.forwardedFor === null ? known : `${hop.forwardedFor}, ${address}`)
  headers.push('X-Forwarded-Proto', hop.forwardedProto ?? proto)
  const host = hop.forwardedHost ?? authority
  if (host !== null) headers.push('X-Forwarded-Host', host)
  headers.push('X-Forwarded-Port', hop.forwardedPort ?? String(connection.localPort))
  headers.push('X-Real-IP', hop.realIp ?? relayed?.path[0] ?? address)
  const last = forwardedElement(address, authority, proto)
  headers.push('Forwarded', relayed === null ? last : forwardedBefore(relayed, authority) + last)
}

/** The elements before our own: as received, or built from what is known. */
function forwardedBefore({ hop, passesForwarded, path }: RelayedFrom, authority: string | null): string {
  if (passesForwarded && hop.forwarded !== null) return `${hop.forwarded}, `
  let elements = ''
  for (let i = 0; i < path.length - 1; i++) {
    const proto = i === 0 && hop.forwardedProto !== null && PROTO.test(hop.forwardedProto)
    elements += `${forwardedElement(path[i]!, i === 0 ? authority : null, proto ? hop.forwardedProto : null)}, `
  }
  return elements
}

/** Adds the headers on what the proxy knows of the client. Unknown values have no header. */
export function pushTags(headers: string[], print: Print, verdict: Verdict, action: string): void {
  const { ja4, ja4s, http2, ja4Source } = print.connection
  if (ja4 !== null) headers.push('X-JA4-Fingerprint', ja4)
  if (ja4Source === 'hop') headers.push('X-JA4-Source', ja4Source)
  if (print.ja4h !== null) headers.push('X-JA4H-Fingerprint', print.ja4h)
  if (ja4s !== null) headers.push('X-JA4S-Fingerprint', ja4s)
  if (http2 !== null) headers.push('X-HTTP2-Fingerprint', http2)
  headers.push('X-Agent-Verdict', verdict.kind)
  const { agent } = verdict
  if (agent !== null) {
    headers.push('X-Agent-Name', agent.name, 'X-Agent-Category', agent.category)
    if (agent.purposes.length > 0) headers.push('X-Agent-Purpose', agent.purposes.join(', '))
    headers.push('X-Agent-Name-Confidence', verdict.nameConfidence.toFixed(2))
  }
  headers.push('X-Agent-Confidence', verdict.confidence.toFixed(2))
  if (verdict.proof !== null) pushProof(headers, verdict.proof)
  if (verdict.conflicts.length > 0) headers.push('X-Agent-Conflict', verdict.conflicts.join(', '))
  headers.push('X-Agent-Action', action)
}

/** The signer may be unknown. It is identified by the URL of its keys. */
function pushProof(headers: string[], { method, agent, key }: Proof): void {
  headers.push('X-Agent-Verified', method)
  if (method === 'web-bot-auth') headers.push('X-Agent-Identity', agent)
  if (key !== null) headers.push('X-Agent-Key', key)
}

/**
 * Folded names of headers that the Connection header lists for removal. `null` if it lists nothing. Names of other
 * headers are left out: there may be thousands.
 */
function connectionListed(rawHeaders: readonly string[]): ReadonlySet<string> | null {
  let listed: Set<string> | null = null
  let sent: ReadonlySet<string> | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue
    const value = rawHeaders[i + 1]!
    if (value === 'keep-alive' || value === 'close') continue
    listed ??= new Set()
    sent ??= namesIn(rawHeaders)
    for (const token of value.split(',')) {
      const folded = foldHeaderName(token.trim())
      if (sent.has(folded)) listed.add(folded)
    }
  }
  return listed
}

function namesIn(rawHeaders: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) names.add(foldHeaderName(rawHeaders[i]!))
  return names
}

/** Asks the app for trailers if the client accepts them. Other transfer codings are not passed on. */
function pushTrailers(kept: string[], value: string): void {
  if (TRAILERS.test(value)) kept.push('TE', 'trailers')
}

/** Keeps the client's spelling of the name Host. */
function setHost(kept: string[], name: string): void {
  if (kept.length > 0) kept[0] = name
}

/**
 * RFC 7239 §4 and §6: an IPv6 address needs brackets and quotes, a host needs quotes because of its colon.
 */
function forwardedElement(address: string, authority: string | null, proto: string | null): string {
  const node = address.includes(':') ? `"[${address}]"` : address
  const host = authority === null ? '' : `;host="${authority}"`
  return proto === null ? `for=${node}${host}` : `for=${node}${host};proto=${proto}`
}

/** A spelling that no real proxy writes. */
function isForged(kind: NameKind | null, folded: string): boolean {
  return kind === 'forwarding' || (kind === 'untrusted' && isForwardingHeader(folded))
}

function readHop(hop: HopHeaders, rules: HeaderRules, folded: string, value: string): void {
  const field = HOP_FIELDS.get(folded)!
  if (field !== 'forwarded' && !rules.isTrusted(folded)) return
  const before = hop[field]
  hop[field] = before === null ? value : `${before}, ${value}`
}

const CONNECTION = 'connection'
const COLON = 0x3a
const TRAILERS = /(?:^|,)[ \t]*trailers[ \t]*(?:,|$)/i
const PROTO = /^https?$/
const NONE: readonly string[] = []
export const NO_HOP: Readonly<HopHeaders> = {
  forwardedFor: null,
  forwardedProto: null,
  forwardedHost: null,
  forwardedPort: null,
  realIp: null,
  forwarded: null,
}
const HOP_FIELDS: ReadonlyMap<string, keyof HopHeaders> = new Map([
  ['x-forwarded-for', 'forwardedFor'],
  ['x-forwarded-proto', 'forwardedProto'],
  ['x-forwarded-host', 'forwardedHost'],
  ['x-forwarded-port', 'forwardedPort'],
  ['x-real-ip', 'realIp'],
  ['forwarded', 'forwarded'],
])
