import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { test } from 'tap'
import { isPublicAddress, publicLookup, publicOnly } from '../../src/identity/fetch/public-address.ts'

test('which addresses are public', async () => {
  for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700::1111', '::ffff:1.1.1.1'])
    assert.ok(isPublicAddress(address), address)
  const inside = [
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '192.168.0.1'],
    ...['224.0.0.1', '240.0.0.1', '255.255.255.255', '192.0.2.1', '198.18.0.1', '192.0.0.192', '0x7f.1'],
    ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1'],
    ...['::ffff:10.0.0.1', '::ffff:a9fe:a9fe', '::a00:1', '::ffff:0:a00:1', '64:ff9b::a00:1', '64:ff9b:1::1'],
    ...['2002:a00:1::', '2001::1', '2001:db8::1', '4000::1', 'x', ''],
  ]
  for (const address of inside) assert.ok(!isPublicAddress(address), address)
})

test('a literal address is looked at when it is connected to', async () => {
  const dialled: string[] = []
  const connect = publicOnly(({ hostname }) => void dialled.push(hostname))
  const refused: string[] = []
  for (const hostname of [
    '1.1.1.1',
    '10.0.0.1',
    '[::1]',
    '[2606:4700::1111]',
    'name.example.test',
    'x.localhost',
  ])
    connect({ hostname, protocol: 'https:', port: '443' }, (...[error]) => {
      refused.push(error!.message)
    })
  assert.deepEqual(dialled, ['1.1.1.1', '[2606:4700::1111]', 'name.example.test'])
  assert.deepEqual(
    refused,
    ['10.0.0.1', '::1', 'x.localhost'].map((host) => `${host} is not on the public internet`),
  )
})

test('a name has only public addresses, or none that is used', async () => {
  const found = (addresses: readonly string[], all: boolean) =>
    new Promise((resolve) => {
      const listed: LookupAddress[] = addresses.map((address) => ({ address, family: 4 }))
      const find = publicLookup((_name, _options, callback) => callback(null, listed))
      find('a.example', { all }, (error, address) => resolve(error?.code ?? address))
    })
  assert.equal(await found(['1.1.1.1', '1.0.0.1'], false), '1.1.1.1')
  assert.deepEqual(await found(['1.1.1.1'], true), [{ address: '1.1.1.1', family: 4 }])
  for (const addresses of [['1.1.1.1', '10.0.0.1'], ['10.0.0.1', '1.1.1.1'], ['127.0.0.1'], []])
    for (const all of [true, false]) assert.equal(await found(addresses, all), 'ADDRESS_REFUSED')
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  publicLookup()('localhost', { all: false }, (error) => resolve(error?.code))
  assert.equal(await promise, 'ADDRESS_REFUSED')
})
