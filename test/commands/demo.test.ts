import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { seenIn, seenText } from '../../src/commands/demo/seen.ts'
import { GATEHOUSE, missing, skipped } from '../e2e/programs.ts'
import { allProcesses } from '../processes.ts'

test('the demo shows its clients, and leaves nothing behind', async (t) => {
  const demo = await started(t)
  await demo.says(/^node: automation, /m)
  await demo.says(/^pretender: agent, .*but spoofed browser/m)
  await demo.says(/^crawler: agent http:\/\/127\.0\.0\.1:\d+, 100 % sure, proven by web-bot-auth/m)
  if (missing('curl') === false) {
    // As it is printed.
    const [, line] = /^ {2}Try +(.*)$/m.exec(demo.out)!
    assert.match(
      execFileSync('sh', ['-c', line!], { encoding: 'utf8' }),
      /^Hello\. The gate says: automation/,
    )
  }
  const [, dashboard, key] = /^ {2}Signs you in +(http:.*\/dashboard\/)#key=(ghk_\S+)$/m.exec(demo.out)!
  const me = await fetch(new URL('/v1/me', dashboard), { headers: { authorization: `Bearer ${key}` } })
  assert.deepEqual(((await me.json()) as { scopes: string[] }).scopes, ['admin'])
  const stats = await fetch(new URL('/v1/stats?window=1h', dashboard), {
    headers: { authorization: `Bearer ${key}` },
  })
  const { detection } = (await stats.json()) as { detection: { requests: number } }
  assert.ok(detection.requests > 0)
  demo.child.kill('SIGINT')
  assert.deepEqual(await once(demo.child, 'exit'), [0, null])
  assert.deepEqual(demo.left(), [])
  assert.deepEqual(demo.running(), [])
  assert.equal(demo.err, '')
})

test('clients whose demo was killed end by themselves', async (t) => {
  const demo = await started(t)
  await demo.says(/^node: automation, /m)
  demo.child.kill('SIGKILL')
  await once(demo.child, 'exit')
  const clients = () => demo.running().filter(({ command }) => command.includes('client-process'))
  for (let tries = 0; clients().length > 0 && tries < 50; tries++) await wait(100)
  assert.deepEqual(clients(), [])
})

test('leaves nothing behind if it is stopped while it starts', async (t) => {
  for (const ms of [200, 700, 1_200, 1_800, 2_500]) {
    const demo = run(t, [])
    await wait(ms)
    demo.child.kill('SIGINT')
    await once(demo.child, 'exit')
    for (let tries = 0; demo.running().length > 0 && tries < 50; tries++) await wait(100)
    assert.deepEqual([demo.left(), demo.running()], [[], []], `after ${ms} ms`)
  }
})

test('reports a port that is in use, and leaves nothing behind', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  for (const [argv, said, code] of [
    [['--listen', String(port)], new RegExp(`port ${port}: another program`), 1],
    [['--manage', String(port)], new RegExp(`port ${port}`), 1],
    [['--listen', '99999'], /--listen must be a port/, 2],
    [['--manage', 'x'], /--manage must be a port/, 2],
  ] as const) {
    const demo = run(t, argv)
    const [exitCode] = await once(demo.child, 'exit')
    assert.equal(exitCode, code, demo.err)
    assert.match(demo.err, said)
    assert.deepEqual(demo.left(), [])
  }
})

test('on a terminal clients are started and stopped by their keys', {
  skip: skipped('script'),
}, async (t) => {
  const demo = run(t, [], true)
  await demo.says(/node +runs/)
  demo.child.stdin!.write('1')
  await demo.says(/node +stopped/)
  demo.child.stdin!.write('a')
  await demo.says(/node +runs[\s\S]*chromium +(?:runs|is not installed)/)
  demo.child.stdin!.write('q')
  await once(demo.child, 'close')
  assert.ok(demo.out.trimEnd().endsWith('\x1b[?25h\x1b[?1049l'))
  assert.deepEqual(demo.left(), [])
})

test('what the gate says is told in words', async () => {
  assert.equal(seenText(seenIn({})), 'not judged')
  const headers = { 'x-agent-verdict': 'agent', 'x-agent-name': 'GPTBot', 'x-agent-category': 'crawler' }
  const more = { 'x-agent-confidence': '0.97', 'x-agent-conflict': 'foreign-address' }
  assert.equal(
    seenText(seenIn({ ...headers, ...more })),
    'agent GPTBot (crawler), 97 % sure, but foreign address',
  )
})

/** Its ports are its own to find: others may have the usual ones. */
async function started(t: Test) {
  const demo = run(t, [])
  await demo.says(/Gatehouse is at work/)
  return demo
}

function run(t: Test, argv: readonly string[], isTerminal = false) {
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
