import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { allProcesses, childrenOf } from './processes.ts'

test('a child is found by its parent, with its arguments, until it ends', async () => {
  const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1_000)', 'an argument'])
  await once(child.stdout, 'data')
  const [found] = childrenOf(process.pid).filter(({ pid }) => pid === child.pid)
  assert.match(found!.command, /node -e console\.log\(1\).* an argument$/)
  child.kill()
  await once(child, 'exit')
  assert.ok(!allProcesses().some(({ pid }) => pid === child.pid))
})
