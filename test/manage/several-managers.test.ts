import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { EventReader as Reader } from './event-reader.ts'
import { refusalAfterFailure } from '../../src/manage/auth/failures.ts'
import { MinuteThrottle } from '../../src/manage/auth/minute-throttle.ts'
import { Periodic } from '../../src/manage/jobs/periodic.ts'
import { Refusal } from '../../src/manage/http/refusal.ts'
import { silentLog } from '../../src/shared/log.ts'
import { Secret } from '../../src/shared/secret.ts'
import { sighting } from '../contract/bus.ts'
import { freshUrl, openAt } from '../store/databases.ts'
import { EventReader, until } from './event-reader.ts'
import { type Answered, TestManagement, type TestOptions } from './management.ts'

// Two processes on one database, behind something that sends each request to the next of them.

test('feedback on an answer of /detect is taken by a process that has not given it', async (t) => {
  const { one, other } = await two(t, { knows: true })
  const detect = async () => (await one.ask('POST', '/v1/detect', { user_agent: 'GPTBot/1.2' })).body
  const { request_id, verdict } = await detect()
  for (const told of ['human', 'agent']) {
    const { status, body } = await other.ask('POST', '/v1/feedback', { request_id, verdict: told })
    assert.deepEqual([status, body.decided?.verdict], [200, verdict], JSON.stringify(body))
  }
  const unknown = await other.ask('POST', '/v1/feedback', { request_id: 'nobody', verdict: 'human' })
  assert.equal(unknown.status, 404)
  // What was written down outlives the process that gave the answer.
  const { request_id: second } = await detect()
  await until(async () => (await other.store.detections.find(second)) !== null)
  await one.stop()
  assert.equal(
    (await other.ask('POST', '/v1/feedback', { request_id: second, verdict: 'human' })).status,
    200,
  )
})

test('of the answers of /detect the newest are kept, whoever has given them', async (t) => {
  const { store } = await two(t)
  const records = Array.from({ length: 300 }, (_, at) => ({ id: `r${at}`, atMs: at, document: '{}' }))
  await Promise.all([store.detections.put(records), store.detections.put(records.toReversed())])
  assert.equal(await store.detections.forget(300, 1_000), 0)
  assert.equal(await store.detections.forget(100, 150), 150)
  assert.equal(await store.detections.forget(100, 150), 50)
  assert.equal(await store.detections.find('r199'), null)
  assert.equal(await store.detections.find('r200'), '{}')
})

test('who guesses is told to wait by all processes together, and it is written down once', async (t) => {
  const { one, other, store } = await two(t, { authFailuresPerMinute: 10 })
  const guess = async (manage: TestManagement) => {
    const bad = { authorization: 'Bearer nothing' }
    return (await manage.ask('GET', '/v1/agents', undefined, bad)).status
  }
  const counted = async () =>
    (await store.rateLimits.current(Date.now())).find(({ key }) => key.startsWith('failures from:'))?.points
  for (let time = 0; time < 5; time++)
    for (const manage of [one, other]) assert.equal(await guess(manage), 401)
  // Twelve, of which each has seen six: too many, once they have told each other, which may be now.
  for (const manage of [one, other]) await guess(manage)
  await until(async () => (await counted()) === 12)
  for (const manage of [one, other]) await guess(manage)
  await until(async () => (await counted()) === 14)
  await wait(200) // what the database has said is on its way
  assert.deepEqual([await guess(one), await guess(other)], [429, 429], 'each has seen eight')
  assert.equal((await other.ask('GET', '/v1/agents')).status, 200, 'a good key is as good as before')
  const { items } = await store.audit.list({ page: 1, limit: 50 })
  assert.equal(items.filter(({ action }) => action === 'throttleAuthentication').length, 1)
})

test('it is written down once also where two processes find it out at once', async (t) => {
  const { store } = await two(t)
  let nowMs = Date.now()
  const throttles = [new MinuteThrottle(10), new MinuteThrottle(10)] as const
  const fail = (by: 0 | 1) =>
    refusalAfterFailure(new Refusal('invalid_token', 'no such key'), '192.0.2.1', 'r', {
      failureThrottle: throttles[by],
      store,
      log: silentLog(),
      nowMs: () => nowMs,
    })
  const share = (by: 0 | 1) => throttles[by].share(store.rateLimits, 'failures from', nowMs)
  const written = async () =>
    (await store.audit.list({ page: 1, limit: 50 })).items.filter(
      ({ action }) => action === 'throttleAuthentication',
    ).length
  for (const [minute, expected] of [1, 2].entries()) {
    for (let time = 0; time < 5; time++) for (const by of [0, 1] as const) await fail(by)
    await share(0)
    await share(1) // which now knows of ten
    for (let time = 0; time < 2; time++) assert.equal((await fail(0)).code, 'invalid_token')
    await share(0)
    const both = await Promise.all([fail(0), fail(1)])
    assert.deepEqual(
      both.map(({ code }) => code),
      ['rate_limited', 'rate_limited'],
    )
    assert.equal(await written(), expected, `in minute ${minute}`)
    nowMs += 60_000
  }
})

test('who listens at one process hears of what another one has taken in, and found out', async (t) => {
  const { one, other } = await two(t, { knows: true })
  const open = (types: string) =>
    EventReader.open(`${one.url}/v1/events?types=${types}`, {
      key: one.adminKey,
      accept: 'text/event-stream',
    })
  const traffic = await open('traffic')
  const events = await open('threat_detected,new_agent,new_signature')
  await until(() => traffic.told.length > 1)
  await Promise.all([
    one.take([1, 2].map(seen)),
    other.take([3, 4, 5].map((number) => ({ ...seen(number), verdict: 'agent', done: 'block' }))),
  ])
  await until(() => sumOf(traffic) === 5)
  assert.deepEqual(
    told(traffic).reduce((sum, { by_action }) => sum + (by_action.block ?? 0), 0),
    3,
  )
  const { body } = await other.ask('POST', '/v1/signatures/submit', {
    ...{ fingerprint: 't13d1011h2_61a7ad8aa9b6_3a8073edd8ef', type: 'ja4' },
    ...{ agent_name: 'Acme Bot', category: 'orchestrator' },
  })
  const path = `/v1/submissions/${body.submissions[0].id}/review`
  const reviewed = await other.ask('POST', path, { decision: 'accept' })
  assert.equal(reviewed.status, 200, JSON.stringify(reviewed.body))
  await until(() => events.told.some(({ event }) => event === 'new_signature'))
  assert.equal(events.told.filter(({ event }) => event === 'new_signature').length, 1)
  for (const reader of [traffic, events]) reader.leave()
})

test('settings, the policy and what is left of a limit are the same everywhere', async (t) => {
  const { one, other, either } = await two(t)
  await one.ask('PATCH', '/v1/settings', { 'limits.free_per_day': 5 })
  const changedAt = other.ask('GET', '/v1/settings')
  const { value } = (await changedAt).body.settings.find(
    ({ name }: { name: string }) => name === 'limits.free_per_day',
  )
  assert.equal(value, 5, 'who asks is told what holds')
  await until(() => other.said.some((line) => line.includes('limits.free_per_day')))

  const policy = { rules: [{ name: 'closed', when: { path: '/closed' }, action: 'block' }] }
  const { headers } = await other.ask('GET', '/v1/policy')
  const put = await one.ask('PUT', '/v1/policy', policy, { 'if-match': headers.get('etag')! })
  assert.equal(put.status, 200, JSON.stringify(put.body))
  const stale = await other.ask('PUT', '/v1/policy', policy, { 'if-match': headers.get('etag')! })
  assert.equal(stale.status, 412)
  await until(() => other.policies.length === 1)
  assert.deepEqual(other.policies, [policy])

  const authorization = `Bearer ${await one.key({ scopes: ['read'], plan: 'free' })}`
  const left: string[] = []
  for (let time = 0; time < 6; time++) {
    const answer = await either('GET', '/v1/agents', undefined, { authorization })
    left.push(`${answer.status} ${/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]}`)
  }
  assert.deepEqual(left, ['200 4', '200 3', '200 2', '200 1', '200 0', '429 0'])
})

test('a request that comes to two processes at once, with one idempotency key, is done once', async (t) => {
  const { one, other } = await two(t)
  const headers = { authorization: `Bearer ${one.adminKey}`, 'idempotency-key': 'one' }
  const ask = (manage: TestManagement) =>
    manage.ask('POST', '/v1/keys', { name: 'once', access: 'read' }, headers)
  const answers: Answered[] = []
  for (const manage of [one, other, one, other]) answers.push(...(await Promise.all([ask(manage), ask(one)])))
  const made = answers.filter(({ status }) => status === 201)
  assert.equal(new Set(made.map(({ body }) => body.key)).size, 1)
  assert.ok(made.length >= 6, answers.map(({ status }) => status).join())
  const { body } = await one.ask('GET', '/v1/keys')
  assert.equal(body.keys.filter(({ name }: { name: string }) => name === 'once').length, 1)
})

test('what one process has sealed another one opens: webhooks, tokens and their keys', async (t) => {
  const { one, other, either } = await two(t)
  const made = await one.ask('POST', '/v1/clients', {
    ...{ name: 'both', scopes: ['read'], grant_types: ['client_credentials'] },
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const { client_id, client_secret } = made.body
  const token = await Promise.all(
    [one, other].map(async ({ url }) => {
      const response = await fetch(`${url}/oauth/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${client_id}:${client_secret}`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials' }),
      })
      return ((await response.json()) as { access_token: string }).access_token
    }),
  )
  const bearer = { authorization: `Bearer ${token[0]}` }
  for (let time = 0; time < 2; time++)
    assert.equal((await either('GET', '/v1/agents', undefined, bearer)).status, 200)
  assert.equal((await other.ask('DELETE', `/v1/clients/${client_id}`)).status, 204)
  const atMs = performance.now()
  await until(async () => (await one.ask('GET', '/v1/agents', undefined, bearer)).status === 401)
  assert.ok(performance.now() - atMs < 3_000)
})

test('a process with another key for secrets than those before it says so', async (t) => {
  const { one, other } = await two(t)
  assert.deepEqual([one.said, other.said], [[], []])
  const foreign = await TestManagement.start(t, {
    ...{ storeUrl: one.storeUrl, encryptionKeys: [new Secret('another than both have')] },
  })
  assert.ok(
    foreign.said.some((line) => line.includes('which is not in store.encryption_keys')),
    `${foreign.said}`,
  )
  assert.ok(!foreign.said.join().includes('than both have'))
})

test('what one does for all, only the one that leads does', async () => {
  const done: string[] = []
  let isLeading = false
  const log = silentLog()
  const periodic = new Periodic(log, () => isLeading)
  periodic.start(
    [true as const, undefined].map((isOnce) => ({
      ...{ name: isOnce ? 'once' : 'each', everyMs: 5, ...(isOnce && { isOnce }) },
      run: async () => {
        done.push(isOnce ? 'once' : 'each')
        return 'done' as const
      },
    })),
  )
  await until(() => done.length > 5)
  assert.ok(!done.includes('once'))
  isLeading = true
  await until(() => done.includes('once'))
  isLeading = false
  await until(() => done.at(-1) === 'each')
  const before = done.filter((name) => name === 'once').length
  const count = done.length
  await until(() => done.length > count + 5)
  assert.ok(done.filter((name) => name === 'once').length <= before + 1)
  await periodic.close()
})

interface Two {
  readonly one: TestManagement
  readonly other: TestManagement & { readonly store: Awaited<ReturnType<typeof openAt>> }
  readonly store: Awaited<ReturnType<typeof openAt>>
  /** Of each in turn. */
  readonly either: TestManagement['ask']
}

async function two(t: Test, options: TestOptions = {}): Promise<Two> {
  const storeUrl = await freshUrl('postgres', t)
  const shared: TestOptions = {
    ...{ storeUrl, publicUrl: 'https://gate.example', encryptionKeys: [new Secret('the same for both')] },
    ...options,
  }
  const one = await TestManagement.start(t, shared)
  const other = await TestManagement.start(t, shared)
  const store = await openAt(t, storeUrl)
  let turn = 0
  const either: TestManagement['ask'] = (method, path, body, headers) =>
    (turn++ % 2 === 0 ? one : other).ask(method, path, body, headers)
  return { one, other: Object.assign(other, { store }), store, either }
}

function seen(number: number) {
  return { ...sighting(number), seenAtMs: Date.now() }
}

function told({ told }: Reader) {
  return told.map(({ data }) => JSON.parse(data!).data)
}

function sumOf(reader: Reader): number {
  return told(reader).reduce((sum, { requests }) => sum + requests, 0)
}
