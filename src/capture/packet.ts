import { ipv4Text, ipv6Text } from '../wire/ip-address.ts'
import { IpFragments } from './ip-fragments.ts'

/**
 * Decodes a captured frame down to the innermost TCP segment or UDP datagram, through VLANs, MPLS, PPPoE,
 * GRE, ERSPAN, VXLAN, Geneve, GTP-U, IP in IP and IP fragments. One decoder serves a whole capture: `decode`
 * overwrites the fields below, so that a packet costs no allocation.
 */
export class PacketDecoder {
  /** The TCP or UDP header and payload: `bytes` from `at` to `end`. */
  bytes: Buffer = EMPTY
  at = 0
  end = 0
  protocol: 6 | 17 = TCP
  isIpv6 = false
  /** Addresses as 32-bit words. IPv4 uses the first word. */
  readonly source = new Int32Array(4)
  readonly destination = new Int32Array(4)
  readonly #fragments = new IpFragments()
  /** The number of nested headers so far. Limited by `DEPTH_MAX`. */
  #depth = 0

  /** Returns whether the fields above now hold a TCP or UDP packet. */
  decode(linkType: number, bytes: Buffer, at: number, end: number): boolean {
    this.bytes = bytes
    this.#depth = 0
    switch (linkType) {
      case LINK_ETHERNET:
        return this.#ethernet(at, end)
      case LINK_RAW:
      case LINK_RAW_OPENBSD:
      case LINK_RAW_BSD:
      case LINK_IPV4:
      case LINK_IPV6:
        return this.#ip(at, end)
      case LINK_COOKED:
        return this.#etherType(u16(bytes, at + 14), at + 16, end)
      case LINK_COOKED_2:
        return this.#etherType(u16(bytes, at), at + 20, end)
      case LINK_NULL: // address family in host byte order; the IP version digit suffices
      case LINK_LOOP:
        return this.#ip(at + 4, end)
      case LINK_PPP:
      case LINK_PPP_HDLC:
        return this.#ppp(bytes[at] === 0xff ? at + 2 : at, end)
      case LINK_PPPOE:
        return this.#ppp(at + 6, end)
      default:
        return false
    }
  }

  #ethernet(at: number, end: number): boolean {
    return end - at >= 14 && this.#etherType(u16(this.bytes, at + 12), at + 14, end)
  }

  #etherType(type: number, at: number, end: number): boolean {
    if (at > end || ++this.#depth > DEPTH_MAX) return false
    switch (type) {
      case ETHER_IPV4:
      case ETHER_IPV6:
        return this.#ip(at, end)
      case ETHER_VLAN:
      case ETHER_QINQ:
      case ETHER_QINQ_OLD:
      case ETHER_QINQ_OLDER:
        return end - at >= 4 && this.#etherType(u16(this.bytes, at + 2), at + 4, end)
      case ETHER_MPLS:
      case ETHER_MPLS_MULTICAST:
        return this.#mpls(at, end)
      case ETHER_PPPOE:
        return this.#ppp(at + 6, end)
      case ETHER_BRIDGED:
        return this.#ethernet(at, end)
      default:
        return false
    }
  }

  /**
   * RFC 3032: labels up to the bottom of the stack, then IP, or Ethernet after an optional control word (RFC
   * 4448).
   */
  #mpls(at: number, end: number): boolean {
    let label = at
    while (label + 4 <= end && (this.bytes[label + 2]! & 1) === 0) label += 4
    const inner = label + 4
    if (inner >= end) return false
    const digit = this.bytes[inner]! >> 4
    if (digit === 4 || digit === 6) return this.#ip(inner, end)
    return this.#ethernet(digit === 0 ? inner + 4 : inner, end)
  }

  /** RFC 1661 §2: the protocol takes one byte or two. */
  #ppp(at: number, end: number): boolean {
    if (end - at < 2) return false
    const short = (this.bytes[at]! & 1) === 1
    const protocol = short ? this.bytes[at]! : u16(this.bytes, at)
    if (protocol !== PPP_IPV4 && protocol !== PPP_IPV6) return false
    return this.#ip(at + (short ? 1 : 2), end)
  }

  #ip(at: number, end: number): boolean {
    if (end - at < 20 || ++this.#depth > DEPTH_MAX) return false
    const digit = this.bytes[at]! >> 4
    return digit === 4 ? this.#ipv4(at, end) : digit === 6 && this.#ipv6(at, end)
  }

  #ipv4(at: number, end: number): boolean {
    const bytes = this.bytes
    const header = (bytes[at]! & 15) * 4
    const total = u16(bytes, at + 2)
    // Segmentation offload leaves a length of zero. Bytes after the packet are Ethernet padding.
    const stop = total === 0 ? end : Math.min(end, at + total)
    if (header < 20 || at + header > stop) return false
    this.isIpv6 = false
    this.source[0] = i32(bytes, at + 12)
    this.destination[0] = i32(bytes, at + 16)
    const fragment = u16(bytes, at + 6)
    const protocol = bytes[at + 9]!
    if ((fragment & 0x3fff) !== 0) {
      const place = ((fragment & 0x1fff) << 3) | ((fragment >> 13) & 1)
      return this.#fragment(u16(bytes, at + 4), protocol, place, at + header, stop)
    }
    return this.#extensionHeaders(protocol, at + header, stop)
  }

  #ipv6(at: number, end: number): boolean {
    const bytes = this.bytes
    if (end - at < 40) return false
    const length = u16(bytes, at + 4)
    const stop = length === 0 ? end : Math.min(end, at + 40 + length)
    this.isIpv6 = true
    for (let word = 0; word < 4; word++) {
      this.source[word] = i32(bytes, at + 8 + word * 4)
      this.destination[word] = i32(bytes, at + 24 + word * 4)
    }
    return this.#extensionHeaders(bytes[at + 6]!, at + 40, stop)
  }

  /**
   * RFC 8200 §4: a chain of headers before the payload, each naming the next. IPv4 has only the IPsec one.
   */
  #extensionHeaders(first: number, from: number, end: number): boolean {
    const bytes = this.bytes
    let next = first
    let at = from
    while (EXTENSION_HEADERS.has(next)) {
      if (end - at < 8 || ++this.#depth > DEPTH_MAX) return false
      const after = bytes[at]!
      if (next === FRAGMENT_HEADER) {
        const where = u16(bytes, at + 2)
        if ((where & 0xfff9) !== 0)
          return this.#fragment(i32(bytes, at + 4), after, where & 0xfff9, at + 8, end)
        at += 8
      } else {
        at += next === AUTHENTICATION_HEADER ? (bytes[at + 1]! + 2) * 4 : (bytes[at + 1]! + 1) * 8
      }
      next = after
    }
    return at <= end && this.#payload(next, at, end)
  }

  /** `place`: as in IPv6, the offset in bytes, a multiple of 8, and 1 if more fragments follow. */
  #fragment(id: number, protocol: number, place: number, at: number, end: number): boolean {
    const more = (place & 1) === 1
    const words = this.isIpv6 ? 4 : 1
    const key = `${id},${protocol},${this.source.slice(0, words)},${this.destination.slice(0, words)}`
    const whole = this.#fragments.add(key, place & 0xfff8, more, this.bytes.subarray(at, end))
    if (whole === null) return false
    this.bytes = whole
    return this.#extensionHeaders(protocol, 0, whole.length)
  }

  #payload(protocol: number, at: number, end: number): boolean {
    switch (protocol) {
      case TCP:
        if (end - at < 20) return false
        return this.#found(TCP, at, end)
      case UDP:
        return this.#udp(at, end)
      case GRE:
        return this.#gre(at, end)
      case IPV4_IN_IP:
      case IPV6_IN_IP:
        return this.#ip(at, end)
      default:
        return false
    }
  }

  #udp(at: number, end: number): boolean {
    if (end - at < 8) return false
    const length = u16(this.bytes, at + 4)
    const stop = length >= 8 ? Math.min(end, at + length) : end
    const port = u16(this.bytes, at + 2)
    return (TUNNEL_PORTS.has(port) && this.#tunnel(port, at + 8, stop)) || this.#found(UDP, at, stop)
  }

  /**
   * A client may use a tunnel's port for something else. If the payload is not a tunnel, the fields are
   * restored.
   */
  #tunnel(port: number, at: number, end: number): boolean {
    const { bytes, isIpv6 } = this
    const source = this.source.slice()
    const destination = this.destination.slice()
    if (this.#inside(port, at, end)) return true
    this.bytes = bytes
    this.isIpv6 = isIpv6
    this.source.set(source)
    this.destination.set(destination)
    return false
  }

  #inside(port: number, at: number, end: number): boolean {
    if (port === GENEVE_PORT) return this.#geneve(at, end)
    return port === GTPU_PORT ? this.#gtpu(at, end) : this.#vxlan(at, end)
  }

  /**
   * RFC 7348 §5. With the P bit, VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe), the header names the inner protocol.
   */
  #vxlan(at: number, end: number): boolean {
    const flags = this.bytes[at]!
    if (end - at <= 8 || (flags & 0x08) === 0) return false
    const inner = (flags & 0x04) === 0 ? GPE_ETHERNET : this.bytes[at + 3]!
    if (inner === GPE_ETHERNET) return this.#ethernet(at + 8, end)
    return (inner === GPE_IPV4 || inner === GPE_IPV6) && this.#ip(at + 8, end)
  }

  /** RFC 8926 §3.4. */
  #geneve(at: number, end: number): boolean {
    if (end - at < 8 || this.bytes[at]! >> 6 !== 0) return false
    const options = (this.bytes[at]! & 0x3f) * 4
    return this.#etherType(u16(this.bytes, at + 2), at + 8 + options, end)
  }

  /** 3GPP TS 29.281 §5: each of three flags adds four bytes, and one of them announces extension headers. */
  #gtpu(at: number, end: number): boolean {
    const bytes = this.bytes
    const flags = bytes[at]!
    if (end - at < 8 || flags >> 4 !== GTP_VERSION_1 || bytes[at + 1] !== GTP_PACKET) return false
    let inner = (flags & 0x07) === 0 ? at + 8 : at + 12
    let next = (flags & 0x04) === 0 ? 0 : bytes[at + 11]!
    while (next !== 0 && inner < end) {
      const length = bytes[inner]! * 4
      if (length === 0 || inner + length > end) return false
      inner += length
      next = bytes[inner - 1]!
    }
    return this.#ip(inner, end)
  }

  /** RFC 2784, RFC 2890. Version 1 is for PPTP (RFC 2637). */
  #gre(at: number, end: number): boolean {
    if (end - at < 4) return false
    const flags = u16(this.bytes, at)
    const type = u16(this.bytes, at + 2)
    const sequence = (flags & 0x1000) !== 0
    let header = 4
    if ((flags & 0x8000) !== 0) header += 4 // checksum
    if ((flags & 0x2000) !== 0) header += 4 // key
    if (sequence) header += 4
    if ((flags & 7) === 1 && (flags & 0x0080) !== 0) header += 4 // acknowledgement
    const inner = at + header
    if (inner >= end || (flags & 0x4000) !== 0) return false
    if (type === GRE_PPP) return this.#ppp(this.bytes[inner] === 0xff ? inner + 2 : inner, end)
    if (type === GRE_ERSPAN) return this.#ethernet(sequence ? inner + 8 : inner, end) // type I: no header
    if (type === GRE_ERSPAN_3) return this.#erspan3(inner, end)
    return this.#etherType(type, inner, end)
  }

  #erspan3(at: number, end: number): boolean {
    if (end - at < 12) return false
    const platform = (this.bytes[at + 11]! & 1) === 1 ? 8 : 0
    return this.#ethernet(at + 12 + platform, end)
  }

  #found(protocol: 6 | 17, at: number, end: number): true {
    this.protocol = protocol
    this.at = at
    this.end = end
    return true
  }
}

/** An address in its usual text form. An IPv4 address is the first word. */
export function addressText(words: ArrayLike<number>, isIpv6: boolean): string {
  return isIpv6 ? ipv6Text(words) : ipv4Text(words[0]!)
}

/** Reads zeros past the end. Callers check the length where it matters. */
function u16(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

function i32(bytes: Buffer, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

const EMPTY = Buffer.alloc(0)
/** Real networks nest four or five headers. */
const DEPTH_MAX = 24

const LINK_NULL = 0
const LINK_ETHERNET = 1
const LINK_PPP = 9
const LINK_RAW_BSD = 12
const LINK_RAW_OPENBSD = 14
const LINK_PPP_HDLC = 50
const LINK_PPPOE = 51
const LINK_RAW = 101
const LINK_LOOP = 108
const LINK_COOKED = 113
const LINK_IPV4 = 228
const LINK_IPV6 = 229
const LINK_COOKED_2 = 276

const ETHER_IPV4 = 0x0800
const ETHER_BRIDGED = 0x6558
const ETHER_VLAN = 0x8100
const ETHER_IPV6 = 0x86dd
const ETHER_MPLS = 0x8847
const ETHER_MPLS_MULTICAST = 0x8848
const ETHER_PPPOE = 0x8864
const ETHER_QINQ = 0x88a8
const ETHER_QINQ_OLD = 0x9100
const ETHER_QINQ_OLDER = 0x9200
const GRE_PPP = 0x880b
const GRE_ERSPAN = 0x88be
const GRE_ERSPAN_3 = 0x22eb
const PPP_IPV4 = 0x0021
const PPP_IPV6 = 0x0057

const IPV4_IN_IP = 4
const TCP = 6
const UDP = 17
const IPV6_IN_IP = 41
const FRAGMENT_HEADER = 44
const GRE = 47
const AUTHENTICATION_HEADER = 51
/** Hop-by-hop, routing, fragment, authentication, destination options, mobility, HIP, shim6. */
const EXTENSION_HEADERS: ReadonlySet<number> = new Set([
  0,
  43,
  FRAGMENT_HEADER,
  AUTHENTICATION_HEADER,
  60,
  135,
  139,
  140,
])

const GENEVE_PORT = 6081
const GTPU_PORT = 2152
/** VXLAN, the port Linux used before VXLAN had one, VXLAN-GPE, Geneve, GTP-U. */
const TUNNEL_PORTS: ReadonlySet<number> = new Set([4789, 8472, 4790, GENEVE_PORT, GTPU_PORT])
const GPE_IPV4 = 1
const GPE_IPV6 = 2
const GPE_ETHERNET = 3
/** Version 1, with the bit that excludes GTP' (the charging protocol). */
const GTP_VERSION_1 = 3
const GTP_PACKET = 255
