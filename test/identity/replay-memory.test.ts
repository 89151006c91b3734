import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import type { SignatureUse } from '../../src/identity/keys/inquiry.ts'
import { ReplayMemory } from '../../src/identity/verify/replay-memory.ts'
import { timeBox } from '../time-box.ts'

const NOW_MS = Date.UTC(2026, 10, 23, 9)
const NOW_S = NOW_MS / 1_000

test('a signature is accepted once from any client; without a nonce, again from its first client', async () => {
  const memory = new ReplayMemory()
  assert.equal(memory.claim(use({ id: 'a' }), NOW_MS), true)
  assert.equal(memory.claim(use({ id: 'a' }), NOW_MS), false)
  assert.equal(memory.claim(use({ id: 'a', holder: '192.0.2.1' }), NOW_MS), false)
  assert.equal(memory.claim(use({ id: 'b', holder: '192.0.2.1' }), NOW_MS), true)
  assert.equal(memory.claim(use({ id: 'b', holder: '192.0.2.1' }), NOW_MS), true)
  assert.equal(memory.claim(use({ id: 'b', holder: '192.0.2.2' }), NOW_MS), false)
  assert.equal(memory.claim(use({ id: 'b' }), NOW_MS), false)
  assert.equal(memory.claim(use({ id: 'c', goodUntilMs: NOW_MS }), NOW_MS), null, 'its time is over')
  assert.equal(memory.size, 2)
})

test('of a full memory the oldest is forgotten, and what is as old is not taken any more', async () => {
  const memory = new ReplayMemory(undefined, { usesMax: 32, usesPerKeyMax: 16, keysMax: 4 })
  for (let i = 0; i < 17; i++)
    assert.equal(memory.claim(use({ id: `${i}`, createdS: NOW_S + i }), NOW_MS), true, `${i}`)
  assert.equal(memory.size, 16)
  assert.equal(memory.floorsRaised, 1)
  assert.equal(
    memory.claim(use({ id: '0', createdS: NOW_S }), NOW_MS),
    null,
    'the very one that was forgotten',
  )
  assert.equal(memory.claim(use({ id: 'new', createdS: NOW_S }), NOW_MS), null, 'unknown')
  assert.equal(memory.claim(use({ id: 'new', createdS: NOW_S + 17 }), NOW_MS), true)
  assert.equal(memory.claim(use({ id: 'x', thumbprint: 'other', createdS: NOW_S }), NOW_MS), true)
})

test('what is over makes room without a floor', async () => {
  const memory = new ReplayMemory(undefined, { usesMax: 32, usesPerKeyMax: 16, keysMax: 4 })
  for (let i = 0; i < 16; i++) memory.claim(use({ id: `${i}`, goodUntilMs: NOW_MS + 1_000 }), NOW_MS)
  for (let i = 16; i < 32; i++) assert.equal(memory.claim(use({ id: `${i}` }), NOW_MS + 1_000), true)
  assert.deepEqual([memory.size, memory.floorsRaised], [16, 0])
})

test('keys that come and go cannot make a used signature good again', async () => {
  const memory = new ReplayMemory(undefined, { usesMax: 32, usesPerKeyMax: 16, keysMax: 4 })
  memory.claim(use({ id: 'mine', thumbprint: 'victim' }), NOW_MS)
  for (let i = 0; i < 50; i++)
    memory.claim(use({ id: `${i}`, thumbprint: `${i}`, createdS: NOW_S + 1 + i }), NOW_MS)
  assert.equal(memory.claim(use({ id: 'mine', thumbprint: 'victim' }), NOW_MS), null)
})

test('strangers with any number of keys push out nothing of agents that are listed', async () => {
  const memory = new ReplayMemory(undefined, { usesMax: 32, usesPerKeyMax: 16, keysMax: 4 })
  const listed = (id: string, createdS: number) => use({ id, createdS, thumbprint: 'known', isListed: true })
  assert.equal(memory.claim(listed('before', NOW_S - 60), NOW_MS), true)
  for (let i = 0; i < 500; i++)
    memory.claim(use({ id: `${i}`, thumbprint: `${i % 50}`, createdS: NOW_S + 60 }), NOW_MS)
  assert.equal(memory.claim(listed('before', NOW_S - 60), NOW_MS), false, 'it is remembered')
  assert.equal(memory.claim(listed('other', NOW_S - 60), NOW_MS), true, 'and no floor was raised')
  assert.ok(memory.size <= 64)
})

test('who was a stranger and is listed now has not used less, nor who was listed and is no more', async () => {
  const memory = new ReplayMemory(undefined, { usesMax: 32, usesPerKeyMax: 16, keysMax: 4 })
  assert.equal(memory.claim(use({ id: 'a' }), NOW_MS), true)
  assert.equal(memory.claim(use({ id: 'a', isListed: true }), NOW_MS), false)
  assert.equal(memory.claim(use({ id: 'b', isListed: true }), NOW_MS), true)
  assert.equal(memory.claim(use({ id: 'b' }), NOW_MS), false)
  assert.equal(memory.size, 2)
  // Forgotten as a stranger's, it is not taken as that of one who is listed.
  memory.claim(use({ id: 'c', thumbprint: 'other' }), NOW_MS)
  for (let i = 0; i < 10; i++) memory.claim(use({ id: `${i}`, thumbprint: `${i}` }), NOW_MS)
  assert.equal(memory.claim(use({ id: 'c', thumbprint: 'other', isListed: true }), NOW_MS), null)
})

for (const limits of [
  { usesMax: 12, usesPerKeyMax: 6, keysMax: 3 },
  { usesMax: 60, usesPerKeyMax: 48, keysMax: 2 },
])
  test(`whatever comes in whatever order, of ${limits.usesMax} uses none is taken that an endless memory would not take`, async () => {
    // A signature has the same time each time it is sent.
    const signature = fc.record({
      key: fc.integer({ min: 0, max: 4 }),
      createdS: fc.integer({ min: -30, max: 30 }),
      lifeS: fc.integer({ min: 20, max: 90 }),
    })
    const step = fc.record({
      pick: fc.nat(),
      holder: fc.constantFrom(null, 'a', 'b'),
      passedMs: fc.constantFrom(0, 0, 0, 0, 500, 5_000),
      isListed: fc.boolean(),
    })
    const signatures = fc.array(signature, { minLength: limits.usesMax, maxLength: limits.usesMax * 3 })
    const steps = fc.array(step, { minLength: 100, maxLength: 400 })
    fc.assert(
      fc.property(signatures, steps, (signatures, steps) => {
        const memory = new ReplayMemory(undefined, limits)
        const endless = new Map<string, string | null>()
        let nowMs = NOW_MS
        for (const { pick, holder, passedMs, isListed } of steps) {
          nowMs += passedMs
          const number = pick % signatures.length
          const { key, createdS: ageS, lifeS } = signatures[number]!
          const [id, createdS] = [`${number}`, NOW_S + ageS]
          const goodUntilMs = (createdS + lifeS) * 1_000
          const isOwn = holder !== null && endless.get(id) === holder
          const mayBe = goodUntilMs > nowMs && (!endless.has(id) || isOwn)
          const one = { id, thumbprint: `${key}`, holder, createdS, goodUntilMs, isListed }
          const isTaken = memory.claim(one, nowMs)
          assert.ok(mayBe || isTaken !== true, 'a replay was taken')
          assert.ok(isTaken !== false || endless.has(id), 'what was never used is called a replay')
          if (isTaken === true && !endless.has(id)) endless.set(id, holder)
          assert.ok(memory.size <= 2 * limits.usesMax + limits.usesPerKeyMax)
        }
      }),
      timeBox(1_000, 5_000),
    )
  })

test('accepts every request of a client that signs each one', async () => {
  const memory = new ReplayMemory(undefined, { usesMax: 300, usesPerKeyMax: 200, keysMax: 4 })
  for (let i = 0; i < 5_000; i++) {
    const createdS = NOW_S + Math.floor(i / 20)
    const goodUntilMs = (createdS + 3_600) * 1_000
    assert.equal(memory.claim(use({ id: `${i}`, createdS, goodUntilMs }), createdS * 1_000), true, `${i}`)
  }
  assert.ok(memory.size <= 200 && memory.floorsRaised > 0)
})

function use(changes: Partial<SignatureUse>): SignatureUse {
  const usual = { thumbprint: 'key', holder: null, createdS: NOW_S, goodUntilMs: NOW_MS + 3_600_000 }
  return { id: 'id', isListed: false, ...usual, ...changes }
}
