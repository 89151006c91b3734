import assert from 'node:assert/strict'
import { test } from 'tap'
import type { TarpitAction } from '../../src/policy/action.ts'
import { Tarpit } from '../../src/proxy/request/tarpit.ts'

const LONG: TarpitAction = { kind: 'tarpit', delayMs: 300_000, connectionsMax: 2 }
const SHORT: TarpitAction = { ...LONG, delayMs: 20 }

test('a held client is released once, not before the delay is over', async () => {
  const tarpit = new Tarpit()
  const startedMs = performance.now()
  let calls = 0
  await new Promise<void>((resolve) => {
    const letGo = tarpit.hold(SHORT, () => {
      calls++
      resolve()
    })
    assert.notEqual(letGo, null)
    assert.deepEqual([tarpit.held, calls], [1, 0])
  })
  assert.ok(performance.now() - startedMs > 15)
  assert.deepEqual([tarpit.held, calls], [0, 1])
})

test('no more are held than the rule allows, and there is room again when one has gone', async () => {
  const tarpit = new Tarpit()
  const first = tarpit.hold(LONG, never)
  const second = tarpit.hold(LONG, never)
  assert.equal(tarpit.hold(LONG, never), null)
  assert.equal(tarpit.held, 2)
  first!()
  const third = tarpit.hold(LONG, never)
  assert.notEqual(third, null)
  second!()
  third!()
  assert.equal(tarpit.held, 0)
})

test('a client that leaves is counted down once, however often that is reported', async () => {
  const tarpit = new Tarpit()
  const gone = tarpit.hold(LONG, never)
  gone!()
  gone!()
  assert.equal(tarpit.held, 0)
  await new Promise<void>((resolve) => {
    const letGo = tarpit.hold(SHORT, () => {
      letGo!() // it leaves while it is answered
      assert.equal(tarpit.held, 0)
      resolve()
    })
  })
  const second = tarpit.hold(LONG, never)
  assert.equal(tarpit.held, 1)
  second!()
  assert.equal(tarpit.held, 0)
})

function never(): void {
  assert.fail('it was let go')
}
