import assert from 'node:assert/strict'
import { test } from 'tap'
import { FailureBudget } from '../../src/identity/failure-budget.ts'

const LIMITS = { perAddress: 3, perKey: 5, inAll: 8, perProvenAddress: 6, readInAll: 12 }
const NOW_MS = 1_795_424_600_000

test('an address that sends too many is not read until the second is over', async () => {
  const budget = new FailureBudget(LIMITS)
  for (let i = 0; i < 3; i++) {
    assert.equal(budget.mayRead('a', NOW_MS + i), true)
    budget.failed('a', null, NOW_MS + i)
  }
  assert.equal(budget.mayRead('a', NOW_MS + 999), false)
  assert.equal(budget.mayRead('b', NOW_MS + 999), true)
  assert.equal(budget.mayRead('a', NOW_MS + 1_000), true)
  budget.failed('a', null, NOW_MS + 1_000)
  assert.equal(budget.mayRead('a', NOW_MS + 1_500), true, 'counting begins anew')
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

test('a key that others claim from everywhere is still checked for who has proven it', async () => {
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

test('all together have a bound, and nobody buys himself out of it with a key of his own', async () => {
  const budget = new FailureBudget({ ...LIMITS, perKey: 100 })
  budget.proven('owner', 'own')
  budget.proven('liar', 'his own')
  for (let i = 0; i < 8; i++) budget.failed(`${i}`, `${i}`, NOW_MS)
  assert.deepEqual([budget.mayRead('new', NOW_MS), budget.mayRead('owner', NOW_MS)], [false, true])
  assert.equal(budget.mayCheck('new', 'new', NOW_MS), false)
  assert.equal(budget.mayCheck('owner', 'own', NOW_MS), true)
  assert.equal(budget.mayCheck('liar', 'his own', NOW_MS), true)
  budget.failed('liar', 'his own', NOW_MS)
  assert.equal(budget.mayCheck('liar', 'his own', NOW_MS), false)
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

test('a clock that goes back shuts nobody out', async () => {
  const budget = new FailureBudget(LIMITS)
  for (let i = 0; i < 9; i++) budget.failed('a', 'key', NOW_MS)
  assert.equal(budget.mayRead('a', NOW_MS - 3_600_000), true)
  assert.equal(budget.mayCheck('a', 'key', NOW_MS - 3_600_000), true)
})
