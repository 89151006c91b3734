import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { test } from 'tap'
import { EventLog } from '../../src/manage/events/event-log.ts'
import type { NewEvent } from '../../src/store/events/events.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, type Owner } from '../store/databases.ts'
import { type Answered, TestManagement, type TestOptions } from './management.ts'
import { HookReceiver } from './webhook-receiver.ts'
import { event } from './webhook-site.ts'
import { until } from '../until.ts'

for (const kind of KINDS)
  test(`${kind}: a webhook is tried, and what became of it is there to read`, async (t) => {
    const { manage, receiver, id, secret } = await registered(t, { storeUrl: await freshUrl(kind, t) })
    receiver.secret = secret
    receiver.answer = (response) => response.end('thanks\n')
    const made = await manage.ask('POST', `/v1/webhooks/${id}/test`)
    assert.equal(made.status, 201)
    const [sent] = await receiver.has(1)
    assert.deepEqual(
      [sent!.body.type, sent!.body.data.webhook_id, sent!.id],
      ['test', id, made.body.event_id],
    )
    assert.deepEqual(receiver.unverified, [])
    const { status, body } = await delivered(manage, made.body.id)
    assert.equal(status, 200)
    const { log, created_at, finished_at, event_at, ...shown } = body
    assert.deepEqual(shown, {
      ...{ id: made.body.id, webhook_id: id, event_id: sent!.id, event_type: 'test', status: 'delivered' },
      ...{ attempts: 1, next_attempt_at: null, body: sent!.body },
    })
    const [{ at, duration_ms, ...attempt }] = log
    assert.deepEqual(attempt, { status: 200, error: null, response: 'thanks' })
    assert.ok(duration_ms >= 0 && at >= created_at && finished_at >= at && event_at === created_at)
    assert.deepEqual(manage.failures, [])
  })

test('deliveries are listed, newest first, by status and by time', async (t) => {
  const { manage, receiver, id, add } = await registered(t)
  receiver.answer = (response, _number, { body }) =>
    response.writeHead(body.data.number === 1 ? 500 : 200).end()
  await add(event({ data: '{"number":0}' }))
  await receiver.has(1)
  await wait(5)
  const between = new Date().toISOString()
  await wait(5)
  await add(event({ data: '{"number":1}' }))
  await receiver.has(2)
  const list = async (query: string) => {
    const { status, body } = await manage.ask('GET', `/v1/webhooks/${id}/deliveries${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  await until(async () => (await list('?status=delivered')).total === 1)
  await until(async () => (await list('?status=pending')).deliveries[0].attempts === 1)
  const all = await list('')
  assert.deepEqual(
    all.deliveries.map(({ status }: { status: string }) => status),
    ['pending', 'delivered'],
  )
  assert.equal(all.deliveries[0].log[0].error, 'it answers 500')
  assert.equal((await list('?status=failed')).total, 0)
  assert.equal((await list(`?since=${between}`)).deliveries[0].id, all.deliveries[0].id)
  assert.equal((await list(`?until=${between}`)).deliveries[0].id, all.deliveries[1].id)
  assert.equal((await list(`?since=${between}&until=${between}`)).total, 0)
  const first = (await manage.ask('GET', `/v2/webhooks/${id}/deliveries?limit=1`)).body
  const rest = await manage.ask('GET', `/v2/webhooks/${id}/deliveries?limit=1&cursor=${first.next_cursor}`)
  assert.deepEqual(rest.body.deliveries, [all.deliveries[1]])
  const other = await manage.ask('POST', '/v1/webhooks', { url: receiver.url, events: ['new_agent'] })
  const wrong = await manage.ask(
    'GET',
    `/v2/webhooks/${other.body.id}/deliveries?cursor=${first.next_cursor}`,
  )
  assert.equal(wrong.status, 400)
  for (const [path, status] of [
    [`/v1/webhooks/${id}/deliveries?status=done`, 400],
    [`/v1/webhooks/${id}/deliveries?since=yesterday`, 400],
    ['/v1/webhooks/whk_nothing/deliveries', 404],
    ['/v1/deliveries/dlv_nothing', 404],
  ] as const)
    assert.equal((await manage.ask('GET', path)).status, status)
})

test('a webhook says how it does, and If-Match goes by what was configured of it', async (t) => {
  const { manage, receiver, id, add } = await registered(t)
  const read = () => manage.ask('GET', `/v1/webhooks/${id}`)
  const before = await read()
  receiver.answer = (response) => response.writeHead(500).end()
  await add(event())
  await until(async () => (await read()).body.failing_since !== null)
  const failing = await read()
  assert.deepEqual([failing.body.pending, failing.body.last_delivery_at], [1, null])
  assert.notEqual(failing.headers.get('etag'), before.headers.get('etag'))
  const unread = { 'if-none-match': before.headers.get('etag')! }
  assert.equal((await manage.ask('GET', `/v1/webhooks/${id}`, undefined, unread)).status, 200)
  const patch = (description: string, etag: string) =>
    manage.ask('PATCH', `/v1/webhooks/${id}`, { description }, { 'if-match': etag })
  const changed = await patch('x', before.headers.get('etag')!)
  assert.deepEqual([changed.status, changed.body.description], [200, 'x'])
  assert.equal((await patch('y', before.headers.get('etag')!)).status, 412)
  receiver.answer = (response) => response.end()
  await manage.ask('POST', `/v1/webhooks/${id}/test`)
  await until(async () => (await read()).body.last_delivery_at !== null)
  assert.equal((await read()).body.failing_since, null)
})

test('one that was disabled by what it answered says why, is tested by nobody, and goes on when it is enabled', async (t) => {
  const { manage, receiver, id, add } = await registered(t)
  const read = () => manage.ask('GET', `/v1/webhooks/${id}`)
  receiver.answer = (response) => response.writeHead(410).end()
  await add(event())
  await until(async () => !(await read()).body.enabled)
  const { disabled_reason, disabled_at, pending } = (await read()).body
  assert.deepEqual([disabled_reason, pending], ['its URL answers 410 (Gone)', 1])
  assert.ok(Date.parse(disabled_at) > Date.now() - 20_000)
  const [waiting] = (await manage.ask('GET', `/v1/webhooks/${id}/deliveries`)).body.deliveries
  for (const [path, body] of [
    [`/v1/webhooks/${id}/test`, undefined],
    [`/v1/webhooks/${id}/replay`, { since: '2020-01-01T00:00:00Z' }],
    [`/v1/deliveries/${waiting.id}/retry`, undefined],
  ] as const)
    assert.equal((await manage.ask('POST', path, body)).body.code, 'conflict', path)
  receiver.answer = (response) => response.end()
  const enabled = await manage.ask('PATCH', `/v1/webhooks/${id}`, { enabled: true })
  assert.deepEqual([enabled.body.disabled_reason, enabled.body.disabled_at], [null, null])
  await receiver.has(2)
  assert.equal((await delivered(manage, waiting.id)).body.status, 'delivered')
  const audit = (await manage.ask('GET', '/v1/audit?action=disableWebhook')).body.audit
  assert.deepEqual([audit.length, audit[0].principal, audit[0].subject], [1, 'gatehouse', id])
})

test('a delivery is sent once more, whatever became of it, with the same id and bytes', async (t) => {
  const { manage, receiver, id, add } = await registered(t)
  await add(event())
  const [only] = await receiver.has(1)
  const list = await manage.ask('GET', `/v1/webhooks/${id}/deliveries`)
  const delivery = list.body.deliveries[0].id
  await delivered(manage, delivery)
  const again = await manage.ask('POST', `/v1/deliveries/${delivery}/retry`)
  assert.equal(again.status, 200)
  await receiver.has(2)
  const { body } = await delivered(manage, delivery)
  assert.deepEqual([body.attempts, body.log.length], [1, 2])
  assert.deepEqual([receiver.all[1]!.id, receiver.all[1]!.text], [only!.id, only!.text])
  // One that waits for its retry, and one that waits behind it.
  receiver.answer = (response) => response.writeHead(500).end()
  await add(event({ subject: 's' }), event({ subject: 's' }))
  await receiver.has(3)
  const waiting = async () =>
    (await manage.ask('GET', `/v1/webhooks/${id}/deliveries?status=pending`)).body.deliveries
  await until(async () => (await waiting()).some(({ attempts }: { attempts: number }) => attempts === 1))
  receiver.answer = (response) => response.end()
  const [behind] = (await waiting()).filter(
    ({ next_attempt_at }: { next_attempt_at: unknown }) => next_attempt_at === null,
  )
  await manage.ask('POST', `/v1/deliveries/${behind.id}/retry`)
  await delivered(manage, behind.id)
  const [first] = await waiting()
  await manage.ask('POST', `/v1/deliveries/${first.id}/retry`)
  assert.equal((await delivered(manage, first.id)).body.attempts, 2)
  assert.equal((await manage.ask('POST', '/v1/deliveries/dlv_x/retry')).status, 404)
})

for (const kind of KINDS)
  test(`${kind}: what has happened since a time, or in a stretch of it, is delivered once more`, async (t) => {
    const { manage, receiver, id, add } = await registered(t, { storeUrl: await freshUrl(kind, t) })
    const times = [1, 2, 3, 3, 4].map((hour) => Date.UTC(2026, 0, 1, hour))
    const told = times.map((atMs, number) => event({ atMs, data: JSON.stringify({ number }) }))
    const [agent, filtered] = [event({ type: 'new_agent', atMs: times[4]! }), event({ atMs: times[4]! + 1 })]
    await add(...told, agent, { ...filtered, confidence: 0.1 })
    await receiver.has(7)
    await until(async () => (await manage.ask('GET', `/v1/webhooks/${id}`)).body.pending === 0)
    await manage.ask('PATCH', `/v1/webhooks/${id}`, { filters: { min_confidence: 0.5 } })
    const replay = async (body: unknown) => {
      receiver.all.length = 0
      const answer = await manage.ask('POST', `/v1/webhooks/${id}/replay`, body)
      assert.deepEqual([answer.status, answer.body.next_since], [200, null], JSON.stringify(answer.body))
      await receiver.has(answer.body.queued)
      await until(async () => (await manage.ask('GET', `/v1/webhooks/${id}`)).body.pending === 0)
      return receiver.ids.toSorted()
    }
    const ids = (...events: readonly NewEvent[]) => events.map(({ id }) => id).sort()
    const at = (index: number) => new Date(times[index]!).toISOString()
    assert.deepEqual(await replay({ since: at(0) }), ids(...told, agent))
    assert.deepEqual(await replay({ since: at(1), until: at(4) }), ids(told[1]!, told[2]!, told[3]!))
    assert.deepEqual(await replay({ since: at(0), types: ['new_agent'] }), ids(agent))
    assert.deepEqual(await replay({ since: at(4).replace('Z', '+00:00'), types: ['threat_detected'] }), [])
    for (const body of [
      {},
      { since: 'x' },
      { since: at(1), until: at(1) },
      { since: at(0), types: ['test'] },
    ])
      assert.equal((await manage.ask('POST', `/v1/webhooks/${id}/replay`, body)).status, 400)
    // What waits already is not queued twice.
    receiver.answer = (response) => response.writeHead(500).end()
    receiver.all.length = 0
    const twice = [await manage.ask('POST', `/v1/webhooks/${id}/replay`, { since: at(0) })]
    twice.push(await manage.ask('POST', `/v1/webhooks/${id}/replay`, { since: at(0) }))
    assert.deepEqual(
      twice.map(({ body }) => body.queued),
      [6, 0],
    )
  })

for (const kind of KINDS)
  test(`${kind}: a replay that cannot be audited delivers nothing`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { manage, receiver, id, add } = await registered(t, { storeUrl })
    await add(...Array.from({ length: 600 }, (_, atMs) => event({ atMs })))
    await receiver.has(600)
    await until(async () => (await manage.ask('GET', `/v1/webhooks/${id}`)).body.pending === 0)
    await refuseAudit(storeUrl, 'replayWebhook')
    const replay = { since: '1970-01-01T00:00:00Z' }
    assert.equal((await manage.ask('POST', `/v1/webhooks/${id}/replay`, replay)).status, 500)
    const { total } = (await manage.ask('GET', `/v1/webhooks/${id}/deliveries`)).body
    assert.equal(total, 600, 'only those from before')
    assert.equal((await manage.ask('GET', '/v1/audit?action=replayWebhook')).body.total, 0)
  })

test('a replay has an end: it says where there is more', async (t) => {
  const { manage, receiver, id, add } = await registered(t)
  await manage.ask('PATCH', `/v1/webhooks/${id}`, { enabled: false })
  const count = 10_700
  await add(...Array.from({ length: count }, (_, atMs) => event({ atMs })))
  receiver.answer = () => undefined
  await manage.ask('PATCH', `/v1/webhooks/${id}`, { enabled: true })
  const since = '1970-01-01T00:00:00Z'
  const first = (await manage.ask('POST', `/v1/webhooks/${id}/replay`, { since })).body
  assert.deepEqual(first, { queued: 10_000, next_since: new Date(10_000).toISOString() })
  const rest = (await manage.ask('POST', `/v1/webhooks/${id}/replay`, { since: first.next_since })).body
  assert.deepEqual(rest, { queued: 700, next_since: null })
})

test('filters are shown as they were given, and refused where they are none', async (t) => {
  const { manage, id, receiver } = await registered(t)
  const filters = {
    ...{ categories: ['crawler'], purposes: ['training'], agents: ['gptbot'] },
    ...{ min_severity: 'high', min_confidence: 0.5 },
  }
  const changed = await manage.ask('PATCH', `/v1/webhooks/${id}`, { filters })
  assert.deepEqual([changed.status, changed.body.filters], [200, filters])
  const removed = await manage.ask('PATCH', `/v1/webhooks/${id}`, { filters: null })
  assert.equal(removed.body.filters, null)
  for (const [wrong, pointer] of [
    [{ categories: ['x'] }, '/filters/categories/0'],
    [{ categories: [] }, '/filters/categories'],
    [{ purposes: ['traning'] }, '/filters/purposes/0'],
    [{ purposes: [] }, '/filters/purposes'],
    [{ agents: 'gptbot' }, '/filters/agents'],
    [{ min_severity: 'worst' }, '/filters/min_severity'],
    [{ min_confidence: 2 }, '/filters/min_confidence'],
    [{ severity: 'high' }, '/filters/severity'],
  ] as const) {
    const body = { url: receiver.url, events: ['new_agent'], filters: wrong }
    const { status, body: problem } = await manage.ask('POST', '/v1/webhooks', body)
    assert.deepEqual([status, problem.errors[0].pointer], [400, pointer])
  }
})

test('of a webhook that is removed nothing is left', async (t) => {
  const { manage, receiver, id, add } = await registered(t)
  receiver.answer = (response) => response.writeHead(500).end()
  await add(event())
  await receiver.has(1)
  const [delivery] = (await manage.ask('GET', `/v1/webhooks/${id}/deliveries`)).body.deliveries
  assert.equal((await manage.ask('DELETE', `/v1/webhooks/${id}`)).status, 204)
  assert.equal((await manage.ask('GET', `/v1/deliveries/${delivery.id}`)).status, 404)
})

interface Registered {
  readonly manage: TestManagement
  readonly receiver: HookReceiver
  readonly id: string
  readonly secret: string
  /** As another process on the database does. */
  add(...events: readonly NewEvent[]): Promise<void>
}

async function registered(t: Owner, options: TestOptions = {}): Promise<Registered> {
  const receiver = await HookReceiver.start(t)
  const manage = await TestManagement.start(t, {
    allowPrivateWebhooks: true,
    deliveries: { ca: null, retryBaseMs: 60_000, retentionMs: 86_400_000, pollMs: 20 },
    ...options,
  })
  const events = ['new_agent', 'new_signature', 'threat_detected']
  const made = await manage.ask('POST', '/v1/webhooks', { url: receiver.url, events })
  assert.equal(made.status, 201)
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const log = new EventLog(store)
  const add = async (...events: readonly NewEvent[]) => {
    await store.transaction((queries) => log.add(events, queries))
  }
  return { manage, receiver, id: made.body.id, secret: made.body.secret, add }
}

/** Makes the database reject audit entries of one action. */
async function refuseAudit(storeUrl: string, action: string): Promise<void> {
  if (storeUrl.startsWith('sqlite:')) {
    const db = new DatabaseSync(storeUrl.slice('sqlite:'.length))
    db.exec(`create trigger refuse_audit before insert on audit when new.action = '${action}'
      begin select raise(abort, 'refused'); end`)
    return db.close()
  }
  const client = new pg.Client({ connectionString: storeUrl })
  await client.connect()
  await client.query(`alter table audit add constraint refuse_audit check (action <> '${action}') not valid`)
  await client.end()
}

async function delivered(manage: TestManagement, id: string): Promise<Answered> {
  let answer = await manage.ask('GET', `/v1/deliveries/${id}`)
  await until(async () => {
    answer = await manage.ask('GET', `/v1/deliveries/${id}`)
    return answer.body.status === 'delivered'
  })
  return answer
}
