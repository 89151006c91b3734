import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { Store } from '../../src/store/store.ts'
import { newSigner } from '../identity/signer.ts'
import { GnapClient } from '../manage/gnap-client.ts'
import { TestManagement, type TestOptions } from '../manage/management.ts'
import { legacy, modern, sent } from '../manage/mcp-client.ts'
import { clientFor, tokenFor } from '../manage/oauth-client.ts'
import { event, WebhookSite } from '../manage/webhook-site.ts'
import { HookReceiver } from '../manage/webhook-receiver.ts'
import { startGate } from '../proxy/test-gate.ts'
import { settingsFor } from '../proxy/upstream-fixture.ts'
import { freshUrl, KINDS, openAt, openFresh, type Owner } from '../store/databases.ts'
import { changedIn, tablesOf } from './management-estate.ts'
import { startHolder } from './holder.ts'
import { hex } from './made-up.ts'

/** What callers may have kept for them, up to the limit of each, and one more. */
const APPROVAL = { interact: { start: ['redirect'] } }
const PUSH = { url: 'https://hooks.example/x', token: 'x' }
const TASK = { type: 'detect', items: [{ user_agent: 'curl/8.17.0' }] }
/** More than is done in the answer. */
const LONG_TASK = { ...TASK, items: Array.from({ length: 150 }, () => TASK.items[0]) }
/** Another process works on it, and will for long. */
const UNDER_WAY = { status: 'running', finished_at_ms: null, lease_owner: 'x', lease_until_ms: 9e15 }
const AT_ONCE = 20
const REGISTRATION = { redirect_uris: ['https://app.example/callback'], client_name: 'an app' }

for (const kind of KINDS) {
  test(`${kind}: ten thousand may wait for an approval; who is trusted waits for none`, async (t) => {
    const manage = await managing(t, kind)
    const first = stranger(manage)
    const waits = (await first.grant(['read'], APPROVAL)).body.continue
    const named = (number: number) => ({ interact_hash: `i${number}`, continue_hash: `c${number}` })
    await more(manage, 'gnap_grants', 9_999, named)
    const { status, body } = await stranger(manage).grant(['read'], APPROVAL)
    assert.deepEqual([status, body.error.code], [429, 'too_many_attempts'])
    assert.match(body.error.description, /too many requests are waiting for approval/)
    await served(manage)
    assert.equal((await first.withdraw(waits)).status, 204)
    // Undecided requests are forgotten, and then there is room.
    const store = await openAt(t, manage.storeUrl)
    while ((await store.gnapGrants.forget(Date.now() + 3_600_001, 5_000)) > 0);
    assert.equal((await stranger(manage).grant(['read'], APPROVAL)).status, 200)
  })

  test(`${kind}: a key has ten thousand tokens of GNAP, and another one has its own`, async (t) => {
    const manage = await managing(t, kind)
    const [one, other] = [await trusted(manage), await trusted(manage)]
    const { access_token } = (await one.grant(['read'])).body
    await more(manage, 'gnap_tokens', 9_999, (number) => ({ hash: `h${number}`, manage_hash: `m${number}` }))
    const { status, body } = await one.grant(['read'])
    assert.deepEqual([status, body.error.code], [429, 'too_many_attempts'])
    assert.match(body.error.description, /already has too many tokens/)
    assert.equal((await one.ask('GET', '/v1/agents', access_token)).status, 200)
    assert.equal((await other.grant(['read'])).status, 200)
    // Making room for itself is what it can do.
    assert.equal((await one.revoke(access_token)).status, 204)
  })

  test(`${kind}: ten thousand clients come by themselves; those of administrators come all the same`, async (t) => {
    const oauth = { accessTokenTtlS: 600, keyRotationMs: 86_400_000, registrationToken: null }
    const manage = await managing(t, kind, { oauth: { ...oauth, registration: 'open' } })
    const register = () => manage.ask('POST', '/oauth/register', REGISTRATION, { authorization: '' })
    assert.equal((await register()).status, 201)
    await more(manage, 'oauth_clients', 9_998)
    const atOnce = await Promise.all(Array.from({ length: 5 }, register))
    assert.deepEqual(atOnce.map(({ status }) => status).sort(), [201, 403, 403, 403, 403])
    const { status, body } = await register()
    assert.deepEqual([status, body.error], [403, 'access_denied'])
    assert.match(body.error_description, /too many self-registered clients/)
    const token = await tokenFor(manage, await clientFor(manage, {}))
    const { status: asked } = await manage.ask('GET', '/v1/agents', undefined, bearer(token))
    assert.equal(asked, 200)
  })

  test(`${kind}: a principal has a hundred open tasks, at whichever door, and others have theirs`, async (t) => {
    const manage = await managing(t, kind)
    const who = bearer(await manage.key({ name: 'one', scopes: ['detect', 'mcp'] }))
    const create = (headers: Record<string, string>) =>
      manage.ask('POST', '/v1/tasks/create', LONG_TASK, headers)
    assert.equal((await create(who)).status, 200)
    await more(manage, 'tasks', 100, () => UNDER_WAY)
    const { status, body, headers } = await create(who)
    assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'rate_limited', '10'])
    assert.match(body.detail, /too many open tasks \(at most 100\)/)
    const call = { data: { tool: 'create_task', arguments: LONG_TASK } }
    const params = { message: { messageId: 'm', role: 'ROLE_USER', parts: [call] } }
    const { body: answered } = await a2a(manage, who, 'SendMessage', params)
    assert.match(JSON.stringify(answered), /too many open tasks \(at most 100\)/)
    const other = bearer(await manage.key({ name: 'other', scopes: ['detect'] }))
    assert.equal((await create(other)).status, 200)
  })
}

for (const kind of KINDS)
  test(`${kind}: of many at once no more get in beyond a limit than there are at once`, async (t) => {
    const oauth = { accessTokenTtlS: 600, keyRotationMs: 86_400_000, registrationToken: null }
    const manage = await managing(t, kind, { oauth: { ...oauth, registration: 'open' } })
    const who = bearer(await manage.key({ name: 'one', scopes: ['detect'] }))
    const client = stranger(manage)
    const one = await trusted(manage)
    const doors: Record<string, () => Promise<{ readonly status: number }>> = {
      tasks: () => manage.ask('POST', '/v1/tasks/create', LONG_TASK, who),
      grants: () => client.grant(['read'], APPROVAL),
      tokens: () => one.grant(['read']),
      clients: () => manage.ask('POST', '/oauth/register', REGISTRATION, { authorization: '' }),
    }
    for (const ask of Object.values(doors)) assert.ok((await ask()).status < 300)
    await more(manage, 'tasks', 98, () => UNDER_WAY)
    await more(manage, 'gnap_grants', 9_998, (number) => ({
      interact_hash: `i${number}`,
      continue_hash: `c${number}`,
    }))
    await more(manage, 'gnap_tokens', 9_998, (number) => ({ hash: `h${number}`, manage_hash: `m${number}` }))
    await more(manage, 'oauth_clients', 9_998)
    for (const [name, ask] of Object.entries(doors)) {
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, ask))
      const taken = answers.filter(({ status }) => status < 300).length
      t.comment(`${name}: ${taken} of ${AT_ONCE}, where there was room for one`)
      // Tasks come to their end meanwhile: test/store/tasks has them counted.
      if (name !== 'tasks') assert.ok((await ask()).status >= 400, name)
    }
  })

test('a task has five places that are told of it; one of them can be another, and other tasks have theirs', async (t) => {
  const manage = await managing(t, 'sqlite', { allowPrivateWebhooks: true })
  const who = bearer(await manage.key({ scopes: ['detect', 'mcp'] }))
  const taskId = async () => (await manage.ask('POST', '/v1/tasks/create', TASK, who)).body.task_id
  const [one, other] = [await taskId(), await taskId()]
  const put = async (id: string, number: number) => {
    const params = { ...PUSH, taskId: id, id: `c${number}` }
    return (await a2a(manage, who, 'CreateTaskPushNotificationConfig', params)).body
  }
  for (let number = 0; number < 5; number++) assert.ok((await put(one, number)).result, `${number}`)
  for (let number = 5; number < 50; number++)
    assert.match((await put(one, number)).error.message, /at most 5 push notification configurations/)
  assert.ok((await put(one, 0)).result)
  assert.ok((await put(other, 0)).result)
})

test('of keys for idempotency as many are kept as requests of a plan, and for a day', async (t) => {
  const manage = await managing(t, 'sqlite', { rateLimits: { standardPerHour: 50 } })
  const key = async () => bearer(await manage.key({ scopes: ['detect'], plan: 'standard' }))
  const [one, other] = [await key(), await key()]
  const ask = (who: Record<string, string>, number: number) =>
    manage.ask('POST', '/v1/tasks/create', TASK, { ...who, 'idempotency-key': hex(number, 40) })
  const statuses: number[] = []
  for (let number = 0; number < 80; number++) statuses.push((await ask(one, number)).status)
  assert.equal(statuses.filter((status) => status === 200).length, 50)
  assert.equal(statuses.filter((status) => status === 429).length, 30)
  // A refused request leaves nothing, and an invalid one gets an error.
  assert.equal((await ask(bearer(await manage.key({ scopes: ['read'] })), 100)).status, 403)
  assert.equal((await ask({ authorization: 'Bearer x' }, 101)).status, 401)
  assert.equal((await ask(other, 102)).status, 200)
  const long = await manage.ask('POST', '/v1/tasks/create', TASK, {
    ...other,
    'idempotency-key': hex(1, 64).repeat(4),
  })
  assert.equal(long.body.errors?.[0]?.pointer, '/Idempotency-Key')
  const store = await openAt(t, manage.storeUrl)
  assert.equal(await store.idempotency.forget(Date.now(), 1_000), 0)
  assert.equal(await store.idempotency.forget(Date.now() + 86_400_001, 1_000), 51)
})

test('ids of MCP sessions that callers make up are ids of nothing, and leave nothing behind', async (t) => {
  const manage = await managing(t, 'sqlite')
  const key = await manage.key({ scopes: ['mcp', 'read'] })
  const before = await tablesOf(manage.storeUrl)
  for (let number = 0; number < 200; number++) {
    const session = { 'mcp-session-id': hex(number, 32), 'last-event-id': `${number}` }
    const message = number % 2 === 0 ? legacy('tools/list', {}, number) : modern('tools/list', {}, number)
    const { status, headers } = await sent(manage.url, key, message, session)
    assert.deepEqual([status, headers.get('mcp-session-id')], [200, null])
  }
  assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
})

test('a tarpit holds as many as its rule says; the others are refused at once, and who is welcome is served', async (t) => {
  const app = await startHolder(t)
  const rule = {
    ...{ name: 'slow', when: { path: '/slow' } },
    action: { tarpit: { delay: '5m', connections_max: 20 } },
  }
  const { context, plain } = await startGate(t, {
    ...{ upstreams: [settingsFor([app.url])], policy: { rules: [rule] } },
  })
  const ask = (path: string) => {
    const socket = net.connect(plain.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`)
    return socket
  }
  const sockets = Array.from({ length: 120 }, () => ask('/slow'))
  const refused = sockets.map(async (socket) => String((await once(socket, 'data'))[0]).slice(9, 12))
  let heard = 0
  for (const answer of refused)
    answer.then(
      (status) => {
        assert.equal(status, '403')
        heard++
      },
      () => undefined,
    )
  while (heard < 100) await wait(5)
  assert.equal(context.tarpit.held, 20)
  assert.match(String((await once(ask('/'), 'data'))[0]), /^HTTP\/1\.1 200/)
  for (const socket of sockets) socket.destroy()
  while (context.tarpit.held > 0) await wait(5)
  assert.equal(heard, 100)
})

for (const kind of KINDS)
  test(`${kind}: of what a deaf webhook is to be told no more waits than there are events; another is told all`, async (t) => {
    const store = await openFresh(kind, t)
    const receiver = await HookReceiver.start(t)
    const site = await WebhookSite.start(t, store, { retryBaseMs: 60_000 })
    const deaf = await site.webhook('http://127.0.0.1:9/')
    const heard = await site.webhook(receiver.url)
    for (let round = 0; round < 4; round++) await site.add(...Array.from({ length: 100 }, () => event()))
    await receiver.has(400)
    const waiting = async () =>
      (await site.deliveries(deaf.id)).filter(({ status }) => status === 'pending').length
    await site.until(heard.id, (all) => all.every(({ status }) => status !== 'pending'))
    while ((await store.events.forget(0, 50, 1_000)) > 0);
    assert.ok((await waiting()) <= 50, `${await waiting()} wait`)
  })

async function managing(t: Owner, kind: DatabaseKind, options: TestOptions = {}): Promise<TestManagement> {
  return TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t), ...options })
}

/** So many rows like the newest one that is there, each with an id of its own. */
async function more(
  { storeUrl }: TestManagement,
  table: 'gnap_grants' | 'gnap_tokens' | 'oauth_clients' | 'tasks',
  count: number,
  others: (number: number) => object = () => ({}),
): Promise<void> {
  const { db, close } = await openDatabase(storeUrl, null, async () => undefined)
  const row = await db
    .selectFrom(table as 'tasks')
    .selectAll()
    .executeTakeFirstOrThrow()
  for (let at = 0; at < count; at += 500) {
    const numbers = Array.from({ length: Math.min(500, count - at) }, (_, index) => at + index)
    const rows = numbers.map((number) => ({ ...row, id: `made_up_${number}`, ...others(number) }))
    await db
      .insertInto(table as 'tasks')
      .values(rows)
      .execute()
  }
  await close()
}

function stranger({ url }: TestManagement): GnapClient {
  return new GnapClient(url, newSigner())
}

/** With read and detect. */
async function trusted(manage: TestManagement): Promise<GnapClient> {
  const client = stranger(manage)
  const store = await Store.open(manage.storeUrl)
  await store.trust.add({
    ...{ id: `trs_${client.thumbprint.slice(0, 12)}`, kind: 'key', subject: client.thumbprint, name: null },
    ...{ apps: '*', scopes: ['read', 'detect'], plan: 'standard', document: null, createdAtMs: 0 },
  })
  await store.close()
  return client
}

/** The other records, by each way to get in. */
async function served(manage: TestManagement): Promise<void> {
  const client = await trusted(manage)
  const { status, body } = await client.grant(['read'])
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal((await client.ask('GET', '/v1/agents', body.access_token)).status, 200)
  const token = await tokenFor(manage, await clientFor(manage, {}))
  for (const known of [token, await manage.key({ scopes: ['read'] })])
    assert.equal((await manage.ask('GET', '/v1/agents', undefined, bearer(known))).status, 200)
}

function a2a(manage: TestManagement, who: Record<string, string>, method: string, params: object) {
  const message = { jsonrpc: '2.0', id: 1, method, params }
  return manage.ask('POST', '/a2a', message, { ...who, 'a2a-version': '1.0' })
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}
