import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { HelperProcess } from '../src/shared/helper-process.ts'
import { withoutDescriptors } from './descriptors.ts'
import { until } from './until.ts'

const ECHO = `
  process.once('disconnect', () => process.exit())
  process.on('message', (work) => {
    if (work.ends) process.exit(3)
    if (!work.hangs) process.send({ work })
  })
`

test('it is asked one thing after the other', async (t) => {
  const helper = new HelperProcess(program(t, ECHO), 'the echo')
  for (const n of [1, 2n, new Map([[1, 2]])]) assert.deepEqual(await helper.ask({ n }), { work: { n } })
  assert.ok(helper.isThere)
  helper.leave()
  await until(() => !helper.isThere)
})

test('a caller is told that it ended, also if it ended before the call', async (t) => {
  let gone = 0
  const helper = new HelperProcess(program(t, ECHO), 'the echo', {}, () => gone++)
  await assert.rejects(helper.ask({ ends: true }), { code: 'HELPER_GONE', message: 'the echo has ended' })
  assert.deepEqual([gone, helper.hasBegun, helper.isThere], [1, true, false])
  await assert.rejects(helper.ask({}), { code: 'HELPER_GONE' })
  const broken = new HelperProcess(program(t, 'process.exit()'), 'the broken')
  await assert.rejects(broken.ask({}), { code: 'HELPER_GONE' })
})

test('an answer comes, however long, also from one that ends as soon as it has sent it', async (t) => {
  const once = program(
    t,
    `process.once('message', ({ length }) => process.send('x'.repeat(length), () => process.exit()))`,
  )
  for (const length of [1, 200_000, 8_000_000]) {
    const answer = await new HelperProcess(once, 'the hasty').ask<string>({ length })
    assert.equal(answer.length, length)
  }
})

test('what was asked of one that is given up is never settled', async (t) => {
  let gone = 0
  const helper = new HelperProcess(program(t, ECHO), 'the echo', {}, () => gone++)
  const asked = helper.ask({ hangs: true })
  await wait(20)
  helper.giveUp()
  helper.giveUp()
  assert.equal(await Promise.race([asked, wait(500, 'given up')]), 'given up')
  const before = new HelperProcess(program(t, ECHO), 'the echo', {}, () => gone++)
  const neverSent = before.ask({})
  before.giveUp()
  assert.equal(await Promise.race([neverSent, wait(100, 'given up')]), 'given up')
  await wait(200)
  const afterIt = new HelperProcess(program(t, ECHO), 'the echo')
  afterIt.giveUp()
  await until(() => !afterIt.isThere)
  assert.equal(await Promise.race([afterIt.ask({}), wait(100, 'given up')]), 'given up')
  assert.equal(gone, 0)
})

test('a caller is told if no process can be started, for lack of descriptors or permission', async (t) => {
  let gone = 0
  const echo = program(t, ECHO)
  await withoutDescriptors(async () => {
    const helper = new HelperProcess(echo, 'the echo', {}, () => gone++)
    await assert.rejects(helper.ask({}), { message: /^the echo cannot be started: .*EMFILE$/ })
    const waited = new HelperProcess(echo, 'the echo', {}, () => gone++)
    await wait(5)
    await assert.rejects(waited.ask({}), { code: 'HELPER_GONE' })
    assert.deepEqual([waited.hasBegun, waited.isThere], [false, false])
    waited.leave()
    waited.giveUp()
  })
  // A bad file number is thrown by fork() itself, as too little memory is.
  const thrown = new HelperProcess(
    echo,
    'the echo',
    { stdio: ['ignore', 999, 'ignore', 'ipc'] },
    () => gone++,
  )
  await assert.rejects(thrown.ask({}), { message: /^the echo cannot be started: / })
  assert.equal(gone, 3)
  const later = new HelperProcess(echo, 'the echo')
  assert.deepEqual(await later.ask({}), { work: {} })
  later.leave()
})

function program(t: Test, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-helper-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'program.cjs')
  writeFileSync(path, text)
  return path
}
