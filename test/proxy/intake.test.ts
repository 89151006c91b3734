import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { BYTES_PER_TURN_MAX, Intake, PIECES_PER_TURN_MAX } from '../../src/proxy/http/intake.ts'

test('of several connections with too many pieces one resumes per millisecond', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const resumed: string[] = []
    const named = (name: string) => new Intake({ stop: () => undefined, goOn: () => resumed.push(name) })
    const [first, second, third, upload] = [named('first'), named('second'), named('third'), named('upload')]
    for (const intake of [first, second, third]) intake.count(PIECES_PER_TURN_MAX, 1)
    upload.count(1, BYTES_PER_TURN_MAX)
    await turns()
    assert.deepEqual(resumed, ['first', 'upload'], 'an upload of large pieces does not wait for them')
    mock.timers.tick(1)
    await turns()
    // Now only one is left. It waits for no timer.
    assert.deepEqual(resumed, ['first', 'upload', 'second', 'third'])
  } finally {
    mock.timers.reset()
  }
})

test('a single connection with too many pieces resumes in each turn', async () => {
  let resumed = 0
  const intake: Intake = new Intake({
    stop: () => undefined,
    goOn: () => {
      resumed++
      if (resumed < 5) intake.count(PIECES_PER_TURN_MAX, 1)
    },
  })
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    intake.count(PIECES_PER_TURN_MAX, 1)
    await turns()
    assert.equal(resumed, 5)
    assert.equal(intake.isStopped, false)
  } finally {
    mock.timers.reset()
  }
})

async function turns(): Promise<void> {
  for (let index = 0; index < 20; index++) await turn()
}
