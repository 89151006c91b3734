import assert from 'node:assert/strict'
import { test } from 'tap'
import { DecisionIds } from '../../src/proxy/connection/decision-id.ts'

const NOW_MS = 1_763_700_000_000
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('an id is a UUIDv7 whose time is that of the last beat', async () => {
  const ids = new DecisionIds(NOW_MS)
  assert.equal(timeOf(ids.next()), NOW_MS)
  ids.beat(NOW_MS + 100)
  assert.equal(timeOf(ids.next()), NOW_MS + 100)
  assert.equal(timeOf(new DecisionIds(0).next()), 0)
  assert.equal(timeOf(new DecisionIds(2 ** 48 - 1).next()), 2 ** 48 - 1)
})

test('ids of one process rise, also when time stands still or goes back', async () => {
  const ids = new DecisionIds(NOW_MS)
  const made: string[] = []
  for (const step of [0, 0, 1, -1, -3_600_000, 100, 50, 5000]) {
    ids.beat(NOW_MS + step)
    for (let i = 0; i < 5000; i++) made.push(ids.next())
  }
  assert.deepEqual(made, [...made].sort())
  assert.equal(new Set(made).size, made.length)
})

test('when a beat has used up its ids, the next ones are those of a later millisecond', async () => {
  const ids = new DecisionIds(NOW_MS)
  let last = ''
  for (let i = 0; i < 2 ** 24; i++) last = ids.next()
  assert.match(last, /-7fff-8fff-/)
  const next = ids.next()
  assert.ok(next > last, `${next} after ${last}`)
  assert.equal(timeOf(next), NOW_MS + 1)
  ids.beat(NOW_MS + 1)
  assert.ok(ids.next() > next)
})

test('ids of two processes differ at the same time', async () => {
  const [one, other] = [new DecisionIds(NOW_MS), new DecisionIds(NOW_MS)]
  assert.notEqual(one.next(), other.next())
})

function timeOf(id: string): number {
  const parts = UUID_V7.exec(id)
  assert.ok(parts !== null, id)
  return Number.parseInt(parts[1]! + parts[2]!, 16)
}
