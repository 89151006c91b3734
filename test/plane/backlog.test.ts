import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Pressure } from '../../src/plane/bus.ts'
import { Backlog } from '../../src/plane/jetstream/backlog.ts'

/** What the pressure is at the end of each second, if so many batches are stored a second and so many wait at its end. */
function pressures(stored: number, waiting: readonly number[], backlog = new Backlog()): readonly Pressure[] {
  let nowMs = 1_000_000
  return waiting.map((count) => {
    for (let batch = 0; batch < stored; batch++) {
      nowMs += 1_001 / stored
      backlog.stored(count, nowMs)
    }
    return backlog.pressure
  })
}

test('a backlog that grows raises the pressure, and again if it still grows', async () => {
  const found = pressures(20, [20, 40, 60, 80, 100, 120, 140, 160])
  assert.equal(found[1], 'none')
  assert.ok(found.includes('high'))
  assert.equal(found.at(-1), 'extreme')
})

test('a backlog that becomes smaller, as after an outage, raises no pressure', async () => {
  const waiting = Array.from({ length: 40 }, (_, second) => 4_000 - 90 * second)
  assert.deepEqual(new Set(pressures(100, waiting)), new Set(['none']))
})

test('a few batches that wait raise no pressure, whatever their number does', async () => {
  assert.deepEqual(new Set(pressures(20, [1, 2, 3, 10, 40, 50, 50, 55])), new Set(['none']))
})

test('the pressure stays until the backlog is gone', async () => {
  const backlog = new Backlog()
  pressures(20, [100, 110, 120, 130, 140], backlog)
  assert.notEqual(backlog.pressure, 'none')
  const found = pressures(40, [120, 100, 80, 60, 45, 10], backlog)
  assert.ok(found.slice(1, -1).every((each) => each !== 'none'))
  assert.equal(found.at(-1), 'none')
})

test('what waited before a pause is forgotten', async () => {
  const backlog = new Backlog()
  pressures(20, [100, 110], backlog)
  for (let batch = 1; batch < 42; batch++) backlog.stored(200, 9_000_000 + 50 * batch)
  assert.equal(backlog.pressure, 'none')
})
