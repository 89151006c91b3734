/**
 * Builds packets and capture files byte by byte, from the inside out: `ethernet(ipv4(tcp({ data })))`. It knows
 * nothing of src/: what it writes is read there, and a mistake made twice would cancel out.
 */

/** Bytes, and the number by which the header around them says what they are: an EtherType or an IP protocol. */
export interface Inner {
  readonly type: number
  readonly bytes: Buffer
}

// Transport.

export interface TcpPlan {
  readonly from?: number
  readonly to?: number
  readonly sequence?: number
  readonly flags?: number
  /** A multiple of 4 bytes. */
  readonly options?: Uint8Array
  readonly data?: Uint8Array
}

export const FIN = 1
export const SYN = 2
export const RST = 4
export const ACK = 16

export function tcp(plan: TcpPlan): Inner {
  const { from = 50_000, to = 443, sequence = 1, flags = ACK, options = NONE, data = NONE } = plan
  const words = 5 + options.length / 4
  const header = Buffer.concat([u16(from), u16(to), u32(sequence), u32(0), Buffer.of(words << 4, flags)])
  return { type: 6, bytes: Buffer.concat([header, u16(0xffff), u16(0), u16(0), options, data]) }
}

export function udp(data: Uint8Array, { from = 50_000, to = 443 } = {}): Inner {
  return { type: 17, bytes: Buffer.concat([u16(from), u16(to), u16(8 + data.length), u16(0), data]) }
}

// Internet.

export interface Ipv4Plan {
  readonly source?: string
  readonly destination?: string
  readonly id?: number
  /** A multiple of 4 bytes. */
  readonly options?: Uint8Array
  /** What the header says instead of the truth: offloading network cards leave 0. */
  readonly totalLength?: number
  /** Offset in bytes, and whether more follow. */
  readonly fragment?: readonly [offset: number, more: boolean]
}

export const CLIENT = '192.0.2.1'
export const SERVER = '198.51.100.2'

export function ipv4(inner: Inner, plan: Ipv4Plan = {}): Inner {
  const {
    source = CLIENT,
    destination = SERVER,
    id = 1,
    options = NONE,
    fragment: [offset, more] = [0, false],
  } = plan
  const header = 20 + options.length
  const fragment = (offset >> 3) | (more ? 0x2000 : 0)
  const fixed = Buffer.concat([
    Buffer.of(0x40 | (header / 4), 0),
    u16(plan.totalLength ?? header + inner.bytes.length),
    u16(id),
    u16(fragment),
    Buffer.of(64, inner.type, 0, 0),
    address4(source),
    address4(destination),
  ])
  return { type: 0x0800, bytes: Buffer.concat([fixed, options, inner.bytes]) }
}

export interface Ipv6Plan {
  /** Eight groups: no `::`. */
  readonly source?: string
  readonly destination?: string
}

export const CLIENT_6 = '2001:db8:0:0:0:0:0:1'
export const SERVER_6 = '2001:db8:0:0:1:0:0:2'

export function ipv6(inner: Inner, { source = CLIENT_6, destination = SERVER_6 }: Ipv6Plan = {}): Inner {
  const fixed = Buffer.concat([u32(0x6000_0000), u16(inner.bytes.length), Buffer.of(inner.type, 64)])
  return {
    type: 0x86dd,
    bytes: Buffer.concat([fixed, address6(source), address6(destination), inner.bytes]),
  }
}

/** An IPv6 extension header (RFC 8200 §4): hop-by-hop 0, routing 43, destination options 60 and those like them. */
export function extensionHeader(type: number, inner: Inner, units = 0): Inner {
  const header = Buffer.alloc(8 + 8 * units)
  header[0] = inner.type
  header[1] = units
  return { type, bytes: Buffer.concat([header, inner.bytes]) }
}

/** RFC 4302 §2: its length counts in fours. */
export function authenticationHeader(inner: Inner): Inner {
  const header = Buffer.alloc(24)
  header[0] = inner.type
  header[1] = 24 / 4 - 2
  return { type: 51, bytes: Buffer.concat([header, inner.bytes]) }
}

export function fragmentHeader(inner: Inner, offset = 0, more = false, id = 1): Inner {
  const header = Buffer.concat([Buffer.of(inner.type, 0), u16(offset | (more ? 1 : 0)), u32(id)])
  return { type: 44, bytes: Buffer.concat([header, inner.bytes]) }
}

/** The payload of an IP packet in fragments of `size` bytes, a multiple of 8. */
export function fragmentsOf(inner: Inner, size: number, wrap: typeof fragmentHeader): Inner[] {
  const { type, bytes } = inner
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => {
    const at = index * size
    return wrap({ type, bytes: bytes.subarray(at, at + size) }, at, at + size < bytes.length)
  })
}

// Between the link and IP.

export function vlan(inner: Inner, type = 0x8100): Inner {
  return { type, bytes: Buffer.concat([u16(7), u16(inner.type), inner.bytes]) }
}

/** RFC 3032: a stack of labels. What is inside has to show by itself. */
export function mpls(inner: Buffer, labels = 1, type = 0x8847): Inner {
  const stack = Array.from({ length: labels }, (_, index) =>
    u32((16 << 12) | (index === labels - 1 ? 0x140 : 0x40)),
  )
  return { type, bytes: Buffer.concat([...stack, inner]) }
}

/** RFC 4448 §4.6: the word before an Ethernet frame that tells it from IP. */
export function controlWord(frame: Buffer): Buffer {
  return Buffer.concat([u32(0), frame])
}

/** RFC 1661 §2: the protocol in two bytes, or compressed into one. */
export function ppp(inner: Inner, compressed = false): Buffer {
  const protocol = inner.type === 0x0800 ? 0x21 : 0x57
  return Buffer.concat([compressed ? Buffer.of(protocol) : u16(protocol), inner.bytes])
}

export function pppoe(inner: Inner): Inner {
  const session = ppp(inner)
  return { type: 0x8864, bytes: Buffer.concat([Buffer.of(0x11, 0), u16(1), u16(session.length), session]) }
}

// Tunnels.

export interface GrePlan {
  readonly checksum?: boolean
  readonly key?: boolean
  readonly sequence?: boolean
  /** PPTP's (RFC 2637): version 1, and an acknowledgement. */
  readonly acknowledgement?: boolean
}

export function gre(inner: Inner, plan: GrePlan = {}): Inner {
  const { checksum = false, key = false, sequence = false, acknowledgement = false } = plan
  const flags =
    (checksum ? 0x8000 : 0) | (key ? 0x2000 : 0) | (sequence ? 0x1000 : 0) | (acknowledgement ? 0x0081 : 0)
  const optional = [checksum, key, sequence, acknowledgement].filter(Boolean).map(() => u32(0x01020304))
  return { type: 47, bytes: Buffer.concat([u16(flags), u16(inner.type), ...optional, inner.bytes]) }
}

/** An Ethernet frame within GRE. */
export function bridged(frame: Buffer): Inner {
  return { type: 0x6558, bytes: frame }
}

/** draft-foschiano-erspan: type I has no header and goes without GRE's sequence number. */
export function erspan1(frame: Buffer): Inner {
  return gre({ type: 0x88be, bytes: frame })
}

export function erspan2(frame: Buffer): Inner {
  return gre({ type: 0x88be, bytes: Buffer.concat([u16(0x1007), u16(0), u32(0), frame]) }, { sequence: true })
}

export function erspan3(frame: Buffer, platform = false): Inner {
  const header = Buffer.concat([u16(0x2007), u16(0), u32(0), u16(0), u16(platform ? 1 : 0)])
  const subheader = platform ? Buffer.alloc(8) : NONE
  return gre({ type: 0x22eb, bytes: Buffer.concat([header, subheader, frame]) }, { sequence: true })
}

/** RFC 7348 §5. */
export function vxlan(frame: Buffer, to = 4789): Inner {
  return udp(Buffer.concat([u32(0x0800_0000), u32(7 << 8), frame]), { to })
}

/** draft-ietf-nvo3-vxlan-gpe: 1 is IPv4, 2 IPv6, 3 Ethernet. */
export function vxlanGpe(inner: Buffer, nextProtocol: number): Inner {
  return udp(Buffer.concat([u32(0x0c00_0000 | nextProtocol), u32(7 << 8), inner]), { to: 4790 })
}

/** RFC 8926 §3.4; `options` a multiple of 4 bytes. */
export function geneve(inner: Inner, options: Uint8Array = NONE): Inner {
  const header = Buffer.concat([Buffer.of(options.length / 4, 0), u16(inner.type), u32(7 << 8), options])
  return udp(Buffer.concat([header, inner.bytes]), { to: 6081 })
}

export interface GtpPlan {
  readonly sequence?: boolean
  /** Extension headers, each of 4 × n - 2 bytes. */
  readonly extensions?: readonly Uint8Array[]
  /** 255 carries a packet. */
  readonly messageType?: number
}

/** 3GPP TS 29.281 §5. */
export function gtpu(
  packet: Inner,
  { sequence = false, extensions = [], messageType = 255 }: GtpPlan = {},
): Inner {
  const flags = 0x30 | (sequence ? 0x02 : 0) | (extensions.length > 0 ? 0x04 : 0)
  const chain = extensions.map((content, index) => {
    const next = index + 1 < extensions.length ? 0x85 : 0
    return Buffer.concat([Buffer.of((content.length + 2) / 4), content, Buffer.of(next)])
  })
  const optional = (flags & 7) === 0 ? NONE : Buffer.of(0, 1, 0, extensions.length > 0 ? 0x85 : 0)
  const after = Buffer.concat([optional, ...chain, packet.bytes])
  const header = Buffer.concat([Buffer.of(flags, messageType), u16(after.length), u32(7)])
  return udp(Buffer.concat([header, after]), { to: 2152 })
}

// Links.

export function ethernet(inner: Inner): Buffer {
  return Buffer.concat([Buffer.from('020000000001020000000002', 'hex'), u16(inner.type), inner.bytes])
}

export interface Link {
  readonly name: string
  readonly linkType: number
  frame(inner: Inner): Buffer
}

/** https://www.tcpdump.org/linktypes.html */
export const LINKS: readonly Link[] = [
  { name: 'Ethernet', linkType: 1, frame: ethernet },
  {
    name: 'null, little-endian',
    linkType: 0,
    frame: ({ type, bytes }) => Buffer.concat([u32(family(type)).reverse(), bytes]),
  },
  {
    name: 'null, big-endian',
    linkType: 0,
    frame: ({ type, bytes }) => Buffer.concat([u32(family(type)), bytes]),
  },
  { name: 'loop', linkType: 108, frame: ({ type, bytes }) => Buffer.concat([u32(family(type)), bytes]) },
  ...[12, 14, 101].map((linkType) => ({
    name: `raw ${linkType}`,
    linkType,
    frame: ({ bytes }: Inner) => bytes,
  })),
  {
    name: 'Linux cooked',
    linkType: 113,
    frame: ({ type, bytes }) => Buffer.concat([Buffer.alloc(14), u16(type), bytes]),
  },
  {
    name: 'Linux cooked 2',
    linkType: 276,
    frame: ({ type, bytes }) => Buffer.concat([u16(type), Buffer.alloc(18), bytes]),
  },
  { name: 'PPP', linkType: 9, frame: (inner) => ppp(inner) },
  { name: 'PPP, compressed', linkType: 9, frame: (inner) => ppp(inner, true) },
  {
    name: 'PPP in HDLC framing',
    linkType: 50,
    frame: (inner) => Buffer.concat([Buffer.of(0xff, 3), ppp(inner)]),
  },
  { name: 'PPPoE', linkType: 51, frame: (inner) => pppoe(inner).bytes },
]

function family(etherType: number): number {
  return etherType === 0x0800 ? 2 : 30
}

// Capture files.

export interface Frame {
  readonly linkType: number
  readonly bytes: Buffer
}

/** Little-endian, as most machines write; `big` is the other order. */
export type Order = 'little' | 'big'

export interface PcapPlan {
  readonly order?: Order
  readonly magic?: number
  readonly linkType?: number
}

export const MICROSECONDS = 0xa1b2c3d4
export const NANOSECONDS = 0xa1b23c4d
/** Of a patched libpcap: 8 bytes more before each packet. */
export const MODIFIED = 0xa1b2cd34

/** The file as its parts: the header, then a record a frame. */
export function pcapParts(frames: readonly Uint8Array[], plan: PcapPlan = {}): Buffer[] {
  const { order = 'little', magic = MICROSECONDS, linkType = 1 } = plan
  const n = numbers(order)
  const header = Buffer.concat([
    n.u32(magic),
    n.u16(2),
    n.u16(4),
    n.u32(0),
    n.u32(0),
    n.u32(262_144),
    n.u32(linkType),
  ])
  const more = magic === MODIFIED ? Buffer.alloc(8) : NONE
  const records = frames.map((bytes) =>
    Buffer.concat([n.u32(1_700_000_000), n.u32(7), n.u32(bytes.length), n.u32(bytes.length), more, bytes]),
  )
  return [header, ...records]
}

export function pcap(frames: readonly Uint8Array[], plan: PcapPlan = {}): Buffer {
  return Buffer.concat(pcapParts(frames, plan))
}

/** A block of pcapng, in the byte order of its section. */
export type Block = (order: Order) => Buffer

/** A section and what is in it. Several one after the other are one file. */
export function pcapngParts(blocks: readonly Block[], order: Order = 'little'): Buffer[] {
  const header = block(0x0a0d0d0a, (n) => [
    n.u32(0x1a2b3c4d),
    n.u16(1),
    n.u16(0),
    n.u32(0xffff_ffff),
    n.u32(0xffff_ffff),
  ])
  return [header, ...blocks].map((each) => each(order))
}

export function pcapng(blocks: readonly Block[], order: Order = 'little'): Buffer {
  return Buffer.concat(pcapngParts(blocks, order))
}

export function interfaceBlock(linkType = 1, snapLength = 0): Block {
  return block(1, (n) => [n.u16(linkType), n.u16(0), n.u32(snapLength)])
}

export function enhancedPacket(bytes: Uint8Array, id = 0): Block {
  return block(6, (n) => [n.u32(id), ...packetFields(n, bytes)])
}

export function simplePacket(bytes: Uint8Array, originalLength = bytes.length): Block {
  return block(3, (n) => [n.u32(originalLength), padded(bytes)])
}

/** The packet block that version 1.0 of the format gave up. */
export function oldPacket(bytes: Uint8Array, id = 0): Block {
  return block(2, (n) => [n.u16(id), n.u16(0), ...packetFields(n, bytes)])
}

export function secretsBlock(text: string, type = 0x544c534b): Block {
  return block(10, (n) => [n.u32(type), n.u32(text.length), padded(Buffer.from(text, 'latin1'))])
}

/** The same block with a comment at its end, as an option (pcapng §3.5). */
export function commented(plain: Block): Block {
  return (order) => {
    const n = numbers(order)
    const bytes = plain(order)
    const comment = Buffer.concat([n.u16(1), n.u16(5), padded(Buffer.from('hello')), n.u32(0)])
    const length = n.u32(bytes.length + comment.length)
    return Buffer.concat([bytes.subarray(0, 4), length, bytes.subarray(8, -4), comment, length])
  }
}

export function block(type: number, body: (n: Numbers) => readonly Uint8Array[]): Block {
  return (order) => {
    const n = numbers(order)
    const content = Buffer.concat(body(n))
    const length = n.u32(12 + content.length)
    return Buffer.concat([n.u32(type), length, content, length])
  }
}

function packetFields(n: Numbers, bytes: Uint8Array): Buffer[] {
  return [n.u32(0), n.u32(7), n.u32(bytes.length), n.u32(bytes.length), padded(bytes)]
}

function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)])
}

export interface Numbers {
  u16(value: number): Buffer
  u32(value: number): Buffer
}

function numbers(order: Order): Numbers {
  const turn = (bytes: Buffer): Buffer => (order === 'big' ? bytes : bytes.reverse())
  return { u16: (value) => turn(u16(value)), u32: (value) => turn(u32(value)) }
}

// A whole connection.

export interface TalkPlan {
  readonly from?: number
  readonly to?: number
  readonly source?: string
  readonly destination?: string
  /** The sequence numbers that the SYNs of client and server have. */
  readonly starts?: readonly [client: number, server: number]
}

/** The Ethernet frames of one TCP connection, in the order in which the methods are called. */
export class Talk {
  readonly frames: Buffer[] = []
  readonly #plan: Required<TalkPlan>
  readonly #next: [client: number, server: number]

  constructor(plan: TalkPlan = {}) {
    this.#plan = { from: 50_000, to: 443, source: CLIENT, destination: SERVER, starts: [1000, 2000], ...plan }
    this.#next = [...this.#plan.starts]
  }

  open(): this {
    return this.#send(0, SYN, NONE)
      .#send(1, SYN | ACK, NONE)
      .#send(0, ACK, NONE)
  }

  /** What the client says, in segments of at most `size` bytes. */
  client(bytes: Uint8Array | string, size = 1400): this {
    return this.#say(0, bytes, size)
  }

  server(bytes: Uint8Array | string, size = 1400): this {
    return this.#say(1, bytes, size)
  }

  /** Bytes that were sent, and are not in the capture. */
  lose(side: 0 | 1, length: number): this {
    this.#next[side] += length
    return this
  }

  close(): this {
    return this.#send(0, FIN | ACK, NONE)
      .#send(1, FIN | ACK, NONE)
      .#send(0, ACK, NONE)
  }

  reset(side: 0 | 1 = 1): this {
    return this.#send(side, RST, NONE)
  }

  #say(side: 0 | 1, said: Uint8Array | string, size: number): this {
    const bytes = typeof said === 'string' ? Buffer.from(said, 'latin1') : said
    for (let at = 0; at < bytes.length; at += size) this.#send(side, ACK, bytes.subarray(at, at + size))
    return this
  }

  #send(side: 0 | 1, flags: number, data: Uint8Array): this {
    const { from, to, source, destination } = this.#plan
    const sequence = this.#next[side] >>> 0
    const packet =
      side === 0
        ? ipv4(tcp({ from, to, sequence, flags, data }), { source, destination })
        : ipv4(tcp({ from: to, to: from, sequence, flags, data }), {
            source: destination,
            destination: source,
          })
    this.frames.push(ethernet(packet))
    this.#next[side] += data.length + (flags & (SYN | FIN) ? 1 : 0)
    return this
  }
}

// Bytes.

export function u16(value: number): Buffer {
  return Buffer.of(value >> 8, value)
}

export function u32(value: number): Buffer {
  return Buffer.of(value >> 24, value >> 16, value >> 8, value)
}

function address4(text: string): Buffer {
  return Buffer.from(text.split('.').map(Number))
}

function address6(text: string): Buffer {
  return Buffer.concat(text.split(':').map((group) => u16(Number.parseInt(group, 16))))
}

const NONE = Buffer.alloc(0)
