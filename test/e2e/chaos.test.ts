import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'tap'

test('a short time of chaos: each is over when it is over, and nothing is lost', async () => {
  const kinds = 'worker-killed,disk-full,clock,descriptors,app-resets'
  const sizes = ['--seconds', '15', '--connections', '8', '--seed', '3', '--only', kinds]
  const child = spawn(process.execPath, ['bench/chaos/chaos.ts', ...sizes], { timeout: 250_000 })
  const [said, complaints] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(child.exitCode, 0, said + complaints)
  assert.match(said, /^Nothing is wrong\.$/m)
  assert.match(said, /, well again after \d+ ms/)
})
