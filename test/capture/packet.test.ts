import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { addressText, PacketDecoder } from '../../src/capture/packet.ts'
import {
  authenticationHeader,
  bridged,
  controlWord,
  erspan1,
  erspan2,
  erspan3,
  ethernet,
  extensionHeader,
  type Frame,
  fragmentHeader,
  fragmentsOf,
  geneve,
  gre,
  gtpu,
  type Inner,
  ipv4,
  ipv6,
  LINKS,
  mpls,
  ppp,
  pppoe,
  tcp,
  udp,
  vlan,
  vxlan,
  vxlanGpe,
} from './packet-builder.ts'
import { timeBox } from '../time-box.ts'

const SEGMENT = tcp({
  from: 40_000,
  to: 8443,
  sequence: 7,
  options: Buffer.alloc(12, 1),
  data: Buffer.from('hello'),
})
const SEGMENT_4 = `192.0.2.1 > 198.51.100.2, 6: ${SEGMENT.bytes.toString('hex')}`
const SEGMENT_6 = `2001:db8::1 > 2001:db8::1:0:0:2, 6: ${SEGMENT.bytes.toString('hex')}`
const V4 = ipv4(SEGMENT)
const V6 = ipv6(SEGMENT)
/** The addresses of a tunnel's ends. */
const ENDS = { source: '10.0.0.1', destination: '10.0.0.2' }
const DATAGRAM = udp(Buffer.from('data'))

for (const link of LINKS) {
  test(`packet: ${link.name}`, async () => {
    assert.equal(decode({ linkType: link.linkType, bytes: link.frame(V4) }), SEGMENT_4)
    assert.equal(decode({ linkType: link.linkType, bytes: link.frame(V6) }), SEGMENT_6)
  })
}

/** Everything that can stand around a packet, each with the same segment in it. */
const WRAPPED: readonly (readonly [name: string, outer: Inner, isIpv6?: true])[] = [
  ['VLAN', vlan(V4)],
  ['VLAN in a priority tag', vlan(vlan(V6), 0x8100), true],
  ['QinQ', vlan(vlan(V4), 0x88a8)],
  ['QinQ before it had a number', vlan(vlan(vlan(V4), 0x9200), 0x9100)],
  ['MPLS', mpls(V4.bytes)],
  ['MPLS, three labels, IPv6', mpls(V6.bytes, 3, 0x8848), true],
  ['MPLS pseudowire', mpls(controlWord(ethernet(vlan(V4))), 2)],
  ['MPLS pseudowire without a control word', mpls(ethernet(V4).fill(0x20, 0, 1))],
  ['PPPoE', pppoe(V4)],
  ['PPPoE in a VLAN', vlan(pppoe(V6)), true],
  ['IPv4 options', ipv4(SEGMENT, { options: Buffer.alloc(40, 1) })],
  ['total length 0, left by offloading', ipv4(SEGMENT, { totalLength: 0 })],
  ['hop-by-hop', ipv6(extensionHeader(0, SEGMENT)), true],
  ['all extension headers', ipv6(all([0, 60, 43, 135, 139, 140], 3)), true],
  ['authentication header', ipv6(authenticationHeader(extensionHeader(60, SEGMENT))), true],
  ['authentication header of IPv4', ipv4(authenticationHeader(SEGMENT))],
  ['a fragment header and no fragment', ipv6(fragmentHeader(SEGMENT)), true],
  ['IPv4 in IPv4', ipv4({ ...V4, type: 4 }, ENDS)],
  ['IPv6 in IPv4', ipv4({ ...V6, type: 41 }, ENDS), true],
  ['IPv4 in IPv6', ipv6({ ...V4, type: 4 })],
  ['GRE', ipv4(gre(V4), ENDS)],
  ['GRE with all it may have', ipv4(gre(V6, { checksum: true, key: true, sequence: true }), ENDS), true],
  ['GRE, Ethernet bridged', ipv4(gre(bridged(ethernet(vlan(V4))), { key: true }), ENDS)],
  [
    'PPTP',
    ipv4(gre({ type: 0x880b, bytes: ppp(V4) }, { key: true, sequence: true, acknowledgement: true }), ENDS),
  ],
  [
    'PPTP, framed',
    ipv4(
      gre({ type: 0x880b, bytes: Buffer.concat([Buffer.of(0xff, 3), ppp(V4, true)]) }, { key: true }),
      ENDS,
    ),
  ],
  ['ERSPAN I', ipv4(erspan1(ethernet(V4)), ENDS)],
  ['ERSPAN II', ipv4(erspan2(ethernet(vlan(V4))), ENDS)],
  ['ERSPAN III', ipv4(erspan3(ethernet(V4)), ENDS)],
  ['ERSPAN III with a subheader', ipv6(erspan3(ethernet(V4), true))],
  ['VXLAN', ipv4(vxlan(ethernet(V4)), ENDS)],
  ['VXLAN on the port before it had one', ipv4(vxlan(ethernet(V6), 8472), ENDS), true],
  ['VXLAN-GPE, IPv4', ipv4(vxlanGpe(V4.bytes, 1), ENDS)],
  ['VXLAN-GPE, IPv6', ipv4(vxlanGpe(V6.bytes, 2), ENDS), true],
  ['VXLAN-GPE, Ethernet', ipv4(vxlanGpe(ethernet(V4), 3), ENDS)],
  ['Geneve', ipv4(geneve(bridged(ethernet(V4))), ENDS)],
  ['Geneve with options, IP', ipv6(geneve(V4, Buffer.alloc(252)))],
  ['GTP-U', ipv4(gtpu(V4), ENDS)],
  ['GTP-U with a sequence number', ipv4(gtpu(V6, { sequence: true }), ENDS), true],
  ['GTP-U with an extension header, as in 5G', ipv4(gtpu(V4, { extensions: [Buffer.of(0x10, 1)] }), ENDS)],
  [
    'GTP-U with several',
    ipv4(gtpu(V4, { sequence: true, extensions: [Buffer.alloc(2), Buffer.alloc(6), Buffer.alloc(2)] }), ENDS),
  ],
  ['VXLAN in GRE in IPv6', ipv6(gre(ipv4(vxlan(ethernet(vlan(V4))), ENDS)))],
]

for (const [name, outer, isIpv6] of WRAPPED) {
  test(`packet: ${name}`, async () => {
    assert.equal(decode(frameOf(outer)), isIpv6 ? SEGMENT_6 : SEGMENT_4)
  })
}

test('packet: what stands after an IP packet is padding, what is missing was not captured', async () => {
  const { bytes } = frameOf(V4)
  assert.equal(decode({ linkType: 1, bytes: Buffer.concat([bytes, Buffer.alloc(9)]) }), SEGMENT_4)
  assert.equal(decode({ linkType: 1, bytes: bytes.subarray(0, -2) }), SEGMENT_4.slice(0, -4))
  const longer = udp(Buffer.from('data'))
  longer.bytes.writeUInt16BE(10, 4)
  assert.equal(
    decode(frameOf(ipv4(longer))),
    `192.0.2.1 > 198.51.100.2, 17: ${longer.bytes.toString('hex', 0, 10)}`,
  )
})

test('packet: what carries no TCP or UDP is passed over', async () => {
  const passed: readonly (readonly [string, Frame])[] = [
    ['an unknown link', { linkType: 105, bytes: ethernet(V4) }],
    ['ARP', frameOf({ type: 0x0806, bytes: Buffer.alloc(28) })],
    ['ICMP', frameOf(ipv4({ type: 1, bytes: SEGMENT.bytes }))],
    [
      'IP version 5',
      frameOf({ type: 0x0800, bytes: Buffer.concat([Buffer.of(0x55), V4.bytes.subarray(1)]) }),
    ],
    [
      'IPv4 header of 16 bytes',
      frameOf({ type: 0x0800, bytes: Buffer.concat([Buffer.of(0x44), V4.bytes.subarray(1)]) }),
    ],
    ['IPv4 shorter than its header', frameOf(ipv4(SEGMENT, { totalLength: 19 }))],
    ['TCP without its header', frameOf(ipv4({ type: 6, bytes: SEGMENT.bytes.subarray(0, 19) }))],
    [
      'GRE with routing',
      frameOf(ipv4({ type: 47, bytes: Buffer.concat([Buffer.of(0x40), gre(V4).bytes.subarray(1)]) })),
    ],
    ['PPP of another kind', { linkType: 9, bytes: Buffer.concat([Buffer.of(0xc0, 0x21), V4.bytes]) }],
  ]
  for (const [name, frame] of passed) assert.equal(decode(frame), null, name)
})

/** Packets to the port of a tunnel that are not tunnelled; the inner addresses of some can be read first. */
const NO_TUNNELS: readonly (readonly [name: string, datagram: Inner])[] = [
  ...[4789, 8472, 4790, 6081, 2152].flatMap((to) =>
    ['', '\x08', '\x30', 'a text instead of a tunnel'].map(
      (text) => [`${JSON.stringify(text)} to ${to}`, udp(Buffer.from(text, 'latin1'), { to })] as const,
    ),
  ),
  ['VXLAN, inside not captured', vxlan(ethernet(V4).subarray(0, 40))],
  ['VXLAN, ARP', vxlan(ethernet({ type: 0x0806, bytes: Buffer.alloc(28) }))],
  ['VXLAN, IPv6 and ICMP', vxlan(ethernet(ipv6({ type: 58, bytes: Buffer.alloc(20) })))],
  ['VXLAN-GPE of another kind', vxlanGpe(V4.bytes, 4)],
  [
    'Geneve, options longer than the packet',
    udp(geneve(V4).bytes.subarray(8).fill(0x3f, 0, 1), { to: 6081 }),
  ],
  ['Geneve version 1', udp(geneve(V4).bytes.subarray(8).fill(0x40, 0, 1), { to: 6081 })],
  ['GTP-U, not a packet', gtpu(V4, { messageType: 1 })],
  ['GTP-U, an extension header of no length', gtpu(V4, { extensions: [Buffer.alloc(0), Buffer.alloc(2)] })],
  [
    'GTP-U, an extension header past the end',
    gtpu({ type: 0, bytes: Buffer.alloc(0) }, { extensions: [Buffer.alloc(2).fill(200)] }),
  ],
  ["GTP', which charges", udp(gtpu(V4).bytes.subarray(8).fill(0x20, 0, 1), { to: 2152 })],
]

test('packet: a UDP packet to the port of a tunnel keeps its addresses if it is not tunnelled', async () => {
  for (const [name, datagram] of NO_TUNNELS) {
    const expected = `10.0.0.1 > 10.0.0.2, 17: ${datagram.bytes.toString('hex')}`
    assert.equal(decode(frameOf(ipv4(datagram, ENDS))), expected, name)
  }
})

test('packet: fragments, in whatever order, twice, and mixed with others', async () => {
  const long = tcp({ data: Buffer.alloc(200, 'abcdefghijk') })
  const other = tcp({ data: Buffer.alloc(200, 'other') })
  const v4 = (inner: Inner, id: number): Buffer[] =>
    fragmentsOf(inner, 64, (piece, offset = 0, more = false) =>
      ipv4(piece, { id, fragment: [offset, more] }),
    ).map(ethernet)
  const v6 = (inner: Inner, id: number): Buffer[] =>
    fragmentsOf(inner, 64, (piece, offset, more) => ipv6(fragmentHeader(piece, offset, more, id))).map(
      ethernet,
    )
  const wrapped = (inner: Inner, id: number): Buffer[] =>
    v4(inner, id).map((frame) => ethernet(ipv4(vxlan(frame), ENDS)))
  for (const fragments of [v4, v6, wrapped]) {
    const mixed = [...fragments(long, 1), ...fragments(other, 2)]
    for (let turn = 0; turn < mixed.length; turn++) {
      // Two of each, from another place on each time.
      const frames = [...mixed.slice(turn), ...mixed.slice(0, turn)].flatMap((frame) => [frame, frame])
      const decoder = new PacketDecoder()
      const found = frames.map((bytes) => decode({ linkType: 1, bytes }, decoder)).filter(isSegment)
      const payloads = found.map((text) => text.replace(/.* /, ''))
      assert.deepEqual(
        payloads.toSorted(),
        [long, other].map(({ bytes }) => bytes.toString('hex')).toSorted(),
      )
    }
  }
})

test('packet: an IPv6 packet fragmented with its extension headers', async () => {
  const inner = extensionHeader(60, SEGMENT, 20)
  const decoder = new PacketDecoder()
  const found = fragmentsOf(inner, 80, fragmentHeader).map((piece) => decode(frameOf(ipv6(piece)), decoder))
  assert.deepEqual(found, [null, null, SEGMENT_6])
})

test('packet: headers within headers end', async () => {
  const nested = (wrap: (inner: Inner) => Inner): Inner => {
    let inner: Inner = V4
    for (let depth = 0; depth < 300; depth++) inner = wrap(inner)
    return inner
  }
  const bombs: readonly (readonly [string, Frame])[] = [
    ['VLAN', frameOf(nested((inner) => vlan(inner)))],
    ['IP in IP', frameOf(nested((inner) => ipv4({ ...inner, type: 4 })))],
    ['GRE', frameOf(nested((inner) => ipv4(gre(inner))))],
    ['VXLAN', frameOf(nested((inner) => ipv4(vxlan(ethernet(inner)))))],
    ['GTP-U', frameOf(nested((inner) => ipv4(gtpu(inner))))],
    ['Geneve in VLAN', frameOf(nested((inner) => vlan(ipv4(geneve(inner)))))],
    ['extension headers', frameOf(ipv6(all(new Array<number>(1000).fill(60))))],
    ['labels', frameOf(mpls(ethernet(nested((inner) => mpls(controlWord(ethernet(inner))))), 10_000))],
  ]
  for (const [name, frame] of bombs) {
    const found = decode(frame)
    assert.ok(found === null || found.includes(', 17: '), `${name}: ${found?.slice(0, 60)}`)
  }
  // As deep as anyone goes is read.
  const tunnels = ipv6(gre(ipv4(vxlan(ethernet(V4)))))
  assert.equal(decode(frameOf(vlan(vlan(mpls(controlWord(ethernet(vlan(tunnels)))))))), SEGMENT_4)
  assert.equal(decode(frameOf(mpls(V4.bytes, 300))), SEGMENT_4)
})

const SAMPLES: readonly Frame[] = [
  ...LINKS.flatMap(({ linkType, frame }) => [V4, V6].map((inner) => ({ linkType, bytes: frame(inner) }))),
  ...WRAPPED.map(([, outer]) => frameOf(outer)),
  ...NO_TUNNELS.map(([, datagram]) => frameOf(ipv4(datagram))),
  frameOf(ipv4(DATAGRAM)),
  frameOf(ipv6(DATAGRAM)),
]

test('packet: cut at every byte, and nothing is read behind the cut', async () => {
  for (const { linkType, bytes } of SAMPLES) {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const found = [0x00, 0xff, 0x45, 0x60].map((filling) => {
        const memory = Buffer.concat([
          Buffer.alloc(3, filling),
          bytes.subarray(0, cut),
          Buffer.alloc(200, filling),
        ])
        return decodeAt(new PacketDecoder(), linkType, memory, 3, 3 + cut)
      })
      assert.deepEqual(new Set(found).size, 1, `${linkType} ${bytes.toString('hex')} cut at ${cut}: ${found}`)
    }
  }
})

test('packet: any bytes are read to their end', async () => {
  const mutated = fc
    .tuple(fc.constantFrom(...SAMPLES), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }))
    .map(([{ linkType, bytes }, changes]) => {
      const changed = Buffer.from(bytes)
      for (const [at, byte] of changes) changed[at % changed.length] = byte
      return { linkType, bytes: changed }
    })
  const anything = fc.record({
    linkType: fc.constantFrom(...LINKS.map(({ linkType }) => linkType)),
    bytes: fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
  })
  const decoder = new PacketDecoder()
  fc.assert(
    fc.property(
      fc.oneof({ weight: 9, arbitrary: mutated }, anything),
      (frame) => void decode(frame, decoder),
    ),
    TIME_BOX,
  )
})

test('addressText: RFC 5952', async () => {
  const written: readonly (readonly [string, string])[] = [
    ['0000 0000 0000 0000 0000 0000 0000 0000', '::'],
    ['0000 0000 0000 0000 0000 0000 0000 0001', '::1'],
    ['2001 0db8 0000 0000 0000 0000 0000 0000', '2001:db8::'],
    ['2001 0db8 0000 0001 0001 0001 0001 0001', '2001:db8:0:1:1:1:1:1'],
    ['2001 0000 0000 0001 0000 0000 0000 0001', '2001:0:0:1::1'],
    ['2001 0db8 0000 0000 0001 0000 0000 0001', '2001:db8::1:0:0:1'],
    ['ffff ffff ffff ffff ffff ffff ffff ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ]
  for (const [hex, text] of written) {
    const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
    assert.equal(
      addressText(
        [0, 4, 8, 12].map((at) => bytes.readInt32BE(at)),
        true,
      ),
      text,
    )
  }
  assert.equal(addressText([-1], false), '255.255.255.255')
  assert.equal(addressText([0x7f000001], false), '127.0.0.1')
})

/** `source > destination, protocol: header and payload`, or `null` when it was passed over. */
function decode({ linkType, bytes }: Frame, decoder = new PacketDecoder()): string | null {
  return decodeAt(decoder, linkType, bytes, 0, bytes.length)
}

function decodeAt(
  decoder: PacketDecoder,
  linkType: number,
  bytes: Buffer,
  at: number,
  end: number,
): string | null {
  if (!decoder.decode(linkType, bytes, at, end)) return null
  assert.ok(
    decoder.at <= decoder.end && decoder.end <= (decoder.bytes === bytes ? end : decoder.bytes.length),
  )
  assert.ok(decoder.end - decoder.at >= (decoder.protocol === 6 ? 20 : 8))
  const ends = [decoder.source, decoder.destination].map((words) => addressText(words, decoder.isIpv6))
  return `${ends.join(' > ')}, ${decoder.protocol}: ${decoder.bytes.toString('hex', decoder.at, decoder.end)}`
}

function frameOf(inner: Inner): Frame {
  return { linkType: 1, bytes: ethernet(inner) }
}

function isSegment(text: string | null): text is string {
  return text?.includes(', 6: ') === true
}

/** The segment behind extension headers of these types, each of `units` times 8 bytes more than 8. */
function all(types: readonly number[], units = 0): Inner {
  return types.reduceRight((inner, type) => extensionHeader(type, inner, units), SEGMENT)
}

const TIME_BOX = timeBox(50_000, 2_000)
