import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Agent, request } from 'undici'
import { test } from 'tap'
import { eventStream } from '../../src/manage/events/event-stream.ts'
import { TaskWatch } from '../../src/manage/jobs/task-watch.ts'
import { Store } from '../../src/store/store.ts'
import { openFresh } from '../store/databases.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'

const V1 = { 'a2a-version': '1.0' }
const SCOPES = ['read', 'detect', 'mcp'] as const

test('a stream that is not read is not made, and one that is silent is kept alive', async () => {
  let made = 0
  async function* many() {
    for (; made < 100_000; made++) yield `data: ${'x'.repeat(1_000)}\n\n`
  }
  const stream = eventStream(many(), 1_000)
  await wait(100)
  assert.ok(made < 200, `${made} were made`)
  stream.once('readable', () => undefined)
  await wait(50)
  assert.ok(made < 200, `${made} were made`)
  stream.destroy()
  await wait(20)
  const before = made
  await wait(50)
  assert.equal(made, before)

  let hasEnded = false
  async function* slow() {
    try {
      await wait(120)
      yield 'data: 1\n\n'
    } finally {
      hasEnded = true
    }
  }
  const pieces: string[] = []
  for await (const piece of eventStream(slow(), 50)) pieces.push(String(piece))
  assert.match(pieces.join(''), /^(?:: keep-alive\n\n){1,2}data: 1\n\n$/)
  assert.ok(hasEnded)
})

test('the database is asked once for all that are watched, and not while none is', async (t) => {
  const store = await openFresh('sqlite', t)
  const alive = setInterval(() => undefined, 1_000) // what watches does not keep a process alive
  t.teardown(() => clearInterval(alive))
  for (const id of ['tsk_a', 'tsk_b'])
    await store.tasks.add({
      ...{ id, apps: '*', principal: 'key_1', type: 'slow', atMs: 1 },
      chunks: [{ number: 0, from: 0, items: [1] }],
    })
  let asked: (readonly string[])[] = []
  let isAway = false
  const some = (ids: readonly string[]) => {
    asked.push(ids)
    return isAway ? Promise.reject(new Error('it is away')) : store.tasks.some(ids)
  }
  const watch = new TaskWatch({ tasks: { some } } as unknown as Store, 10)
  const a = (await store.tasks.byId('tsk_a'))!
  const b = (await store.tasks.byId('tsk_b'))!
  const stop = new AbortController()
  const waiting = Array.from({ length: 50 }, () => watch.changed(a, stop.signal))
  const other = watch.changed(b, stop.signal)
  await until(() => asked.length > 2)
  const [, ...later] = asked // the first is for the first of them
  assert.ok(later.every((ids) => ids.join() === 'tsk_a,tsk_b'))
  isAway = true
  const count = asked.length
  await until(() => asked.length > count + 1)
  assert.equal(watch.size, 51) // nobody is told what is not known
  isAway = false
  await store.tasks.cancel('tsk_a', Date.now())
  assert.ok((await Promise.all(waiting)).every((record) => record?.status === 'cancelled'))
  stop.abort()
  assert.equal(await other, null)
  assert.equal(await watch.changed(b, stop.signal), null)
  assert.equal(watch.size, 0)
  await wait(30)
  asked = []
  await wait(50)
  assert.deepEqual(asked, [])
  const gone = watch.changed({ ...a, id: 'tsk_none' }, new AbortController().signal)
  assert.equal(await gone, null)
})

test('five hundred streams at once, and who wants more is told so; those that are left leave nothing', async (t) => {
  const manage = await TestManagement.start(t, { front: { connectionsMax: 1_000 } })
  const keys = await Promise.all(Array.from({ length: 6 }, () => manage.key({ scopes: [...SCOPES] })))
  const tasks = await Promise.all(keys.map((key) => begun(manage, key)))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heap: number[] = []
  for (let round = 0; round < 3; round++) {
    const agent = new Agent({ connections: null, pipelining: 0 })
    const open = (index: number, path = `/a2a/v1/tasks/${tasks[index]}:subscribe`) =>
      request(manage.url + path, {
        ...{ method: 'POST', dispatcher: agent },
        headers: { ...V1, authorization: `Bearer ${keys[index]}` },
      })
    const streams = await Promise.all(Array.from({ length: 500 }, (_, i) => open(i % 5)))
    assert.deepEqual(new Set(streams.map(({ statusCode }) => statusCode)), new Set([200]))
    for (const { body } of streams) body.on('error', () => undefined)
    const refused = await open(0)
    assert.equal(refused.statusCode, 429)
    assert.equal(refused.headers['retry-after'], '1')
    const { error } = (await refused.body.json()) as { error: { status: string } }
    assert.equal(error.status, 'RESOURCE_EXHAUSTED')
    // Others are answered meanwhile.
    assert.equal((await open(5, '/a2a/v1/tasks?unknown=1')).statusCode, 405)
    await agent.destroy()
    await wait(300)
    collect()
    heap.push(process.memoryUsage().heapUsed)
  }
  const [, second, third] = heap
  assert.ok(third! - second! < 4_000_000, `it grows: ${heap.join(', ')}`)
  assert.deepEqual(manage.failures, [])
})

test('who waits is not taken for gone, and a stream goes on as long as there is somebody', async (t) => {
  // A connection that is silent for two seconds is closed.
  const manage = await TestManagement.start(t, { front: { requestTimeoutMs: 1_000 } })
  const key = await manage.key({ scopes: [...SCOPES] })
  const id = await begun(manage, key)
  const ask = (method: string, path: string, body?: unknown) =>
    manage.ask(method, path, body, { ...V1, authorization: `Bearer ${key}` })
  const parts = [{ data: { tool: 'create_task', arguments: { type: 'detect', items: ITEMS } } }]
  const waited = ask('POST', '/a2a/v1/message:send', {
    message: { messageId: 'm', role: 'ROLE_USER', parts },
  })
  const response = await fetch(`${manage.url}/a2a/v1/tasks/${id}:subscribe`, {
    method: 'POST',
    headers: { ...V1, authorization: `Bearer ${key}` },
  })
  const text = response.text()
  await wait(3_500) // longer than a silent connection may last
  const { body } = await ask('GET', '/a2a/v1/tasks')
  for (const { id: each } of body.tasks) await ask('POST', `/a2a/v1/tasks/${each}:cancel`)
  const answer = await waited
  assert.deepEqual([answer.status, answer.body.task.status.state], [200, 'TASK_STATE_CANCELED'])
  assert.match(await text, /: keep-alive\n\n(?:.|\n)*TASK_STATE_CANCELED/)
  assert.deepEqual(manage.failures, [])
})

test('a stream ends with the key it was opened with, or when that is revoked', async (t) => {
  const manage = await TestManagement.start(t)
  const ending = await manage.key({ scopes: [...SCOPES], expiresAtMs: Date.now() + 2_500 })
  const revoked = await manage.key({ name: 'revoked', scopes: [...SCOPES] })
  const said = [ending, revoked].map(async (key) => {
    const id = await begun(manage, key)
    const response = await fetch(`${manage.url}/a2a/v1/tasks/${id}:subscribe`, {
      headers: { ...V1, authorization: `Bearer ${key}` },
    })
    return { id, text: response.text() }
  })
  const streams = await Promise.all(said)
  const { body } = await manage.ask('GET', '/v1/keys')
  const { id: keyId } = body.keys.find(({ name }: { name: string }) => name === 'revoked')
  assert.equal((await manage.ask('DELETE', `/v1/keys/${keyId}`)).status, 204)
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  for (const { id, text } of streams) {
    assert.match(await text, /^data: \{"task":/)
    assert.equal((await store.tasks.byId(id))?.status, 'queued')
  }
})

/** Where nobody can judge it stays queued. */
async function begun(manage: TestManagement, key: string): Promise<string> {
  const parts = [{ data: { tool: 'create_task', arguments: { type: 'detect', items: ITEMS } } }]
  const { body } = await manage.ask(
    'POST',
    '/a2a/v1/message:send',
    { message: { messageId: 'm', role: 'ROLE_USER', parts }, configuration: { returnImmediately: true } },
    { ...V1, authorization: `Bearer ${key}` },
  )
  return body.task.id
}

const ITEMS = Array.from({ length: 150 }, () => ({ user_agent: 'GPTBot/1.2' }))
