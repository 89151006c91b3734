import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { HARMLESS } from '../../bench/chaos/disturbance.ts'
import { readinessProblems } from '../../bench/chaos/verdict.ts'

test('three minutes of chaos: nothing is wrong, and nothing stays', async (t) => {
  const child = startChaos(t, ['--minutes', '3', '--connections', '4', '--seed', '11'])
  const [said, complaints] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  // First of all what is wrong, as reports of failures are cut short.
  const end = said.slice(said.search(/^(?:Nothing is wrong|\d+ WRONG)/m))
  assert.equal(end, 'Nothing is wrong.\n', end + complaints + said)
  assert.equal(child.exitCode, 0, complaints)
  assert.match(said, /\d+ s: .*\n\d+ s: /, 'more than one thing was done to it')
  assert.deepEqual(groupOf(child.pid!), [])
})

test('a chaos that is ended in the middle of something leaves nothing behind', async (t) => {
  const sizes = ['--seconds', '600', '--connections', '4', '--only', 'manager-killed,worker-held']
  const child = startChaos(t, sizes)
  const complaints = text(child.stderr)
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    said += piece
    if (said.includes('well again')) child.kill('SIGTERM')
  })
  await once(child, 'exit')
  assert.match(await complaints, /ended by SIGTERM/, said)
  assert.deepEqual(groupOf(child.pid!), [])
})

test('a probe that was asked during one disturbance and cut off by the next is not held against it', async () => {
  const round = (name: string, readiness: 'yes' | 'any', fromMs: number, toMs: number) => {
    const disturbance = { ...HARMLESS, begin: async () => undefined, readiness }
    return {
      ...{ name, fromMs, toMs, kinds: [name], disturbances: [disturbance], recoveredMs: 0 },
      accountsFor: () => false,
    }
  }
  const rounds = [round('app-resets', 'yes', 1000, 2250), round('manager-killed', 'any', 2001, 5000)]
  const cutOff = { isReady: null, said: 'ECONNRESET' }
  assert.deepEqual(readinessProblems([{ ...cutOff, fromMs: 1999, toMs: 2002 }], rounds), [])
  assert.deepEqual(readinessProblems([{ ...cutOff, fromMs: 1500, toMs: 1600 }], rounds), [
    'not ready (ECONNRESET), in app-resets',
  ])
})

/** In a group of its own, all of which ends with the test, however that ends. */
function startChaos(t: Test, sizes: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  const child = spawn(process.execPath, ['bench/chaos/chaos.ts', ...sizes], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const killAll = () => {
    if (groupOf(child.pid!).length > 0) process.kill(-child.pid!, 'SIGKILL')
  }
  t.teardown(killAll)
  // SIGALRM is how tap ends a test that takes too long.
  for (const signal of ['SIGALRM', 'SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      killAll()
      process.kill(process.pid, signal)
    })
  return child
}

/** The command lines of its processes. */
function groupOf(group: number): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const [state, , its] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
        const isIn = Number(its) === group && state !== 'Z'
        return isIn ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') : []
      } catch {
        return [] // gone since it was listed
      }
    })
}
