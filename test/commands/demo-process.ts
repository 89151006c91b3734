import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { GATEHOUSE } from '../e2e/programs.ts'
import { allProcesses } from '../processes.ts'

/** Its ports are its own to find: others may have the usual ones. */
export async function startDemo(t: Test) {
  const demo = runDemo(t, [])
  await demo.says(/Gatehouse is at work/)
  return demo
}

export function runDemo(t: Test, argv: readonly string[], isTerminal = false) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-demo-'))
  const command = [process.execPath, GATEHOUSE, 'demo', ...argv]
  const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, TERM: 'xterm' }
  const child: ChildProcess = isTerminal
    ? spawn('script', ['-qec', command.join(' '), '/dev/null'], { env, stdio: 'pipe' })
    : spawn(command[0]!, command.slice(1), { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const demo = {
    child,
    out: '',
    err: '',
    /** Resolves when it does. */
    says: async (what: RegExp) => {
      for (let tries = 0; !what.test(demo.out); tries++) {
        assert.ok(tries < 600 && child.exitCode === null, `${what}:\n${demo.out}${demo.err}`)
        await wait(50)
      }
    },
    /** Of its files. */
    left: () => readdirSync(folder).filter((name) => name.startsWith('gatehouse-demo-')),
    /** Of its processes: their arguments have its folder. */
    running: () => allProcesses().filter(({ command }) => command.includes(join(folder, 'gatehouse-demo-'))),
  }
  child.stdout!.on('data', (data) => {
    demo.out += data
  })
  child.stderr!.on('data', (data) => {
    demo.err += data
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    for (const { pid, command } of allProcesses()) if (command.includes(folder)) process.kill(pid, 'SIGKILL')
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  return demo
}
