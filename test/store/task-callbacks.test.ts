import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Store } from '../../src/store/store.ts'
import type { TaskCallback } from '../../src/store/work/task-callbacks.ts'
import { KINDS, openFresh } from './databases.ts'

for (const kind of KINDS) {
  test(`${kind}: a callback is told each status once, and never again when it is over`, async (t) => {
    const store = await openFresh(kind, t)
    await add(store, 'tsk_a', 'one')
    assert.equal(await store.taskCallbacks.put(callback('tsk_a', 'c', 1000), 5), true)
    // The creator of the task knows that it is queued.
    assert.deepEqual(await claim(store, 5000), [])
    await store.tasks.claim({ owner: 'worker', nowMs: 2000, untilMs: 90_000 })
    const [due, ...others] = await store.taskCallbacks.claim({ nowMs: 3000, untilMs: 4000 }, 10, [])
    assert.deepEqual([due?.taskId, due?.principal, due?.attempts, others.length], ['tsk_a', 'one', 0, 0])
    assert.deepEqual(await claim(store, 3999), []) // it is held
    await store.taskCallbacks.done(due!, { told: 'running', error: null, nextAtMs: null })
    assert.deepEqual(await claim(store, 5000), [])
    await store.tasks.cancel('tsk_a', 6000)
    const [last] = await store.taskCallbacks.claim({ nowMs: 7000, untilMs: 8000 }, 10, [])
    await store.taskCallbacks.done(last!, { told: null, error: 'it answers 500', nextAtMs: 9000 })
    assert.deepEqual(await claim(store, 8999), [])
    const [again] = await store.taskCallbacks.claim({ nowMs: 9000, untilMs: 9100 }, 10, [])
    assert.equal(again?.attempts, 1)
    await store.taskCallbacks.done(again!, { told: 'cancelled', error: null, nextAtMs: null })
    assert.deepEqual(await claim(store, 1_000_000), [])
    assert.equal((await store.taskCallbacks.of('tsk_a')).length, 1)
  })

  test(`${kind}: a status that changes while the one before is told is told, too`, async (t) => {
    const store = await openFresh(kind, t)
    await add(store, 'tsk_a', 'one')
    await store.taskCallbacks.put(callback('tsk_a', 'c', 1000), 5)
    await store.tasks.claim({ owner: 'worker', nowMs: 2000, untilMs: 90_000 })
    const [due] = await store.taskCallbacks.claim({ nowMs: 3000, untilMs: 30_000 }, 10, [])
    await store.tasks.finish('tsk_a', 'completed', null, { owner: 'worker', nowMs: 3500, untilMs: 90_000 })
    assert.deepEqual(await claim(store, 4000), []) // one after the other
    await store.taskCallbacks.done(due!, { told: 'running', error: null, nextAtMs: null })
    assert.deepEqual(await claim(store, 4000), ['tsk_a c'])
    // Who was given up at one status is told the next one.
    await add(store, 'tsk_b', 'one')
    await store.taskCallbacks.put(callback('tsk_b', 'c', 1000), 5)
    await store.tasks.claim({ owner: 'worker', nowMs: 5000, untilMs: 90_000 })
    const given = await store.taskCallbacks.claim({ nowMs: 5000, untilMs: 6000 }, 10, [])
    const dead = given.find(({ taskId }) => taskId === 'tsk_b')!
    await store.taskCallbacks.done(dead, { told: null, error: 'it answers 500', nextAtMs: null })
    await store.tasks.cancel('tsk_b', 7000)
    const again = await store.taskCallbacks.claim({ nowMs: 7000, untilMs: 8000 }, 10, [])
    assert.equal(again.find(({ taskId }) => taskId === 'tsk_b')?.attempts, 0)
  })

  test(`${kind}: who tells is lost, and another one tells; what was put anew stays as it is`, async (t) => {
    const store = await openFresh(kind, t)
    await add(store, 'tsk_a', 'one')
    await store.taskCallbacks.put(callback('tsk_a', 'c', 1000), 5)
    await store.tasks.cancel('tsk_a', 1500)
    const [lost] = await store.taskCallbacks.claim({ nowMs: 2000, untilMs: 3000 }, 10, [])
    const [other] = await store.taskCallbacks.claim({ nowMs: 3000, untilMs: 4000 }, 10, [])
    assert.equal(other?.id, 'c')
    await store.taskCallbacks.done(lost!, { told: 'cancelled', error: null, nextAtMs: null })
    assert.deepEqual(await claim(store, 4000), ['tsk_a c']) // the lost one has changed nothing
    const anew = { ...callback('tsk_a', 'c', 5000), url: 'https://other.example/' }
    assert.equal(await store.taskCallbacks.put(anew, 5), true)
    await store.taskCallbacks.done(other!, { told: 'cancelled', error: null, nextAtMs: null })
    assert.deepEqual(await store.taskCallbacks.of('tsk_a'), [anew])
    assert.deepEqual(await claim(store, 5000), ['tsk_a c'])
  })

  test(`${kind}: a task has a few callbacks, which go with it; a principal does not hold up the others`, async (t) => {
    const store = await openFresh(kind, t)
    for (const [id, principal] of [
      ['tsk_a', 'one'],
      ['tsk_b', 'two'],
    ] as const) {
      await add(store, id, principal)
      await store.tasks.cancel(id, 1500)
    }
    const put = (id: string) => store.taskCallbacks.put(callback('tsk_a', id, 1000), 2)
    const taken = await Promise.all(['c', 'd', 'e', 'f'].map(put))
    assert.equal(taken.filter((each) => each).length, 2)
    const kept = await store.taskCallbacks.of('tsk_a')
    assert.equal(await put(kept[0]!.id), true) // in its own place
    assert.equal(await store.taskCallbacks.put(callback('tsk_none', 'c', 1000), 2), false)
    await store.taskCallbacks.put(callback('tsk_b', 'c', 1000), 2)
    const except = await store.taskCallbacks.claim({ nowMs: 2000, untilMs: 3000 }, 10, ['one'])
    assert.deepEqual(
      except.map(({ taskId }) => taskId),
      ['tsk_b'],
    )
    await store.taskCallbacks.remove('tsk_a', kept[0]!.id)
    await store.taskCallbacks.remove('tsk_a', 'none')
    assert.equal((await store.taskCallbacks.of('tsk_a')).length, 1)
    await store.tasks.forget(10_000, 10)
    assert.deepEqual([await store.taskCallbacks.of('tsk_a'), await claim(store, 1_000_000)], [[], []])
  })

  test(`${kind}: the tasks of a principal, the last changed first, with any filter`, async (t) => {
    const { tasks } = await openFresh(kind, t)
    for (let i = 0; i < 5; i++) await add({ tasks }, `tsk_${i}`, 'one', i * 1000)
    await add({ tasks }, 'tsk_x', 'two')
    await tasks.setContext('tsk_1', 'ctx')
    await tasks.setContext('tsk_x', 'ctx')
    await tasks.cancel('tsk_0', 20_000)
    const none = { contextId: null, status: null, changedAfterMs: null }
    const ids = async (
      filter: Partial<typeof NO_FILTER>,
      limit = 10,
      after: readonly (string | number)[] | null = null,
    ) => {
      const { items, total, next } = await tasks.of('one', { ...none, ...filter }, { after, limit })
      return [items.map(({ id }) => id).join(' '), total, next]
    }
    assert.deepEqual(await ids({}), ['tsk_0 tsk_4 tsk_3 tsk_2 tsk_1', 5, null])
    const [first, total, next] = await ids({}, 2)
    assert.deepEqual([first, total], ['tsk_0 tsk_4', 5])
    assert.deepEqual(await ids({}, 10, next as (string | number)[]), ['tsk_3 tsk_2 tsk_1', 5, null])
    assert.deepEqual(await ids({ contextId: 'ctx' }), ['tsk_1', 1, null])
    assert.deepEqual(await ids({ status: 'cancelled' }), ['tsk_0', 1, null])
    assert.deepEqual(await ids({ changedAfterMs: 4000 }), ['tsk_0 tsk_4', 2, null])
    const some = await tasks.some(['tsk_1', 'tsk_x', 'tsk_none'])
    assert.deepEqual(some.map(({ id, contextId }) => `${id} ${contextId}`).toSorted(), [
      'tsk_1 ctx',
      'tsk_x ctx',
    ])
    assert.deepEqual(await tasks.some([]), [])
  })
}

const NO_FILTER: {
  readonly contextId: string | null
  readonly status: 'cancelled' | null
  readonly changedAfterMs: number | null
} = { contextId: null, status: null, changedAfterMs: null }

function add({ tasks }: Pick<Store, 'tasks'>, id: string, principal: string, atMs = 1000): Promise<boolean> {
  const chunks = [{ number: 0, from: 0, items: ['item'] }]
  return tasks.add({ id, apps: '*', principal, type: 'slow', atMs, chunks })
}

function callback(taskId: string, id: string, createdAtMs: number): TaskCallback {
  return { taskId, id, url: 'https://hooks.example/', sealed: 'sealed', createdAtMs }
}

async function claim({ taskCallbacks }: Store, nowMs: number): Promise<readonly string[]> {
  const due = await taskCallbacks.claim({ nowMs, untilMs: nowMs + 1 }, 10, [])
  return due.map(({ taskId, id }) => `${taskId} ${id}`)
}
