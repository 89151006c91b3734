import assert from 'node:assert/strict'
import { test } from 'tap'
import { AsnFile } from '../../src/identity/address/asn-file.ts'
import { AddressHasher } from '../../src/plane/privacy/address-form.ts'
import { seen } from '../contract/seen.ts'
import { mmdbOf } from '../identity/mmdb-writer.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const FILE = new AsnFile(
  mmdbOf([
    ['192.0.2.0/24', { asn: 'AS64500', as_name: 'Example', country_code: 'DE' }],
    ['198.51.100.0/25', { asn: 'AS64500', as_name: 'Example', country_code: 'FR' }],
    ['198.51.100.128/25', { asn: 'AS64501', as_name: 'Other' }],
    ['2001:db8::/32', { asn: 'AS64501', as_name: 'Other' }],
    // In too many ranges for an index.
    ...Array.from(
      { length: 300 },
      (_, at) => [`10.${at >> 6}.${(at & 63) * 2}.0/24`, { asn: 'AS64502' }] as const,
    ),
  ]),
)
const ADDRESSES = [
  ...['192.0.2.1', '192.0.2.2', '198.51.100.1', '198.51.100.200', '2001:db8::1', '203.0.113.1', '10.2.4.1'],
  // As stored with `privacy.addresses`.
  ...['192.0.2.0/24', '198.51.100.0/24', new AddressHasher('key').hashOf('192.0.2.1')],
]
const READ = ['read'] as const

for (const kind of KINDS)
  test(`${kind}: requests have the network of their address, as filter and facet`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl, networks: FILE })
    const seenAtMs = Date.now() - 60_000
    await manage.take(ADDRESSES.map((address, at) => seen(at, { address, seenAtMs: seenAtMs + at })))
    const authorization = `Bearer ${await manage.key({ scopes: [...READ] })}`
    const asked = async (query: string, headers: Readonly<Record<string, string>> = {}) => {
      const { status, body } = await manage.ask('GET', `/v1/requests${query}`, undefined, headers)
      assert.equal(status, 200, query)
      return body
    }
    const found = async (query: string, headers?: Readonly<Record<string, string>>) =>
      (await asked(query, headers)).requests.map(({ address }: { address: string }) => address).toReversed()
    const all = (await asked('')).requests.toReversed() as { network: unknown }[]
    const example = { asn: 64500, name: 'Example', country: 'DE' }
    const other = { asn: 64501, name: 'Other', country: null }
    assert.deepEqual(
      all.map(({ network }) => network),
      [
        ...[example, example, { ...example, country: 'FR' }, other, other, null],
        ...[{ asn: 64502, name: null, country: null }, example, null, null],
      ],
    )
    const one = await asked(`/${seen(0).id}`)
    assert.deepEqual(one.network, example)
    assert.deepEqual(await found('?asn=64500'), ['192.0.2.1', '192.0.2.2', '198.51.100.1', '192.0.2.0/24'])
    assert.deepEqual(await found('?asn=64501'), ['198.51.100.200', '2001:db8::1'])
    assert.deepEqual(await found('?asn=64502'), ['10.2.4.1'])
    assert.deepEqual(await found('?asn=1'), [])
    assert.deepEqual(await found('?country=FR'), ['198.51.100.1'])
    assert.deepEqual(await found('?country=DE&asn=64501'), [])
    assert.deepEqual(await found('?asn=64500&address=192.0.2.1'), ['192.0.2.1', '192.0.2.0/24'])
    // A principal that sees only networks does not learn in which part of one an address is.
    assert.deepEqual(await found('?asn=64501', { authorization }), ['2001:db8::/48'])

    const facets = async (query: string, headers?: Readonly<Record<string, string>>) =>
      Object.fromEntries(
        (await asked(`/facets?facets=asn,country${query}`, headers)).facets.map(
          ({ facet, values }: { facet: string; values: Counted[] }) => [
            facet,
            values.map(({ value, name, requests }) => [value, name, requests]),
          ],
        ),
      )
    assert.deepEqual(await facets(''), {
      asn: [
        ['64500', 'Example', 4],
        [null, null, 3],
        ['64501', 'Other', 2],
        ['64502', null, 1],
      ],
      country: [
        [null, null, 6],
        ['DE', null, 3],
        ['FR', null, 1],
      ],
    })
    assert.deepEqual((await facets('&asn=64502'))['asn'], [['64502', null, 1]])
    assert.deepEqual((await facets('', { authorization }))['asn'], [
      [null, null, 5],
      ['64500', 'Example', 3],
      ['64501', 'Other', 1],
      ['64502', null, 1],
    ])
    const exported = await fetch(`${manage.url}/v1/requests/export?asn=64502`, {
      headers: { authorization: `Bearer ${manage.adminKey}` },
    })
    assert.match(await exported.text(), /"network":\{"asn":64502/)
    assert.deepEqual(manage.failures, [])
  })

test('without a list of networks, there are no facets of networks and no filter', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.take([seen(1, { address: '192.0.2.1', seenAtMs: Date.now() })])
  const { body } = await manage.ask('GET', '/v1/requests/facets')
  const names = body.facets.map(({ facet }: { facet: string }) => facet)
  assert.ok(names.includes('address') && !names.includes('asn') && !names.includes('country'))
  assert.equal((await manage.ask('GET', '/v1/requests')).body.requests[0].network, null)
  for (const [query, pointer] of [
    ['asn=64500', '/asn'],
    ['country=DE', '/country'],
  ]) {
    const refused = await manage.ask('GET', `/v1/requests?${query}`)
    assert.deepEqual([refused.status, refused.body.errors[0].pointer], [400, pointer])
    assert.match(refused.body.errors[0].detail, /set identity.asn_file/)
  }
  for (const query of ['asn=0', 'asn=AS1', 'asn=4294967296', 'country=Germany'])
    assert.equal((await manage.ask('GET', `/v1/requests?${query}`)).status, 400, query)
})

interface Counted {
  readonly value: string | null
  readonly name: string | null
  readonly requests: number
}
