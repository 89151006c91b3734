import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { certificate } from '../certificate-builder.ts'
import {
  alpn,
  certificateBody,
  certificateMessage,
  clientHello,
  dtlsDatagrams,
  dtlsRecord,
  every,
  extension,
  handshakeMessage,
  pieces,
  records,
  serverHello,
  serverName,
  signatureAlgorithms,
  supportedVersions,
  u16,
  u24,
  vector8,
  vector24,
} from '../hello-builder.ts'
import type { Bug, Rule } from '../rules.ts'

interface Named {
  readonly name: string
  readonly rule: Rule
  readonly bug?: Bug
}

/** One direction of a TCP connection, in the segments in which it arrives, and what its first message is. */
export interface StreamCase extends Named {
  readonly kind: 'stream'
  readonly side: 'client' | 'server'
  readonly segments: readonly Uint8Array[]
  /** Raw; `null` where more bytes are needed. */
  readonly first: string | null | { readonly fault: string }
}

/** The messages of a handshake (TLS), or its datagrams (DTLS), and all there is to say about it, raw. */
export interface HandshakeCase extends Named {
  readonly kind: 'handshake'
  readonly transport: 'tcp' | 'dtls'
  readonly flights: readonly (readonly [from: 'client' | 'server', bytes: Uint8Array])[]
  readonly said: {
    readonly ja4: string
    readonly later?: readonly string[]
    readonly ja4s?: string
    readonly ja4sLater?: readonly string[]
    readonly retried?: boolean
    readonly ja4x?: readonly string[]
    readonly ja4xClient?: readonly string[]
  } | null
}

export type FramingCase = StreamCase | HandshakeCase

/** As large as a hello with a post-quantum key share: larger than a segment. */
const HELLO = clientHello({
  ciphers: [0x1301, 0xc02f],
  extensions: [
    serverName('example.test'),
    alpn(Buffer.from('h2'), Buffer.from('http/1.1')),
    supportedVersions(0x0304, 0x0303),
    extension(0x0033, Buffer.concat([u16(1220), u16(0x11ec), u16(1216), Buffer.alloc(1216, 0xab)])),
    signatureAlgorithms(0x0403, 0x0804),
  ],
})
const HELLO_R = 't13d0205h2_1301,c02f_000d,002b,0033_0403,0804'

/** What the same client sends after a HelloRetryRequest. */
const SECOND = clientHello({
  ciphers: [0x1301, 0xc02f],
  extensions: [supportedVersions(0x0304), extension(0x002c, '0002abcd'), signatureAlgorithms(0x0403, 0x0804)],
})
const SECOND_R = 't13i020300_1301,c02f_000d,002b,002c_0403,0804'

const RETRY = serverHello({
  random: createHash('sha256').update('HelloRetryRequest').digest(), // RFC 8446 §4.1.3
  extensions: [extension(0x002b, '0304'), extension(0x0033, '0018')],
})
const RETRY_R = 't130200_1301_002b,0033'

const ANSWER = serverHello({ cipher: 0xc02f, extensions: [extension(0xff01, '00'), extension(0x0017)] })
const ANSWER_R = 't120200_c02f_ff01,0017'

const ANSWER_13 = serverHello({ extensions: [extension(0x0033), extension(0x002b, '0304')] })
const ANSWER_13_R = 't130200_1301_0033,002b'

const LEAF = certificate({
  issuer: [['550406'], ['550403']],
  subject: [['550403']],
  extensions: ['551d11', '551d0f'],
})
const LEAF_R = '550406,550403_550403_551d11,551d0f'
const AUTHORITY = certificate({
  issuer: [['550406'], ['550403']],
  subject: [['550406'], ['550403']],
  extensions: ['551d13'],
})
const AUTHORITY_R = '550406,550403_550406,550403_551d13'

const DTLS_HELLO_PLAN = {
  legacyVersion: 0xfefd,
  ciphers: [0xc02b, 0x00ff],
  extensions: [serverName('example.test'), extension(0x000b, '020001'), signatureAlgorithms(0x0403, 0x0804)],
}
const DTLS_HELLO = clientHello(DTLS_HELLO_PLAN, 'dtls')
const DTLS_R = 'dd2d020300_00ff,c02b_000b,000d_0403,0804'
const DTLS_BODY = DTLS_HELLO.length - 12
const [FIRST, MIDDLE, LAST] = dtlsDatagrams(DTLS_HELLO, [30, 40]) as [Buffer, Buffer, Buffer]
/** RFC 6347 §4.2.1. */
const VERIFY_REQUEST = handshakeMessage(
  3,
  Buffer.concat([u16(0xfeff), vector8(Buffer.alloc(20, 0xc0))]),
  'dtls',
)
const WITH_COOKIE = clientHello(
  { ...DTLS_HELLO_PLAN, cookie: Buffer.alloc(20, 0xc0), extensions: [] },
  'dtls',
)
WITH_COOKIE.writeUInt16BE(1, 4) // message_seq

/** SSL 2.0 §2.5, as clients that spoke both began: a 2-byte length, then 3-byte cipher specs. */
const SSL2_HELLO = Buffer.from(
  `802e0103010015000000100000050000040000ff0300800000090000062eb1${'5c'.repeat(17)}`,
  'hex',
)

function stream(
  name: string,
  rule: Rule,
  segments: readonly Uint8Array[],
  first: StreamCase['first'],
  bug?: Bug,
): StreamCase {
  return { kind: 'stream', name, rule, ...(bug && { bug }), side: 'client', segments, first }
}

const ONE_STREAM = Buffer.concat(records([HELLO]))

export const FRAMING_CASES: readonly FramingCase[] = [
  stream('segments: one', 'framing.segments', [ONE_STREAM], HELLO_R),
  stream('segments: of one byte', 'framing.segments', every(1, ONE_STREAM), HELLO_R, 'split-hello'),
  stream('segments: of 536 bytes', 'framing.segments', every(536, ONE_STREAM), HELLO_R, 'split-hello'),
  ...[1, 3, 5, 6, 9].map((size) =>
    stream(`segments: cut after ${size} bytes`, 'framing.segments', pieces(ONE_STREAM, [size]), HELLO_R),
  ),
  stream(
    'segments: all of two records in one',
    'framing.segments',
    [Buffer.concat(records(pieces(HELLO, [700])))],
    HELLO_R,
  ),

  ...[1, 2, 3, 4, 5, 43].map((size) =>
    stream(
      `records: cut after ${size} bytes`,
      'framing.records',
      records(pieces(HELLO, [size])),
      HELLO_R,
      'split-hello',
    ),
  ),
  stream(
    'records: of one byte',
    'framing.records',
    [Buffer.concat(records(every(1, HELLO)))],
    HELLO_R,
    'split-hello',
  ),
  stream(
    'records: of 64 bytes, in segments of 7',
    'framing.records',
    every(7, Buffer.concat(records(every(64, HELLO)))),
    HELLO_R,
  ),

  ...[0x0300, 0x0302, 0x0303, 0x0304].map((version) =>
    stream(
      `record version: 0${version.toString(16)}`,
      'framing.version',
      records([HELLO], version),
      HELLO_R,
      'version-source',
    ),
  ),

  stream(
    'trailing: another message in the record',
    'framing.trailing',
    records([Buffer.concat([HELLO, handshakeMessage(16, Buffer.alloc(66))])]),
    HELLO_R,
  ),
  stream(
    'trailing: half a message in the record',
    'framing.trailing',
    records([Buffer.concat([HELLO, Buffer.of(1, 0)])]),
    HELLO_R,
  ),
  stream(
    'trailing: early data',
    'framing.trailing',
    [Buffer.concat([ONE_STREAM, ...records([Buffer.alloc(20)], 0x0303, 23)])],
    HELLO_R,
  ),
  stream(
    'trailing: the hello after a retry',
    'ja4.9',
    [Buffer.concat(records([HELLO, SECOND]))],
    HELLO_R,
    'second-hello',
  ),

  stream('empty: the first record', 'framing.empty', records([Buffer.alloc(0), HELLO]), {
    fault: 'empty-record',
  }),
  stream('empty: a record in the middle', 'framing.empty', records(pieces(HELLO, [100, 0])), {
    fault: 'empty-record',
  }),

  stream(
    'other: ChangeCipherSpec first',
    'framing.other',
    [...records([Buffer.of(1)], 0x0303, 20), ONE_STREAM],
    { fault: 'not-handshake' },
  ),
  stream(
    'other: an alert inside the hello',
    'framing.other',
    [...records([HELLO.subarray(0, 100)]), ...records([Buffer.of(1, 0)], 0x0303, 21)],
    { fault: 'not-handshake' },
  ),
  stream('other: a ServerHello', 'framing.other', records([ANSWER]), { fault: 'wrong-type' }),
  stream('other: HTTP', 'framing.other', [Buffer.from('GET / HTTP/1.1\r\nHost: example.test\r\n\r\n')], {
    fault: 'not-tls',
  }),
  stream('other: an SSLv2 hello', 'ja4.11', [SSL2_HELLO], { fault: 'not-tls' }, 'ssl2-version'),

  stream('incomplete: nothing', 'framing.incomplete', [], null, 'no-hello'),
  stream('incomplete: the header', 'framing.incomplete', [ONE_STREAM.subarray(0, 9)], null, 'no-hello'),
  stream(
    'incomplete: all but the last byte',
    'framing.incomplete',
    [ONE_STREAM.subarray(0, -1)],
    null,
    'no-hello',
  ),
  stream(
    'incomplete: all but the last record',
    'framing.incomplete',
    records([HELLO.subarray(0, 700)]),
    null,
    'no-hello',
  ),

  {
    ...stream('server: the answer', 'framing.records', records(pieces(ANSWER, [3])), ANSWER_R),
    side: 'server',
  },
  {
    ...stream(
      'server: a HelloRetryRequest',
      'ja4s.retry',
      [Buffer.concat(records([RETRY, ANSWER_13]))],
      RETRY_R,
    ),
    side: 'server',
  },

  {
    kind: 'handshake',
    name: 'handshake: after a HelloRetryRequest',
    rule: 'ja4.9',
    bug: 'second-hello',
    transport: 'tcp',
    flights: [
      ['client', HELLO],
      ['server', RETRY],
      ['client', SECOND],
      ['server', ANSWER_13],
    ],
    said: { ja4: HELLO_R, later: [SECOND_R], ja4s: RETRY_R, ja4sLater: [ANSWER_13_R], retried: true },
  },
  {
    kind: 'handshake',
    name: 'handshake: a renegotiation',
    rule: 'ja4.9',
    transport: 'tcp',
    flights: [
      ['client', SECOND],
      ['server', ANSWER],
      ['client', HELLO],
      ['server', ANSWER_13],
    ],
    said: { ja4: SECOND_R, later: [HELLO_R], ja4s: ANSWER_R, ja4sLater: [ANSWER_13_R] },
  },
  {
    kind: 'handshake',
    name: 'handshake: certificates of server and client',
    rule: 'ja4x.chain',
    bug: 'ja4x-several',
    transport: 'tcp',
    flights: [
      ['client', HELLO],
      ['server', ANSWER],
      ['server', certificateMessage([LEAF, AUTHORITY], '12')],
      ['client', certificateMessage([AUTHORITY], '12')],
    ],
    said: { ja4: HELLO_R, ja4s: ANSWER_R, ja4x: [LEAF_R, AUTHORITY_R], ja4xClient: [AUTHORITY_R] },
  },
  {
    kind: 'handshake',
    name: 'handshake: a client without a certificate',
    rule: 'ja4x.chain',
    transport: 'tcp',
    flights: [
      ['client', HELLO],
      ['server', ANSWER],
      ['server', certificateMessage([AUTHORITY, LEAF], '12')],
      ['client', certificateMessage([], '12')],
    ],
    said: { ja4: HELLO_R, ja4s: ANSWER_R, ja4x: [AUTHORITY_R, LEAF_R] },
  },
  {
    kind: 'handshake',
    name: 'handshake: certificates in TLS 1.3',
    rule: 'ja4x.tls13',
    transport: 'tcp',
    flights: [
      ['client', HELLO],
      ['server', ANSWER_13],
      ['server', certificateMessage([LEAF, AUTHORITY], '13')],
      ['client', certificateMessage([LEAF], '13')],
    ],
    said: { ja4: HELLO_R, ja4s: ANSWER_13_R, ja4x: [LEAF_R, AUTHORITY_R], ja4xClient: [LEAF_R] },
  },
  {
    kind: 'handshake',
    name: 'handshake: compressed certificates in TLS 1.3',
    rule: 'ja4x.tls13',
    transport: 'tcp',
    flights: [
      ['client', HELLO],
      ['server', ANSWER_13],
      ['server', compressed(certificateBody([LEAF, AUTHORITY], '13'))],
    ],
    said: { ja4: HELLO_R, ja4s: ANSWER_13_R, ja4x: [LEAF_R, AUTHORITY_R] },
  },

  dtls(
    'whole',
    [DTLS_HELLO].flatMap((hello) => dtlsDatagrams(hello)),
  ),
  dtls('in order', [FIRST, MIDDLE, LAST], 'split-hello'),
  dtls('backwards', [LAST, MIDDLE, FIRST]),
  dtls('twice', [FIRST, FIRST, MIDDLE, FIRST, LAST, LAST]),
  dtls('overlapping', [FIRST, overlapping(20, 60), overlapping(50, DTLS_BODY - 50)]),
  dtls('in one datagram', [Buffer.concat([MIDDLE, FIRST, LAST])]),
  dtls('in one record', [
    dtlsRecord(Buffer.concat([MIDDLE, FIRST, LAST].map((record) => record.subarray(13))), 0),
  ]),
  {
    ...dtls('with one missing', [FIRST, LAST]),
    rule: 'framing.incomplete',
    bug: 'no-hello',
    said: null,
  },
  {
    kind: 'handshake',
    name: 'DTLS: again with a cookie',
    rule: 'ja4.9',
    transport: 'dtls',
    flights: [
      ...dtlsDatagrams(DTLS_HELLO).map((datagram) => ['client', datagram] as const),
      ...dtlsDatagrams(VERIFY_REQUEST).map((datagram) => ['server', datagram] as const),
      ...dtlsDatagrams(WITH_COOKIE, [10], 1).map((datagram) => ['client', datagram] as const),
    ],
    said: { ja4: DTLS_R, later: ['dd2i020000_00ff,c02b_'] },
  },
]

function dtls(name: string, datagrams: readonly Uint8Array[], bug?: Bug): HandshakeCase {
  return {
    kind: 'handshake',
    name: `DTLS: fragments ${name}`,
    rule: 'framing.dtls',
    ...(bug && { bug }),
    transport: 'dtls',
    flights: datagrams.map((datagram) => ['client', datagram] as const),
    said: { ja4: DTLS_R },
  }
}

/** A fragment of the hello cut elsewhere than the others, as a peer does that sends it again. */
function overlapping(offset: number, length: number): Buffer {
  const piece = DTLS_HELLO.subarray(12 + offset, 12 + offset + length)
  return dtlsRecord(Buffer.concat([DTLS_HELLO.subarray(0, 6), u24(offset), u24(length), piece]), 9)
}

/** RFC 8879 §4: zlib, here without compressing, so that every zlib writes the same. */
function compressed(body: Uint8Array): Buffer {
  const content = deflateSync(body, { level: 0 })
  return handshakeMessage(25, Buffer.concat([u16(1), u24(body.length), vector24(content)]))
}
