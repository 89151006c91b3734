import { ipFamily, normalAddress } from './ip-address.ts'
import { ownText } from './own-text.ts'

/** What earlier hops claim about the origin of a request. Repeated headers are joined by commas. */
export interface HopClaims {
  readonly forwardedFor: string | null
  readonly forwarded: string | null
}

/**
 * The client's address. The walk starts at the peer and follows X-Forwarded-For backwards while the hop that
 * wrote an entry is trusted. The first untrusted address is the client, whatever it claims about others.
 * Forwarded (RFC 7239) is read only if there is no X-Forwarded-For: a trusted hop has to write or remove both
 * headers, and nearly all hops write the older one. An entry without an address (`unknown`, `_hidden`) ends
 * the walk at the hop that wrote it. The caller has checked that `peer` is trusted.
 */
export function addressBehind(peer: string, claims: HopClaims, trusted: TrustedHops): string {
  const client = pathBehind(peer, claims, trusted)[0]!
  return client === peer ? client : ownText(client)
}

/** All addresses from the client to the peer. */
export function pathBehind(
  peer: string,
  { forwardedFor, forwarded }: HopClaims,
  trusted: TrustedHops,
): readonly string[] {
  const hops = forwardedFor !== null ? lastEntries(forwardedFor) : forwardedNodes(forwarded ?? '')
  const path = [peer]
  for (let i = hops.length - 1; i >= 0; i--) {
    const address = nodeAddress(hops[i]!)
    if (address === null) break
    path.push(address)
    if (!trusted.has(address)) break
  }
  return path.reverse()
}

/** Implemented by AddressSet. */
export interface TrustedHops {
  has(address: string): boolean
}

/** The last `HOPS_MAX` entries, in order. A client may have sent a long list before them. */
function lastEntries(list: string): string[] {
  let before = list.length
  for (let count = 0; count < HOPS_MAX && before > 0; count++) before = list.lastIndexOf(',', before - 1)
  return list.slice(before + 1).split(',')
}

/**
 * The `for` value of each element of a Forwarded header, in order; `''` if an element has none. A header with
 * a syntax error (RFC 7239 §4), or longer than trusted hops make it, yields no elements: a client could have
 * shaped it.
 */
function forwardedNodes(value: string): string[] {
  if (value.length > FORWARDED_LENGTH_MAX) return []
  const nodes: string[] = []
  let node = ''
  let at = 0
  for (;;) {
    let next = value[at]
    if (next !== ';' && next !== ',') {
      const [text, name, token, quoted] = PAIR.exec(value.slice(at))! // the pattern also matches an empty text
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
    return ipFamily(inner) === 6 ? normalAddress(inner) : null
  }
  const colon = node.indexOf(':')
  // With two or more colons it is a bare IPv6 address without a port.
  if (colon === -1 || node.includes(':', colon + 1)) return normalAddress(node)
  if (!PORT.test(node.slice(colon))) return null
  const host = node.slice(0, colon)
  return ipFamily(host) === 4 ? host : null
}

/** More trusted hops than any request passes through. */
const HOPS_MAX = 64
/** Enough for thirty hops with every parameter of RFC 7239. */
const FORWARDED_LENGTH_MAX = 4_096
/** RFC 7239 §4: `name=token`, `name="quoted"` or nothing, with blanks around it. */
const PAIR =
  /^[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w:[\]-]+)|"([^"\\]*(?:\\.[^"\\]*)*)"))?[ \t]*/
/** RFC 7239 §6.2: a number, or an obfuscated name. */
const PORT = /^(?::(?:\d{1,5}|_[\w.-]+))?$/
