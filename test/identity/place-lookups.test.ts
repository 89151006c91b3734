import assert from 'node:assert/strict'
import { test } from 'tap'
import { AsnFile } from '../../src/identity/address/asn-file.ts'
import { PlaceLookups } from '../../src/identity/address/place-lookups.ts'
import type { HostFinding } from '../../src/identity/address/reverse-dns.ts'
import { Metrics } from '../../src/shared/metrics.ts'
import { mmdbOf } from './mmdb-writer.ts'

const CRAWLER = '66.249.64.1'
const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

test('what DNS says is told, and for how long it is good: within limits, whatever its server says', async () => {
  const table: readonly (readonly [finding: Partial<HostFinding>, isKnown: boolean, forMs: number])[] = [
    [{ hosts: ['a.test.example'], outcome: 'confirmed', ttlS: 900 }, true, 900 * SECOND_MS],
    [{ hosts: ['a.test.example'], outcome: 'confirmed', ttlS: 0 }, true, 5 * MINUTE_MS],
    [{ hosts: ['a.test.example'], outcome: 'confirmed', ttlS: 4_000_000_000 }, true, HOUR_MS],
    [{ hosts: ['a.test.example'], outcome: 'late', ttlS: 600 }, false, 600 * SECOND_MS],
    [{ outcome: 'unconfirmed' }, true, 10 * MINUTE_MS],
    [{ outcome: 'no-name' }, true, 10 * MINUTE_MS],
    [{ outcome: 'too-many' }, false, 10 * MINUTE_MS],
    [{ outcome: 'late' }, false, 30 * SECOND_MS],
    [{ outcome: 'failed' }, false, 30 * SECOND_MS],
  ]
  for (const [given, isHostKnown, forMs] of table) {
    const finding = { hosts: [], outcome: 'failed', ttlS: 0, ...given } as const
    const { lookups } = looking(async () => finding)
    const { hosts } = finding
    assert.deepEqual(await lookups.find(CRAWLER), {
      ...{ kind: 'place', address: CRAWLER, untilMs: forMs },
      place: { hosts, isHostKnown, network: null },
    })
  }
})

test('what is known is not asked for again until its time is up, however the address is written', async () => {
  const { lookups, asked, clock } = looking()
  for (const address of [CRAWLER, `::ffff:${CRAWLER}`, CRAWLER]) {
    const found = await lookups.find(address)
    assert.deepEqual([found!.address, found!.place.hosts], [address, [`${CRAWLER}.test`]])
  }
  assert.deepEqual(asked, [CRAWLER])
  clock.ms = 5 * MINUTE_MS
  await lookups.find(CRAWLER)
  assert.equal(asked.length, 2)
  assert.deepEqual(await counts(lookups), { confirmed: 2, remembered: 2 })
})

test('looks up only public addresses', async () => {
  const { lookups, asked } = looking()
  for (const address of [
    '10.0.0.1',
    '127.0.0.1',
    '::1',
    'fe80::1',
    '192.168.1.1',
    '169.254.169.254',
    'x',
    '',
  ]) {
    const { place } = (await lookups.find(address))!
    assert.deepEqual(place, { hosts: [], isHostKnown: false, network: null }, address)
  }
  assert.deepEqual(asked, [])
})

test('a network, and everybody together, has so many turns a minute and no more', async () => {
  const { lookups, asked, clock } = looking()
  for (let i = 0; i < 70; i++) await lookups.find(`66.249.64.${i}`)
  assert.equal(asked.length, 60)
  assert.equal(await lookups.find('66.249.64.99'), null)
  assert.notEqual(await lookups.find('66.249.65.1'), null)
  for (let i = 0; i < 70; i++) await lookups.find(`2a00:1450:4001:${i.toString(16)}::1`)
  assert.equal(asked.filter((address) => address.startsWith('2a00:1450:4001')).length, 60)
  for (let i = 0; i < 1_500; i++) await lookups.find(`67.${i >> 8}.${i & 255}.1`)
  assert.equal(asked.length, 1_200)
  clock.ms += MINUTE_MS
  assert.notEqual(await lookups.find('66.249.64.99'), null)
})

test('of those that are asked for at once a few are, some wait, and the others are told nothing', async () => {
  const waiting: (() => void)[] = []
  const { lookups, asked } = looking(
    () => new Promise((resolve) => waiting.push(() => resolve({ hosts: [], outcome: 'no-name', ttlS: 0 }))),
  )
  const found = Array.from({ length: 200 }, (_, at) => lookups.find(`66.${at}.64.1`))
  await new Promise(setImmediate)
  assert.equal(asked.length, 32)
  while (waiting.length > 0) {
    waiting.shift()!()
    await new Promise(setImmediate)
  }
  assert.equal(asked.length, 32 + 64)
  assert.equal((await Promise.all(found)).filter((each) => each === null).length, 200 - 96)
})

test('networks are told by the list in use, which may be another by then', async () => {
  let networks = new AsnFile(mmdbOf([['66.249.64.0/24', { asn: 'AS64500', name: 'Before' }]]))
  const { lookups } = looking(undefined, () => networks)
  assert.deepEqual((await lookups.find(CRAWLER))!.place.network, { asn: 64500, name: 'Before' })
  networks = new AsnFile(mmdbOf([['66.249.64.0/24', { asn: 'AS64501' }]]))
  assert.deepEqual((await lookups.find(CRAWLER))!.place.network, { asn: 64501, name: null })
  const withoutDns = new PlaceLookups({ dns: null, networks: () => networks, nowMs: () => 0 })
  assert.deepEqual(await withoutDns.find(CRAWLER), {
    ...{ kind: 'place', address: CRAWLER, untilMs: HOUR_MS },
    place: { hosts: [], isHostKnown: false, network: { asn: 64501, name: null } },
  })
})

function looking(
  answer: (address: string) => Promise<HostFinding> = async (address) => {
    return { hosts: [`${address}.test`], outcome: 'confirmed', ttlS: 60 }
  },
  networks: () => AsnFile | null = () => null,
) {
  const asked: string[] = []
  const clock = { ms: 0 }
  const find = (address: string) => {
    asked.push(address)
    return answer(address)
  }
  const dns = { find, close: () => undefined }
  return { asked, clock, lookups: new PlaceLookups({ dns, networks, nowMs: () => clock.ms }) }
}

async function counts(lookups: PlaceLookups): Promise<Record<string, number>> {
  const metrics = new Metrics()
  lookups.addMetrics(metrics)
  const reading = (await metrics.read()).find(({ name }) => name === 'gatehouse_address_lookups_total')!
  return Object.fromEntries(
    reading.values.filter(({ value }) => value > 0).map(({ labels, value }) => [labels['outcome'], value]),
  )
}
