import assert from 'node:assert/strict'
import { test } from 'tap'
import { Analyzer } from '../../src/capture/analyzer.ts'
import { CaptureReader } from '../../src/capture/capture-file.ts'
import type { Finding } from '../../src/capture/finding.ts'
import { KeyLog } from '../../src/capture/key-log.ts'
import {
  clientHello,
  dtlsDatagrams,
  every,
  handshakeMessage,
  records,
  u16,
} from '../vectors/hello-builder.ts'
import { memoryInUse } from '../capture/memory.ts'
import {
  block,
  enhancedPacket,
  ethernet,
  type Inner,
  interfaceBlock,
  ipv4,
  pcap,
  pcapng,
  pcapngParts,
  pcapParts,
  SYN,
  secretsBlock,
  simplePacket,
  tcp,
  u32,
  udp,
} from '../capture/packet-builder.ts'
import { fieldBlock, frame, getRequest, PREFACE } from '../proxy/http2-frames.ts'
import { TestManagement } from '../manage/management.ts'
import { IS_WHOLE } from './whole.ts'

/** The head of an Initial packet (RFC 9000 §17.2.2), with an id of 8 bytes and no token. */
const QUIC = Buffer.concat([
  Buffer.from('c00000000108', 'hex'),
  Buffer.alloc(8),
  Buffer.of(0, 0),
  u16(0x402c),
])
const CLIENTS = IS_WHOLE ? 10_000 : 1_000
const MANY = IS_WHOLE ? 20_000 : 3_000
/** A body of 6 MiB has so much in base64. */
const CAPTURE_BYTES = 4_400_000
/** Of half-read things 128 MiB, which are looked after each 8 MiB that come, and as much again in arrays that are grown. */
const HELD_MAX = 180_000_000
/** Nearly what an IP packet can have. */
const SEGMENT = 50_000
const LONG = 200_000
const HALF_HEAD = Buffer.from(`GET / HTTP/1.1\r\n${`x: ${'a'.repeat(49_990)}\r\n`.repeat(4)}`)
const HELLO = records([clientHello({ ciphers: [0x1301] })])
const LONG_HELLO = clientHello({
  ciphers: Array.from({ length: 30_000 }, (_, index) => index),
  extensions: [],
})

/** What one of many conversations says, and leaves at that. */
const HALVES: Readonly<Record<string, readonly Inner[]>> = {
  'a head of HTTP/1 that does not end': segments(HALF_HEAD),
  'one line of it': segments(Buffer.from(`GET / HTTP/1.1\r\nx: ${'a'.repeat(LONG)}`)),
  'a block of HTTP/2 that does not end': segments(
    Buffer.concat([
      PREFACE,
      frame(1, 0, 1, Buffer.alloc(16_000)),
      frame(9, 0, 1, Buffer.alloc(LONG - 20_000)),
    ]),
  ),
  'a frame of HTTP/2 that does not end': segments(
    Buffer.concat([PREFACE, frame(1, 0, 1, Buffer.alloc(LONG)).subarray(0, -1)]),
  ),
  'a message of TLS that does not end': segments(
    Buffer.concat([
      ...HELLO,
      ...records(every(16_000, handshakeMessage(11, Buffer.alloc(LONG)))).slice(0, -1),
    ]),
  ),
  'a long hello, and nothing behind it': segments(Buffer.concat(records(every(16_000, LONG_HELLO)))),
  'messages of DTLS that do not end': [
    ...dtlsDatagrams(clientHello({}, 'dtls')),
    ...[1, 2, 3].map((number) => dtlsFragment(number, 40_000)),
  ].map((datagram) => udp(datagram)),
  'segments behind a hole': [tcp({ flags: SYN, sequence: 0 }), ...segments(Buffer.alloc(LONG), 9)],
}

test('however many conversations leave something half said, what is kept of all has a bound', {
  timeout: 300_000,
}, async (t) => {
  const before = memoryInUse()
  for (const [name, packets] of Object.entries(HALVES).filter((_, index) => IS_WHOLE || index % 4 === 0)) {
    const analyzer = new Analyzer({ ja4plus: true, found: () => undefined }, new KeyLog())
    const frames = packets.map((inner) => ethernet(ipv4(inner)))
    let most = 0
    let number = 0
    for (let client = 0; client < CLIENTS; client++) {
      for (const bytes of frames) {
        bytes.writeUInt32BE(0x0a00_0000 + client, 26)
        analyzer.packet(++number, 1, bytes, 0, bytes.length)
      }
      if (client % Math.ceil(CLIENTS / 3) === 0) most = Math.max(most, memoryInUse() - before)
    }
    most = Math.max(most, memoryInUse() - before)
    analyzer.end()
    const sent = (frames.reduce((sum, { length }) => sum + length, 0) * CLIENTS) / 1e6
    t.comment(`${name}: ${(most / 1e6).toFixed(0)} MB of ${sent.toFixed(0)} MB`)
    assert.ok(most < HELD_MAX, `${name}: ${most} bytes held`)
  }
})

test('a conversation that goes on is read, however much others leave half said', async () => {
  const { analyzer, findings } = analyzing()
  let number = 0
  const send = (client: number, inner: Inner) => {
    const bytes = ethernet(ipv4(inner))
    bytes.writeUInt32BE(0x0a00_0000 + client, 26)
    analyzer.packet(++number, 1, bytes, 0, bytes.length)
  }
  const parts = HALVES['a head of HTTP/1 that does not end']!
  let sequence = 1
  for (let client = 1; client < 1_000; client++) {
    for (const part of parts) send(client, part)
    const request = Buffer.from(`GET /${client} HTTP/1.1\r\n\r\n`)
    send(0, tcp({ sequence, data: request }))
    sequence += request.length
  }
  analyzer.end()
  const paths = findings.flatMap((finding) => (finding.kind === 'http' ? [finding.path] : []))
  assert.equal(paths.length, 999)
  assert.equal(paths.at(-1), '/999')
})

test('a few bytes of HTTP/2 do not stand for any number of headers', async () => {
  const { analyzer, findings } = analyzing()
  const cookie = `a=${'b'.repeat(60_000)}`
  const first = Buffer.concat([Buffer.from('3fe1ff03', 'hex'), fieldBlock(getRequest()), indexed(cookie)])
  const again = (stream: number) =>
    frame(1, 5, stream, Buffer.concat([fieldBlock(getRequest()), Buffer.of(0xbe, 0xbe, 0xbe, 0xbe)]))
  const bytes = Buffer.concat([
    PREFACE,
    frame(1, 4, 1, first.subarray(0)),
    ...Array.from({ length: MANY }, (_, index) => again(2 * index + 3)),
  ])
  for (const [index, inner] of segments(bytes).entries()) {
    const packet = ethernet(ipv4(inner))
    analyzer.packet(index, 1, packet, 0, packet.length)
  }
  analyzer.end()
  const raw = findings.reduce((sum, each) => sum + (each.kind === 'http' ? each.ja4h_r!.length : 0), 0)
  assert.ok(findings.length > 1)
  // The names and the pairs of cookies.
  assert.ok(raw < 2 * (4 * 1024 * 1024 + 256 * bytes.length), `${raw} characters of ${bytes.length} bytes`)
})

const MANY_RECORDS = 200_000
const EMPTY = ethernet(ipv4(tcp({ data: Buffer.from('x') })))
const PCAP = pcapParts([EMPTY])
/** Each says something of itself that is not so. */
const LIES: Readonly<Record<string, { bytes: Buffer; fault: RegExp | null }>> = {
  'a record of 4 GiB': { bytes: claiming(PCAP, 8, 0xffff_ffff), fault: /claims 4294967295 bytes/ },
  'a record of 17 MiB': { bytes: claiming(PCAP, 8, 17 << 20), fault: /claims/ },
  'a record of 16 MiB that does not come': {
    bytes: claiming(PCAP, 8, 16 << 20),
    fault: /ends inside a record/,
  },
  'records of nothing': {
    bytes: Buffer.concat([PCAP[0]!, ...Array.from({ length: MANY_RECORDS }, () => Buffer.alloc(16))]),
    fault: null,
  },
  'a block of 4 GiB': { bytes: blockOf(6, 0xffff_fffc), fault: /claims 4294967292 bytes/ },
  'a block of 4 GiB of an unknown type': {
    bytes: blockOf(0x0bad, 0xffff_fffc),
    fault: /ends inside a record/,
  },
  'a block of nothing': { bytes: blockOf(6, 0), fault: /claims 0 bytes/ },
  'a block whose length is not a multiple of four': { bytes: blockOf(6, 13), fault: /claims 13 bytes/ },
  'blocks of nothing, without an end': {
    bytes: Buffer.concat([
      ...pcapngParts([]),
      ...Array.from({ length: MANY_RECORDS }, () => block(0x0bad, () => [])('little')),
    ]),
    fault: null,
  },
  'sections in sections': {
    bytes: Buffer.concat(Array.from({ length: 5_000 }, () => pcapng([interfaceBlock()]))),
    fault: null,
  },
  'interfaces without an end': {
    bytes: pcapng(Array.from({ length: 70_000 }, () => interfaceBlock())),
    fault: /too many interfaces/,
  },
  'a packet of an undefined interface': {
    bytes: pcapng([enhancedPacket(EMPTY, 7)]),
    fault: /interface 7/,
  },
  'a simple packet of 4 GiB': {
    bytes: pcapng([interfaceBlock(), simplePacket(EMPTY, 0xffff_ffff)]),
    fault: null,
  },
  'a key log without a line': { bytes: pcapng([secretsBlock('x'.repeat(4_000_000))]), fault: null },
  'a key log of made-up connections': {
    bytes: pcapng([
      secretsBlock(
        Array.from({ length: 30_000 }, (_, index) => {
          const random = index.toString(16).padStart(64, '0')
          return `CLIENT_RANDOM ${random} ${'0'.repeat(96)}\n`
        }).join(''),
      ),
    ]),
    fault: null,
  },
  gzip: { bytes: Buffer.from('1f8b0800000000000003', 'hex'), fault: /neither pcap nor pcapng/ },
}

test('a file that lies of its lengths is read up to the lie, which is named', async (t) => {
  const before = memoryInUse()
  for (const [name, { bytes, fault }] of Object.entries(LIES))
    for (const size of [bytes.length, 1_021]) {
      const { analyzer } = analyzing()
      const reader = new CaptureReader(analyzer)
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
      const held = size === 1_021 ? memoryInUse() - before : 0
      reader.end()
      analyzer.end()
      if (fault === null) assert.equal(reader.fault, null, name)
      else assert.match(reader.fault?.detail ?? '', fault, name)
      assert.ok(held < 64e6, `${name}: ${held} bytes held`)
    }
  t.comment(`${Object.keys(LIES).length} files`)
})

/** Each is as large as a capture may be that the API takes, and full of what takes longest. */
const FLOODS: Readonly<Record<string, () => Buffer>> = {
  'flows of one byte': () => flood((index) => tcp({ data: Buffer.of(index) }), true),
  'segments backwards': () => flood((index) => tcp({ sequence: 1_000_000 - index, data: Buffer.of(1) })),
  'every other byte': () => flood((index) => tcp({ sequence: 2 * index, data: Buffer.of(1) })),
  'segments over one another': () =>
    flood((index) => tcp({ sequence: (index * 7_919) % 4_096, data: Buffer.alloc(9, index) })),
  'a request line of single bytes': () =>
    flood((index) => tcp({ sequence: index, data: Buffer.from('GET /'[index] ?? 'a') })),
  'ports used again': () => flood((index) => tcp({ flags: SYN, sequence: index * 65_536 })),
  'datagrams that may be QUIC': () =>
    flood((index) => udp(Buffer.concat([QUIC, u32(index), Buffer.alloc(40, index)])), true),
  'requests of HTTP/1 one behind the other': () => stream(Buffer.from('GET / HTTP/1.1\r\n\r\n')),
  'records of TLS without a byte': () => stream(Buffer.from('1703030000', 'hex'), Buffer.concat(HELLO)),
  'hellos one behind the other': () => stream(Buffer.concat(HELLO)),
  'what begins like a hello': () => stream(Buffer.from('1603', 'hex')),
}

test('the API reads a capture made to take long, or says that it takes too long, and reads the next', {
  timeout: 600_000,
}, async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const analyze = async (capture: Buffer) => {
    const { body } = await manage.ask('POST', '/v1/tasks/create', {
      type: 'analyze_capture',
      input: { capture: capture.toString('base64') },
    })
    for (let answer = body; ; answer = (await manage.ask('GET', `/v1/tasks/${body.task_id}?wait=1`)).body)
      if (answer.results !== undefined && answer.results.length > 0) return answer.results[0]
  }
  let refused = 0
  for (const [name, make] of Object.entries(FLOODS).slice(0, IS_WHOLE ? undefined : 1)) {
    const { status, error, result } = await analyze(make())
    if (status === 'error') {
      assert.match(error.detail, /takes more than 20 s, or memory, to read/, name)
      refused++
    } else assert.equal(result.fault, null, name)
  }
  const { status } = await analyze(Buffer.concat(PCAP))
  assert.equal(status, 'ok')
  assert.deepEqual(manage.failures, [])
  t.comment(`${refused} of them took too long`)
})

function analyzing() {
  const findings: Finding[] = []
  const analyzer = new Analyzer({ ja4plus: true, found: (finding) => findings.push(finding) }, new KeyLog())
  return { analyzer, findings }
}

function segments(bytes: Buffer, from = 1): Inner[] {
  const found: Inner[] = []
  for (let at = 0; at < bytes.length; at += SEGMENT)
    found.push(tcp({ sequence: from + at, data: bytes.subarray(at, at + SEGMENT) }))
  return found
}

/** The first of three fragments of a message. */
function dtlsFragment(number: number, length: number): Buffer {
  const [whole] = dtlsDatagrams(handshakeMessage(11, Buffer.alloc(length), 'dtls', number), [length - 1])
  return whole!
}

/** A literal that the table keeps (RFC 7541 §6.2.1). */
function indexed(cookie: string): Buffer {
  const field = fieldBlock(['cookie', cookie])
  field[0] = 0x40
  return field
}

function claiming([header, record]: readonly Buffer[], at: number, length: number): Buffer {
  const lying = Buffer.from(record!)
  lying.writeUInt32LE(length >>> 0, at)
  return Buffer.concat([header!, lying])
}

function blockOf(type: number, length: number): Buffer {
  const head = Buffer.concat([u32(type).reverse(), u32(length).reverse(), Buffer.alloc(64)])
  return Buffer.concat([pcapng([interfaceBlock()]), head])
}

/** Packets in a file, by their number; each from another client, or all from one. */
function flood(make: (index: number) => Inner, isOfMany = false): Buffer {
  const parts: Buffer[] = pcapParts([])
  for (let bytes = 0, index = 0; bytes < CAPTURE_BYTES; index++) {
    const packet = ethernet(ipv4(make(index)))
    if (isOfMany) packet.writeUInt32BE(0x0a00_0000 + index, 26)
    const [, record] = pcapParts([packet])
    parts.push(record!)
    bytes += record!.length
  }
  return Buffer.concat(parts)
}

/** One thing again and again, in one connection. */
function stream(unit: Buffer, first: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(CAPTURE_BYTES, unit)
  return pcap(segments(Buffer.concat([first, bytes])).map((inner) => ethernet(ipv4(inner))))
}
