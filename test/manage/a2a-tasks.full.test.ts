import assert from 'node:assert/strict'
import { ListTasksRequest, type StreamResponse, TaskState } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors'
import { test } from 'tap'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, type Owner } from '../store/databases.ts'
import { all, asTask, BINDINGS, calling, clientOf, dataIn, resultsIn, sending } from './a2a-client.ts'
import { TestManagement } from './management.ts'
import { clientFor, tokenFor } from './oauth-client.ts'

const GPTBOT = 'Mozilla/5.0 (compatible; GPTBot/1.2)'
const OWN = ['read', 'detect', 'mcp'] as const

for (const binding of BINDINGS) {
  test(`${binding}: a long task is followed to its end, and waited for, with a token of OAuth`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    const registered = await clientFor(manage, { scopes: [...OWN] })
    const client = await clientOf(manage, await tokenFor(manage, registered), binding)
    const items = Array.from({ length: 1203 }, (_, i) => ({
      user_agent: i % 2 === 0 ? GPTBOT : `tool${i}/1.0`,
    }))
    const call = () => calling('create_task', { type: 'detect', items })
    const events = await all(client.sendMessageStream(call()))
    const kinds = events.map(({ payload }) => payload!.$case)
    assert.equal(kinds[0], 'task')
    assert.equal(kinds.at(-1), 'statusUpdate')
    assert.equal(stateOf(events.at(-1)!), TaskState.TASK_STATE_COMPLETED)
    const streamed = piecesIn(events)
    assert.deepEqual(
      streamed.map((each) => (each as { index: number }).index),
      [...items.keys()],
    )
    const updates = events.flatMap(({ payload }) =>
      payload?.$case === 'artifactUpdate' ? [payload.value] : [],
    )
    assert.deepEqual([updates[0]?.append, updates.at(-1)?.lastChunk], [false, true])
    assert.ok(
      updates.slice(1).every(({ append }) => append) &&
        updates.slice(0, -1).every(({ lastChunk }) => !lastChunk),
    )
    const waited = asTask(await client.sendMessage(call()))
    assert.equal(waited.status?.state, TaskState.TASK_STATE_COMPLETED)
    assert.equal(resultsIn(waited).length, items.length)
    const first = events[0]!.payload!
    const id = first.$case === 'task' ? first.value.id : ''
    const ended = client.resubscribeTask({ id, tenant: '' })
    await assert.rejects(all(ended), UnsupportedOperationError)
    const before = await client.getTask({ id: await begun(client, 5000), tenant: '' })
    assert.notEqual(before.status?.state, TaskState.TASK_STATE_COMPLETED)
    assert.deepEqual(manage.failures, [])
  })

  test(`${binding}: a task that another process works on is followed, cancelled, and listed`, async (t) => {
    const manage = await TestManagement.start(t)
    const client = await clientOf(manage, await manage.key({ scopes: [...OWN] }), binding)
    const slow = await begun(client, 1200)
    const results = Array.from({ length: 1200 }, (_, i) => `result ${i}`)
    const elsewhere = await Elsewhere.start(t, manage, slow)
    const streams = [1, 2].map(() => client.resubscribeTask({ id: slow, tenant: '' }))
    const events: StreamResponse[] = []
    for (const stream of streams) events.push((await stream.next()).value!)
    events.length = 1
    await elsewhere.chunk(0, results.slice(0, 500))
    const first = await Promise.all(streams.map(async (stream) => (await stream.next()).value!))
    assert.deepEqual(first[0], first[1])
    events.push(first[0]!)
    await streams[1]!.return() // the other one goes on
    await elsewhere.chunk(1, results.slice(500, 1000))
    const rest = all(streams[0]!)
    assert.equal((await client.getTask({ id: slow, tenant: '' })).status?.state, TaskState.TASK_STATE_WORKING)
    const working = await client.listTasks(listing({ status: TaskState.TASK_STATE_WORKING }))
    assert.deepEqual([working.tasks.map(({ id }) => id), working.totalSize], [[slow], 1])
    const cancelled = await client.cancelTask({ id: slow, tenant: '', metadata: undefined })
    assert.equal(cancelled.status?.state, TaskState.TASK_STATE_CANCELED)
    const twice = await client.cancelTask({ id: slow, tenant: '', metadata: undefined })
    assert.equal(twice.status?.state, TaskState.TASK_STATE_CANCELED)
    const seen = [...events, ...(await rest)]
    assert.deepEqual(piecesIn(seen), results.slice(0, 1000))
    assert.equal(stateOf(seen.at(-1)!), TaskState.TASK_STATE_CANCELED)
    assert.deepEqual((await client.listTasks(listing({ status: TaskState.TASK_STATE_WORKING }))).tasks, [])
    assert.deepEqual(manage.failures, [])
  })

  test(`${binding}: tasks are listed part by part, each principal's own`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    const [one, other] = await Promise.all(
      [1, 2].map(async () => clientOf(manage, await manage.key({ scopes: [...OWN] }), binding)),
    )
    const made: string[] = []
    for (let i = 0; i < 5; i++) {
      const call = calling(
        'create_task',
        { type: 'detect', items: [{ user_agent: `a${i}` }] },
        { contextId: `c${i % 2}` },
      )
      made.unshift(asTask(await one!.sendMessage(call)).id)
    }
    const seen: string[] = []
    for (let pageToken = ''; ; ) {
      const page = await one!.listTasks(listing({ pageSize: 2, pageToken }))
      assert.deepEqual([page.totalSize, page.pageSize], [5, 2])
      seen.push(...page.tasks.map(({ id }) => id))
      assert.ok(page.tasks.every(({ artifacts }) => artifacts.length === 0))
      if (page.nextPageToken === '') break
      pageToken = page.nextPageToken
    }
    assert.deepEqual(seen.toSorted(), made.toSorted())
    const some = await one!.listTasks(listing({ contextId: 'c1', includeArtifacts: true }))
    assert.equal(some.totalSize, 2)
    assert.ok(some.tasks.every((task) => resultsIn(task).length === 1))
    assert.equal((await other!.listTasks(listing({}))).totalSize, 0)
    assert.equal((await other!.listTasks(listing({ contextId: 'c1' }))).totalSize, 0)
    await assert.rejects(one!.listTasks(listing({ pageSize: 2, pageToken: 'bm90' })), /pageToken/)
    // Nobody else sees one, an administrator neither.
    const admin = await clientOf(manage, manage.adminKey, binding)
    for (const stranger of [other!, admin]) {
      const id = { id: made[0]!, tenant: '' }
      const config = { taskId: made[0]!, id: 'c', url: 'https://hooks.example/', token: '', tenant: '' }
      await assert.rejects(stranger.getTask(id), TaskNotFoundError)
      await assert.rejects(stranger.cancelTask({ ...id, metadata: undefined }), TaskNotFoundError)
      await assert.rejects(all(stranger.resubscribeTask(id)), TaskNotFoundError)
      await assert.rejects(
        stranger.sendMessage(sending({ text: 'x' }, { taskId: made[0] })),
        TaskNotFoundError,
      )
      await assert.rejects(
        stranger.createTaskPushNotificationConfig({ ...config, authentication: undefined }),
        TaskNotFoundError,
      )
      await assert.rejects(
        stranger.listTaskPushNotificationConfig({ taskId: made[0]!, tenant: '', pageSize: 0, pageToken: '' }),
        TaskNotFoundError,
      )
    }
    assert.deepEqual(manage.failures, [])
  })
}

for (const kind of KINDS)
  test(`${kind}: a task is begun here, and done by who is there after a restart`, async (t) => {
    const first = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const key = await first.key({ scopes: [...OWN] })
    const id = await begun(await clientOf(first, key, 'JSONRPC'), 150)
    const here = all((await clientOf(first, key, 'HTTP+JSON')).resubscribeTask({ id, tenant: '' }))
    const second = await TestManagement.start(t, {
      storeUrl: first.storeUrl,
      dataFolder: first.folder,
      admin: null,
      knows: true,
    })
    const client = await clientOf(second, key, 'JSONRPC')
    assert.equal(piecesIn(await here).length, 150)
    const task = await client.getTask({ id, tenant: '' })
    assert.deepEqual([task.status?.state, resultsIn(task).length], [TaskState.TASK_STATE_COMPLETED, 150])
  })

test('a task that fails as a whole says why', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientOf(manage, await manage.key({ scopes: [...OWN] }), 'HTTP+JSON')
  const id = await begun(client, 150)
  const elsewhere = await Elsewhere.start(t, manage, id)
  const stream = client.resubscribeTask({ id, tenant: '' })
  await stream.next()
  await elsewhere.fail('it was given up')
  assert.equal(stateOf((await all(stream)).at(-1)!), TaskState.TASK_STATE_FAILED)
  const { status } = await client.getTask({ id, tenant: '' })
  assert.equal(status?.message?.parts[0]?.content?.value, 'it was given up')
})

test('of results that are too large for an answer, a part says where the others are; a stream has all', async (t) => {
  const manage = await TestManagement.start(t)
  const key = await manage.key({ scopes: [...OWN] })
  const client = await clientOf(manage, key, 'JSONRPC')
  const id = await begun(client, 1200)
  const elsewhere = await Elsewhere.start(t, manage, id)
  const subscribed = client.resubscribeTask({ id, tenant: '' })
  await subscribed.next()
  const results = Array.from({ length: 500 }, (_, index) => ({
    ...{ index, status: 'ok' },
    // One of them is larger than a client takes at once.
    result: (index === 3 ? 'x'.repeat(2_000_000) : 'x').repeat(index === 3 ? 1 : 12_000),
  }))
  await elsewhere.chunk(0, results)
  const read = await client.getTask({ id, tenant: '' })
  const { parts } = read.artifacts[0]!
  assert.ok(parts.length < 500 && JSON.stringify(parts).length < 6_000_000)
  const places = parts.flatMap(({ content }) => (content?.$case === 'url' ? [content.value] : []))
  assert.deepEqual(places, [
    `${manage.url}/v1/tasks/${id}?page=4&limit=1`,
    `${manage.url}/v1/tasks/${id}?page=${Math.floor((parts.length - 1) / 200) + 1}&limit=200`,
  ])
  for (const place of places) {
    const page = await manage.ask('GET', place.slice(manage.url.length), undefined, {
      authorization: `Bearer ${key}`,
    })
    assert.ok(page.body.results.length > 0)
  }
  const listed = await client.listTasks(listing({ includeArtifacts: true }))
  assert.ok(JSON.stringify(listed).length < 6_000_000)
  await client.cancelTask({ id, tenant: '', metadata: undefined })
  const events = await all(subscribed)
  const streamed = events.flatMap(({ payload }) =>
    payload?.$case === 'artifactUpdate' ? payload.value.artifact!.parts : [],
  )
  assert.equal(streamed.length, 500)
  assert.ok(events.every((event) => JSON.stringify(event).length < 1_500_000))
  assert.deepEqual(manage.failures, [])
})

/** Of a task that is queued where nobody can judge: another process on the same database works on it. */
class Elsewhere {
  readonly #store: Store
  readonly #id: string

  static async start(t: Owner, { storeUrl }: TestManagement, id: string): Promise<Elsewhere> {
    const store = await Store.open(storeUrl)
    t.teardown(() => store.close())
    const elsewhere = new Elsewhere(store, id)
    assert.equal((await store.tasks.claim(elsewhere.#lease()))?.id, id)
    return elsewhere
  }

  private constructor(store: Store, id: string) {
    this.#store = store
    this.#id = id
  }

  fail(why: string): Promise<boolean> {
    return this.#store.tasks.finish(this.#id, 'failed', why, this.#lease())
  }

  chunk(number: number, results: readonly unknown[]): Promise<boolean> {
    return this.#store.tasks.chunkDone(this.#id, { number, results, failed: 0 }, this.#lease())
  }

  #lease() {
    return { owner: 'elsewhere', nowMs: Date.now(), untilMs: Date.now() + 600_000 }
  }
}

/** More than is done at once. */
async function begun(client: Client, count: number): Promise<string> {
  const items = Array.from({ length: count }, () => ({ user_agent: GPTBOT }))
  const configuration = { returnImmediately: true }
  return asTask(
    await client.sendMessage(calling('create_task', { type: 'detect', items }, { configuration })),
  ).id
}

function listing(asked: Partial<ListTasksRequest>): ListTasksRequest {
  return { ...ListTasksRequest.fromJSON({}), ...asked }
}

function piecesIn(events: readonly StreamResponse[]): unknown[] {
  return events.flatMap(({ payload }) =>
    payload?.$case === 'artifactUpdate' ? dataIn(payload.value.artifact!) : [],
  )
}

function stateOf({ payload }: StreamResponse): TaskState | undefined {
  return payload?.$case === 'statusUpdate' ? payload.value.status?.state : undefined
}
