import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { test } from 'tap'
import { changeProblem } from '../../src/identity/address/ranges-change.ts'
import { publishedRanges, rangesIn } from '../../src/identity/address/ranges-document.ts'
import { parseAddressRange } from '../../src/wire/address-ranges.ts'

const URL = 'https://bot.example/ips.json'

test('the forms in which vendors publish addresses are read', async () => {
  const both = ['192.0.2.0/24', '2001:db8::/32']
  const forms: readonly (readonly [name: string, body: unknown, expected: readonly string[]])[] = [
    [
      'draft-illyes-aipref-jafar, as Google, Bing, OpenAI, Apple',
      { creationTime: '2026-11-20T12:00:00', prefixes: [{ ipv4Prefix: both[0] }, { ipv6Prefix: both[1] }] },
      both,
    ],
    [
      'with more beside them, as Common Crawl',
      { synctoken: '1', notes: 'n', createDate: 5, prefixes: [{ ipv4Prefix: both[0] }] },
      [both[0]!],
    ],
    ['with a name for each, as some do', { prefixes: [{ ipv6Prefix: both[1], name: 'eu' }] }, [both[1]!]],
    ['as Ahrefs has single ones', { ips: [{ ip_address: '192.0.2.1' }] }, ['192.0.2.1']],
    ['a list', both, both],
    [
      'lists with names, as Better Stack',
      { eu: ['192.0.2.1'], us: ['192.0.2.2'] },
      ['192.0.2.1', '192.0.2.2'],
    ],
    [
      'lines, as Pingdom',
      '192.0.2.1\r\n192.0.2.2 # Paris\n\n; none\n2001:db8::1\n',
      ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
    ],
    ['with a mark of byte order', '\uFEFF["192.0.2.1"]', ['192.0.2.1']],
  ]
  for (const [name, body, expected] of forms) assert.deepEqual(rangesIn(bytes(body)), expected, name)
})

test('refuses other formats', async () => {
  const others: readonly unknown[] = [
    '<!doctype html><html>{"creationTime": "x", "prefixes": [{"ipv4Prefix": "192.0.2.0/24"}]}</html>',
    // Of a cloud: all of its customers have them.
    { syncToken: '1', prefixes: [{ ip_prefix: '192.0.2.0/24', region: 'eu', service: 'EC2' }] },
    { prefixes: [{ ipv4Prefix: '192.0.2.0/24', ipv6Prefix: '2001:db8::/32' }] },
    { prefixes: [{ ipv4Prefix: 5 }] },
    { prefixes: [null] },
    { prefixes: [['192.0.2.1']] },
    { prefixes: { ipv4Prefix: '192.0.2.0/24' } },
    { locations: { a: { ip: '192.0.2.1' } } },
    { creationTime: 'x' },
    {},
    '{"prefixes": [',
    '{"__proto__": ["192.0.2.1"]}',
    Buffer.from([0x5b, 0xff, 0xfe]),
    'Not Found',
    'prefix,country\n192.0.2.0/24,DE',
    `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
  ]
  for (const body of others) assert.equal(rangesIn(bytes(body)), null, String(body).slice(0, 60))
})

test('what is read goes by the rules for lists that come with signatures', async () => {
  const refused: readonly (readonly [ranges: readonly string[], why: RegExp])[] = [
    [[], /empty/],
    [['192.0.2.0/24', '10.0.0.0/8'], /not on the public internet/],
    [['0.0.0.0/0'], /widest/],
    [['1.0.0.0/8', '2.0.0.0/8', '3.0.0.0/8'], /widest ranges/],
    [['2000::/3'], /widest/],
    [['192.0.2.1/24'], /bits set/],
    [['192.0.2.0/24', 'bot.example'], /expected an address or a range/],
    [
      Array.from({ length: 20_001 }, (_, at) => `66.${at >> 16}.${(at >> 8) & 255}.${at & 255}`),
      /20001 ranges/,
    ],
  ]
  for (const [ranges, why] of refused)
    assert.throws(() => publishedRanges(ranges, URL, '2026-11-22'), { code: 'RANGES_INVALID', message: why })
  assert.deepEqual(
    publishedRanges(['192.0.2.0/24', '192.0.2.0/24', '2001:db8::/32', '2001:0db8::/32'], URL, '2026-11-22'),
    {
      prefixes: ['192.0.2.0/24', '2001:db8::/32'],
      ...{ isPartial: false, source: 'bot.example/ips.json', date: '2026-11-22' },
    },
  )
})

test('reads or refuses any input, and throws nothing unexpected', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.json({ maxDepth: 4 }), fc.string(), fc.uint8Array()), (body) => {
      const found = rangesIn(typeof body === 'string' ? Buffer.from(body) : Buffer.from(body))
      if (found === null) return
      try {
        const { prefixes } = publishedRanges(found, URL, '2026-11-22')
        assert.ok(prefixes.every((prefix) => parseAddressRange(prefix) !== null))
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'RANGES_INVALID')
      }
    }),
    { numRuns: 300 },
  )
})

test('a list may lose half of its ranges, and grow as vendors do, at one time', async () => {
  const table: readonly (readonly [
    before: readonly string[],
    after: readonly string[],
    why: RegExp | null,
  ])[] = [
    [four(0, 4), four(0, 4), null],
    [four(0, 4), four(0, 2), null],
    [four(0, 4), four(0, 1), /of the 4 ranges before only 1/],
    // As many, but other ranges.
    [four(0, 4), four(8, 12), /only 0/],
    [four(0, 4), four(2, 6), null],
    // What was many is one now.
    [four(0, 4), ['66.0.0.0/22'], null],
    [['66.0.0.0/22'], four(0, 4), null],
    [four(0, 1), ['66.0.0.0/16'], null],
    [four(0, 1), ['66.0.0.0/15'], /IPv4 addresses are 512 times as many/],
    [['66.0.0.0/14'], ['66.0.0.0/12'], null],
    [['66.0.0.0/14'], ['66.0.0.0/12', '67.0.0.0/24'], /4 times/],
    [four(0, 1), [...four(0, 1), '2a00::/32'], null],
    [four(0, 1), [...four(0, 1), '2a00::/31'], /IPv6 addresses are too many/],
    [['2a00::/32'], ['2a00::/30'], null],
    [['2a00::/32'], ['2a00::/29'], /IPv6 addresses are 8 times/],
  ]
  for (const [before, after, why] of table) {
    const problem = changeProblem(before, after)
    if (why === null) assert.equal(problem, null, `${before} → ${after}`)
    else assert.match(problem ?? '', why)
  }
})

function four(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from }, (_, at) => `66.0.${from + at}.0/24`)
}

function bytes(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}
