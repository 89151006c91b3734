import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseApps } from '../../src/apps/app.ts'
import { makeSnapshot, parseSnapshot } from '../../src/plane/snapshot.ts'
import { documentIn, packSnapshot } from '../../src/plane/snapshot-package.ts'

const POLICY = { rules: [{ name: 'no-entry', when: { path: '/no' }, action: { block: {} } }] }

test('a snapshot arrives as it was made, and compiled', async () => {
  const document = makeSnapshot(7, POLICY, 1234)
  const snapshot = parseSnapshot(structuredClone(document))
  assert.deepEqual([snapshot.number, snapshot.madeAtMs, snapshot.hash], [7, 1234, document.hash])
  assert.equal(snapshot.policy.last.rules.length, 1)
  assert.ok(Object.isFrozen(snapshot))
})

test('equal policies have equal hashes, wherever they were made; others do not', async () => {
  const { hash } = makeSnapshot(1, POLICY, 1)
  assert.match(hash, /^[0-9a-f]{64}$/)
  assert.equal(makeSnapshot(2, structuredClone(POLICY), 2).hash, hash)
  assert.notEqual(makeSnapshot(1, { rules: [] }, 1).hash, hash)
})

test('a policy with problems is never made into one', async () => {
  assert.throws(() => makeSnapshot(1, { rules: [{ name: 'x' }] }, 1), { code: 'POLICY_INVALID' })
})

test('anything that is not a Snapshot is a Fault', async () => {
  const good = makeSnapshot(1, POLICY, 1)
  const { policy: _, ...without } = good
  const bad = [
    null,
    undefined,
    1,
    'x',
    [],
    {},
    without,
    { ...good, number: 1.5 },
    { ...good, hash: 1 },
    { ...good, madeAtMs: '1' },
  ]
  for (const value of bad) assert.throws(() => parseSnapshot(value), { code: 'SNAPSHOT_INVALID' })
  assert.throws(() => parseSnapshot({ ...good, policy: { rules: 1 } }), { code: 'POLICY_INVALID' })
})

test('apps travel in a Snapshot and change its hash; without apps it is as before', async () => {
  const apps = parseApps([{ id: 'shop', hosts: ['shop.example'] }])
  const without = makeSnapshot(1, POLICY, 1, null, { apps: [] })
  assert.deepEqual(without, makeSnapshot(1, POLICY, 1))
  assert.ok(!('apps' in without))
  assert.deepEqual(parseSnapshot(without).apps, [])
  const document = makeSnapshot(1, POLICY, 1, null, { apps })
  assert.notEqual(document.hash, without.hash)
  assert.deepEqual(parseSnapshot(structuredClone(document)).apps, apps)
  assert.deepEqual(await documentIn(await packSnapshot(document)), document)
  const limited = apps.map((app) => ({ ...app, quota: { minute: 1 } }))
  assert.deepEqual(makeSnapshot(1, POLICY, 1, null, { apps: limited }), document, 'quotas are for the API')
  const later = [{ id: 'shop', hosts: ['shop.example'], colour: 5 }]
  assert.deepEqual(parseSnapshot({ ...document, apps: later }).apps, apps)
  assert.throws(() => parseSnapshot({ ...document, apps: [{ id: '../shop' }] }), { code: 'APPS_INVALID' })
})
