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
