import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'tap'
import { METHODS } from '../../src/manage/a2a/methods.ts'
import { TOOLS, VERSIONS } from '../../src/manage/api/operations.ts'
import { jsonSchemaOf } from '../../src/manage/api/tools.ts'
import { newSigner } from '../identity/signer.ts'
import { type Continue, GnapClient, type Token } from '../manage/gnap-client.ts'
import { legacy, listening, modern, sent } from '../manage/mcp-client.ts'
import { KINDS, openAt } from '../store/databases.ts'
import type { Answered } from '../manage/management.ts'
import { FormBrowser } from '../manage/form-browser.ts'
import { clientFor, tokenFor } from '../manage/oauth-client.ts'
import { bodyFor, changedIn, Estate, tablesOf } from './management-estate.ts'
import { shareOf } from './whole.ts'

/** Shared records, which every reader may read. All others that a path names have an owner, or need an administrator. */
const EVERYBODYS = new Set([
  ...[
    '/apps/{app_id}',
    '/campaigns/{id}',
    '/agents/{agent_id}',
    '/requests/{id}',
    '/events/{id}',
    '/cases/{id}',
  ],
])
const NAMED = VERSIONS.flatMap(({ prefix, operations }) =>
  operations
    .filter(({ path }) => path.includes('{'))
    .map((operation) => ({ prefix, operation, name: `${operation.method} ${prefix}${operation.path}` })),
)
/** What may be said of what one has seen. */
const CONDITIONS: readonly Record<string, string>[] = [{}, { 'if-match': '*' }, { 'if-none-match': '*' }]
const APPROVAL = { interact: { start: ['redirect'] } }
/** Like an id of ours, and none. */
const ABSENT = 'zzz_AAAAAAAAAAAAAAAA'

for (const kind of KINDS)
  test(`${kind}: records of another look missing, and stay unchanged`, async (t) => {
    const estate = await Estate.start(t, kind)
    const { manage } = estate
    const scopes = ['read', 'detect', 'write', 'mcp'] as const
    const client = await clientFor(manage, { scopes: [...scopes] })
    const strangers = {
      'a key': `Bearer ${await manage.key({ scopes })}`,
      'a token': `Bearer ${await tokenFor(manage, client)}`,
    }
    const before = await tablesOf(manage.storeUrl)
    let turn = 0
    for (const [who, authorization] of Object.entries(strangers))
      for (const { prefix, operation, name } of NAMED) {
        if (EVERYBODYS.has(operation.path.replace(/\}.*$/, '}'))) continue
        const there = estate.pathFor(operation, prefix)
        const own = estate.nameFor(operation)
        const absent = prefix + operation.path.replace(/\{\w+\}/, ABSENT)
        for (const more of shareOf(CONDITIONS, 3, turn++)) {
          const ask = (path: string) =>
            manage.ask(operation.method, path, bodyFor(operation) ?? undefined, { authorization, ...more })
          const [found, missed] = [await ask(there), await ask(absent)]
          assert.ok(found.status === 403 || found.status === 404, `${name} with ${who}: ${found.status}`)
          assert.deepEqual(told(found, own), told(missed, ABSENT), `${name} with ${who}`)
        }
      }
    assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
    assert.deepEqual(manage.failures, [])
  })

test('a task of another is not there for A2A, whatever is asked of it, and not for tools', async (t) => {
  const estate = await Estate.start(t, 'sqlite')
  const { manage } = estate
  const own = estate.nameFor(VERSIONS[0]!.operations.find(({ id }) => id === 'getTask')!)
  const push = { url: 'https://hooks.example/x', token: 'x' }
  const config = (taskId: string) => ({ ...push, taskId, id: 'x' })
  const who = { authorization: `Bearer ${await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })}` }
  const before = await tablesOf(manage.storeUrl)
  const rpc = (method: string, params: object) =>
    manage.ask('POST', '/a2a', { jsonrpc: '2.0', id: 1, method, params }, { ...who, 'a2a-version': '1.0' })
  for (const method of Object.keys(METHODS)) {
    const asked = (id: string) =>
      method.startsWith('Send')
        ? rpc(method, { message: { messageId: 'm', role: 'ROLE_USER', taskId: id, parts: [{ text: 'x' }] } })
        : rpc(method, method.includes('Push') ? config(id) : { id })
    if (method === 'ListTasks' || method === 'GetExtendedAgentCard') continue
    const [found, missed] = [await asked(own), await asked(ABSENT)]
    assert.ok(found.body.error !== undefined, `${method}: ${JSON.stringify(found.body)}`)
    assert.deepEqual(told(found, own), told(missed, ABSENT), method)
  }
  for (const params of [{}, { contextId: own }, { includeArtifacts: true, pageSize: 100 }]) {
    const { body } = await rpc('ListTasks', params)
    assert.deepEqual([body.result.tasks, body.result.totalSize], [[], 0])
  }
  let tried = 0
  for (const { name, input } of TOOLS.list) {
    const { properties = {} } = jsonSchemaOf(input, 'input') as { properties?: object }
    const member = Object.keys(properties).find((each) => each === 'task_id')
    if (member === undefined) continue
    tried++
    const asked = (id: string) =>
      manage.ask('POST', '/v1/execute', { tool: name, arguments: { [member]: id } }, who)
    const [found, missed] = [await asked(own), await asked(ABSENT)]
    assert.match(JSON.stringify(found.body), /not_found/, name)
    assert.deepEqual(told(found, own), told(missed, ABSENT), name)
  }
  assert.ok(tried > 0)
  assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
})

test('over HTTP+JSON too, a task of another and its events look missing', async (t) => {
  const estate = await Estate.start(t, 'sqlite')
  const { manage } = estate
  const own = estate.nameFor(VERSIONS[0]!.operations.find(({ id }) => id === 'getTask')!)
  const config = { url: 'https://hooks.example/x', token: 'x', id: 'theirs' }
  const configs = (id: string) => `/tasks/${id}/pushNotificationConfigs`
  const asWho = async (path: string, method: string, authorization: string, body?: object) =>
    manage.ask(method, `/a2a/v1${path}`, body, { authorization, 'a2a-version': '1.0' })
  const owner = `Bearer ${estate.key}`
  assert.equal((await asWho(configs(own), 'POST', owner, config)).status, 201)
  const stranger = `Bearer ${await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })}`
  const before = await tablesOf(manage.storeUrl)
  const tried: readonly (readonly [method: string, path: (id: string) => string, body?: object])[] = [
    ['GET', (id) => `/tasks/${id}`],
    ['POST', (id) => `/tasks/${id}:cancel`],
    ['POST', (id) => `/tasks/${id}:subscribe`],
    ['GET', configs],
    ['POST', configs, config],
    ['POST', configs, { ...config, id: 'mine' }],
    ['GET', (id) => `${configs(id)}/theirs`],
    ['DELETE', (id) => `${configs(id)}/theirs`],
  ]
  for (const [method, path, body] of tried) {
    const [found, missed] = [own, ABSENT].map((id) => asWho(path(id), method, stranger, body))
    assert.equal((await found!).status, 404, `${method} ${path(own)}`)
    assert.deepEqual(told(await found!, own), told(await missed!, ABSENT), `${method} ${path(own)}`)
  }
  // The owner's notification may be sent meanwhile, which its row records.
  const changed = changedIn(before, await tablesOf(manage.storeUrl))
  assert.deepEqual(
    changed.filter((table) => table !== 'task_callbacks'),
    [],
  )
  const { body } = await asWho(configs(own), 'GET', owner)
  assert.deepEqual(
    body.configs.map((each: { id: string; url: string }) => [each.id, each.url]),
    [['theirs', config.url]],
  )
})

test('the grants and tokens of GNAP are useless to others, and look missing', async (t) => {
  const estate = await Estate.start(t, 'sqlite', { gnap: { tokenTtlS: 600, allowsBearer: true } })
  const { manage } = estate
  const [owner, waiting, other, another] = [newClient(), newClient(), newClient(), newClient()]
  const store = await openAt(t, manage.storeUrl)
  for (const { thumbprint } of [owner, other])
    await store.trust.add({
      ...{ id: `trs_${thumbprint.slice(0, 12)}`, kind: 'key', subject: thumbprint, name: null },
      ...{ apps: '*', scopes: ['read'], plan: 'standard', document: null, createdAtMs: 0 },
    })
  const token: Token = (await owner.grant(['read'])).body.access_token
  const grant: Continue = (await waiting.grant(['read'], APPROVAL)).body.continue
  // Both of its own, with which it asks for what is another's.
  const theirs: Token = (await other.grant(['read'])).body.access_token
  const mine: Continue = (await another.grant(['read'], APPROVAL)).body.continue
  const managed = (id: string) => ({
    ...theirs,
    manage: { ...theirs.manage, uri: `${manage.url}/gnap/token/${id}` },
  })
  const continued = (id: string) => ({ ...mine, uri: `${manage.url}/gnap/continue/${id}` })
  const [tokenId, grantId] = [token.manage.uri, grant.uri].map((uri) => uri.split('/').at(-1)!)
  const before = await tablesOf(manage.storeUrl)
  const tried: Readonly<Record<string, readonly [own: string, ask: (id: string) => Promise<Answered>]>> = {
    rotate: [tokenId!, (id) => other.rotate(managed(id))],
    revoke: [tokenId!, (id) => other.revoke(managed(id))],
    continue: [grantId!, (id) => another.continue(continued(id))],
    'continue with a reference': [grantId!, (id) => another.continue(continued(id), 'x')],
    withdraw: [grantId!, (id) => another.withdraw(continued(id))],
    'decide on': [grantId!, (id) => other.ask('POST', `/v1/grants/${id}`, theirs, { decision: 'approve' })],
  }
  for (const [name, [own, ask]] of Object.entries(tried)) {
    const [found, missed] = [await ask(own), await ask(ABSENT)]
    assert.ok(found.status >= 400 && found.status < 500, `${name}: ${found.status}`)
    assert.deepEqual(told(found, own), told(missed, ABSENT), name)
  }
  // With the very token: it is bound to a key.
  assert.equal((await other.ask('GET', '/v1/agents', token)).status, 401)
  assert.equal((await other.rotate(token)).status, 401)
  assert.equal((await other.revoke(token)).status, 401)
  assert.equal((await other.continue(grant)).status, 401)
  assert.equal((await other.withdraw(grant)).status, 401)
  const asBearer = { authorization: `Bearer ${token.value}` }
  assert.equal((await manage.ask('GET', '/v1/agents', undefined, asBearer)).status, 401)
  assert.deepEqual(
    changedIn(before, await tablesOf(manage.storeUrl)).filter((table) => /^gnap/.test(table)),
    [],
  )
  assert.equal((await owner.ask('GET', '/v1/agents', token)).status, 200)
  assert.equal((await waiting.withdraw(grant)).status, 204)
  assert.deepEqual(manage.failures, [])

  function newClient(): GnapClient {
    return new GnapClient(manage.url, newSigner())
  }
})

test('a stream of MCP belongs to its opener: others cannot end it, resume it, or see that it exists', async (t) => {
  const { manage, key } = await Estate.start(t, 'sqlite')
  const stranger = await manage.key({ scopes: ['mcp', 'read'] })
  const open = await listening(manage.url, key)
  t.teardown(() => open.destroy())
  const said = async (id: unknown, method: string, headers: Record<string, string>) => {
    const answered = await manage.ask(method, '/mcp', undefined, {
      ...{ authorization: `Bearer ${stranger}`, accept: 'text/event-stream', 'mcp-session-id': String(id) },
      ...headers,
    })
    return told(answered, String(id))
  }
  // The listener has the id 1; 77 does not exist.
  for (const method of ['GET', 'DELETE'])
    for (const name of ['last-event-id', 'mcp-session-id'])
      assert.deepEqual(await said(1, method, { [name]: '1' }), await said(77, method, { [name]: '77' }))
  for (const [method, params] of [
    ['notifications/cancelled', (id: number) => ({ requestId: id })],
    ['subscriptions/unlisten', (id: number) => ({ subscriptionId: id })],
    ['resources/unsubscribe', (id: number) => ({ uri: `gatehouse://agents/${id}` })],
    ['resources/subscribe', (id: number) => ({ uri: `gatehouse://tasks/${id}` })],
    ['tasks/get', (id: number) => ({ taskId: String(id) })],
    ['tasks/cancel', (id: number) => ({ taskId: String(id) })],
    ['tasks/result', (id: number) => ({ taskId: String(id) })],
  ] as const)
    for (const form of [modern, legacy]) {
      const [found, missed] = [1, 77].map((id) => {
        const name: Record<string, string> = method.startsWith('tasks/') ? { 'mcp-name': String(id) } : {}
        return sent(manage.url, stranger, form(method, params(id), 5), name)
      })
      assert.deepEqual(told(await found!, '1'), told(await missed!, '77'), method)
    }
  const heard = once(open, 'data')
  await manage.publish({ rules: [{ name: 'another', when: {}, action: 'tag' }] })
  assert.match(String((await heard)[0]), /resources\/list_changed/)
  assert.deepEqual(manage.failures, [])
})

test('an Idempotency-Key and an entity tag are useless to other principals', async (t) => {
  const estate = await Estate.start(t, 'sqlite')
  const { manage } = estate
  const admin = async () => ({ authorization: `Bearer ${await manage.key({ scopes: ['admin'] })}` })
  const [one, other] = [await admin(), await admin()]
  for (const { id, method, path, isIdempotent, ...rest } of VERSIONS[0]!.operations) {
    if (!isIdempotent) continue
    const operation = { id, method, path, isIdempotent, ...rest }
    const ask = (who: Record<string, string>) =>
      manage.ask(method, estate.pathFor(operation), bodyFor(operation) ?? undefined, {
        ...who,
        'idempotency-key': id,
      })
    const [first, again, others] = [await ask(one), await ask(one), await ask(other)]
    assert.deepEqual(again.body, first.body, id)
    assert.equal(again.headers.get('idempotency-replayed'), 'true', id)
    assert.equal(others.headers.get('idempotency-replayed'), null, id)
    for (const member of ['key', 'client_secret', 'secret', 'callback_secret'])
      if (first.body[member] !== undefined) assert.notEqual(others.body[member], first.body[member], id)
  }
  const stranger = { authorization: `Bearer ${await manage.key({ scopes: ['read'] })}` }
  for (const operation of VERSIONS.flatMap(({ operations }) => operations)) {
    if (operation.method !== 'GET' || operation.scopes.includes('read')) continue
    const path = estate.pathFor(operation)
    const { headers } = await manage.ask('GET', path, undefined, { accept: 'application/json' })
    const tag = headers.get('etag')
    if (tag === null) continue
    assert.match(headers.get('cache-control')!, /private|no-store/, path)
    for (const known of [tag, '*', `"x", ${tag}`]) {
      const { status } = await manage.ask('GET', path, undefined, { ...stranger, 'if-none-match': known })
      assert.equal(status, 403, path)
    }
  }
})

test('a session of a browser opens no operation: only what a page of ours asks for', async (t) => {
  const { manage } = await Estate.start(t, 'sqlite')
  const user = { email: 'anna@example.com', password: 'a phrase of words', scopes: ['admin'] }
  await manage.ask('POST', '/v1/users', user)
  const browser = new FormBrowser(manage.url)
  await browser.open(`${manage.url}/account`)
  await browser.submit('sign-in', { email: user.email, password: user.password })
  assert.match(browser.page!.text, /anna@example\.com/)
  const cookie = browser.cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  for (const { prefix, operations } of VERSIONS)
    for (const { method, path } of operations) {
      const url = manage.url + prefix + path.replaceAll(/[{}]/g, '')
      const { status } = await fetch(url, { method, headers: { cookie, 'sec-fetch-site': 'cross-site' } })
      assert.equal(status, 401, `${method} ${path}`)
    }
})

/** Everything that distinguishes two answers, except the requested name. */
function told({ status, headers, body }: Answered, name: string): unknown {
  const kept = ['content-type', 'cache-control', 'etag', 'www-authenticate', 'allow', 'link', 'location']
  const text = JSON.stringify({ ...body, duration_ms: null })
    .replaceAll(/"request_id":"[^"]*"/g, '')
    .replaceAll(`/${name}`, '/NAME')
    .replaceAll(`"${name}"`, '"NAME"')
    .replaceAll(`\\"${name}\\"`, '\\"NAME\\"')
  return [status, text, kept.map((each) => headers.get(each))]
}
