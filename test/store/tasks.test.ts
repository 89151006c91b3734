import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Lease, NewTask } from '../../src/store/work/task-record.ts'
import { KINDS, openFresh } from './databases.ts'

for (const kind of KINDS) {
  test(`${kind}: a task is claimed by one, and done chunk by chunk`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    await tasks.add(task('tsk_b', 2000, 5))
    await tasks.add(task('tsk_a', 1000, 5))
    const claimed = await tasks.claim(lease('one', 5000))
    assert.deepEqual(
      [claimed?.id, claimed?.status, claimed?.total, claimed?.startedAtMs, claimed?.attempts],
      ['tsk_a', 'running', 5, 5000, 1],
    )
    assert.equal((await tasks.claim(lease('two', 5000)))?.id, 'tsk_b')
    assert.equal(await tasks.claim(lease('three', 5000)), null)

    const first = await tasks.nextChunk('tsk_a')
    assert.deepEqual(first, { number: 0, from: 0, items: ['item 0', 'item 1'] })
    const done = { number: 0, results: ['r0', 'r1'], failed: 1 }
    assert.equal(await tasks.chunkDone('tsk_a', done, lease('one', 6000)), true)
    assert.equal((await tasks.nextChunk('tsk_a'))?.number, 1)
    const between = await tasks.byId('tsk_a')
    assert.deepEqual([between?.completed, between?.failed, between?.status], [2, 1, 'running'])
    assert.deepEqual(await tasks.results('tsk_a', 0, 50), ['r0', 'r1'])

    await tasks.chunkDone('tsk_a', { number: 1, results: ['r2', 'r3'], failed: 0 }, lease('one', 6000))
    await tasks.chunkDone('tsk_a', { number: 2, results: ['r4'], failed: 0 }, lease('one', 6000))
    assert.equal(await tasks.nextChunk('tsk_a'), null)
    assert.equal(await tasks.finish('tsk_a', 'completed', null, lease('one', 7000)), true)
    const ended = await tasks.byId('tsk_a')
    assert.deepEqual([ended?.completed, ended?.status, ended?.finishedAtMs], [5, 'completed', 7000])
    for (const [skip, limit, expected] of [
      [0, 2, ['r0', 'r1']],
      [1, 2, ['r1', 'r2']],
      [3, 10, ['r3', 'r4']],
      [4, 1, ['r4']],
      [5, 1, []],
      [900, 50, []],
    ] as const)
      assert.deepEqual(await tasks.results('tsk_a', skip, limit), expected, `${skip} ${limit}`)
  })

  test(`${kind}: a lost task is claimed again, and written once`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    await tasks.add(task('tsk_a', 1000, 4))
    await tasks.claim(lease('dead', 5000))
    assert.equal(await tasks.claim(lease('other', 5000 + 10_000)), null)
    const again = await tasks.claim(lease('other', 5000 + 10_001))
    assert.deepEqual([again?.id, again?.attempts, again?.startedAtMs], ['tsk_a', 2, 5000])
    const chunk = { number: 0, results: ['x', 'y'], failed: 0 }
    assert.equal(await tasks.chunkDone('tsk_a', chunk, lease('dead', 15_500)), false)
    assert.equal(await tasks.extend('tsk_a', lease('dead', 15_500)), false)
    assert.equal(await tasks.finish('tsk_a', 'completed', null, lease('dead', 15_500)), false)
    assert.deepEqual(await tasks.results('tsk_a', 0, 50), [])
    assert.equal(await tasks.extend('tsk_a', lease('other', 24_000)), true)
    assert.equal(await tasks.claim(lease('third', 30_000)), null)
    assert.equal(await tasks.chunkDone('tsk_a', chunk, lease('other', 16_000)), true)
    assert.equal((await tasks.byId('tsk_a'))?.attempts, 0)
    assert.equal((await tasks.byId('tsk_a'))?.completed, 2)
  })

  test(`${kind}: many at once claim each task once`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    for (let i = 0; i < 12; i++) await tasks.add(task(`tsk_${i}`, i, 1))
    const claimed = await Promise.all(
      Array.from({ length: 20 }, (_, i) => tasks.claim(lease(`worker ${i}`, 5000))),
    )
    const ids = claimed.flatMap((each) => (each === null ? [] : [each.id]))
    assert.equal(new Set(ids).size, ids.length)
    for (;;) {
      const next = await tasks.claim(lease('last', 5000))
      if (next === null) break
      ids.push(next.id)
    }
    assert.equal(new Set(ids).size, 12)
    assert.equal(ids.length, 12)
  })

  test(`${kind}: of many that are added at once no more get in than may be open`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    const added = await Promise.all(
      Array.from({ length: 24 }, (_, number) =>
        tasks.add({ ...task(`tsk_${number}`, 1000, 1), principal: `key_${number % 2}` }, 3),
      ),
    )
    assert.deepEqual(
      [0, 1].map((one) => added.filter((is, at) => is && at % 2 === one).length),
      [3, 3],
    )
  })

  test(`${kind}: what is cancelled, or let go of`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    await tasks.add(task('tsk_a', 1000, 4))
    await tasks.claim(lease('one', 2000))
    await tasks.chunkDone('tsk_a', { number: 0, results: ['x', 'y'], failed: 0 }, lease('one', 2000))
    assert.equal(await tasks.add(task('tsk_b', 1000, 1), 1), false, 'one is not finished')
    assert.equal(await tasks.cancel('tsk_a', 3000), true)
    assert.equal(await tasks.cancel('tsk_a', 4000), false)
    assert.equal(
      await tasks.chunkDone('tsk_a', { number: 1, results: ['z', 'z'], failed: 0 }, lease('one', 3000)),
      false,
    )
    assert.equal(await tasks.nextChunk('tsk_a'), null)
    assert.equal(await tasks.finish('tsk_a', 'completed', null, lease('one', 3000)), false)
    const cancelled = await tasks.byId('tsk_a')
    assert.deepEqual(
      [cancelled?.status, cancelled?.completed, cancelled?.finishedAtMs],
      ['cancelled', 2, 3000],
    )
    assert.deepEqual(await tasks.results('tsk_a', 0, 50), ['x', 'y'])

    assert.equal(await tasks.add(task('tsk_b', 1000, 1), 1), true)
    await tasks.claim(lease('one', 2000))
    await tasks.release('other')
    assert.equal(await tasks.claim(lease('two', 2000)), null)
    await tasks.release('one')
    assert.equal((await tasks.claim(lease('two', 2000)))?.attempts, 1)
    await tasks.release(null)
    assert.equal((await tasks.claim(lease('two', 2000)))?.attempts, 2)
  })

  test(`${kind}: the old is forgotten some at a time, and the rest is not`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    for (let i = 0; i < 5; i++) {
      const done = { number: 0, results: [i], failed: 0 }
      await tasks.addDone(task(`tsk_${i}`, i, 1), done, 1000 + i)
    }
    await tasks.add(task('tsk_open', 0, 1))
    assert.equal(await tasks.forget(1004, 3), 3)
    assert.equal(await tasks.forget(1004, 3), 1)
    assert.equal(await tasks.forget(1004, 3), 0)
    assert.equal(await tasks.byId('tsk_0'), null)
    assert.deepEqual(await tasks.results('tsk_0', 0, 50), [])
    const recent = await tasks.recent('key_1', 10)
    assert.deepEqual(
      recent.map(({ id, status }) => `${id} ${status}`),
      ['tsk_4 completed', 'tsk_open queued'],
    )
    assert.deepEqual(await tasks.recent('key_2', 10), [])
  })

  test(`${kind}: items come back as they were sent, and are not kept once they are done`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    const odd = ['\u0000', '\ud800', { a: null, b: [1.5, '\u{1f600}'] }, "'; drop table tasks; --", null]
    await tasks.add({ ...task('tsk_a', 1, 1), chunks: [{ number: 0, from: 0, items: odd }] })
    await tasks.claim(lease('one', 2000))
    assert.deepEqual((await tasks.nextChunk('tsk_a'))?.items, odd)
    await tasks.chunkDone('tsk_a', { number: 0, results: odd, failed: 0 }, lease('one', 2000))
    assert.deepEqual(await tasks.results('tsk_a', 0, 50), odd)
    assert.equal(await tasks.nextChunk('tsk_a'), null)
  })
}

function task(id: string, atMs: number, count: number): NewTask {
  const items = Array.from({ length: count }, (_, i) => `item ${i}`)
  const chunks = []
  for (let from = 0; from < count; from += 2)
    chunks.push({ number: chunks.length, from, items: items.slice(from, from + 2) })
  return { id, apps: '*', principal: 'key_1', type: 'detect', atMs, chunks }
}

function lease(owner: string, nowMs: number): Lease {
  return { owner, nowMs, untilMs: nowMs + 10_000 }
}
