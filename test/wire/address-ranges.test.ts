import assert from 'node:assert/strict'
import { BlockList, isIP, isIPv4 } from 'node:net'
import fc from 'fast-check'
import { test } from 'tap'
import { Address, AddressRanges, parseAddressRange } from '../../src/wire/address-ranges.ts'

test('which addresses a range holds', async () => {
  const cases: readonly (readonly [ranges: string, yes: readonly string[], no: readonly string[]])[] = [
    ['192.0.2.0/24', ['192.0.2.0', '192.0.2.255', '::ffff:192.0.2.7'], ['192.0.1.255', '192.0.3.0', '::1']],
    ['192.0.2.7', ['192.0.2.7', '::ffff:c000:207'], ['192.0.2.6', '192.0.2.8', '::c000:207']],
    ['192.0.2.77/24', ['192.0.2.0'], ['192.0.3.0']],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255', '::ffff:1.2.3.4'], ['::', '::1.2.3.4']],
    ['128.0.0.0/1', ['128.0.0.0', '255.0.0.1'], ['127.255.255.255']],
    ['::/0', ['::', '2001:db8::1', 'ffff::'], ['1.2.3.4', '::ffff:1.2.3.4']],
    ['::ffff:10.0.0.0/104', ['10.1.2.3', '::ffff:10.1.2.3'], ['11.0.0.0', '::10.1.2.3']],
    ['2001:db8::/32', ['2001:db8::', '2001:DB8:ffff::1'], ['2001:db9::', '2001:db7:ffff::']],
    ['2001:db8::/127', ['2001:db8::', '2001:db8::1'], ['2001:db8::2']],
  ]
  for (const [range, yes, no] of cases) {
    for (const address of yes) assert.ok(holds([range], address), `${range} holds ${address}`)
    for (const address of no) assert.ok(!holds([range], address), `${range} does not hold ${address}`)
  }
})

test('an invalid address is in no set, and does not affect the next', async () => {
  const ranges = rangesOf(['0.0.0.0/0', '::/0'])
  const address = new Address()
  for (const text of ['', 'unknown', '1.2.3', '1.2.3.4.5', '01.2.3.4', '256.1.1.1', '1.2.3.4 ', ':', ':::']) {
    address.read(text)
    assert.ok(!ranges.has(address), text)
  }
  address.read('1.2.3.4')
  assert.ok(ranges.has(address))
})

test('no range: an address with a zone, a port, a name, a length too long', async () => {
  for (const text of [
    ...['', '/', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0.0/1e1', '10.0.0/8'],
    ...['::/129', 'fe80::1%eth0', '[::1]', '10.0.0.1:80', 'localhost', '10.0.0.0/8 ', '10.0.0.0/8/8'],
  ])
    assert.equal(parseAddressRange(text), null, text)
})

test('reads exactly the addresses that Node takes for such', async () => {
  const address = new Address()
  const check = (text: string) => {
    address.read(text)
    assert.equal(address.family !== 0, isIP(text) !== 0, JSON.stringify(text))
  }
  const pieces = ['0', '1', 'ff', 'FFFF', '10000', ':', ':', '::', '.', '255', '256', '01', '1.2.3.4', 'g']
  const scraps = fc.array(fc.constantFrom(...pieces), { maxLength: 17 }).map((all) => all.join(''))
  fc.assert(fc.property(scraps, check), { numRuns: 20_000 })
  fc.assert(fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), check), { numRuns: 5000 })
})

test('agrees with BlockList, also where ranges overlap and touch', async () => {
  const near = (base: string) => fc.nat(1023).map((low) => `${base}${low >> 8}.${low & 255}`)
  const addresses = fc.oneof(near('10.0.'), fc.ipV4(), fc.ipV6(), fc.ipV6().map(inOneNetwork))
  const range = fc.tuple(addresses, fc.nat(128)).map(([address, bits]) => {
    return `${address}/${isIPv4(address) ? 8 + (bits % 25) : bits}`
  })
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 12 }), addresses, (ranges, address) => {
      // BlockList takes IPv4 for part of ::/n; a set here does not, so each family has its own.
      const own = ranges.filter((each) => isIPv4(each.split('/')[0]!) === isIPv4(address))
      const list = new BlockList()
      for (const each of own) {
        const [base, bits] = each.split('/')
        list.addSubnet(base!, Number(bits), isIPv4(base!) ? 'ipv4' : 'ipv6')
      }
      const isMapped = !isIPv4(address) && /^::ffff:/i.test(address)
      if (isMapped) return
      assert.equal(holds(ranges, address), list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6'))
    }),
    { numRuns: 5000 },
  )
})

test('touches a range if and only if it holds an address of it', async () => {
  const range = fc.tuple(fc.nat(0xffff), fc.integer({ min: 16, max: 32 })).map(([low, bits]) => {
    return `10.0.${low >> 8}.${low & 255}/${bits}`
  })
  fc.assert(
    fc.property(fc.array(range, { maxLength: 8 }), range, (ranges, other) => {
      const { first, last } = parseAddressRange(other)!
      const ends = ranges.map((each) => parseAddressRange(each)!)
      const expected = ends.some((each) => each.first[3]! <= last[3]! && each.last[3]! >= first[3]!)
      assert.equal(rangesOf(ranges).touches(parseAddressRange(other)!), expected)
      assert.ok(!rangesOf(ranges).touches(parseAddressRange('2001:db8::/32')!))
    }),
    { numRuns: 3000 },
  )
})

test('thousands of ranges are as good as one', async () => {
  const ranges = Array.from({ length: 20_000 }, (_, i) => `10.${i >> 8}.${i & 255}.128/25`).reverse()
  assert.ok(holds(ranges, '10.0.0.128') && holds(ranges, '10.78.31.255'))
  assert.ok(!holds(ranges, '10.0.0.127') && !holds(ranges, '10.78.33.1') && !holds(ranges, '9.255.255.255'))
})

function inOneNetwork(address: string): string {
  return `2001:db8::${address.split(':').at(-1)!.replaceAll('.', '').slice(0, 4) || '0'}`
}

function rangesOf(texts: readonly string[]): AddressRanges {
  return new AddressRanges(texts.map((text) => parseAddressRange(text)!))
}

function holds(ranges: readonly string[], text: string): boolean {
  const address = new Address()
  address.read(text)
  return rangesOf(ranges).has(address)
}
