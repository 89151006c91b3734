import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'

/** Resolves as soon as the condition holds. Fails when it does not hold within this time. */
export async function until(holds: () => unknown, withinMs = 60_000): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!(await holds())) {
    assert.ok(performance.now() < endMs, `does not hold within ${withinMs} ms: ${holds}`)
    await wait(POLL_MS)
  }
}

const POLL_MS = 10
