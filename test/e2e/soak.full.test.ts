import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'tap'

test('a short soak: nothing is wrong, and nothing stays', async () => {
  const sizes = [
    '--seconds',
    '15',
    '--connections',
    '20',
    '--kill-every',
    '8',
    '--reload-every',
    '2',
    '--seed',
    '1',
  ]
  const child = spawn(process.execPath, ['bench/soak/soak.ts', ...sizes], { timeout: 100_000 })
  const [said, complaints] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(child.exitCode, 0, said + complaints)
  assert.match(said, /^Nothing is wrong\.$/m)
  assert.match(said, /workers killed: [1-9]/)
})
