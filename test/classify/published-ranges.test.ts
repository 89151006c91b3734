import assert from 'node:assert/strict'
import { test } from 'tap'
import { isPublic } from '../../src/classify/known/published-ranges.ts'
import { parseSoftware, parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { softwareDocument } from '../../src/classify/known/software-document.ts'
import { ConfigFault, placed, readSource } from '../../src/config/source.ts'
import { DocumentFault } from '../../src/shared/problem.ts'
import { Address } from '../../src/wire/address-ranges.ts'

const GOOD = { source: 'bot.example/ips.json', date: '2026-11-21', prefixes: ['192.0.2.0/24'] }

test('a list says what it holds, where it was found and when', async () => {
  const prefixes = ['192.0.2.0/24', '198.51.100.7', '17.0.0.0/8', '2001:db8::/32', '2001:DB8:1::7/128']
  const list = { ...GOOD, prefixes }
  assert.deepEqual(rangesOf(list), { ...list, isPartial: false })
  assert.deepEqual(rangesOf({ ...list, partial: true }), { ...list, isPartial: true })
})

test('a list is the same when it is written and read again', async () => {
  for (const partial of [false, true]) {
    const software = agent({ ...GOOD, partial })
    assert.deepEqual(parseSoftware(JSON.parse(JSON.stringify(softwareDocument(software)))), software)
  }
})

test('what is refused, and why', async () => {
  const prefix = (text: unknown) => ({ ...GOOD, prefixes: [text] })
  const cases: readonly (readonly [list: unknown, why: RegExp])[] = [
    [prefix('10.0.0.256/24'), /ranges\.prefixes\.0: is "10.0.0.256\/24"; expected an address or a range/],
    [prefix('192.0.2.0/33'), /expected an address or a range/],
    [prefix('192.0.2.0/024'), /expected an address or a range/],
    [prefix('2001:db8::/129'), /expected an address or a range/],
    [prefix('2001:db8::1%eth0/128'), /expected an address or a range/],
    [prefix('::ffff:192.0.2.0/120'), /expected an address or a range/],
    [prefix('bot.example'), /expected an address or a range/],
    [prefix('192.0.2.0-192.0.2.9'), /expected an address or a range/],
    [prefix(7), /is 7; expected an address range/],
    [prefix(['192.0.2.0/24']), /is a list; expected an address range/],
    [prefix('192.0.2.1/24'), /which has bits set after the first 24/],
    [prefix('2001:db8::1/32'), /which has bits set after the first 32/],
    [prefix('16.0.0.0/7'), /the widest allowed ranges are \/8 of IPv4 and \/19 of IPv6/],
    [prefix('0.0.0.0/0'), /the widest allowed ranges are/],
    [prefix('2001::/18'), /the widest allowed ranges are/],
    [prefix('::/0'), /the widest allowed ranges are/],
    ...['10.1.0.0/16', '127.0.0.1', '169.254.169.254', '100.64.0.0/10', '192.168.7.7/32', '224.0.0.0/8'].map(
      (text) => [prefix(text), /is not on the public internet/] as const,
    ),
    // Not from end to end, but people at home have addresses of it.
    [prefix('192.0.0.0/8'), /is not on the public internet/],
    ...['::1', 'fd00::/19', 'fe80::/64', 'ff02::1', '64:ff9b::/96'].map(
      (text) => [prefix(text), /is not on the public internet/] as const,
    ),
    [{ ...GOOD, prefixes: ['192.0.2.7', '192.0.2.7/32'] }, /prefixes\.1: .* which is listed twice/],
    [{ ...GOOD, prefixes: ['2001:db8::/32', '2001:0DB8:0::/32'] }, /prefixes\.1: .* which is listed twice/],
    [{ ...GOOD, prefixes: ['8.0.0.0/8', '9.0.0.0/8', '11.0.0.0/9'] }, /than 2 of the widest ranges/],
    [{ ...GOOD, prefixes: [] }, /prefixes: is an empty list/],
    [{ ...GOOD, prefixes: many(20_001) }, /has 20001 ranges; at most 20000/],
    [{ ...GOOD, date: '2026-02-29' }, /date: is "2026-02-29"; expected a day/],
    [{ ...GOOD, date: '2026-13-01' }, /expected a day/],
    [{ ...GOOD, date: '21.11.2026' }, /expected a day/],
    [{ ...GOOD, date: 20261121 }, /expected a day/],
    [{ ...GOOD, source: '' }, /source: is ""; expected the source of the ranges/],
    [{ ...GOOD, partial: 'yes' }, /partial: is "yes"; expected true or false/],
    [{ ...GOOD, prefix: ['192.0.2.0/24'] }, /prefix: unknown field \(did you mean "prefixes"\?\)/],
    [{ source: GOOD.source, date: GOOD.date }, /needs `prefixes`, `source` and `date`/],
    [{ prefixes: GOOD.prefixes }, /needs `prefixes`, `source` and `date`/],
    ['192.0.2.0/24', /ranges: is "192.0.2.0\/24"; expected a mapping/],
  ]
  for (const [list, why] of cases) assert.match(faultOf(list), why)
})

test('20,000 ranges are a list', async () => {
  assert.equal(agent({ ...GOOD, prefixes: many(20_000) }).verification.ranges?.prefixes.length, 20_000)
})

test('only agents have a list', async () => {
  for (const kind of [{ kind: 'tool' }, { kind: 'browser', engine: 'blink' }]) {
    const parse = () => parseSoftware({ id: 'x', name: 'X', ...kind, verification: { ranges: GOOD } })
    assert.throws(parse, /software "x": verification\.ranges: is allowed only for agents/)
  }
})

test('a problem in a file is named with its line', async () => {
  const text = [
    ...['- id: bot', '  name: Bot', '  kind: agent', '  category: crawler', '  verification:', '    ranges:'],
    ...['      source: s', '      date: 2026-11-21', '      prefixes:', '        - 192.0.2.0/24'],
    '        - 192.0.2.9/24',
  ].join('\n')
  const source = readSource(text, 'bots.yaml')
  assert.throws(
    () => placed(source, () => parseSoftwareList(source.value)),
    (error) =>
      error instanceof ConfigFault &&
      /^bots\.yaml:11:11: software "bot": verification\.ranges\.prefixes\[1\]: is "192\.0\.2\.9\/24"/.test(
        error.message,
      ),
  )
})

test('addresses that many have are not public', async () => {
  const address = new Address()
  const check = (text: string) => {
    address.read(text)
    return isPublic(address)
  }
  for (const text of [
    '8.8.8.8',
    '192.0.2.7',
    '100.63.255.255',
    '100.128.0.0',
    '::ffff:8.8.8.8',
    '2001:db8::1',
  ])
    assert.ok(check(text), text)
  for (const text of [
    ...['127.0.0.1', '::ffff:127.0.0.1', '10.9.8.7', '100.64.0.0', '100.127.255.255', '255.255.255.255'],
    ...['::1', '::', 'fe80::1', 'fc00::1', '', 'unknown'],
  ])
    assert.ok(!check(text), text)
})

function agent(ranges: unknown): Software {
  return parseSoftware({
    id: 'bot',
    name: 'Bot',
    kind: 'agent',
    category: 'crawler',
    verification: { ranges },
  })
}

function rangesOf(ranges: unknown) {
  return agent(ranges).verification.ranges
}

function faultOf(ranges: unknown): string {
  try {
    agent(ranges)
  } catch (error) {
    assert.ok(error instanceof DocumentFault)
    return error.message
  }
  return 'was taken'
}

function many(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `20.${i >> 8}.${i & 255}.0/24`)
}
