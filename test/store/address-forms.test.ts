import assert from 'node:assert/strict'
import { test } from 'tap'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import { AddressHasher, wantedAddresses } from '../../src/plane/privacy/address-form.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import { NOW_MS, seen } from '../contract/seen.ts'
import { openFresh } from './databases.ts'

const HASHER = new AddressHasher('the key of this test')
const STORED = [
  '203.0.113.7',
  '203.0.113.8',
  '203.0.113.0/24',
  HASHER.hashOf('203.0.113.7'),
  HASHER.hashOf('2001:db8::1'),
  HASHER.hashOf('2001:db8::2'),
  '2001:db8::/48',
]
const SEARCHES: readonly (readonly [address: string, found: readonly number[]])[] = [
  ['203.0.113.7', [0, 2, 3]],
  ['203.0.113.0/24', [0, 1, 2]],
  ['2001:db8::1', [4, 6]],
  ['2001:db8::/64', [4, 5, 6]],
  [STORED[3]!, [3]],
  ['198.51.100.1', []],
]

for (const kind of ['sqlite', 'postgres'] as const)
  test(`${kind}: a search by address finds every form of it`, async (t) => {
    const store = await openFresh(kind, t)
    const all = STORED.map((address, number) => seen(number, { address }))
    await store.transaction((queries) => store.sightings.add(all, NOW_MS, queries))
    for (const [address, expected] of SEARCHES) {
      const { keys, has } = wantedAddresses(address, [HASHER])!
      const filter: RequestFilter = { apps: ALL_APPS, addresses: keys }
      const { found } = await store.sightings.search(filter, (each) => has(each.address), null, 100)
      const numbers = found.map((each) => STORED.indexOf(each.address))
      assert.deepEqual(numbers.toSorted(), expected, address)
    }
  })
