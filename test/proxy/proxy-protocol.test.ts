import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { parseProxyHeader } from '../../src/wire/proxy-protocol.ts'
import { headerV1, headerV2 } from './proxy-header.ts'

const SOURCES: readonly [title: string, bytes: Buffer, source: { address: string; port: number } | null][] = [
  ['1 TCP4', headerV1('TCP4 192.0.2.1 198.51.100.7 56324 443'), { address: '192.0.2.1', port: 56324 }],
  ['1 TCP6', headerV1('TCP6 2001:DB8::1 2001:db8::2 1 65535'), { address: '2001:db8::1', port: 1 }],
  ['1 TCP6, mapped', headerV1('TCP6 ::ffff:192.0.2.1 ::1 0 443'), { address: '192.0.2.1', port: 0 }],
  ['1 UNKNOWN', headerV1('UNKNOWN'), null],
  ['1 UNKNOWN, with more', headerV1('UNKNOWN ffff:: whatever 1 2 3'), null],
  ['2 IPv4', headerV2({ source: '192.0.2.1', port: 56324 }), { address: '192.0.2.1', port: 56324 }],
  ['2 IPv6', headerV2({ source: '2001:db8::1', port: 65535 }), { address: '2001:db8::1', port: 65535 }],
  [
    '2 IPv4, with TLVs',
    headerV2({ source: '192.0.2.1', port: 7, more: Buffer.alloc(300, 4) }),
    { address: '192.0.2.1', port: 7 },
  ],
  ['2 datagram', headerV2({ source: '192.0.2.1', port: 7, transport: 2 }), { address: '192.0.2.1', port: 7 }],
  ['2 LOCAL', headerV2({ source: '192.0.2.1', port: 7, command: 0 }), null],
  ['2 LOCAL, with nothing', headerV2({ family: 0, transport: 0, command: 0 }), null],
  ['2 UNSPEC', headerV2({ family: 0, transport: 0 }), null],
  ['2 UNIX', headerV2({ family: 3, more: Buffer.alloc(216) }), null],
]

for (const [title, bytes, source] of SOURCES) {
  test(`version ${title}: whole, with what follows, and cut at every byte`, async () => {
    const whole = { kind: 'header', length: bytes.length, source }
    assert.deepEqual(parseProxyHeader(bytes), whole)
    assert.deepEqual(parseProxyHeader(Buffer.concat([bytes, Buffer.from([22, 3, 1])])), whole)
    for (let end = 0; end < bytes.length; end++) {
      assert.equal(parseProxyHeader(bytes.subarray(0, end)).kind, 'need-more', `cut at ${end}`)
    }
  })
}

const MALFORMED: readonly [bytes: Buffer, fault: string][] = [
  [Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n'), 'line'],
  [Buffer.from(`PROXY UNKNOWN ${'x'.repeat(120)}\r\n`), 'line'],
  [Buffer.from(`PROXY UNKNOWN ${'x'.repeat(120)}`), 'line'],
  [headerV1('TCP4 192.0.2.1 192.0.2.2 1'), 'words'],
  [headerV1('TCP4 192.0.2.1 192.0.2.2 1 2 3'), 'words'],
  [headerV1('TCP4 192.0.2.1 192.0.2.2 1 2 '), 'words'],
  [headerV1('TCP5 192.0.2.1 192.0.2.2 1 2'), 'words'],
  [headerV1('tcp4 192.0.2.1 192.0.2.2 1 2'), 'words'],
  [headerV1(''), 'words'],
  [headerV1('TCP4  192.0.2.1 192.0.2.2 1 2'), 'words'],
  [headerV1('TCP4 192.0.2.256 192.0.2.2 1 2'), 'address'],
  [headerV1('TCP4 2001:db8::1 192.0.2.2 1 2'), 'address'],
  [headerV1('TCP4 192.0.2.1 2001:db8::1 1 2'), 'address'],
  [headerV1('TCP6 192.0.2.1 2001:db8::1 1 2'), 'address'],
  [headerV1('TCP4 192.0.2.1 192.0.2.2 65536 2'), 'address'],
  [headerV1('TCP4 192.0.2.1 192.0.2.2 01 2'), 'address'],
  [headerV1('TCP4 192.0.2.1 192.0.2.2 1 -2'), 'address'],
  [headerV2({ source: '192.0.2.1', port: 1, version: 3 }), 'version'],
  [headerV2({ source: '192.0.2.1', port: 1, command: 2 }), 'version'],
  [headerV2({ source: '192.0.2.1', port: 1, family: 4 }), 'version'],
  [headerV2({ source: '192.0.2.1', port: 1, transport: 3 }), 'version'],
  [headerV2({ family: 2, more: Buffer.alloc(35) }), 'length'],
  [headerV2({ family: 1, more: Buffer.alloc(11) }), 'length'],
  [headerV2({ source: '192.0.2.1', port: 1, more: Buffer.alloc(9000) }), 'length'],
]

test('what is broken says how', async () => {
  for (const [bytes, fault] of MALFORMED) {
    assert.deepEqual(
      parseProxyHeader(bytes),
      { kind: 'malformed', fault },
      JSON.stringify(bytes.toString('latin1')),
    )
  }
})

test('the first byte of a hello or a request is not a PROXY header', async () => {
  for (const text of [
    'GET / HTTP/1.1\r\n',
    '\x16\x03\x01',
    'PRI * HTTP/2.0',
    'PUT /',
    'PROPFIND /',
    '\r\n\r\nGET',
    '\0',
  ]) {
    assert.equal(parseProxyHeader(Buffer.from(text, 'latin1')).kind, 'none', text)
  }
})

test('a header once told stays told the same, whatever comes behind it, and nothing makes it throw', async () => {
  const starts = fc.constantFrom(Buffer.from('PROXY '), headerV2({}).subarray(0, 12), Buffer.alloc(0))
  const property = fc.property(starts, fc.uint8Array({ maxLength: 150 }), (start, rest) => {
    const bytes = Buffer.concat([start, rest])
    let told: unknown = null
    for (let end = 0; end <= bytes.length; end++) {
      const read = parseProxyHeader(bytes.subarray(0, end))
      if (told !== null) assert.deepEqual(read, told)
      else if (read.kind !== 'need-more') told = read
    }
  })
  fc.assert(property, { numRuns: 2000 })
})
