import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { endWith, GATEHOUSE, plainEnvironment } from '../e2e/programs.ts'
import { freshUrl } from '../store/databases.ts'
import { Relay } from '../store/relay.ts'
import { start } from './gateway-process.ts'

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal}: with PostgreSQL it ends, and nothing is wrong`, async (t) => {
    const gateway = await start(t, folderWith(t, await freshUrl('postgres', t)), 'up')
    await gateway.until('store_up', 1)
    await gateway.stop(signal)
    assert.deepEqual(complaintsAtTheEnd(gateway.said()), [])
  })
}

test('with a database that is gone it ends, and only that is said', async (t) => {
  const relay = await Relay.before(await freshUrl('postgres', t))
  t.teardown(() => relay.stop())
  const gateway = await start(t, folderWith(t, relay.url), 'up')
  await gateway.until('store_up', 1)
  await relay.stop()
  await gateway.until('store_up', 0)
  await gateway.stop('SIGTERM')
  assertCalm(gateway.said())
})

test('with a database that says nothing any more it ends', async (t) => {
  const relay = await Relay.before(await freshUrl('postgres', t))
  t.teardown(() => relay.stop())
  const gateway = await start(t, folderWith(t, relay.url), 'up')
  await gateway.until('store_up', 1)
  relay.stall(true)
  await gateway.stop('SIGTERM')
  assertCalm(gateway.said())
})

test('stops while it starts, with every process that it started', async (t) => {
  const silent = createServer()
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const asked = once(silent, 'connection')
  t.teardown(() => silent.close())
  const folder = folderWith(t, `postgres://x@127.0.0.1:${(silent.address() as AddressInfo).port}/x`)
  const child = spawn(process.execPath, [GATEHOUSE, 'up', '--config', 'g.yaml'], {
    cwd: folder,
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  const [socket] = (await asked) as [Socket]
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  child.kill('SIGTERM')
  const [[code], said] = await Promise.all([once(child, 'exit'), text(child.stderr)])
  assert.equal(code, 0, said)
  assert.match(said, /stopped before it was ready/)
  assert.doesNotMatch(said, /"message":"ready"/)
  assertCalm(said)
  while (processesIn(folder).length > 0) await wait(50)
})

test('told to stop before its workers run, it ends with all of them, and none complains', async (t) => {
  const folder = folderWith(t, 'sqlite:data.db')
  const child = spawn(process.execPath, [GATEHOUSE, 'up', '--workers', '2', '--config', 'g.yaml'], {
    cwd: folder,
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  const said = text(child.stderr)
  // As on a machine that is busy: they have not come to the first line of theirs when it is over.
  let workers: readonly string[] = []
  while (workers.length < 2 && child.exitCode === null) {
    workers = processesIn(folder).filter((pid) => isWorker(pid))
    for (const pid of workers) process.kill(Number(pid), 'SIGSTOP')
    await wait(1)
  }
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  for (const pid of workers) signalled(pid, 'SIGCONT')
  assert.equal(code, 0)
  assertCalm(await said)
  while (processesIn(folder).length > 0) await wait(50)
})

/** Warnings and errors after the signal to stop. */
function complaintsAtTheEnd(said: string): readonly string[] {
  const lines = said.slice(said.indexOf('"message":"stop')).split('\n').slice(1)
  return lines.filter((line) => line !== '' && !line.includes('"level":"info"'))
}

function assertCalm(said: string): void {
  const lines = complaintsAtTheEnd(said)
  assert.ok(!lines.some((line) => line.includes('"level":"error"') || line.includes('    at ')), said)
  assert.doesNotMatch(said, /"stack"/)
}

function isWorker(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('worker-process')
  } catch {
    return false
  }
}

function signalled(pid: string, signal: NodeJS.Signals): void {
  try {
    process.kill(Number(pid), signal)
  } catch {
    // It has ended.
  }
}

function processesIn(folder: string): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${folder}`)
    } catch {
      return false // it has ended, or is another's
    }
  })
}

function folderWith(t: Test, storeUrl: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-stop-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  writeFileSync(
    join(folder, 'g.yaml'),
    `proxy: {upstream: "http://127.0.0.1:9", listen: "127.0.0.1:0", workers: 2, drain_timeout: 2s}
manage: {listen: "127.0.0.1:0"}
store: {url: "${storeUrl}"}
`,
    { mode: 0o600 },
  )
  return folder
}
