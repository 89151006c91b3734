import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { runDemo, startDemo } from './demo-process.ts'

test('clients whose demo was killed end by themselves', async (t) => {
  const demo = await startDemo(t)
  await demo.says(/^node: automation, /m)
  demo.child.kill('SIGKILL')
  await once(demo.child, 'exit')
  const clients = () => demo.running().filter(({ command }) => command.includes('client-process'))
  for (let tries = 0; clients().length > 0 && tries < 50; tries++) await wait(100)
  assert.deepEqual(clients(), [])
})

test('leaves nothing behind if it is stopped while it starts', async (t) => {
  for (const ms of [200, 700, 1_200, 1_800, 2_500]) {
    const demo = runDemo(t, [])
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
    const demo = runDemo(t, argv)
    const [exitCode] = await once(demo.child, 'exit')
    assert.equal(exitCode, code, demo.err)
    assert.match(demo.err, said)
    assert.deepEqual(demo.left(), [])
  }
})

test('on a terminal clients are started and stopped by their keys', {
  skip: skipped('script'),
}, async (t) => {
  const demo = runDemo(t, [], true)
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
