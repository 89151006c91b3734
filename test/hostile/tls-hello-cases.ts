import { randomBytes } from 'node:crypto'
import { headerV1 } from '../proxy/proxy-header.ts'
import {
  changed,
  type Extension,
  helloMessage,
  helloPiece,
  lengthsOf,
  lied,
  record,
  records,
  serverName,
  sized,
  u16,
  usualExtensions,
  without,
  written,
} from './tls-hellos.ts'

/** What a peer begins with, and what it gets for it. */
export interface HelloCase {
  readonly name: string
  readonly bytes: Buffer
  readonly gets: Got
}

/** The first that comes back: a ServerHello, an alert, words of HTTP, or nothing: then the connection just ends. */
export type Got = 'hello' | 'alert' | 'words' | 'end'

const HELLO = helloMessage()
const GREASE = [0x0a0a, 0x1a1a, 0x2a2a, 0xfafa]
const [SNI, GROUPS, ALPN, VERSIONS, KEY_SHARE, UNKNOWN] = [0, 10, 16, 43, 51, 0x7777]

const hello = (name: string, gets: Got, extensions: readonly Extension[] | null): HelloCase => ({
  name,
  gets,
  bytes: records(helloMessage({ extensions })),
})
const sni = (name: string, gets: Got, body: Extension[1]) => hello(`SNI: ${name}`, gets, changed([SNI, body]))
const raw = (name: string, gets: Got, ...bytes: readonly Buffer[]): HelloCase => ({
  name,
  gets,
  bytes: Buffer.concat(bytes),
})
const alert = record(Buffer.of(1, 0), { type: 21 })

export const HELLOS: readonly HelloCase[] = [
  raw('as it should be', 'hello', records(HELLO)),
  raw('a byte in each record', 'hello', records(HELLO, 1)),
  raw('cut in the middle of its header', 'hello', records(HELLO, 3)),
  raw('and garbage behind it', 'hello', records(HELLO), randomBytes(500)),
  raw('twice', 'hello', records(HELLO), records(HELLO)),
  raw('twice in one record', 'alert', record(Buffer.concat([HELLO, HELLO]))),
  raw('an empty record in front', 'hello', record(Buffer.alloc(0)), records(HELLO)),
  raw(
    'empty records between',
    'hello',
    record(HELLO.subarray(0, 50)),
    record(Buffer.alloc(0)),
    record(HELLO.subarray(50)),
  ),
  raw('an alert between', 'alert', record(HELLO.subarray(0, 50)), alert, record(HELLO.subarray(50))),
  raw(
    'data of an application between',
    'alert',
    record(HELLO.subarray(0, 50)),
    record(Buffer.of(1), { type: 23 }),
    record(HELLO.subarray(50)),
  ),
  raw(
    'a change of ciphers between',
    'alert',
    record(HELLO.subarray(0, 50)),
    record(Buffer.of(1), { type: 20 }),
    record(HELLO.subarray(50)),
  ),
  raw('alerts, ten thousand', 'alert', Buffer.concat(new Array<Buffer>(10_000).fill(alert))),
  raw('a heartbeat (CVE-2014-0160)', 'alert', record(Buffer.from('014000', 'hex'), { type: 24 })),
  raw('data of an application', 'alert', record(Buffer.from('GET / HTTP/1.1\r\n\r\n'), { type: 23 })),
  raw('a ServerHello', 'alert', record(Buffer.concat([Buffer.of(2), HELLO.subarray(1)]))),
  raw('a Finished', 'alert', record(Buffer.from('14000000', 'hex'))),
  raw('a HelloRequest', 'alert', record(Buffer.from('00000000', 'hex'))),
  raw('a record longer than there may be', 'alert', record(Buffer.alloc(18_500, 1))),
  raw('records of another version', 'hello', record(HELLO, { version: 0x0303 })),
  raw('records of TLS 9', 'end', record(HELLO, { version: 0x0900 })),
  raw(
    'a hello of 16 MiB',
    'end',
    record(Buffer.concat([Buffer.from('01ffffff', 'hex'), Buffer.alloc(16_000)])),
    ...new Array<Buffer>(5).fill(record(Buffer.alloc(16_384))),
  ),
  raw('SSL 2.0', 'end', Buffer.from('802e010301001500000010', 'hex'), randomBytes(37)),
  raw('HTTP', 'words', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')),
  raw('HTTP/2 in the clear', 'words', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')),
  raw('SSH', 'words', Buffer.from('SSH-2.0-OpenSSH_9.9\r\n')),
  raw('an unexpected PROXY header', 'words', headerV1('TCP4 192.0.2.1 192.0.2.2 1 443'), records(HELLO)),
  raw('a PROXY header of version 2', 'end', Buffer.from('0d0a0d0a000d0a515549540a', 'hex'), records(HELLO)),
  raw('zeros', 'end', Buffer.alloc(1000)),
  ...[0x0000, 0x0200, 0x0300, 0x0301, 0x0302].map((legacyVersion) =>
    raw(
      `nothing above version ${legacyVersion.toString(16)}`,
      'alert',
      records(helloMessage({ legacyVersion, extensions: without(VERSIONS, KEY_SHARE) })),
    ),
  ),
  raw(
    'a version above all',
    'hello',
    records(helloMessage({ legacyVersion: 0xffff, extensions: without(VERSIONS, KEY_SHARE) })),
  ),
  hello('unknown versions', 'alert', changed([VERSIONS, sized(1, u16(0x0a0a, 0x0505))])),
  hello('no versions in their list', 'alert', changed([VERSIONS, sized(1)])),
  hello('half a version', 'alert', changed([VERSIONS, sized(1, Buffer.of(3))])),
  raw('a session id of 33 bytes', 'alert', records(helloMessage({ sessionId: randomBytes(33) }))),
  raw('no ciphers', 'alert', records(helloMessage({ ciphers: Buffer.alloc(0) }))),
  raw('half a cipher', 'alert', records(helloMessage({ ciphers: Buffer.of(0x13, 0x01, 0x13) }))),
  raw('unknown ciphers', 'alert', records(helloMessage({ ciphers: u16(0xeeee, 0xeeef) }))),
  raw(
    'nothing but GREASE',
    'alert',
    records(
      helloMessage({ ciphers: u16(...GREASE), extensions: GREASE.map((type): Extension => [type, []]) }),
    ),
  ),
  raw('32,767 ciphers', 'end', records(helloMessage({ ciphers: Buffer.alloc(65_534, 0x13) }))),
  raw('no compressions', 'alert', records(helloMessage({ compressions: Buffer.alloc(0) }))),
  raw('compressions without that of none', 'alert', records(helloMessage({ compressions: Buffer.of(1) }))),
  hello('no block of extensions', 'alert', null),
  hello('an empty one', 'alert', []),
  ...[SNI, GROUPS, ALPN, VERSIONS, KEY_SHARE].map((type) =>
    hello(`extension ${type} twice`, 'alert', [
      ...usualExtensions(),
      usualExtensions().find(([each]) => each === type)!,
    ]),
  ),
  hello('1,000 extensions', 'hello', [
    ...usualExtensions(),
    ...Array.from({ length: 1000 }, (_, index): Extension => [0x4000 + index, []]),
  ]),
  hello('an unknown extension of 40,000 bytes', 'hello', changed([UNKNOWN, Buffer.alloc(40_000)])),
  raw(
    'more than is read of a hello',
    'end',
    records(
      helloMessage({
        ciphers: Buffer.alloc(8000, 0x13),
        extensions: changed([UNKNOWN, Buffer.alloc(60_000)]),
      }),
    ),
  ),
  sni('nothing', 'alert', []),
  sni('an empty list', 'alert', sized(2)),
  sni('an empty name', 'hello', serverName('')),
  sni(
    'two names',
    'alert',
    sized(2, Buffer.of(0), sized(2, Buffer.from('a')), Buffer.of(0), sized(2, Buffer.from('b'))),
  ),
  sni('a name of another type', 'alert', serverName('localhost', 1)),
  sni('an address', 'hello', serverName('127.0.0.1')),
  sni('an address of IPv6', 'hello', serverName('[::1]')),
  sni('bytes beyond ASCII', 'hello', serverName(Buffer.from([0xff, 0xfe, 0xe9]))),
  sni('NUL in a name', 'alert', serverName('localhost\0.example.test')),
  sni('a line break in a name', 'hello', serverName('a\r\nb')),
  sni('255 bytes', 'hello', serverName('a'.repeat(255))),
  sni('256 bytes', 'alert', serverName('a'.repeat(256))),
  sni('60,000 bytes', 'alert', serverName('a'.repeat(60_000))),
  sni('a path', 'hello', serverName('../../etc/passwd')),
  hello('ALPN: nothing', 'alert', changed([ALPN, []])),
  hello('ALPN: an empty list', 'alert', changed([ALPN, sized(2)])),
  hello('ALPN: an empty name', 'alert', changed([ALPN, sized(2, sized(1))])),
  hello('ALPN: nothing that we speak', 'alert', changed([ALPN, sized(2, sized(1, Buffer.from('spdy/3')))])),
  hello(
    'ALPN: names of the longest length, by hundreds',
    'alert',
    changed([ALPN, sized(2, ...new Array(200).fill(sized(1, Buffer.alloc(255, 'a'))))]),
  ),
  hello('no groups', 'alert', changed([GROUPS, sized(2)])),
  hello(
    'a key of another length',
    'alert',
    changed([KEY_SHARE, sized(2, u16(0x001d), sized(2, randomBytes(31)))]),
  ),
  hello('a key of zeros', 'alert', changed([KEY_SHARE, sized(2, u16(0x001d), sized(2, Buffer.alloc(32)))])),
  hello(
    'the same key twice',
    'hello',
    changed([KEY_SHARE, sized(2, ...new Array(2).fill([u16(0x001d), sized(2, Buffer.alloc(32, 9))]))]),
  ),
  hello('a ticket of another key (PSK), and no binder', 'hello', [
    ...usualExtensions(),
    [41, sized(2, sized(2, randomBytes(100)), Buffer.alloc(4))],
  ]),
  hello('early data, and no ticket', 'hello', changed([42, []])),
  hello('a session ticket of garbage', 'hello', changed([35, randomBytes(200)])),
  hello('PSK before the last', 'alert', [[41, Buffer.alloc(0)], ...usualExtensions()]),
]

/** Each length in a hello and its record, one less, one more, nothing, and as much as it can say. */
export function lies(): { readonly name: string; readonly bytes: Buffer }[] {
  const piece = [Buffer.of(22, 3, 1), sized(2, helloPiece())]
  const bytes = written(piece)
  const changes: readonly [name: string, change: (length: number) => number][] = [
    ['one less', (length) => length - 1],
    ['one more', (length) => length + 1],
    ['nothing', () => 0],
    ['the most', () => 0xff_ffff],
  ]
  return lengthsOf(piece).flatMap((length) =>
    changes.map(([name, change]) => ({
      name: `the length at ${length.at}: ${name}`,
      bytes: lied(bytes, length, change),
    })),
  )
}

/** A hello that ends after each of its bytes. */
export function cuts(): Buffer[] {
  const bytes = records(HELLO)
  return Array.from({ length: bytes.length }, (_, end) => bytes.subarray(0, end))
}
