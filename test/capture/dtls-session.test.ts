import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { DtlsSession, dtlsOpening } from '../../src/capture/dtls-session.ts'
import type { TlsFinding } from '../../src/capture/finding.ts'
import { Handshake } from '../../src/capture/handshake.ts'
import { ja4 } from '../../src/fingerprint/ja4.ts'
import { ja4s } from '../../src/fingerprint/ja4plus/ja4s.ts'
import { ja4x } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { parseDtlsClientHello } from '../../src/wire/client-hello.ts'
import { parseDtlsServerHello } from '../../src/wire/server-hello.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import {
  certificateBody,
  clientHello,
  handshakeMessage,
  serverHello,
  serverName,
} from '../vectors/hello-builder.ts'
import { memoryInUse } from './memory.ts'
import { CERTIFICATE_DER } from './recorded-tls.ts'
import { timeBox } from '../time-box.ts'

const TIME_BOX = timeBox(20_000, 1_500)
const ENDS = { src: '', src_port: 0, dst: '', dst_port: 0 }

interface Message {
  readonly fromClient: boolean
  readonly bytes: Buffer
}

const EXTENSIONS = [serverName('example.test')]
const FIRST_HELLO = clientHello({ ciphers: [0xc02b, 0xc02c], extensions: EXTENSIONS }, 'dtls')
const SECOND_HELLO = numbered(
  1,
  clientHello({ ciphers: [0xc02b, 0xc02c], extensions: EXTENSIONS, cookie: Buffer.alloc(20) }, 'dtls'),
)
const SERVER_HELLO = numbered(1, serverHello({ cipher: 0xc02b }, 'dtls'))

/** A handshake with a cookie, by flights. */
const FLIGHTS: readonly (readonly Message[])[] = [
  [{ fromClient: true, bytes: FIRST_HELLO }],
  [{ fromClient: false, bytes: handshakeMessage(3, Buffer.alloc(23), 'dtls', 0) }],
  [{ fromClient: true, bytes: SECOND_HELLO }],
  [
    { fromClient: false, bytes: SERVER_HELLO },
    {
      fromClient: false,
      bytes: handshakeMessage(11, certificateBody([CERTIFICATE_DER, CERTIFICATE_DER], '12'), 'dtls', 2),
    },
    { fromClient: false, bytes: handshakeMessage(14, Buffer.alloc(0), 'dtls', 3) },
  ],
  [
    { fromClient: true, bytes: handshakeMessage(11, certificateBody([CERTIFICATE_DER], '12'), 'dtls', 2) },
    { fromClient: true, bytes: handshakeMessage(16, Buffer.alloc(66), 'dtls', 3) },
  ],
]

/** What the messages say when nothing happens to them. */
function expected(): Partial<TlsFinding> {
  const [first, second] = [FIRST_HELLO, SECOND_HELLO].map((message) => {
    const read = parseDtlsClientHello(message)
    assert.ok(read.kind === 'client-hello')
    return ja4(read.hello, 'dtls')
  })
  const server = parseDtlsServerHello(SERVER_HELLO)
  assert.ok(server.kind === 'server-hello')
  const certificate = parseCertificate(CERTIFICATE_DER)
  assert.ok(certificate.kind === 'certificate')
  const own = ja4x(certificate.oids)
  return {
    transport: 'dtls',
    sni: 'example.test',
    ja4: first!,
    ja4_later: [second!],
    ja4s: ja4s(server.hello, 'dtls'),
    ja4s_later: [],
    ja4x: [own, own],
    ja4x_client: [own],
  }
}
const EXPECTED = expected()

test('dtls: a handshake with a cookie', async () => {
  const { session, finding } = play(
    FLIGHTS.flat().map(({ fromClient, bytes }) => [fromClient, record(22, 0, bytes)]),
  )
  assert.deepEqual(finding, EXPECTED)
  assert.equal(session.done, false)
})

test('dtls: fragments in any order within a flight, twice, and cut otherwise when sent again', async () => {
  const cuts = fc.array(fc.array(fc.integer({ min: 1, max: 120 }), { maxLength: 12 }), {
    minLength: 16,
    maxLength: 16,
  })
  const keys = fc.array(fc.nat(), { minLength: 20, maxLength: 60 })
  fc.assert(
    fc.property(cuts, keys, fc.boolean(), (sizes, order, packed) => {
      let message = 0
      let place = 0
      const datagrams: [boolean, Buffer][] = []
      for (const flight of FLIGHTS) {
        const pieces = flight.flatMap(({ fromClient, bytes }) => {
          const twice = [sizes[message++]!, sizes[message++]!]
          return twice.flatMap((each) => fragments(bytes, each)).map((bytes) => ({ fromClient, bytes }))
        })
        const shuffled = pieces
          .map((piece) => ({ ...piece, key: order[place++ % order.length]! }))
          .toSorted((a, b) => a.key - b.key)
        if (packed) datagrams.push([flight[0]!.fromClient, Buffer.concat(shuffled.map(({ bytes }) => bytes))])
        else
          datagrams.push(...shuffled.map(({ fromClient, bytes }): [boolean, Buffer] => [fromClient, bytes]))
      }
      assert.deepEqual(play(datagrams).finding, EXPECTED)
    }),
    TIME_BOX,
  )
})

test('dtls: the frame is the one that completed the hello', async () => {
  const [one, two, three] = fragments(FIRST_HELLO, [20, 20]) as [Buffer, Buffer, Buffer]
  const handshake = new Handshake('dtls', true)
  const session = new DtlsSession(handshake)
  for (const [i, datagram] of [three, one, one, two, one].entries()) session.push(true, datagram, 10 + i)
  assert.equal(handshake.finding(ENDS)?.frame, 13)
})

/** What shares its ports with DTLS (RFC 7983). Read as records, some would begin an encrypted epoch. */
const NO_DTLS: readonly Buffer[] = [
  '000100002112a4420102030405060708090a0b0c', // STUN binding request
  '010100002112a44200000000000000000000000c', // STUN answer
  '80605f0a0000000100000000000000000000000000000000', // RTP
  '80c80006000000010000000000000000000000000000', // RTCP
  '400000080102030405060708', // TURN channel
  '1000000000000000000000000000', // ZRTP
  '', // a NAT is kept open
  '16030100050100000000', // TLS
].map((hex) => Buffer.from(hex, 'hex'))

test('dtls: ignores other packets between those of DTLS', async () => {
  const datagrams = FLIGHTS.flat().flatMap(({ fromClient, bytes }): [boolean, Buffer][] => [
    ...NO_DTLS.flatMap((each): [boolean, Buffer][] => [
      [true, each],
      [false, each],
    ]),
    [fromClient, record(22, 0, bytes)],
  ])
  const { session, finding } = play(datagrams)
  assert.deepEqual(finding, EXPECTED)
  assert.equal(session.done, false)
})

test('dtls: it is over when both sides have gone over to encryption', async () => {
  const hidden: readonly (readonly [string, Buffer])[] = [
    ['ChangeCipherSpec', record(20, 0, Buffer.of(1))],
    ['an epoch', record(22, 1, Buffer.alloc(40))],
    ['a connection id (RFC 9146)', record(25, 1, Buffer.alloc(3))],
    ['DTLS 1.3', Buffer.from('2e1234001700', 'hex')],
  ]
  for (const [name, bytes] of hidden) {
    const session = new DtlsSession(new Handshake('dtls', true))
    session.push(true, bytes, 1)
    session.push(true, bytes, 2)
    assert.equal(session.done, false, name)
    session.push(false, bytes, 3)
    assert.equal(session.done, true, name)
  }
})

test('dtls: who begins', async () => {
  const hello = record(22, 0, FIRST_HELLO)
  const openings: readonly (readonly [Buffer, 'client' | 'server' | null])[] = [
    [hello, 'client'],
    [versioned(hello, 0xfeff), 'client'],
    [versioned(hello, 0x0100), 'client'],
    [versioned(hello, 0x0303), null],
    [record(22, 0, SERVER_HELLO), 'server'],
    [record(22, 0, FLIGHTS[1]![0]!.bytes), 'server'],
    [record(22, 0, FLIGHTS[3]![1]!.bytes), null],
    [record(22, 1, FIRST_HELLO), null],
    [record(23, 0, FIRST_HELLO), null],
    [hello.subarray(0, 24), null],
    ...NO_DTLS.map((bytes) => [bytes, null] as const),
  ]
  for (const [bytes, opening] of openings)
    assert.equal(dtlsOpening(bytes), opening, bytes.toString('hex', 0, 30))
})

test('dtls: what a peer announces does not make it hold more', async () => {
  const handshake = new Handshake('dtls', true)
  const session = new DtlsSession(handshake)
  const datagram = record(22, 0, fragment(1, 100_000, 0, 1, Buffer.alloc(16_000)))
  const before = memoryInUse()
  for (let sequence = 0; sequence < 100; sequence++) {
    for (let at = 1; at < 80_000; at += 16_000) {
      datagram.writeUInt16BE(sequence, 13 + 4)
      datagram.writeUIntBE(at, 13 + 6, 3)
      session.push(true, datagram, 1)
    }
  }
  const held = memoryInUse() - before
  assert.ok(held < 256 * 1024, `${held} bytes`)
  assert.equal(session.done, false)
})

test('dtls: fragments that contradict each other make no message', async () => {
  const body = FIRST_HELLO.subarray(12)
  const half = body.length >> 1
  for (const [name, second] of [
    ['another length', fragment(1, body.length + 1, 0, half, body.subarray(half))],
    ['past the end', fragment(1, body.length, 0, half + 1, body.subarray(half))],
    ['longer than any', fragment(1, 0xff_ffff, 0, half, body.subarray(half))],
    ['another message', fragment(1, body.length, 1, half, body.subarray(half))],
  ] as const) {
    const first = record(22, 0, fragment(1, body.length, 0, 0, body.subarray(0, half)))
    const { finding } = play([
      [true, first],
      [true, record(22, 0, second)],
    ])
    assert.equal(finding, null, name)
  }
})

test('dtls: cut at every byte, and any change, without a throw', async () => {
  const datagrams = FLIGHTS.flat().map(({ fromClient, bytes }): [boolean, Buffer] => [
    fromClient,
    Buffer.concat(fragments(bytes, [30, 30])),
  ])
  for (const [i, [fromClient, bytes]] of datagrams.entries()) {
    for (let cut = 0; cut < bytes.length; cut++)
      play(datagrams.with(i, [fromClient, bytes.subarray(0, cut)]).slice(0, i + 1))
  }
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat(255)), { maxLength: 8 })
  fc.assert(
    fc.property(changes, (all) => {
      const changed = datagrams.map(([fromClient, bytes]): [boolean, Buffer] => [
        fromClient,
        Buffer.from(bytes),
      ])
      for (const [which, at, byte] of all) {
        const [, bytes] = changed[which % changed.length]!
        bytes[at % bytes.length] = byte
      }
      play(changed)
    }),
    TIME_BOX,
  )
})

/** The datagrams as a capture in which each is a frame; and of what is found, what `EXPECTED` has. */
function play(datagrams: readonly [boolean, Buffer][]): { session: DtlsSession; finding: unknown } {
  const handshake = new Handshake('dtls', true)
  const session = new DtlsSession(handshake)
  for (const [i, [fromClient, bytes]] of datagrams.entries()) {
    const borrowed = Buffer.from(bytes)
    session.push(fromClient, borrowed, i + 1)
    borrowed.fill(0xee)
  }
  const found = handshake.finding(ENDS)
  if (found === null) return { session, finding: null }
  const { transport, sni, ja4, ja4_later, ja4s, ja4s_later, ja4x, ja4x_client } = found
  return { session, finding: { transport, sni, ja4, ja4_later, ja4s, ja4s_later, ja4x, ja4x_client } }
}

/** The message with its number in the handshake. */
function numbered(sequence: number, message: Buffer): Buffer {
  message.writeUInt16BE(sequence, 4)
  return message
}

/** The message in records of a fragment each, cut where `sizes` says. */
function fragments(message: Buffer, sizes: readonly number[]): Buffer[] {
  const body = message.subarray(12)
  const datagrams: Buffer[] = []
  let at = 0
  for (const size of [...sizes, body.length]) {
    const piece = body.subarray(at, at + size)
    if (piece.length === 0 && at > 0) break
    const sequence = message.readUInt16BE(4)
    datagrams.push(record(22, 0, fragment(message[0]!, body.length, sequence, at, piece)))
    at += size
  }
  return datagrams
}

function fragment(type: number, length: number, sequence: number, at: number, bytes: Buffer): Buffer {
  const header = Buffer.alloc(12)
  header[0] = type
  header.writeUIntBE(length, 1, 3)
  header.writeUInt16BE(sequence, 4)
  header.writeUIntBE(at, 6, 3)
  header.writeUIntBE(bytes.length, 9, 3)
  return Buffer.concat([header, bytes])
}

function record(type: number, epoch: number, bytes: Buffer): Buffer {
  const header = Buffer.from('00fefd00000000000000010000', 'hex')
  header[0] = type
  header.writeUInt16BE(epoch, 3)
  header.writeUInt16BE(bytes.length, 11)
  return Buffer.concat([header, bytes])
}

function versioned(datagram: Buffer, version: number): Buffer {
  const copy = Buffer.from(datagram)
  copy.writeUInt16BE(version, 1)
  return copy
}
