import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import type { ItemResult } from '../../src/manage/jobs/task-types.ts'
import { ANALYZE_CAPTURE } from '../../src/manage/api/capture-task.ts'
import type { ApiContext } from '../../src/manage/api/context.ts'
import type { ToolCaller } from '../../src/manage/jobs/tools.ts'
import { TaskRunner } from '../../src/manage/jobs/task-runner.ts'
import { Store } from '../../src/store/store.ts'
import { withoutDescriptors } from '../descriptors.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'
import { slowManagement, slowTypes } from './slow-tasks.ts'

const GPTBOT = 'Mozilla/5.0 (compatible; GPTBot/1.2)'

test('a small task is finished in the answer, and kept', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const made = await manage.ask('POST', '/v1/tasks/create', {
    type: 'detect',
    items: [{ user_agent: GPTBOT }, { ja4: 'broken' }, { user_agent: 'curl/8.5.0' }, 'nonsense', null],
  })
  assert.equal(made.status, 200)
  const { task_id, status, type, total, completed, failed, results } = made.body
  assert.match(task_id, /^tsk_/)
  assert.deepEqual([status, type, total, completed, failed], ['completed', 'detect', 5, 5, 3])
  assert.deepEqual(
    results.map(({ index, status }: ItemResult) => [index, status]),
    [
      [0, 'ok'],
      [1, 'error'],
      [2, 'ok'],
      [3, 'error'],
      [4, 'error'],
    ],
  )
  assert.equal(results[0].result.agent_name, 'GPTBot')
  assert.deepEqual([results[1].error.code, results[1].error.errors[0].pointer], ['invalid_request', '/ja4'])
  const read = await manage.ask('GET', `/v1/tasks/${task_id}`)
  assert.deepEqual(read.body.results, results)
  const listed = await manage.ask('GET', '/v1/tasks')
  assert.deepEqual(
    listed.body.recent.map((each: { task_id: string }) => each.task_id),
    [task_id],
  )
  const [detect] = listed.body.tasks
  assert.deepEqual([detect.type, detect.max_items, detect.input_schema.type], ['detect', 10_000, 'object'])
  assert.ok(listed.body.tasks.some(({ type }: { type: string }) => type === 'analyze_capture'))
  const one = await manage.ask('POST', '/v1/tasks/create', { type: 'explain', input: { user_agent: GPTBOT } })
  assert.equal(one.body.results[0].result.detection.agent_name, 'GPTBot')
})

test('a large task is queued, done, and read page by page', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const items = Array.from({ length: 1203 }, (_, i) => ({
    user_agent: i % 2 === 0 ? GPTBOT : `tool${i}/1.0`,
  }))
  const made = await manage.ask('POST', '/v1/tasks/create', { type: 'detect', items })
  assert.equal(made.status, 200)
  assert.ok(['queued', 'running'].includes(made.body.status))
  assert.equal(made.body.results, undefined)
  const path = `/v1/tasks/${made.body.task_id}`
  const done = await finished(manage, path)
  assert.deepEqual([done.status, done.total, done.completed, done.failed], ['completed', 1203, 1203, 0])
  const seen: number[] = []
  for (let page = 1; ; page++) {
    const { body, headers } = await manage.ask('GET', `${path}?limit=200&page=${page}`)
    if (body.results.length === 0) break
    if (page === 1) assert.match(headers.get('link') ?? '', /page=7>; rel="last"/)
    for (const { index, result } of body.results) {
      seen.push(index)
      assert.equal(result.is_agent, index % 2 === 0)
    }
  }
  assert.deepEqual(seen, [...items.keys()])
})

test('others do not see a task, and cannot end it', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const bearer = async () => ({ authorization: `Bearer ${await manage.key({ scopes: ['read', 'detect'] })}` })
  const [one, other] = [await bearer(), await bearer()]
  const body = { type: 'detect', items: [{ user_agent: 'x' }] }
  const { task_id } = (await manage.ask('POST', '/v1/tasks/create', body, one)).body
  assert.equal((await manage.ask('GET', `/v1/tasks/${task_id}`, undefined, one)).status, 200)
  assert.equal((await manage.ask('GET', `/v1/tasks/${task_id}`, undefined, other)).status, 404)
  assert.equal((await manage.ask('DELETE', `/v1/tasks/${task_id}`, undefined, other)).status, 404)
  assert.equal((await manage.ask('GET', `/v1/tasks/${task_id}`)).status, 200) // an administrator
  assert.deepEqual((await manage.ask('GET', '/v1/tasks', undefined, other)).body.recent, [])
  assert.equal((await manage.ask('DELETE', `/v1/tasks/${task_id}`, undefined, one)).status, 204)
  assert.equal((await manage.ask('GET', `/v1/tasks/${task_id}`)).body.status, 'completed')
  const readOnly = { authorization: `Bearer ${await manage.key({ scopes: ['read'] })}` }
  assert.equal((await manage.ask('POST', '/v1/tasks/create', body, readOnly)).status, 403)
})

test('a task is cancelled, and stays so', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const items = Array.from({ length: 5000 }, () => ({ user_agent: GPTBOT }))
  const made = await manage.ask('POST', '/v1/tasks/create', { type: 'explain', items })
  const path = `/v1/tasks/${made.body.task_id}`
  assert.equal((await manage.ask('DELETE', path)).status, 204)
  const { status, completed } = (await manage.ask('GET', path)).body
  assert.equal(status, 'cancelled')
  await wait(200)
  const later = (await manage.ask('GET', path)).body
  assert.deepEqual([later.status, later.completed], ['cancelled', completed])
  assert.deepEqual(manage.failures, [])
})

test('what is wrong with a task', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const item = { user_agent: 'x' }
  for (const [body, pointer, detail] of [
    [{ type: 'detekt', items: [item] }, '/type', /did you mean "detect"/],
    [{ type: 'detect' }, '/items', /give exactly one of/],
    [{ type: 'detect', items: [item], input: item }, '/items', /give exactly one of/],
    [{ type: 'detect', items: [] }, '/items', /is empty/],
    [{ type: 'detect', items: item }, '/items', /must be a list/],
    [{ type: 'detect', items: Array(10_001).fill(0) }, '/items', /at most 10000/],
    [{ type: 'analyze_capture', items: Array(9).fill({}) }, '/items', /at most 8/],
    [{ type: 'detect', items: [item], callback_url: 'http://a.test/' }, '/callback_url', /must be https/],
    [
      { type: 'detect', items: [item], callback_url: 'https://10.0.0.1/' },
      '/callback_url',
      /not on the public/,
    ],
    [{ type: 'detect', items: [item], url: 1 }, '/url', /is unknown/],
  ] as const) {
    const answer = await manage.ask('POST', '/v1/tasks/create', body)
    assert.deepEqual([answer.status, answer.body.errors?.[0].pointer], [400, pointer])
    assert.match(answer.body.errors[0].detail, detail)
  }
  const large = { type: 'detect', items: [{ user_agent: 'x'.repeat(9_000_000) }] }
  assert.equal((await manage.ask('POST', '/v1/tasks/create', large)).status, 413)
  assert.equal((await manage.ask('GET', '/v1/tasks/tsk_none')).status, 404)
})

test('captures are read elsewhere, and broken ones do no harm', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const analyze = async (capture: string | Buffer) => {
    const text = typeof capture === 'string' ? capture : capture.toString('base64')
    const { body } = await manage.ask('POST', '/v1/tasks/create', {
      type: 'analyze_capture',
      input: { capture: text },
    })
    return (body.results ?? (await finished(manage, `/v1/tasks/${body.task_id}`)).results)[0]
  }
  const sample = readFileSync('test/captures/sample.pcapng')
  const { status, result } = await analyze(sample)
  assert.equal(status, 'ok')
  assert.equal(result.format, 'pcapng')
  assert.ok(result.frames > 0 && result.findings.length > 0)
  const tls = result.findings.find(({ kind }: { kind: string }) => kind === 'tls')
  assert.match(tls.ja4, /^t1/)
  assert.ok(result.fingerprints.some(({ fingerprint }: { fingerprint: string }) => fingerprint === tls.ja4))
  const cut = await analyze(sample.subarray(0, sample.length - 7))
  assert.deepEqual([cut.status, cut.result.fault.kind], ['ok', 'truncated'])
  const none = await analyze(Buffer.from('this is no capture at all, whatever it says'))
  assert.deepEqual([none.status, none.error.errors[0].pointer], ['error', '/capture'])
  assert.equal((await analyze('%%%')).error.errors[0].detail, 'is not valid base64')
  const noise = await analyze(Buffer.concat([sample.subarray(0, 200), Buffer.alloc(4_000_000, 0xa5)]))
  assert.equal(noise.status, 'ok')
  assert.deepEqual(manage.failures, [])
})

test('where no process can be started to read a capture, it is not said to be too large', async () => {
  const management = { snapshot: () => ({ knowledge: {} }), ja4plus: true } as unknown as ApiContext
  const capture = readFileSync('test/captures/sample.pcapng').toString('base64')
  await withoutDescriptors(async () => {
    const analyzed = ANALYZE_CAPTURE.tool.run({ capture }, {} as ToolCaller, management)
    await assert.rejects(Promise.resolve(analyzed), { code: 'unavailable', message: /EMFILE/ })
  })
})

for (const kind of KINDS) {
  test(`${kind}: a process that is killed in the middle of it costs no result, and doubles none`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await Store.open(url)
    t.teardown(() => store.close())
    const total = 2000
    const items = Array.from({ length: total }, (_, i) => i)
    const chunks = Array.from({ length: total / 50 }, (_, number) => ({
      number,
      from: number * 50,
      items: items.slice(number * 50, number * 50 + 50),
    }))
    await store.tasks.add({
      id: 'tsk_a',
      apps: '*',
      principal: 'key_1',
      type: 'slow',
      atMs: Date.now(),
      chunks,
    })
    for (let kill = 0; kill < 2; kill++) {
      const before = (await store.tasks.byId('tsk_a'))!.completed
      const child = fork('test/manage/task-process.ts', [url], { stdio: 'inherit' })
      while ((await store.tasks.byId('tsk_a'))!.completed <= before) await wait(20)
      child.kill('SIGKILL')
      await once(child, 'exit')
      // As after the time of its lease, which nobody wants to wait for here.
      await store.tasks.release(null)
    }
    const midway = (await store.tasks.byId('tsk_a'))!
    assert.ok(midway.completed > 0 && midway.completed < total, String(midway.completed))
    // Three at once, as on three machines.
    const runners = [0, 1, 2].map(() => new TaskRunner(slowTypes(0), slowManagement(store)))
    for (const runner of runners) await runner.start()
    t.teardown(() => Promise.all(runners.map((runner) => runner.close())))
    while ((await store.tasks.byId('tsk_a'))!.finishedAtMs === null) await wait(20)
    const done = (await store.tasks.byId('tsk_a'))!
    assert.deepEqual([done.status, done.completed, done.failed], ['completed', total, total / 2])
    const results = (await store.tasks.results('tsk_a', 0, total)) as ItemResult[]
    assert.deepEqual(
      results.map(({ index }) => index),
      items,
    )
    for (const { index, status, result } of results)
      if (index % 2 === 1) assert.equal(status, 'error')
      else assert.deepEqual(result, { twice: index * 2 })
  })
}

async function finished(manage: TestManagement, path: string) {
  for (;;) {
    const { status, body } = await manage.ask('GET', path)
    assert.equal(status, 200)
    if (body.finished_at !== null) return body
    await wait(20)
  }
}
