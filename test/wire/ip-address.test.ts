import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import fc from 'fast-check'
import { test } from 'tap'
import { clientNetwork, ipFamily, shownNetwork } from '../../src/wire/ip-address.ts'

test('the family agrees with the one of Node, for addresses and for damaged ones', async () => {
  const written = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('::ffff:192.0.2.1', 'fe80::1%eth0', '::1%'))
  const odd = fc.constantFrom('', '.', ':', '%', '0', ' ', 'g', '::', '1.2.3.4', '%eth0', '\u0000')
  fc.assert(
    fc.property(written, odd, fc.nat({ max: 45 }), fc.nat({ max: 3 }), (address, extra, at, cut) => {
      for (const text of [address, address.slice(0, at) + extra + address.slice(at + cut)])
        assert.equal(ipFamily(text), isIP(text), JSON.stringify(text))
    }),
    { numRuns: 20_000 },
  )
})

test('a very long text is not an address', async () => {
  assert.equal(ipFamily(`${'0'.repeat(1_000_000)}::1`), 0)
  assert.equal(ipFamily(`::1%${'x'.repeat(1_000)}`), 0)
})

test('clients are counted by their address, and in IPv6 by their /64', async () => {
  assert.equal(clientNetwork('192.0.2.7'), '192.0.2.7')
  assert.equal(clientNetwork('::ffff:192.0.2.7'), '192.0.2.7')
  assert.equal(clientNetwork('2001:db8:0:1::7'), clientNetwork('2001:db8:0:1:ffff::1'))
  assert.notEqual(clientNetwork('2001:db8:0:1::7'), clientNetwork('2001:db8:0:2::7'))
  assert.equal(clientNetwork('localhost'), 'localhost')
})

test('the network that is shown in place of an address is a /24, of IPv6 a /48', async () => {
  const cases: readonly (readonly [string, string | null])[] = [
    ['192.0.2.7', '192.0.2.0/24'],
    ['255.255.255.255', '255.255.255.0/24'],
    ['::ffff:198.51.100.9', '198.51.100.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:db8:0:2::', '2001:db8::/48'],
    ['fe80::1%eth0', 'fe80::/48'],
    ['::1', '::/48'],
    ['unknown', null],
    ['', null],
  ]
  for (const [address, network] of cases) assert.equal(shownNetwork(address), network, address)
})
