import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { BlockList, isIP } from 'node:net'
import fc from 'fast-check'
import { test } from 'tap'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { clientAddress, hopJa4 } from '../../src/proxy/connection/peer-address.ts'
import { AddressSet, clientNetwork, normalAddress } from '../../src/wire/ip-address.ts'

test('an address has one form', async () => {
  const forms: readonly [string, string | null][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:C000:0201', '192.0.2.1'],
    ['2001:0DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['::192.0.2.1', '::c000:201'],
    ['fe80::1%eth0', 'fe80::1'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['192.0.2.01', null],
    ['192.0.2', null],
    ['[::1]', null],
    ['::1::', null],
    ['', null],
    ['localhost', null],
    ['192.0.2.1 ', null],
  ]
  for (const [text, form] of forms) assert.equal(normalAddress(text), form, text)
})

test('the form is that of a URL, for any address of IPv6', async () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const form = normalAddress(text)!
      if (isIP(form) === 6) assert.equal(`[${form}]`, new URL(`http://[${text}]/`).hostname)
      assert.equal(normalAddress(form), form)
    }),
    { numRuns: 3000 },
  )
})

test('a set holds what is in its ranges', async () => {
  const set = AddressSet.parse([
    '10.0.0.0/8',
    '192.0.2.7',
    '2001:db8::/33',
    '198.51.100.128/25',
    '::ffff:203.0.113.0/120',
  ])!
  const inside = [
    '10.0.0.0',
    '10.255.255.255',
    '::ffff:10.1.2.3',
    '192.0.2.7',
    '2001:db8:7fff::1',
    '198.51.100.200',
    '203.0.113.9',
  ]
  const outside = [
    '9.255.255.255',
    '11.0.0.0',
    '192.0.2.8',
    '2001:db8:8000::',
    '198.51.100.127',
    '203.0.114.0',
    'x',
    '',
  ]
  for (const address of inside) assert.equal(set.has(address), true, address)
  for (const address of outside) assert.equal(set.has(address), false, address)
})

test('the range of all IPv6 contains no IPv4 address, and the other way round', async () => {
  const all6 = AddressSet.parse(['::/0'])!
  const all4 = AddressSet.parse(['0.0.0.0/0'])!
  assert.deepEqual(
    [all6.has('::1'), all6.has('192.0.2.1'), all6.has('::ffff:192.0.2.1')],
    [true, false, false],
  )
  assert.deepEqual(
    [all4.has('::1'), all4.has('192.0.2.1'), all4.has('::ffff:192.0.2.1')],
    [false, true, true],
  )
})

test('refuses invalid ranges', async () => {
  const wrong = [
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10.0.0/8',
    '::/129',
    'a',
    '',
    '/8',
    '10.0.0.0/8/8',
    '10.0.0.1 ',
  ]
  for (const range of wrong) assert.equal(AddressSet.parse([range]), null, range)
  assert.equal(AddressSet.parse([])!.isEmpty, true)
  assert.equal(AddressSet.parse(['::1'])!.isEmpty, false)
})

test('a set agrees with the one of Node', async () => {
  const range4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }))
  const range6 = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }))
  const ranges = fc.array(fc.oneof(range4, range6), { maxLength: 6 })
  fc.assert(
    fc.property(ranges, fc.oneof(fc.ipV4(), fc.ipV6()), (written, address) => {
      const plain = written.filter(([start]) => isPlain(start))
      const form = normalAddress(address)!
      const family = isIP(form) === 4 ? 'ipv4' : 'ipv6'
      const list = new BlockList()
      // Node finds an IPv4 address in a range of IPv6 that holds its mapped form.
      for (const [start, bits] of plain) if (isIP(start) === isIP(form)) list.addSubnet(start, bits, family)
      const set = AddressSet.parse(plain.map(([start, bits]) => `${start}/${bits}`))!
      assert.equal(set.has(address), list.check(form, family))
    }),
    { numRuns: 3000 },
  )
})

/** Not the mapped form, which we take for the address of IPv4 that it is. */
function isPlain(address: string): boolean {
  return isIP(normalAddress(address)!) === isIP(address)
}

test('connections of IPv6 are counted by /64', async () => {
  assert.equal(clientNetwork('192.0.2.1'), '192.0.2.1')
  assert.equal(clientNetwork('2001:db8:1:2:3:4:5:6'), clientNetwork('2001:db8:1:2::'))
  assert.notEqual(clientNetwork('2001:db8:1:2::'), clientNetwork('2001:db8:1:3::'))
  assert.equal(clientNetwork(''), '')
})

/** Peer 10.0.0.1; 10.0.0.0/8 and 2001:db8::/32 are ours. */
const WALKS: readonly [
  title: string,
  forwardedFor: string | null,
  forwarded: string | null,
  client: string,
][] = [
  ['nothing said', null, null, '10.0.0.1'],
  ['one hop', '192.0.2.1', null, '192.0.2.1'],
  ['trusted hops are passed', '192.0.2.1, 10.0.0.3, 10.0.0.2', null, '192.0.2.1'],
  ['what the client wrote before is not believed', '127.0.0.1, 192.0.2.1, 10.0.0.2', null, '192.0.2.1'],
  ['also when it wrote of our own', '192.0.2.66, 10.9.9.9, 192.0.2.1', null, '192.0.2.1'],
  ['all trusted: the first of them', '10.0.0.5,10.0.0.4', null, '10.0.0.5'],
  ['blanks and tabs', ' \t192.0.2.1 ,\t10.0.0.2 ', null, '192.0.2.1'],
  ['several headers are one', '192.0.2.66, 192.0.2.1', null, '192.0.2.1'],
  ['IPv6', '2001:DB8:0::5, 2001:db8::6', null, '2001:db8::5'],
  ['IPv6 of a stranger', '2001:0db9::0005', null, '2001:db9::5'],
  ['IPv6 in brackets, with a port', '[2001:db9::5]:4711', null, '2001:db9::5'],
  ['IPv6 in brackets', '[2001:db9::5]', null, '2001:db9::5'],
  ['mapped', '::ffff:192.0.2.1', null, '192.0.2.1'],
  ['a port', '192.0.2.1:4711', null, '192.0.2.1'],
  ['a hidden port', '192.0.2.1:_x', null, '192.0.2.1'],
  ['an invalid address', '192.0.2.256', null, '10.0.0.1'],
  ['a name', 'client.example.test', null, '10.0.0.1'],
  ['unknown', '192.0.2.1, unknown, 10.0.0.2', null, '10.0.0.2'],
  ['hidden', '192.0.2.1, _hidden', null, '10.0.0.1'],
  ['nothing between commas', '192.0.2.1,,10.0.0.2', null, '10.0.0.2'],
  ['empty', '', null, '10.0.0.1'],
  ['IPv4 in brackets', '[192.0.2.1]', null, '10.0.0.1'],
  ['an open bracket', '[2001:db9::5', null, '10.0.0.1'],
  ['an invalid port', '192.0.2.1:port', null, '10.0.0.1'],
  ['Forwarded', null, 'for=192.0.2.1;proto=http;by=10.0.0.1', '192.0.2.1'],
  ['Forwarded, whatever the case', null, 'By=x;FOR=192.0.2.1', '192.0.2.1'],
  ['Forwarded, quoted', null, 'for="192.0.2.1:4711"', '192.0.2.1'],
  ['Forwarded, escaped', null, 'for="\\1\\92.0.2.1"', '192.0.2.1'],
  ['Forwarded, IPv6', null, 'for="[2001:db9::5]:_port"', '2001:db9::5'],
  [
    'Forwarded, several',
    null,
    'for=192.0.2.66, for=192.0.2.1;host="a,b;c", for="[2001:db8::7]"',
    '192.0.2.1',
  ],
  ['Forwarded, a comma in quotes does not separate', null, 'for="192.0.2.1, for=10.0.0.9"', '10.0.0.1'],
  ['Forwarded, without for', null, 'for=192.0.2.1, proto=https', '10.0.0.1'],
  ['Forwarded, hidden', null, 'for=192.0.2.1, for=_secret', '10.0.0.1'],
  ['Forwarded, twice in an element', null, 'for=192.0.2.66;for=192.0.2.1', '10.0.0.1'],
  ['Forwarded, an open quote', null, 'for=192.0.2.66, for="192.0.2.1', '10.0.0.1'],
  ['Forwarded, no pair', null, 'for=192.0.2.66, 192.0.2.1', '10.0.0.1'],
  ['Forwarded, empty elements', null, 'for=192.0.2.1,', '10.0.0.1'],
  ['both: the older one', '192.0.2.1', 'for=192.0.2.66', '192.0.2.1'],
]

test('the client is the first hop back that is not trusted', async () => {
  const trusted = AddressSet.parse(['10.0.0.0/8', '2001:db8::/32'])!
  for (const [title, forwardedFor, forwarded, client] of WALKS) {
    assert.equal(clientAddress(peer('10.0.0.1', true), { forwardedFor, forwarded }, trusted), client, title)
    assert.equal(
      clientAddress(peer('192.0.2.99', false), { forwardedFor, forwarded }, trusted),
      '192.0.2.99',
      title,
    )
  }
})

test('of X-Forwarded-For the last 64 hops are walked, of Forwarded all of 4 KiB', async () => {
  const trusted = AddressSet.parse(['10.0.0.0/8'])!
  const client = (forwardedFor: string | null, forwarded: string | null) =>
    clientAddress(peer('10.0.0.1', true), { forwardedFor, forwarded }, trusted)
  const hops = (count: number) => Array.from({ length: count }, (_, at) => `10.0.1.${at}`)
  assert.equal(client(['192.0.2.1', ...hops(63)].join(), null), '192.0.2.1')
  assert.equal(client(['192.0.2.1', ...hops(64)].join(), null), '10.0.1.0')
  assert.equal(client(`${','.repeat(60_000)}192.0.2.1`, null), '192.0.2.1')
  assert.equal(client(',192.0.2.1', null), '192.0.2.1')
  const end = 'for=192.0.2.1'
  const filled = (length: number) => `${';'.repeat(length - end.length)}${end}`
  assert.equal(client(null, filled(4_096)), '192.0.2.1')
  assert.equal(client(null, filled(4_097)), '10.0.0.1')
})

test('no header makes it throw, take long, or return an invalid address', async () => {
  const trusted = AddressSet.parse(['0.0.0.0/0', '::/0'])!
  const text = fc.string({ unit: fc.constantFrom(...'for=192.0:[]",;\\_ \tx'), maxLength: 60 })
  fc.assert(
    fc.property(text, text, (forwardedFor, forwarded) => {
      for (const claims of [
        { forwardedFor, forwarded: null },
        { forwardedFor: null, forwarded },
      ]) {
        assert.notEqual(isIP(clientAddress(peer('10.0.0.1', true), claims, trusted)), 0)
      }
    }),
    { numRuns: 3000 },
  )
  for (const unit of ['for="\\', 'for="a', ';', ',', ' ', 'for=a;', '"', '\\"', '10.0.0.1,']) {
    // So long that it would not come to an end where it took more than its length.
    const long = unit.repeat(4_194_304 / unit.length)
    clientAddress(peer('10.0.0.1', true), { forwardedFor: null, forwarded: long }, trusted)
    clientAddress(peer('10.0.0.1', true), { forwardedFor: long, forwarded: null }, trusted)
  }
})

test('the JA4 of a hop is taken from a listed one, said once, and well-formed', async () => {
  const ja4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
  const hop = { ...peer('10.0.0.1', false), isJa4Hop: true }
  assert.equal(hopJa4(hop, ['Host', 'a', 'X-JA4-Fingerprint', ja4], 'x-ja4-fingerprint'), ja4)
  assert.equal(
    hopJa4(peer('10.0.0.1', true), ['X-JA4-Fingerprint', ja4], 'x-ja4-fingerprint'),
    null,
    'not listed',
  )
  assert.equal(
    hopJa4(hop, ['X-JA4-Fingerprint', ja4, 'x-ja4-fingerprint', ja4], 'x-ja4-fingerprint'),
    null,
    'twice',
  )
  assert.equal(hopJa4(hop, ['X-JA4_Fingerprint', ja4], 'x-ja4-fingerprint'), null, 'another name')
  for (const wrong of [
    '',
    ja4.toUpperCase(),
    `${ja4} `,
    ja4.slice(1),
    `${ja4},${ja4}`,
    ja4.replace('t', 'x'),
  ]) {
    assert.equal(hopJa4(hop, ['X-JA4-Fingerprint', wrong], 'x-ja4-fingerprint'), null, wrong)
  }
})

function peer(address: string, isTrusted: boolean): Connection {
  const print = {
    ja4: null,
    unresumed: null,
    pageWeight: null,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
    noHello: null,
    ja4Source: null,
  }
  const common = {
    id: 1,
    port: 1,
    localPort: 443,
    localAddress: '127.0.0.1',
    protocol: 'h1',
    isTls: true,
    serverName: null,
  } as const
  return {
    ...common,
    address,
    peerAddress: address,
    print,
    conduct: new Conduct(),
    introduction: null,
    admittedAuthority: null,
    isTrusted,
    isJa4Hop: false,
  }
}

test('the address of a client keeps nothing of the header it stood in', async () => {
  const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
  const program = `
    import { Traffic } from ${source('classify/verdict/traffic.ts')}
    import { clientAddress } from ${source('proxy/connection/peer-address.ts')}
    import { clientNetwork } from ${source('wire/ip-address.ts')}
    const used = () => { gc(); gc(); return process.memoryUsage().heapUsed }
    const traffic = new Traffic()
    const connection = { isTrusted: true, address: '10.0.0.1' }
    const trusted = { has: (address) => address === '10.0.0.1' }
    const before = used()
    for (let i = 0; i < 2000; i++) {
      const forwardedFor = 'x'.repeat(30_000) + i + ', 203.100.' + (100 + (i >> 7)) + '.' + (100 + (i & 127))
      const address = clientAddress(connection, { forwardedFor, forwarded: null }, trusted)
      traffic.of(clientNetwork(address), 'hello', 'claim')
    }
    if (traffic.size !== 2000) throw new Error(String(traffic.size))
    console.log(used() - before)`
  const args = ['--expose-gc', '--input-type=module', '--eval', program]
  const held = Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  assert.ok(held < 8_000_000, `${held} bytes`)
})
