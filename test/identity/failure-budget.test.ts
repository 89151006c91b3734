import assert from 'node:assert/strict'
import { test } from 'tap'
import { FailureBudget } from '../../src/identity/verify/failure-budget.ts'

const LIMITS = { perAddress: 3, perKey: 5, inAll: 8, perProvenAddress: 6, readInAll: 12 }
const NOW_MS = 1_795_424_600_000

test('of an address that sends too many, one is read whenever there is room for one more', async () => {
  const budget = new FailureBudget(LIMITS)
  for (let i = 0; i < 3; i++) {
    assert.equal(budget.mayRead('a', NOW_MS + i), true)
    budget.failed('a', null, NOW_MS + i)
  }
  assert.equal(budget.mayRead('a', NOW_MS + 300), false)
  assert.equal(budget.mayRead('b', NOW_MS + 300), true)
  assert.equal(budget.mayRead('a', NOW_MS + 340), true)
  budget.failed('a', null, NOW_MS + 340)
  assert.equal(budget.mayRead('a', NOW_MS + 345), false)
})

test('a flood has as many looked at in each part of a second', async () => {
  const budget = new FailureBudget({ ...LIMITS, perKey: 100, inAll: 200 })
  const looked = Array<number>(20).fill(0)
  for (let i = 0; i < 10_000; i++) {
    const nowMs = NOW_MS + i / 5
    if (!budget.mayCheck(`${i}`, 'key', nowMs)) continue
    budget.failed(`${i}`, 'key', nowMs)
    looked[Math.floor((nowMs - NOW_MS) / 100)]!++
  }
  assert.ok(looked[0]! >= 100 && looked[0]! <= 110, `${looked}`)
  for (const each of looked.slice(1)) assert.ok(each >= 9 && each <= 11, `${looked}`)
})

test('one that has signed well may have more that do not hold, for others may be behind it', async () => {
  const budget = new FailureBudget(LIMITS)
  budget.proven('a', 'key')
  for (let i = 0; i < 6; i++) {
    assert.equal(budget.mayRead('a', NOW_MS), true)
    budget.failed('a', null, NOW_MS)
  }
  assert.equal(budget.mayRead('a', NOW_MS), false)
})

test('a key that many falsely claim is still checked for clients that proved it', async () => {
  const budget = new FailureBudget(LIMITS)
  budget.proven('owner', 'key')
  for (let i = 0; i < 5; i++) {
    assert.equal(budget.mayCheck(`${i}`, 'key', NOW_MS), true)
    budget.failed(`${i}`, 'key', NOW_MS)
  }
  assert.equal(budget.mayCheck('6', 'key', NOW_MS), false)
  assert.equal(budget.mayCheck('6', 'other key', NOW_MS), true)
  assert.equal(budget.mayCheck('owner', 'key', NOW_MS), true)
  assert.equal(budget.mayCheck('6', 'key', NOW_MS + 1_000), true)
})

test('all share one limit, and no client escapes it with its own key', async () => {
  const budget = new FailureBudget({ ...LIMITS, perKey: 100 })
  budget.proven('owner', 'own')
  budget.proven('liar', 'own')
  for (let i = 0; i < 8; i++) budget.failed(`${i}`, `${i}`, NOW_MS)
  assert.deepEqual([budget.mayRead('new', NOW_MS), budget.mayRead('owner', NOW_MS)], [false, true])
  assert.equal(budget.mayCheck('new', 'new', NOW_MS), false)
  assert.equal(budget.mayCheck('owner', 'own', NOW_MS), true)
  assert.equal(budget.mayCheck('liar', 'own', NOW_MS), true)
  budget.failed('liar', 'own', NOW_MS)
  assert.equal(budget.mayCheck('liar', 'own', NOW_MS), false)
})

test('what is read in vain has a bound in all, too, however many addresses it comes from', async () => {
  const budget = new FailureBudget(LIMITS)
  budget.proven('owner', 'own')
  for (let i = 0; i < 12; i++) {
    assert.equal(budget.mayRead(`${i}`, NOW_MS), true)
    budget.failed(`${i}`, null, NOW_MS)
  }
  assert.deepEqual([budget.mayRead('new', NOW_MS), budget.mayRead('owner', NOW_MS)], [false, true])
  assert.equal(budget.mayCheck('new', 'key', NOW_MS), true, 'a check is another thing')
  assert.equal(budget.mayRead('new', NOW_MS + 1_000), true)
})

test('a clock that goes back locks no client out', async () => {
  const budget = new FailureBudget(LIMITS)
  for (let i = 0; i < 9; i++) budget.failed('a', 'key', NOW_MS)
  assert.equal(budget.mayRead('a', NOW_MS - 3_600_000), true)
  assert.equal(budget.mayCheck('a', 'key', NOW_MS - 3_600_000), true)
})
