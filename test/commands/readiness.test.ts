import assert from 'node:assert/strict'
import { test } from 'tap'
import { SteadyReasons } from '../../src/runtime/readiness.ts'
import type { UnreadyReason } from '../../src/plane/readiness.ts'

const APP: UnreadyReason = { code: 'upstream', detail: 'upstream app: no target is healthy' }
const STORE: UnreadyReason = { code: 'database', detail: 'the database is unreachable' }
const HOLD_MS = 5_000

test('what comes and goes within the hold time does not show', async (t) => {
  const { at } = steady(t, [])
  for (let nowMs = 0; nowMs < 60_000; nowMs += 500) {
    const isDown = nowMs % 5_000 < 4_500
    assert.deepEqual(at(nowMs, isDown ? [APP] : []), [], String(nowMs))
  }
})

test('what stays shows after the hold time, and goes when it was away for as long', async (t) => {
  const { at } = steady(t, [])
  assert.deepEqual([at(0, [APP]), at(4_900, [APP]), at(5_000, [APP, STORE])], [[], [], [APP]])
  assert.deepEqual(at(10_000, [APP, STORE]), [APP, STORE])
  assert.deepEqual(at(11_000, [STORE]), [APP, STORE])
  assert.deepEqual(at(14_000, [APP, STORE]), [APP, STORE], 'it was away for a moment')
  assert.deepEqual(at(14_500, [STORE]), [APP, STORE])
  assert.deepEqual([at(19_000, [STORE]), at(19_500, [STORE])], [[APP, STORE], [STORE]])
  assert.deepEqual([at(20_000, []), at(25_000, []), at(40_000, [])], [[STORE], [], []])
})

test('reasons at the start show at once', async (t) => {
  const { at } = steady(t, [STORE])
  assert.deepEqual([at(1, [STORE]), at(2, []), at(5_002, [])], [[STORE], [STORE], []])
})

test('readiness: of thousands of reasons at once, a thousand are kept', async (t) => {
  const reasons = (from: number) =>
    Array.from(
      { length: 3_000 },
      (_, i): UnreadyReason => ({ code: 'upstream', detail: `upstream ${from + i}` }),
    )
  const { at } = steady(t, reasons(0))
  assert.equal(at(1, reasons(0)).length, 1_000)
  assert.equal(at(2, reasons(5_000)).length, 1_000)
  assert.equal(at(5_002, []).length, 0)
  at(5_003, reasons(9_000))
  assert.equal(at(10_003, reasons(9_000)).length, 1_000)
})

function steady(t: { teardown(end: () => void): void }, first: readonly UnreadyReason[]) {
  let found = first
  let nowMs = 0
  const reasons = new SteadyReasons(
    () => found,
    HOLD_MS,
    () => nowMs,
  )
  reasons.start()
  t.teardown(() => reasons.close())
  const at = (atMs: number, there: readonly UnreadyReason[]) => {
    nowMs = atMs
    found = there
    return reasons.now()
  }
  return { at }
}
