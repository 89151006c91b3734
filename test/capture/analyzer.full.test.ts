import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { Analyzer } from '../../src/capture/analyzer.ts'
import type { TlsFinding } from '../../src/capture/finding.ts'
import { KeyLog } from '../../src/capture/key-log.ts'
import { clientHello, handshakeMessage, serverHello } from '../vectors/hello-builder.ts'
import { analyze, hellosOf } from './analysis.ts'
import { memoryInUse } from './memory.ts'
import { ACK, ethernet, FIN, type Inner, ipv4, ipv6, SYN, Talk, tcp, udp, vlan } from './packet-builder.ts'
import * as quic from './quic-builder.ts'
import { record } from './recorded-tls.ts'

const RECORDING = await record({ client: { servername: 'example.test', ALPNProtocols: ['h2', 'http/1.1'] } })
const HELLOS = hellosOf(RECORDING.chunks)

const hello = (plan = {}): Talk => new Talk(plan).open().client(HELLOS.client).server(HELLOS.server)
const get = (path: string): string => `GET ${path} HTTP/1.1\r\n\r\n`
const paths = (frames: readonly Buffer[]): string[] => analyze(frames).http.map(({ path }) => path)

test('analyzer: a finding says it all, in the order in which it is printed', async () => {
  const { tls, http } = analyze(connection().frames, RECORDING.keyLog)
  const [found] = tls
  assert.deepEqual(Object.keys(found!), [
    ...['kind', 'transport', 'frame', 'src', 'src_port', 'dst', 'dst_port', 'sni', 'alpn'],
    ...['ja4', 'ja4_r', 'ja4_o', 'ja4_ro', 'ja4_stable', 'ja4_later', 'ja4s', 'ja4s_r', 'ja4s_later'],
    ...['hello_retry_request', 'ja4x', 'ja4x_r', 'ja4x_client'],
  ])
  assert.deepEqual(
    { ...found, ja4: '', ja4_r: '', ja4_o: '', ja4_ro: '', ja4_stable: '', ja4s_r: '', ja4x: 1, ja4x_r: 1 },
    {
      kind: 'tls',
      transport: 'tcp',
      frame: 3 + Math.ceil(HELLOS.client.length / 1400),
      src: '192.0.2.1',
      src_port: 50_000,
      dst: '198.51.100.2',
      dst_port: 443,
      sni: 'example.test',
      alpn: ['h2', 'http/1.1'],
      ja4: '',
      ja4_r: '',
      ja4_o: '',
      ja4_ro: '',
      ja4_stable: '',
      ja4_later: [],
      ja4s: HELLOS.ja4s,
      ja4s_r: '',
      ja4s_later: [],
      hello_retry_request: false,
      ja4x: 1,
      ja4x_r: 1,
      ja4x_client: [],
    },
  )
  assert.deepEqual([found?.ja4, found?.ja4x.length, found?.ja4x_r.length], [HELLOS.ja4, 1, 1])
  assert.deepEqual(Object.keys(http[0]!), [
    ...['kind', 'transport', 'frame', 'src', 'src_port', 'dst', 'dst_port'],
    ...['http', 'method', 'path', 'ja4h', 'ja4h_r'],
  ])
  assert.deepEqual([http[0]?.http, http[0]?.method, http[0]?.path], ['http1', 'POST', '/upload'])
})

test('analyzer: without JA4+ there is JA4 only', async () => {
  const { tls, http } = analyze(
    [...connection().frames, ...new Talk({ from: 1 }).client(get('/')).frames],
    RECORDING.keyLog,
    false,
  )
  const [found] = tls
  assert.equal(found?.ja4, HELLOS.ja4)
  assert.deepEqual(
    [found?.ja4s, found?.ja4s_r, found?.ja4s_later, found?.ja4x, found?.ja4x_r, found?.ja4x_client],
    [null, null, [], [], [], []],
  )
  assert.deepEqual(
    http.map(({ ja4h, ja4h_r }) => [ja4h, ja4h_r]),
    [
      [null, null],
      [null, null],
    ],
  )
})

test('analyzer: keys that come in the capture open what follows them', async () => {
  const found: unknown[] = []
  const analyzer = new Analyzer({ ja4plus: true, found: (finding) => found.push(finding.kind) }, new KeyLog())
  analyzer.secrets(RECORDING.keyLog.trimEnd())
  for (const frame of connection().frames) analyzer.packet(1, 1, frame, 0, frame.length)
  assert.deepEqual(found, ['http', 'tls'])
})

test('analyzer: a hello whose segments come backwards is found in the last of them', async () => {
  const talk = new Talk().open()
  const opening = talk.frames.length
  talk.client(HELLOS.client, 100)
  const frames = [...talk.frames.slice(0, opening), ...talk.frames.slice(opening).reverse()]
  assert.deepEqual(
    analyze(frames).tls.map(({ ja4, frame }) => [ja4, frame]),
    [[HELLOS.ja4, frames.length]],
  )
})

test('analyzer: every packet twice, as in a capture of two VLANs, is one finding', async () => {
  const tagged = (frame: Buffer): Buffer => ethernet(vlan({ type: 0x0800, bytes: frame.subarray(14) }))
  const frames = hello().close().frames
  for (const twice of [
    frames.flatMap((frame) => [frame, tagged(frame)]),
    [...frames, ...frames.map(tagged)],
    frames.flatMap((frame, i) => (i % 2 === 0 ? [tagged(frame), frame] : [frame, frame, tagged(frame)])),
  ]) {
    const { findings, tls } = analyze(twice)
    assert.equal(findings.length, 1)
    assert.deepEqual([tls[0]?.ja4, tls[0]?.ja4s], [HELLOS.ja4, HELLOS.ja4s])
  }
})

test('analyzer: ignores packets after the end of a connection', async () => {
  const frames = hello().frames
  for (const end of [new Talk().close(), new Talk().reset(0), new Talk().reset(1)]) {
    assert.equal(analyze([...frames, ...end.frames, ...frames]).findings.length, 1)
  }
  assert.equal(analyze([...frames, ...frames]).findings.length, 1)
})

test('analyzer: a SYN that is sent again begins nothing, another one does', async () => {
  const first = hello()
  const [syn, answer] = first.frames as [Buffer, Buffer]
  assert.equal(analyze([syn, syn, answer, syn, answer, ...first.frames, syn, answer]).findings.length, 1)
  const again = hello({ starts: [70_000, 80_000] })
  for (const between of [[], new Talk().close().frames, new Talk().reset().frames]) {
    assert.equal(analyze([...first.frames, ...between, ...again.frames]).findings.length, 2)
  }
  // The peers may change roles, too.
  const turned = new Talk({
    from: 443,
    to: 50_000,
    source: '198.51.100.2',
    destination: '192.0.2.1',
    starts: [5, 6],
  })
  const back = turned.open().client(HELLOS.client).frames
  assert.deepEqual(
    analyze([...first.frames, ...back]).tls.map(({ src }) => src),
    ['192.0.2.1', '198.51.100.2'],
  )
})

test('analyzer: data before its SYN, and a FIN before the data', async () => {
  const talk = new Talk().open().client(get('/1')).client(get('/2')).close()
  const [syn, answer, ack, one, two, ...end] = talk.frames as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    ...Buffer[],
  ]
  assert.deepEqual(paths([one, syn, answer, two, ack, ...end]), ['/1', '/2'])
  assert.deepEqual(paths([syn, answer, ...end, two, one]), ['/1', '/2'])
  // Data in the SYN (RFC 7413) and in the FIN.
  const quick = [
    ethernet(ipv4(tcp({ flags: SYN, sequence: 0xffff_ffff, data: Buffer.from(get('/1')) }))),
    ethernet(ipv4(tcp({ flags: FIN | ACK, sequence: get('/1').length, data: Buffer.from(get('/2')) }))),
  ]
  assert.deepEqual(paths(quick), ['/1', '/2'])
})

test('analyzer: a finding comes as soon as there is nothing more to learn', async () => {
  const found: TlsFinding[] = []
  const analyzer = new Analyzer(
    { ja4plus: true, found: (finding) => void (finding.kind === 'tls' && found.push(finding)) },
    new KeyLog(),
  )
  for (const frame of hello().frames) {
    assert.deepEqual(found, [])
    analyzer.packet(1, 1, frame, 0, frame.length)
    if (frame.subarray(54).equals(HELLOS.server.subarray(0, 1400))) break
  }
  assert.equal(found[0]?.ja4s, HELLOS.ja4s)
})

test('analyzer: headers that are not right are passed over', async () => {
  const data = Buffer.from(get('/'))
  const short = tcp({ data })
  short.bytes[12] = 0x40
  const long = tcp({ data })
  long.bytes[12] = 0xf0
  assert.deepEqual(paths([ethernet(ipv4(short)), ethernet(ipv4(long))]), [])
})

test('analyzer: IPv6', async () => {
  const frames = [ethernet(ipv6(tcp({ data: Buffer.from(get('/')) })))]
  assert.deepEqual(
    analyze(frames).http.map(({ src, dst }) => [src, dst]),
    [['2001:db8::1', '2001:db8::1:0:0:2']],
  )
})

test('analyzer: connections that are understood hold back nothing that others need', async () => {
  // The server's data behind a hole comes first, then the hello that says it all: the hole is never filled.
  const ahead = new Talk({ starts: [1000, 100_000] }).lose(1, 1)
  for (let i = 0; i < 130; i++) ahead.server(Buffer.alloc(1400))
  const opening = new Talk().open().client(HELLOS.client).frames
  const answer = new Talk({ starts: [1000, 2001] }).server(HELLOS.server).frames
  const frames = [...opening, ...ahead.frames, ...answer]
  const seen: string[] = []
  const analyzer = new Analyzer(
    { ja4plus: true, found: (finding) => seen.push(finding.kind === 'http' ? finding.path : 'tls') },
    new KeyLog(),
  )
  const connections = 400
  for (let i = 0; i < connections; i++) {
    for (const frame of frames) {
      frame[frame[26] === 192 ? 29 : 33] = i & 0xff
      frame[frame[26] === 192 ? 28 : 32] = i >> 8
      analyzer.packet(1, 1, frame, 0, frame.length)
    }
  }
  assert.equal(seen.filter((found) => found === 'tls').length, connections)
  const late = new Talk({ from: 1000 }).open().client(get('/1')).client(get('/2')).frames
  for (const frame of [...late.slice(0, 3), late[4]!, late[3]!]) analyzer.packet(1, 1, frame, 0, frame.length)
  assert.deepEqual(seen.slice(connections), ['/1', '/2'])
})

// Datagrams.

const CLIENT_TO_SERVER = { from: 50_000, to: 4433 }
const SERVER_TO_CLIENT = { from: 4433, to: 50_000 }
type Datagram = readonly [fromClient: boolean, bytes: Buffer]

/** As they are sent between two ports, each in a frame. */
function datagrams(all: readonly Datagram[], v6 = false): Buffer[] {
  return all.map(([fromClient, bytes]) => {
    const inner: Inner = udp(bytes, fromClient ? CLIENT_TO_SERVER : SERVER_TO_CLIENT)
    if (v6)
      return ethernet(
        fromClient
          ? ipv6(inner)
          : ipv6(inner, { source: '2001:db8:0:0:1:0:0:2', destination: '2001:db8:0:0:0:0:0:1' }),
      )
    return ethernet(
      fromClient ? ipv4(inner) : ipv4(inner, { source: '198.51.100.2', destination: '192.0.2.1' }),
    )
  })
}

function dtls(random: Buffer): Datagram[] {
  const packet = (message: Buffer, type = 22): Buffer => {
    const header = Buffer.concat([Buffer.of(type, 0xfe, 0xfd), Buffer.alloc(8), Buffer.alloc(2)])
    header.writeUInt16BE(message.length, 11)
    return Buffer.concat([header, message])
  }
  const first = clientHello({ ciphers: [0xc02b] }, 'dtls')
  const second = clientHello({ ciphers: [0xc02b], cookie: Buffer.alloc(8) }, 'dtls')
  for (const message of [first, second]) random.copy(message, 14)
  second[5] = 1
  const answer = serverHello({ cipher: 0xc02b }, 'dtls')
  answer[5] = 1
  return [
    [true, packet(first)],
    [false, packet(handshakeMessage(3, Buffer.alloc(11), 'dtls'))],
    [true, packet(second)],
    [false, packet(answer)],
    [true, packet(Buffer.of(1), 20)],
    [false, packet(Buffer.of(1), 20)],
  ]
}

/** `id` is what the client calls the server, `source` what it wants to be called itself. */
function quicConnection(random: Buffer, id = randomBytes(8), source = randomBytes(8)): Datagram[] {
  const packet = (fromClient: boolean, number: number, frames: Buffer): Buffer =>
    quic.sealPacket({
      version: quic.V1,
      kind: 'initial',
      destination: fromClient ? id : source,
      source: fromClient ? source : Buffer.from('server-id'),
      number,
      frames: Buffer.concat([frames, quic.padding(Math.max(0, 1150 - frames.length))]),
      keys: quic.initialKeys(quic.V1, id, fromClient),
    })
  return [
    [true, packet(true, 0, quic.cryptoFrame(0, quic.clientHello(random)))],
    [false, packet(false, 0, quic.cryptoFrame(0, quic.serverHello(randomBytes(32), 0x1301)))],
    [true, packet(true, 1, quic.ACK)],
    [true, Buffer.concat([Buffer.of(0x40), randomBytes(60)])],
  ]
}

const QUIC = ['quic', 'q13i0103h3', 'q130100_1301']
const brief = (frames: readonly Buffer[]): unknown[] =>
  analyze(frames).tls.map(({ transport, ja4, ja4s, src }) => [
    transport,
    ja4.slice(0, 10),
    ja4s?.slice(0, 12),
    src,
  ])

test('analyzer: QUIC in either packet order, every datagram twice', async () => {
  for (const source of [randomBytes(8), Buffer.alloc(0)]) {
    const all = quicConnection(randomBytes(32), randomBytes(8), source)
    const [first, second, ...rest] = all as [Datagram, Datagram, ...Datagram[]]
    for (const order of [
      all,
      all.flatMap((each) => [each, each]),
      [...all, ...all],
      [second, first, ...rest],
    ]) {
      assert.deepEqual(brief(datagrams(order)), [[...QUIC, '192.0.2.1']])
    }
    assert.deepEqual(brief(datagrams(all, true)), [[...QUIC, '2001:db8::1']])
  }
})

test('analyzer: DTLS in either packet order, among STUN, every datagram twice', async () => {
  const all = dtls(randomBytes(32))
  const stun = Buffer.from('000100002112a4420102030405060708090a0b0c', 'hex')
  const among = all.flatMap((each): Datagram[] => [[true, stun], each, [false, stun]])
  const [first, second, ...rest] = all as [Datagram, Datagram, ...Datagram[]]
  for (const order of [
    all,
    among,
    all.flatMap((each) => [each, each]),
    [...all, ...all],
    [second, first, ...rest],
  ]) {
    const { tls } = analyze(datagrams(order))
    assert.deepEqual(
      tls.map(({ src, ja4_later, ja4s }) => [src, ja4_later.length, ja4s]),
      [['192.0.2.1', 1, 'd120000_c02b_000000000000']],
    )
  }
})

test('analyzer: ports without a SYN are used again all the same', async () => {
  for (const talk of [quicConnection, dtls]) {
    const [one, two, three] = [1, 2, 3].map((i) => talk(Buffer.alloc(32, i)))
    assert.equal(analyze(datagrams([...one!, ...two!, ...one!.slice(-1), ...three!])).tls.length, 3)
  }
})

test('analyzer: no capture makes it hold more than so many conversations', async () => {
  const kinds: readonly (readonly [name: string, ...frames: readonly Inner[]])[] = [
    ['port scan', tcp({ flags: SYN })],
    ['half a hello', tcp({ data: HELLOS.client.subarray(0, 200) })],
    ['half a request', tcp({ data: Buffer.from('GET /half') })],
    ['a hole', tcp({ flags: SYN, sequence: 0 }), tcp({ sequence: 10, data: Buffer.alloc(500) })],
    ['datagrams', udp(Buffer.alloc(100, 0xc3))],
    ['half a DTLS handshake', udp(dtls(randomBytes(32))[0]![1])],
  ]
  for (const [name, ...packets] of kinds) {
    const frames = packets.map((inner) => ethernet(ipv4(inner)))
    const analyzer = new Analyzer({ ja4plus: true, found: () => undefined }, new KeyLog())
    const send = (from: number, to: number): number => {
      for (let i = from; i < to; i++) {
        for (const frame of frames) {
          frame.writeUInt32BE(0x0a00_0000 + i, 26)
          analyzer.packet(i, 1, frame, 0, frame.length)
        }
      }
      return memoryInUse()
    }
    const before = memoryInUse()
    const full = send(0, 34_000) - before
    const more = send(34_000, 100_000) - before
    assert.ok(more < full * 1.5 + 1e6, `${name}: ${full} bytes, then ${more}`)
    assert.ok(more < 32_768 * 6000, `${name}: ${more} bytes`)
    analyzer.end()
  }
})

/** The recorded connection, with everything after the hellos. */
function connection(): Talk {
  const talk = new Talk().open()
  for (const { fromClient, bytes } of RECORDING.chunks) talk[fromClient ? 'client' : 'server'](bytes)
  return talk.close()
}
