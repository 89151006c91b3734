import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import type { TlsFinding } from '../../src/capture/finding.ts'
import { Handshake } from '../../src/capture/handshake.ts'
import { KeyLog } from '../../src/capture/key-log.ts'
import { looksLikeQuicInitial, QuicSession } from '../../src/capture/quic.ts'
import { PacketKeys, initialKeys as readerKeys, readLongPacket } from '../../src/capture/quic-packet.ts'
import { suiteOf } from '../../src/capture/tls-cipher.ts'
import { ja4x } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import * as build from './quic-builder.ts'
import { CERTIFICATE_DER } from './recorded-tls.ts'
import { timeBox } from '../time-box.ts'

interface Sample {
  readonly name: string
  readonly source: string
  readonly fromClient: boolean
  readonly packet: string
  readonly frames: string | null
}

const samples: readonly Sample[] = JSON.parse(
  readFileSync(new URL('../vectors/quic-packets.json', import.meta.url), 'utf8'),
)
const sample = (name: string): Buffer =>
  Buffer.from(samples.find((each) => each.name === name)!.packet, 'hex')
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

const SAMPLE_ID = hex('8394c8f03e515708')

for (const { name, fromClient, packet, frames } of samples) {
  if (frames === null) continue
  test(`${name}: opens to what the RFC sealed`, async () => {
    const read = readLongPacket(Buffer.from(packet, 'hex'))
    assert.ok(read !== null)
    const opened = readerKeys(read.version, SAMPLE_ID, fromClient).open(read)
    assert.ok(opened !== null)
    assert.equal(Buffer.from(opened).toString('hex').slice(0, frames.length), frames)
    assert.ok(opened.subarray(frames.length / 2).every((byte) => byte === 0))
  })

  test(`${name}: the builder of these tests seals it the same`, async () => {
    const version = name.startsWith('RFC 9369') ? build.V2 : build.V1
    const plain = Buffer.from(frames, 'hex')
    const sealed = build.sealPacket({
      version,
      kind: 'initial',
      destination: fromClient ? SAMPLE_ID : Buffer.alloc(0),
      source: fromClient ? Buffer.alloc(0) : hex('f067a5502a4262b5'),
      number: fromClient ? 2 : 1,
      numberBytes: fromClient ? 4 : 2,
      frames: fromClient ? Buffer.concat([plain, build.padding(1162 - plain.length)]) : plain,
      keys: build.initialKeys(version, SAMPLE_ID, fromClient),
    })
    assert.equal(sealed.toString('hex'), packet)
  })
}

test('the samples make a connection, for both versions', async () => {
  for (const rfc of ['RFC 9001', 'RFC 9369']) {
    const { session, finding } = read([
      [true, sample(`${rfc} client Initial`)],
      [false, sample(`${rfc} Retry`)],
      [false, sample(`${rfc} server Initial`)],
    ])
    assert.ok(session.done)
    assert.equal(finding?.sni, 'example.com')
    assert.equal(finding?.ja4, 'q13d0211an_62ed6f6ca7ad_4d634acda6c0')
    assert.equal(finding?.ja4s, 'q130200_1301_234ea6891581')
  }
})

test('ChaCha20: the keys and the mask of RFC 9001 §A.5', async () => {
  const secret = hex('9ac312a7f877468ebe69422748ad00a1 5443f18203a07d6060f688f30f21632b')
  const keys = build.keysOf(build.V1, 'chacha20-poly1305', 'sha256', secret)
  assert.equal(keys.iv.toString('hex'), 'e0459b3474bdd0e44a41c144')
  assert.equal(build.headerMask(keys, hex('5e5cd55c41f69080575d7999c25a5bfb')).toString('hex'), 'aefefe7d03')
  const sealed = build.seal(keys, 654_360_564, hex('4200bff4'), hex('01'))
  assert.equal(sealed.toString('hex'), '655e5cd55c41f69080575d7999c25a5bfb')
})

type Datagram = readonly [fromClient: boolean, bytes: Buffer]

interface Seen {
  readonly session: QuicSession
  readonly finding: TlsFinding | null
  /** How many datagrams were read before it was done. */
  readonly read: number
}

function read(datagrams: readonly Datagram[], keyLog = ''): Seen {
  const keys = new KeyLog()
  keys.add(keyLog)
  const handshake = new Handshake('quic', true)
  const session = new QuicSession(keys, handshake)
  let count = 0
  for (const [fromClient, bytes] of datagrams) {
    if (session.done) break
    // A caller's buffer holds other bytes once the call is over.
    const borrowed = Buffer.from(bytes)
    session.push(fromClient, borrowed, ++count)
    borrowed.fill(0xee)
  }
  const finding = handshake.finding({ src: 'client', src_port: 1, dst: 'server', dst_port: 2 })
  return { session, finding, read: count }
}

const certificate = parseCertificate(CERTIFICATE_DER)
assert.equal(certificate.kind, 'certificate')
const JA4X = certificate.kind === 'certificate' ? [ja4x(certificate.oids)] : []

interface Suite {
  readonly cipher: number
  readonly aead: build.AeadName
  readonly hash: 'sha256' | 'sha384'
}

const SUITES: readonly Suite[] = [
  { cipher: 0x1301, aead: 'aes-128-gcm', hash: 'sha256' },
  { cipher: 0x1302, aead: 'aes-256-gcm', hash: 'sha384' },
  { cipher: 0x1303, aead: 'chacha20-poly1305', hash: 'sha256' },
  { cipher: 0x1304, aead: 'aes-128-ccm', hash: 'sha256' },
]

/** The packets of one connection, as the two ends seal them. */
class Talk {
  readonly version: build.Version
  readonly random = randomBytes(32)
  readonly suite: Suite
  /** The client's made-up id, from which the Initial keys come. */
  readonly destination: Buffer
  readonly #secrets = [randomBytes(48), randomBytes(48)]
  readonly #numbers = new Map<string, number>()

  constructor(version = build.V1, suite = SUITES[0]!, destination: Buffer = randomBytes(8)) {
    this.version = version
    this.suite = suite
    this.destination = destination
  }

  get keyLog(): string {
    const [client, server] = this.#secrets.map((secret) => this.#secret(secret).toString('hex'))
    const random = this.random.toString('hex')
    return `CLIENT_HANDSHAKE_TRAFFIC_SECRET ${random} ${client}\nSERVER_HANDSHAKE_TRAFFIC_SECRET ${random} ${server}\n`
  }

  initial(fromClient: boolean, frames: Buffer, changes: Partial<build.Packet> = {}): Buffer {
    const version = changes.version ?? this.version
    const keys = build.initialKeys(version, this.destination, fromClient)
    return this.#seal('initial', fromClient, frames, { keys, version, ...changes })
  }

  handshake(fromClient: boolean, frames: Buffer, changes: Partial<build.Packet> = {}): Buffer {
    const secret = this.#secret(this.#secrets[fromClient ? 0 : 1]!)
    const keys = build.keysOf(changes.version ?? this.version, this.suite.aead, this.suite.hash, secret)
    return this.#seal('handshake', fromClient, frames, { keys, ...changes })
  }

  #seal(
    kind: build.Kind,
    fromClient: boolean,
    frames: Buffer,
    rest: Partial<build.Packet> & { keys: build.Keys },
  ): Buffer {
    const space = `${kind} ${fromClient}`
    const number = this.#numbers.get(space) ?? 0
    this.#numbers.set(space, number + 1)
    const destination = fromClient ? this.destination : CLIENT_ID
    const source = fromClient ? CLIENT_ID : SERVER_ID
    // RFC 9001 §5.4.2: long enough to take the sample from.
    const padded = Buffer.concat([frames, build.padding(4)])
    return build.sealPacket({
      version: this.version,
      kind,
      number,
      destination,
      source,
      frames: padded,
      ...rest,
    })
  }

  #secret(secret: Buffer): Buffer {
    return this.suite.hash === 'sha384' ? secret : secret.subarray(0, 32)
  }
}

const CLIENT_ID = hex('c11e')
const SERVER_ID = hex('5e12fe125e12fe12')
const SERVER_FLIGHT = Buffer.concat([
  build.ENCRYPTED_EXTENSIONS,
  build.certificate(CERTIFICATE_DER),
  build.FINISHED,
])
/** What a 1-RTT packet looks like. */
const SHORT = Buffer.concat([Buffer.from([0x43]), randomBytes(60)])

/** A whole handshake: the server's second datagram goes on with its first one's last message. */
function handshakeOf(talk: Talk, helloLength = 300): Datagram[] {
  const hello = build.clientHello(talk.random, helloLength)
  const clientFinished = talk.handshake(true, build.cryptoFrame(0, build.FINISHED), {
    destination: SERVER_ID,
  })
  const cut = 300
  return [
    [true, talk.initial(true, Buffer.concat([build.cryptoFrame(0, hello), build.padding(800)]))],
    [
      false,
      Buffer.concat([
        talk.initial(
          false,
          Buffer.concat([
            build.ACK,
            build.cryptoFrame(0, build.serverHello(randomBytes(32), talk.suite.cipher)),
          ]),
        ),
        talk.handshake(false, build.cryptoFrame(0, SERVER_FLIGHT.subarray(0, cut))),
      ]),
    ],
    [
      false,
      Buffer.concat([talk.handshake(false, build.cryptoFrame(cut, SERVER_FLIGHT.subarray(cut))), SHORT]),
    ],
    [true, Buffer.concat([talk.initial(true, build.ACK, { destination: SERVER_ID }), clientFinished, SHORT])],
    [false, SHORT],
  ]
}

for (const version of [build.V1, build.V2, build.DRAFT_27, build.DRAFT_29, build.DRAFT_34]) {
  for (const suite of SUITES) {
    test(`${version.name}, ${suite.aead}: a whole handshake, and nothing after it`, async () => {
      const talk = new Talk(version, suite)
      const datagrams = handshakeOf(talk)
      assert.ok(looksLikeQuicInitial(datagrams[0]![1]))
      const seen = read(datagrams, talk.keyLog)
      assert.deepEqual(seen.finding?.alpn, ['h3'])
      assert.equal(seen.finding?.frame, 1)
      assert.equal(seen.finding?.ja4s?.slice(8, 12), suite.cipher.toString(16))
      assert.deepEqual(seen.finding?.ja4x, JA4X)
      assert.equal(seen.read, 4)

      const blind = read(datagrams)
      assert.equal(blind.finding?.ja4s, seen.finding?.ja4s)
      assert.equal(blind.read, 2)
    })
  }
}

test('what looks like the first Initial of a client', async () => {
  const [[, first]] = handshakeOf(new Talk()) as [Datagram]
  assert.ok(looksLikeQuicInitial(first))
  assert.ok(looksLikeQuicInitial(Buffer.concat([first, SHORT])))
  const change = (at: number, to: number): Buffer => {
    const changed = Buffer.from(first)
    changed[at] = to
    return changed
  }
  assert.ok(!looksLikeQuicInitial(change(0, first[0]! & 0x7f)), 'short header')
  assert.ok(!looksLikeQuicInitial(change(0, first[0]! & 0xbf)), 'the fixed bit is 0')
  assert.ok(!looksLikeQuicInitial(change(0, first[0]! | 0x20)), 'a Handshake packet')
  assert.ok(!looksLikeQuicInitial(change(4, 2)), 'another version')
  assert.ok(!looksLikeQuicInitial(change(5, 7)), 'an id no client makes up')
  assert.ok(!looksLikeQuicInitial(change(5, 21)), 'an id too long')
  for (let end = 0; end < first.length; end++) assert.ok(!looksLikeQuicInitial(first.subarray(0, end)))
  assert.ok(!looksLikeQuicInitial(Buffer.from('00000001000000000000', 'hex')), 'DNS')
})

test('a datagram without the fixed bit is ignored', async () => {
  const talk = new Talk()
  const datagrams = handshakeOf(talk)
  const greased = Buffer.from(datagrams[0]![1])
  greased[0]! &= 0xbf
  assert.equal(read([[true, greased]]).finding, null)
  assert.notEqual(read([[true, greased], ...datagrams]).finding, null)
})

test('a hello cut, shuffled, overlapping and repeated over datagrams in any order', async () => {
  const talk = new Talk()
  const hello = build.clientHello(talk.random, 1800)
  const expected = read([[true, talk.initial(true, build.cryptoFrame(0, hello))]]).finding
  assert.notEqual(expected, null)
  const arrangement = fc.record({
    cuts: fc.array(fc.integer({ min: 1, max: hello.length }), { maxLength: 40 }),
    overlap: fc.nat(30),
    order: fc.infiniteStream(fc.nat()),
    repeat: fc.boolean(),
    perDatagram: fc.integer({ min: 1, max: 20 }),
  })
  fc.assert(
    fc.property(arrangement, ({ cuts, overlap, order, repeat, perDatagram }) => {
      const ends = [...new Set([...cuts, hello.length])].sort((a, b) => a - b)
      const frames = ends.map((end, i) => {
        const from = Math.max(0, (ends[i - 1] ?? 0) - overlap)
        return Buffer.concat([
          build.PING,
          build.cryptoFrame(from, hello.subarray(from, end)),
          build.padding(3),
        ])
      })
      shuffle(frames, order)
      const datagrams: Datagram[] = []
      for (let i = 0; i < frames.length; i += perDatagram) {
        datagrams.push([
          true,
          talk.initial(true, Buffer.concat([build.ACK, ...frames.slice(i, i + perDatagram)])),
        ])
      }
      shuffle(datagrams, order)
      const seen = read(repeat ? datagrams.flatMap((each) => [each, each]) : datagrams)
      assert.deepEqual({ ...seen.finding, frame: 1 }, expected)
      if (overlap === 0 && !repeat) assert.equal(seen.finding?.frame, datagrams.length)
    }),
    timeBox(100, 2_000),
  )
})

function shuffle<T>(items: T[], order: fc.Stream<number>): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = order.next().value % (i + 1)
    ;[items[i], items[j]] = [items[j]!, items[i]!]
  }
}

test('the datagrams of a handshake in any order, each perhaps twice', async () => {
  const talk = new Talk()
  const datagrams = handshakeOf(talk).slice(0, 4)
  const expected = read(datagrams, talk.keyLog).finding
  const twice = fc.array(fc.constantFrom(...datagrams), { maxLength: 6 })
  fc.assert(
    fc.property(fc.shuffledSubarray(datagrams, { minLength: 4 }), twice, (order, again) => {
      const seen = read([...again, ...order], talk.keyLog)
      assert.deepEqual({ ...seen.finding, frame: 1 }, expected)
      assert.ok(seen.session.done)
    }),
    timeBox(100, 2_000),
  )
})

test('after a Retry the keys come from the new id, and the hello is still one', async () => {
  const first = new Talk()
  const retried = new Talk(build.V1, SUITES[0]!, SERVER_ID)
  const hello = build.cryptoFrame(0, build.clientHello(first.random, 1000))
  const again = { number: 1, token: randomBytes(100) }
  const answer = build.cryptoFrame(0, build.serverHello(randomBytes(32), 0x1301))
  const datagrams: Datagram[] = [
    [true, first.initial(true, hello)],
    [false, sample('RFC 9001 Retry')],
    [true, retried.initial(true, hello, again)],
    [true, first.initial(true, hello)], // late
    [false, retried.initial(false, answer)],
  ]
  const seen = read(datagrams)
  assert.deepEqual(seen.finding?.ja4_later, [])
  assert.notEqual(seen.finding?.ja4s, null)
  assert.ok(seen.session.done)
  assert.deepEqual({ ...read(datagrams.slice(1)).finding, frame: 1 }, seen.finding)
})

test('after Version Negotiation the client begins again', async () => {
  const first = new Talk(build.DRAFT_29)
  const second = new Talk(build.V2)
  const negotiation = Buffer.concat([hex('c000000000'), Buffer.from([0, 8]), SERVER_ID, hex('6b3343cf')])
  const seen = read(
    [[true, handshakeOf(first)[0]![1]], [false, negotiation], ...handshakeOf(second)],
    second.keyLog,
  )
  assert.equal(seen.finding?.ja4_later.length, 1)
  assert.deepEqual(seen.finding?.ja4x, JA4X)
})

test('a server that answers in another version without asking (RFC 9368)', async () => {
  const talk = new Talk(build.V1)
  const change = { version: build.V2 }
  const answer = build.cryptoFrame(0, build.serverHello(randomBytes(32), 0x1301))
  const datagrams: Datagram[] = [
    handshakeOf(talk)[0]!,
    [false, Buffer.concat([talk.initial(false, build.ACK), talk.initial(false, answer, change)])],
    [true, talk.initial(true, build.ACK, { ...change, destination: SERVER_ID })],
    [false, talk.handshake(false, build.cryptoFrame(0, SERVER_FLIGHT), change)],
    [true, talk.handshake(true, build.cryptoFrame(0, build.FINISHED), change)],
  ]
  const seen = read(datagrams, talk.keyLog)
  assert.deepEqual(seen.finding?.ja4x, JA4X)
  assert.ok(seen.session.done)
})

test('HelloRetryRequest: the second hello goes on in the same stream', async () => {
  const talk = new Talk()
  const hello = build.clientHello(talk.random, 500)
  const retry = build.serverHello(build.RETRY_RANDOM, 0x1301)
  const seen = read([
    [true, talk.initial(true, build.cryptoFrame(0, hello))],
    [false, talk.initial(false, build.cryptoFrame(0, retry))],
    [true, talk.initial(true, build.cryptoFrame(hello.length, hello), { destination: SERVER_ID })],
    [false, talk.initial(false, build.cryptoFrame(retry.length, build.serverHello(randomBytes(32), 0x1301)))],
  ])
  assert.equal(seen.finding?.hello_retry_request, true)
  assert.equal(seen.finding?.ja4_later.length, 1)
  assert.equal(seen.finding?.ja4s_later.length, 1)
  assert.ok(seen.session.done)
})

test('packet numbers are completed from the largest seen', async () => {
  const talk = new Talk()
  const hello = build.clientHello(talk.random, 400)
  const numbers = [
    [0xac5c02, 4],
    [0xac5c80, 1], // 126 on
    [0xac5d00, 1], // over the edge of a byte
    [0xac5cff, 1], // and back
    [0xacdd00, 2],
  ] as const
  const datagrams = numbers.map(([number, numberBytes], i): Datagram => {
    const frame = build.cryptoFrame(i * 80, hello.subarray(i * 80, (i + 1) * 80))
    return [true, talk.initial(true, frame, { number, numberBytes })]
  })
  assert.equal(read(datagrams).finding?.frame, 5)
})

test('with secrets for one side only, or the wrong ones', async () => {
  const talk = new Talk()
  const datagrams = handshakeOf(talk)
  const [client, server] = talk.keyLog.split('\n')
  assert.deepEqual(read(datagrams, `${server}\n`).finding?.ja4x, JA4X)
  assert.equal(read(datagrams, `${server}\n`).read, 3)
  assert.deepEqual(read(datagrams, `${client}\n`).finding?.ja4x, [])
  const wrong = talk.keyLog.replaceAll(/[0-9a-f]{8}$/gm, '00000000')
  const seen = read([...datagrams, ...Array.from({ length: 2000 }, (): Datagram => [false, SHORT])], wrong)
  assert.deepEqual(seen.finding?.ja4x, [])
  assert.ok(seen.session.done)
})

test('a flood is read to its limit and no further', async () => {
  const talk = new Talk()
  const hello = build.clientHello(talk.random, 1000)
  const scattered = (i: number): Buffer => build.cryptoFrame(2 + 2 * i, Buffer.from([1]))
  const floods: readonly ((i: number) => Datagram)[] = [
    () => [true, randomBytes(1200)],
    () => [true, new Talk().initial(true, build.cryptoFrame(1, hello))],
    (i) => [true, talk.initial(true, scattered(i), { number: i })],
    (i) => [true, talk.initial(true, build.cryptoFrame(2 ** 29 - i, hello), { number: i })],
    (i) => [false, talk.initial(false, scattered(i), { number: i })],
    (i) => [false, talk.handshake(false, hello, { number: i })],
  ]
  for (const flood of floods) {
    const seen = read(
      Array.from({ length: 1100 }, (_, i) => flood(i)),
      talk.keyLog,
    )
    assert.ok(seen.session.done)
    assert.ok(seen.read <= 1000)
  }
})

test('mutated datagrams never make it throw', async () => {
  const talk = new Talk()
  const datagrams = handshakeOf(talk)
  const expected = read(datagrams, talk.keyLog).finding
  const place = fc.record({ datagram: fc.nat(3), at: fc.nat(1200), to: fc.nat(255) })
  fc.assert(
    fc.property(fc.array(place, { minLength: 1, maxLength: 4 }), (places) => {
      const mutated = datagrams.map(([fromClient, bytes]): Datagram => [fromClient, Buffer.from(bytes)])
      for (const { datagram, at, to } of places) {
        const bytes = mutated[datagram]![1]
        bytes[at % bytes.length] = to
      }
      const { finding } = read(mutated, talk.keyLog)
      if (finding !== null) assert.equal(finding.ja4, expected?.ja4)
    }),
    timeBox(100, 1_500),
  )
})

test('any frames inside a sealed packet, and any bytes outside, never make it throw', async () => {
  const talk = new Talk()
  const bytes = fc.uint8Array({ maxLength: 200 }).map((each) => Buffer.from(each))
  const frame = fc.oneof(
    bytes,
    fc.tuple(fc.nat(3000), bytes).map(([offset, data]) => build.cryptoFrame(offset, data)),
    fc.constantFrom(build.ACK, build.PING, build.cryptoFrame(0, build.clientHello(talk.random))),
  )
  const frames = fc.array(frame).map((each) => Buffer.concat(each))
  const datagram = fc.oneof(
    fc
      .tuple(fc.boolean(), bytes)
      .map(([fromClient, rest]): Datagram => [fromClient, Buffer.concat([hex('c000000001'), rest])]),
    fc
      .tuple(fc.boolean(), frames)
      .map(([fromClient, inside]): Datagram => [fromClient, talk.initial(fromClient, inside)]),
    fc
      .tuple(fc.boolean(), frames)
      .map(([fromClient, inside]): Datagram => [fromClient, talk.handshake(fromClient, inside)]),
  )
  fc.assert(
    fc.property(fc.array(datagram, { maxLength: 12 }), (datagrams) => {
      read(datagrams, talk.keyLog)
    }),
    timeBox(100, 2_000),
  )
})

test('keys open nothing that was changed by a bit', async () => {
  const talk = new Talk(build.V1, SUITES[2]!)
  const secret = hex('22'.repeat(32))
  const keys = build.keysOf(build.V1, 'chacha20-poly1305', 'sha256', secret)
  const packet = talk.handshake(true, build.PING, { keys })
  for (let bit = 0; bit < packet.length * 8; bit++) {
    const changed = Buffer.from(packet)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    const read = readLongPacket(changed)
    if (read?.kind !== 'handshake') continue
    assert.equal(new PacketKeys(read.version, suiteOf(0x1303)!, secret).open(read), null)
  }
  const intact = readLongPacket(packet)!
  assert.notEqual(new PacketKeys(intact.version, suiteOf(0x1303)!, secret).open(intact), null)
})
