import assert from 'node:assert/strict'
import { test } from 'tap'
import { CertificateStore } from '../../src/proxy/tls/certificates.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { ServedHosts } from '../../src/proxy/connection/served-hosts.ts'
import { testCa, testLeaf, testPair } from './test-certificates.ts'

const ca = await testCa()
const NAMES = ['gate.example', '*.shop.example']
const certificates = new CertificateStore([testPair(await testLeaf(ca, NAMES), NAMES)], {})
const connection = { localAddress: '::ffff:192.0.2.1', isTls: true, isTrusted: false } as Connection

test('without settings they are those of the certificates, and the address that was connected to', async () => {
  const hosts = new ServedHosts([], certificates)
  for (const authority of [
    ...[
      'gate.example',
      'GATE.example',
      'gate.example:443',
      'gate.example:8443',
      'gate.example.',
      'a.shop.example',
    ],
    ...['192.0.2.1', '192.0.2.1:8443', '[::ffff:c000:201]'],
  ])
    assert.equal(hosts.ownerOf(authority, connection), 'ours', authority)
  for (const authority of [
    ...[
      '',
      ':443',
      'example',
      'other.example',
      'gate.example.evil.test',
      'evil-gate.example',
      'shop.example',
    ],
    ...['a.b.shop.example', '.shop.example', '192.0.2.2', '[::1]', '[gate.example]'],
    ...['gate.example@evil.test', 'evil.test:gate.example', 'gate.example:x'],
  ])
    assert.equal(hosts.ownerOf(authority, connection), 'other', authority)
})

test('what settings say counts alone', async () => {
  const hosts = new ServedHosts(['Front.example', '*.front.example'], certificates)
  for (const authority of ['front.example', 'FRONT.example:443', 'a.front.example'])
    assert.equal(hosts.ownerOf(authority, connection), 'ours', authority)
  for (const authority of ['gate.example', 'a.b.front.example', '192.0.2.1', '*.front.example.evil.test'])
    assert.equal(hosts.ownerOf(authority, connection), 'other', authority)
})

test('behind a TLS-terminating proxy, hosts outside our certificates may be ours, unless settings name ours', async () => {
  for (const behind of [
    { ...connection, isTls: false },
    { ...connection, isTrusted: true },
  ]) {
    const owner = (hosts: readonly string[], authority: string) =>
      new ServedHosts(hosts, certificates).ownerOf(authority, behind)
    assert.equal(owner([], 'front.example'), 'unknown')
    assert.equal(owner([], '192.0.2.2'), 'unknown')
    assert.equal(owner([], 'gate.example'), 'ours')
    assert.equal(owner(['front.example'], 'front.example'), 'ours')
    assert.equal(owner(['front.example'], 'other.example'), 'other')
  }
})
