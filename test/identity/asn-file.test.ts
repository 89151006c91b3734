import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { AsnFile } from '../../src/identity/address/asn-file.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { mmdbOf } from './mmdb-writer.ts'

test('networks are read as those who make such files write them', async () => {
  const file = new AsnFile(
    mmdbOf([
      ['192.0.2.0/24', { autonomous_system_number: 64500, autonomous_system_organization: 'Example Inc.' }],
      ['198.51.100.0/24', { asn: 'AS64501', as_name: 'Other', as_domain: 'other.example' }],
      ['203.0.113.0/24', { asn: 'AS64502', name: 'Third', type: 'hosting' }],
      ['2001:db8::/32', { autonomous_system_number: 4_294_967_295 }],
      ['10.1.0.0/16', { autonomous_system_number: 0 }],
      ['10.2.0.0/16', { asn: 'AS' }],
      ['10.3.0.0/16', { asn: 'AS99999999999' }],
      ['10.4.0.0/16', { autonomous_system_number: 1, autonomous_system_organization: 'a\n\u202eb\u0000' }],
      ['10.5.0.0/16', 'text'],
      ['10.6.0.0/16', { autonomous_system_number: 2, autonomous_system_organization: 'n'.repeat(5_000) }],
    ]),
  )
  assert.deepEqual(file.of('192.0.2.9'), { asn: 64500, name: 'Example Inc.' })
  assert.deepEqual(file.of('198.51.100.9'), { asn: 64501, name: 'Other' })
  assert.deepEqual(file.of('203.0.113.9'), { asn: 64502, name: 'Third' })
  assert.deepEqual(file.of('2001:db8::9'), { asn: 4_294_967_295, name: null })
  for (const address of ['10.1.0.1', '10.2.0.1', '10.3.0.1', '10.5.0.1', '10.9.0.1', '::1', 'x'])
    assert.equal(file.of(address), null, address)
  assert.deepEqual(file.of('10.4.0.1'), { asn: 1, name: 'ab' })
  assert.equal(file.of('10.6.0.1')!.name!.length, 100)
  assert.equal(file.builtAtS, 1_795_000_000)
})

test('a network is known if the file has one entry for all of it, with the country of the file', async () => {
  const file = new AsnFile(
    mmdbOf([
      ['192.0.2.0/25', { asn: 'AS64500', as_name: 'Example', country: 'Germany', country_code: 'DE' }],
      ['192.0.2.128/25', { asn: 'AS64501', country: 'FR' }],
      ['198.51.100.0/22', { autonomous_system_number: 64502, country: { iso_code: 'IT' } }],
      ['203.0.113.0/24', { asn: 64503, country: 'Spain' }],
      ['2001:db8::/32', { asn: 64500 }],
    ]),
  )
  const example = { asn: 64500, name: 'Example', country: 'DE' }
  assert.deepEqual(file.ofRange('192.0.2.1'), example)
  assert.deepEqual(file.ofRange('::ffff:192.0.2.1'), example)
  assert.deepEqual(file.ofRange('192.0.2.200'), { asn: 64501, name: null, country: 'FR' })
  assert.deepEqual(file.ofRange('198.51.100.0/24'), { asn: 64502, name: null, country: 'IT' })
  assert.equal(file.ofRange('203.0.113.9')!.country, null)
  assert.equal(file.ofRange('2001:db8:1::/48')!.asn, 64500)
  for (const text of ['192.0.2.0/24', '10.0.0.1', '2001:db9::1', 'hash:AAAAAAAAAAAAAAAA', '', '2001::/16'])
    assert.equal(file.ofRange(text), null, text)
  const ipv4 = new AsnFile(mmdbOf([['192.0.2.0/24', { asn: 1 }]], { ipVersion: 4 }))
  assert.deepEqual([ipv4.ofRange('192.0.2.1')?.asn, ipv4.ofRange('2001:db8::1')], [1, null])
})

test('the addresses of a network are ranges of keys, and those that touch are one', async () => {
  const file = new AsnFile(
    mmdbOf([
      ['192.0.2.0/25', { asn: 'AS64500' }],
      ['192.0.2.128/25', { asn: 'AS64500', name: 'other record' }],
      ['192.0.3.0/24', { asn: 'AS64501' }],
      ['198.51.100.7/32', { asn: 'AS64500' }],
      ['2001:db8::/33', { asn: 'AS64500' }],
      ['2001:db8:8000::/33', { asn: 'AS64500' }],
    ]),
  )
  assert.deepEqual(await file.rangesOf(64500), [
    ['4c0000200', '4c00002ff'],
    ['4c6336407', '4c6336407'],
    [`620010db8${'0'.repeat(24)}`, `620010db8${'f'.repeat(24)}`],
  ])
  assert.deepEqual(await file.rangesOf(64999), [])
  const scattered = Array.from({ length: 201 }, (_, at) => [`10.0.${at}.0/25`, { asn: 1 }] as const)
  const many = new AsnFile(mmdbOf([...scattered, ['10.1.0.0/24', { asn: 2 }]]))
  assert.equal(await many.rangesOf(1), null)
  assert.equal((await new AsnFile(mmdbOf(scattered.slice(1))).rangesOf(1))!.length, 200)
  assert.equal((await many.rangesOf(2))!.length, 1)
})

test('a file of something else, and one that cannot be read, are said with what is wrong', async (t) => {
  const folder = temporaryFolder(t)
  const places = join(folder, 'city.mmdb')
  writeFileSync(places, mmdbOf([['192.0.2.0/24', { city: 'Somewhere' }]], { type: 'Test-City' }))
  await assert.rejects(AsnFile.load(places), {
    code: 'ASN_FILE_INVALID',
    message:
      /city\.mmdb cannot be used: there are no numbers of networks in it \(it is of the type "Test-City"\)/,
  })
  const cut = join(folder, 'cut.mmdb')
  writeFileSync(cut, mmdbOf([['192.0.2.0/24', { asn: 'AS1' }]]).subarray(0, 200))
  await assert.rejects(AsnFile.load(cut), { code: 'ASN_FILE_INVALID', message: /cut short/ })
  await assert.rejects(AsnFile.load(join(folder, 'none')), { code: 'FILE_UNREADABLE', message: /ENOENT/ })
})
