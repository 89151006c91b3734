import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'

const HOW = {
  'a timer': `setTimeout(() => { throw new Error('here') }, 1)`,
  'an immediate': `setImmediate(() => { throw new Error('here') })`,
  'a tick': `process.nextTick(() => { throw new Error('here') })`,
  'a microtask': `queueMicrotask(() => { throw new Error('here') })`,
  'a callback of the file system': `stat('/', () => { throw new Error('here') })`,
  'a rejected promise': `Promise.reject(new Error('here'))`,
  'a promise rejected later': `wait(1).then(() => { throw new Error('here') })`,
  'an event of a connection': `
    const server = createServer((socket) => { socket.destroy(); server.close(); throw new Error('here') })
    server.listen(0, '127.0.0.1', () => connect(server.address().port, '127.0.0.1'))`,
}

/** What tap says about a file with these tests, run as .taprc has it. */
function run(t: Test, bodies: readonly string[]): string {
  mkdirSync('.tap', { recursive: true })
  const folder = mkdtempSync('.tap/domains-') // from here, Node finds tap
  t.teardown(() => rmSync(folder, { recursive: true }))
  const tests = bodies.map((body, index) => `test('test ${index}', async (t) => { ${body} })`)
  const imports = [
    `import { stat } from 'node:fs'`,
    `import { connect, createServer } from 'node:net'`,
    `import { setTimeout as wait } from 'node:timers/promises'`,
    `import { test } from 'tap'`,
  ]
  const file = join(folder, 'tests.mjs')
  writeFileSync(file, [...imports, ...tests].join('\n'))
  return spawnSync(process.execPath, ['--require=./test/lean-tap.cjs', file], { encoding: 'utf8' }).stdout
}

/** What became of each test of the file. Its last lines tell all failures again. */
function outcomes(said: string): string[] {
  return [...said.matchAll(/^((?:not )?ok) (\d+) - test (\d)/gm)].flatMap(([, outcome, number, name]) =>
    Number(number) === Number(name) + 1 ? outcome! : [],
  )
}

for (const [how, body] of Object.entries(HOW))
  test(`an error that nothing catches fails the test that it comes from, and no other: ${how}`, async (t) => {
    const waits = `${body}; await wait(30_000, null, { ref: false })` // the error ends the test
    const inner = `await t.test('inner', async () => { ${waits} })`
    const said = run(t, ['', waits, '', inner, waits, ''])
    assert.deepEqual(outcomes(said), ['ok', 'not ok', 'ok', 'not ok', 'not ok', 'ok'], said)
    assert.equal(said.match(/^ {4}not ok 1 - here/gm)?.length, 2, said)
    assert.match(said, /^ {8}not ok 1 - here/m)
  })
