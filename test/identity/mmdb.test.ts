import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { Reader as OtherReader } from 'mmdb-lib'
import { test } from 'tap'
import { Mmdb, type MmdbValue } from '../../src/identity/address/mmdb.ts'
import { control, encodeValue, mmdbOf, pointerTo } from './mmdb-writer.ts'

const ENTRIES = [
  ['192.0.2.0/24', { autonomous_system_number: 64500, autonomous_system_organization: 'Näme' }],
  ['198.51.100.128/25', { autonomous_system_number: 64501, list: [1, 'two', true, { three: 3 }] }],
  ['203.0.113.7', { text: 'x'.repeat(300), long: 'y'.repeat(66_000) }],
  ['2001:db8::/32', { number: 4_294_967_295, zero: 0, map: {} }],
  ['2001:db9:1::/48', { asn: 'AS64502' }],
] as const
const ADDRESSES = [
  ...[
    '192.0.2.0',
    '192.0.2.255',
    '192.0.3.0',
    '198.51.100.127',
    '198.51.100.128',
    '203.0.113.7',
    '203.0.113.6',
  ],
  ...['2001:db8::1', '2001:db8:ffff::', '2001:db9:1::5', '2001:db9:2::', '::1', '255.255.255.255', '0.0.0.0'],
]

test('another reader finds the same in the same file, whatever the width of its records', async () => {
  for (const recordBits of [24, 28, 32] as const)
    for (const ipVersion of [6, 4] as const) {
      const entries = ENTRIES.filter(([range]) => ipVersion === 6 || !range.includes(':'))
      const bytes = mmdbOf(entries, { recordBits, ipVersion })
      const [ours, theirs] = [new Mmdb(bytes), new OtherReader<never>(bytes)]
      assert.equal(ours.type, 'Test-ASN')
      assert.equal(ours.builtAtS * 1000, Number(theirs.metadata.buildEpoch))
      for (const address of ADDRESSES) {
        if (ipVersion === 4 && address.includes(':')) assert.equal(ours.find(address), null)
        else assert.deepEqual(plain(ours.find(address)), theirs.get(address) ?? null, address)
      }
    }
})

test('refuses an invalid address and an invalid file', async () => {
  const mmdb = new Mmdb(mmdbOf(ENTRIES))
  for (const address of ['', 'a.test', '192.0.2', '192.0.2.0/24', '192.0.2.1\n'])
    assert.equal(mmdb.find(address), null)
  const good = mmdbOf(ENTRIES)
  const refused: readonly (readonly [bytes: Buffer, why: RegExp])[] = [
    [Buffer.alloc(0), /not a MaxMind DB, or was cut short/],
    [Buffer.from('<html>'), /not a MaxMind DB/],
    [good.subarray(0, good.length - 200), /cut short/],
    [Buffer.concat([good, Buffer.alloc(200_000)]), /cut short/],
    [mmdbOf(ENTRIES, { metadata: { node_count: 10_000_000 } }), /shorter than it says/],
    [mmdbOf(ENTRIES, { metadata: { node_count: 0 } }), /not of the format/],
    [mmdbOf(ENTRIES, { metadata: { record_size: 20 } }), /not of the format/],
    [mmdbOf(ENTRIES, { metadata: { ip_version: 5 } }), /not of the format/],
    [mmdbOf(ENTRIES, { metadata: { binary_format_major_version: 3 } }), /another format version/],
  ]
  for (const [bytes, why] of refused)
    assert.throws(() => new Mmdb(bytes), { code: 'MMDB_INVALID', message: why })
})

test('values that never end, or go round, come to nothing at once', async () => {
  const ring = pointerTo(0)
  // Each holds the one before it many times: 30 levels would be too many values to count.
  const bomb: Buffer[] = [encodeValue('x')]
  const places = [0]
  for (let level = 0; level < 30; level++) {
    places.push(bomb.reduce((sum, piece) => sum + piece.length, 0))
    bomb.push(Buffer.concat([control(11, 20), ...new Array<Buffer>(20).fill(pointerTo(places[level]!))]))
  }
  const deep = Buffer.concat(new Array<Buffer>(100).fill(control(11, 1)))
  const hostile: readonly Buffer[] = [
    ring,
    Buffer.concat([control(7, 1), encodeValue('asn'), pointerTo(0)]),
    Buffer.concat([control(11, 16_000_000)]),
    control(7, 16_000_000),
    Buffer.concat([control(7, 1), encodeValue(5), encodeValue(5)]),
    control(2, 5_000_000),
    pointerTo(4_000_000_000),
    control(12, 1),
    deep,
  ]
  for (const value of hostile)
    assert.equal(new Mmdb(mmdbOf([['192.0.2.0/24', value]])).find('192.0.2.1'), null)
  const data: [string, Buffer][] = bomb.map((piece, at) => [`10.0.${at}.0/24`, piece])
  assert.equal(new Mmdb(mmdbOf(data)).find('10.0.30.1'), null)
  assert.deepEqual(plain(new Mmdb(mmdbOf(data)).find('10.0.1.1')), new Array(20).fill('x'))
})

test('a long text with many pointers to it is not read', async () => {
  const long = encodeValue('x'.repeat(100_000))
  const many = Buffer.concat([control(11, 900), ...new Array<Buffer>(900).fill(pointerTo(0))])
  const mmdb = new Mmdb(
    mmdbOf([
      ['10.0.0.0/24', long],
      ['10.0.1.0/24', many],
    ]),
  )
  assert.equal(mmdb.find('10.0.1.1'), null)
  assert.equal(mmdb.find('10.0.0.1'), 'x'.repeat(100_000))
})

test('whatever bytes are changed, and wherever it is cut, nothing throws but the first look', async () => {
  const good = mmdbOf(ENTRIES.slice(0, 2))
  const looked = (bytes: Buffer) => {
    let mmdb: Mmdb
    try {
      mmdb = new Mmdb(bytes)
    } catch (error) {
      return assert.equal((error as { code?: string }).code, 'MMDB_INVALID')
    }
    for (const address of ADDRESSES) mmdb.find(address)
    mmdb.sample(100)
  }
  for (let end = 0; end < good.length; end += 3) looked(good.subarray(0, end))
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 8,
      }),
      (changes) => {
        const bytes = Buffer.from(good)
        for (const [at, byte] of changes) bytes[at] = byte
        looked(bytes)
      },
    ),
    { numRuns: 500 },
  )
})

function plain(value: MmdbValue): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [key, plain(each)]))
  return Array.isArray(value) ? value.map(plain) : value
}
