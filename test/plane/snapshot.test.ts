import assert from 'node:assert/strict'
import { test } from 'tap'
import { makeSnapshot, parseSnapshot } from '../../src/plane/snapshot.ts'

const POLICY = { rules: [{ name: 'no-entry', when: { path: '/no' }, action: { block: {} } }] }

test('a snapshot arrives as it was made, and compiled', async () => {
  const document = makeSnapshot(7, POLICY, 1234)
  const snapshot = parseSnapshot(structuredClone(document))
  assert.deepEqual([snapshot.number, snapshot.madeAtMs, snapshot.hash], [7, 1234, document.hash])
  assert.equal(snapshot.policy.rules.length, 1)
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
