import assert from 'node:assert/strict'

import fc from 'fast-check'
import * as openid from 'openid-client'
import { test } from 'tap'
import { METHODS } from '../../src/manage/a2a/methods.ts'
import { type Answered, TestManagement } from './management.ts'
import { clientFor } from './oauth-client.ts'

const V1 = { 'a2a-version': '1.0' }
const SCOPES = ['read', 'detect', 'mcp'] as const
const SEND = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'GPTBot/1.2' }] } }

test('what is no call, or none that there is, is said so', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const call = (more: object) => ({ jsonrpc: '2.0', id: 7, method: 'SendMessage', params: SEND, ...more })
  const deep = JSON.parse(`${'{"a":'.repeat(80)}1${'}'.repeat(80)}`) as object
  for (const [body, status, code, id] of [
    ['{"jsonrpc":', 400, -32700, null],
    [JSON.stringify(call({ params: { ...SEND, metadata: deep } })), 400, -32700, null],
    ['{"__proto__": {"a": 1}}', 400, -32700, null],
    ['[]', 400, -32600, null],
    [JSON.stringify([call({})]), 400, -32600, null],
    ['"SendMessage"', 400, -32600, null],
    ['null', 400, -32600, null],
    [JSON.stringify(call({ jsonrpc: '1.0' })), 400, -32600, null],
    [JSON.stringify(call({ id: 1.5 })), 400, -32600, null],
    [JSON.stringify(call({ id: {} })), 400, -32600, null],
    [JSON.stringify(call({ method: 7 })), 400, -32600, null],
    [JSON.stringify(call({ params: [SEND] })), 400, -32600, null],
    [JSON.stringify(call({ method: 'SendMesage' })), 200, -32601, 7],
    [JSON.stringify(call({ method: 'message/send' })), 200, -32601, 7],
    [JSON.stringify(call({ method: 'constructor' })), 200, -32601, 7],
    [JSON.stringify(call({ method: '__proto__' })), 200, -32601, 7],
    [JSON.stringify(call({ method: 'x'.repeat(100_000) })), 200, -32601, 7],
    [JSON.stringify(call({ params: undefined })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'GetTask', params: { id: 7 } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'GetTask', params: { id: '' } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'GetTask', params: { id: 'a\0b' } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'GetTask', params: { id: 'x'.repeat(5_000) } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'GetTask', params: { id: "' or 1=1 --" } })), 200, -32001, 7],
    [JSON.stringify(call({ method: 'ListTasks', params: { pageSize: 101 } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'ListTasks', params: { pageSize: '5' } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'ListTasks', params: { status: 'WORKING' } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'ListTasks', params: { statusTimestampAfter: 'now' } })), 200, -32602, 7],
    [JSON.stringify(call({ method: 'ListTasks', params: { pageToken: 'x' } })), 200, -32602, 7],
  ] as const) {
    const answer = await raw(manage, '/a2a', body)
    const name = body.slice(0, 100)
    assert.deepEqual([answer.status, answer.body.error.code, answer.body.id], [status, code, id], name)
    assert.ok(Array.isArray(answer.body.error.data) && answer.body.error.data[0]['@type'], name)
    assert.equal(answer.body.jsonrpc, '2.0')
  }
  const near = await raw(manage, '/a2a', JSON.stringify(call({ method: 'SendMesage' })))
  assert.match(near.body.error.message, /did you mean "SendMessage"/)
  assert.deepEqual(manage.failures, [])
})

test('a message that cannot be used says where, and how', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const parts = (...some: readonly unknown[]) => ({ message: { ...SEND.message, parts: some } })
  const tool = (data: unknown) => parts({ data })
  for (const [params, field, reason = 'INVALID_PARAMS'] of [
    [{}, 'message'],
    [{ message: 'x' }, 'message'],
    [{ message: { ...SEND.message, messageId: '' } }, 'message.messageId'],
    [{ message: { ...SEND.message, role: 'ROLE_AGENT' } }, 'message.role'],
    [{ message: { ...SEND.message, contextId: 'a b' } }, 'message.contextId'],
    [{ message: { ...SEND.message, contextId: 7 } }, 'message.contextId'],
    [parts(), 'message.parts'],
    [parts('text'), 'message.parts[0]'],
    [parts({ text: 7 }), 'message.parts[0].text'],
    [parts({ text: '' }), 'message.parts[0].text'],
    [parts({ text: ' \n ' }), 'message.parts[0].text'],
    [parts({}), 'message.parts[0]'],
    [parts({ text: 'a', data: {} }), 'message.parts[0]'],
    [parts({ text: 'a' }, { text: 'b' }), 'message.parts[1]'],
    [parts({ data: { tool: 'get_stats' } }, { data: { tool: 'get_stats' } }), 'message.parts[1]'],
    [parts({ url: 'file:///etc/passwd' }), 'message.parts[0]', 'CONTENT_TYPE_NOT_SUPPORTED'],
    [parts({ raw: 'AAAA', mediaType: 'image/png' }), 'message.parts[0]', 'CONTENT_TYPE_NOT_SUPPORTED'],
    [parts({ text: 'a', mediaType: 'text/html' }), 'message.parts[0]', 'CONTENT_TYPE_NOT_SUPPORTED'],
    [
      { ...SEND, configuration: { acceptedOutputModes: ['image/png'] } },
      ...(['configuration.acceptedOutputModes', 'CONTENT_TYPE_NOT_SUPPORTED'] as const),
    ],
    [tool([1]), 'message.parts[0].data'],
    [tool('detect_agent'), 'message.parts[0].data'],
    [tool({ tool: 7 }), 'message.parts[0].data.tool'],
    [tool({ tool: 'detect_agents' }), 'message.parts[0].data.tool'],
    [tool({ tool: 'constructor' }), 'message.parts[0].data.tool'],
    [tool({ tool: 'get_stats', args: {} }), 'message.parts[0].data.args'],
    [tool({ tool: 'detect_agent', arguments: [] }), 'message.parts[0].data.arguments'],
    [tool({ tool: 'detect_agent', arguments: { ja4: 'x' } }), 'message.parts[0].data.arguments.ja4'],
    [
      tool({ tool: 'detect_agent', arguments: { user_agents: 'x' } }),
      'message.parts[0].data.arguments.user_agents',
    ],
    [tool({ tool: 'get_task', arguments: { task_id: 7 } }), 'message.parts[0].data.arguments.task_id'],
    [{ ...SEND, configuration: { returnImmediately: 'yes' } }, 'configuration.returnImmediately'],
    [{ ...SEND, configuration: { historyLength: -1 } }, 'configuration.historyLength'],
  ] as const) {
    const rest = await raw(manage, '/a2a/v1/message:send', JSON.stringify(params))
    const rpc = await raw(
      manage,
      '/a2a',
      JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'SendMessage', params }),
    )
    const name = JSON.stringify(params)
    const [info, bad] = rest.body.error.details
    assert.deepEqual([rest.status, info.reason, bad?.fieldViolations[0].field], [400, reason, field], name)
    assert.deepEqual(rpc.body.error.data, rest.body.error.details, name)
    assert.equal(rest.headers.get('content-type'), 'application/a2a+json')
  }
  const large = JSON.stringify(parts({ text: 'x'.repeat(9_000_000) }))
  for (const path of ['/a2a', '/a2a/v1/message:send']) {
    const answer = await raw(manage, path, large)
    assert.equal(answer.status, 413)
    assert.equal(answer.body.error.code, path === '/a2a' ? -32600 : 413)
  }
  const html = await raw(manage, '/a2a', '<html>', { 'content-type': 'text/html' })
  assert.deepEqual([html.status, html.body.error.code], [200, -32005])
  assert.deepEqual(manage.failures, [])
})

test('a version is needed, and may be said in the query; paths and verbs that are not there are said so', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  for (const [headers, query, isTaken] of [
    [{ 'a2a-version': '1.0' }, '', true],
    [{ 'a2a-version': '1.0.1' }, '', true],
    [{}, '?A2A-Version=1.0', true],
    [{}, '', false],
    [{ 'a2a-version': '' }, '', false],
    [{ 'a2a-version': '0.3' }, '', false],
    [{ 'a2a-version': '1.1' }, '', false],
    [{ 'a2a-version': '2.0' }, '', false],
    [{ 'a2a-version': 'x'.repeat(5000) }, '', false],
  ] as const) {
    const rest = await manage.ask('GET', `/a2a/v1/tasks${query}`, undefined, headers)
    const name = JSON.stringify([headers, query]).slice(0, 80)
    assert.equal(rest.status, isTaken ? 200 : 400, name)
    if (isTaken) continue
    const { reason, metadata } = rest.body.error.details[0]
    assert.deepEqual([reason, metadata.supportedVersions], ['VERSION_NOT_SUPPORTED', '1.0'])
    assert.match(rest.body.error.message, /send the header A2A-Version: 1\.0/)
    const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: SEND }
    const rpc = await manage.ask('POST', `/a2a${query}`, call, headers)
    assert.deepEqual([rpc.status, rpc.body.id, rpc.body.error.code], [200, 1, -32009])
  }
  for (const [method, path, status, allow] of [
    ['GET', '/a2a', 405, 'POST'],
    ['DELETE', '/a2a/v1/tasks', 405, 'GET'],
    ['GET', '/a2a/v1/message:send', 405, 'POST'],
    ['PUT', '/a2a/v1/tasks/x/pushNotificationConfigs', 405, 'POST, GET'],
    ['GET', '/a2a/v1/', 404, null],
    ['GET', '/a2a/v1/nothing', 404, null],
    ['GET', '/a2a/v1/tasks/a/b', 404, null],
    ['POST', '/a2a/v1/tasks/a:b', 404, null],
    ['GET', '/a2a/v1/tasks/%ff', 404, null],
    ['GET', '/a2a/v1/tasks/..%2f..%2fv1', 404, null],
    ['GET', '/a2a/v1/tasks?pageSize=x', 400, null],
    ['GET', '/a2a/v1/tasks?includeArtifacts=maybe', 400, null],
  ] as const) {
    const { status: said, headers, body } = await manage.ask(method, path, undefined, V1)
    assert.deepEqual([said, headers.get('allow')], [status, allow], path)
    assert.ok(body.error.message, path)
  }
  assert.equal((await manage.ask('GET', '/a2a/v2', undefined, V1)).body.code, 'not_found')
  assert.deepEqual(manage.failures, [])
})

test('who may not come in is told so in the form of the protocol, with the usual headers', async (t) => {
  const manage = await TestManagement.start(t, { knows: true, rateLimits: { standardPerHour: 2 } })
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: SEND }
  const both = async (headers: Record<string, string>) => ({
    rpc: await manage.ask('POST', '/a2a', call, { ...V1, ...headers }),
    rest: await manage.ask('POST', '/a2a/v1/message:send', SEND, { ...V1, ...headers }),
  })
  const bearer = async (wanted: object) => ({ authorization: `Bearer ${await manage.key(wanted)}` })
  const limited = await bearer({ scopes: [...SCOPES], plan: 'standard' })
  await both(limited)
  for (const [headers, status, name, challenge] of [
    [{ authorization: '' }, 401, 'UNAUTHENTICATED', /^Bearer realm="gatehouse", resource_metadata=/],
    [{ authorization: 'Bearer nonsense' }, 401, 'UNAUTHENTICATED', /error="invalid_token"/],
    [
      await bearer({ scopes: ['read', 'detect'] }),
      403,
      'PERMISSION_DENIED',
      /error="insufficient_scope", scope="mcp detect read", resource_metadata=/,
    ],
    [limited, 429, 'RESOURCE_EXHAUSTED', null],
  ] as const) {
    const { rpc, rest } = await both(headers)
    assert.deepEqual([rpc.status, rest.status, rest.body.error.status], [status, status, name])
    assert.deepEqual([rpc.body.jsonrpc, rpc.body.id, rpc.body.error.code], ['2.0', null, -32000])
    for (const { headers: said } of [rpc, rest])
      if (challenge === null) assert.match(said.get('retry-after') ?? '', /^\d+$/)
      else assert.match(said.get('www-authenticate') ?? '', challenge)
  }
  assert.equal((await both(await bearer({ scopes: ['mcp', 'detect'] }))).rest.status, 200)
  const needsMore = { message: { ...SEND.message, parts: [{ data: { tool: 'get_stats' } }] } }
  const without = { ...V1, ...(await bearer({ scopes: ['mcp', 'detect'] })) }
  const refused = await manage.ask('POST', '/a2a/v1/message:send', needsMore, without)
  assert.deepEqual([refused.status, refused.body.error.status], [403, 'PERMISSION_DENIED'])
  assert.deepEqual(manage.failures, [])
})

test('a token that is bound to a key is taken with a proof of it', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const { client_id, client_secret } = await clientFor(manage, { scopes: [...SCOPES] })
  const config = await openid.discovery(new URL(manage.url), client_id, client_secret, undefined, {
    algorithm: 'oauth2',
    execute: [openid.allowInsecureRequests],
  })
  const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
  const { access_token } = await openid.clientCredentialsGrant(config, {}, { DPoP })
  const url = new URL(`${manage.url}/a2a/v1/tasks`)
  const { status } = await openid.fetchProtectedResource(
    config,
    access_token,
    url,
    'GET',
    null,
    new Headers(V1),
    {
      DPoP,
    },
  )
  assert.equal(status, 200)
  const bare = { ...V1, authorization: `DPoP ${access_token}` }
  assert.equal((await manage.ask('GET', '/a2a/v1/tasks', undefined, bare)).status, 401)
})

test('the same id from many at once: each has its own answer', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => {
      const parts = [{ data: { tool: 'detect_agent', arguments: { user_agent: `agent${i}/1.0` } } }]
      const params = { message: { ...SEND.message, parts, contextId: `c${i}` } }
      return manage.ask('POST', '/a2a', { jsonrpc: '2.0', id: 'same', method: 'SendMessage', params }, V1)
    }),
  )
  for (const [i, { body }] of answers.entries())
    assert.deepEqual([body.id, body.result.message.contextId], ['same', `c${i}`])
  assert.equal(new Set(answers.map(({ body }) => body.result.message.messageId)).size, 60)
})

test('without a database, both bindings and the card say that it is away', async (t) => {
  const manage = await TestManagement.start(t, { storeUrl: 'sqlite:/dev/null/none.db', admin: null })
  const call = { jsonrpc: '2.0', id: 1, method: 'ListTasks' }
  const rpc = await manage.ask('POST', '/a2a', call, V1)
  assert.deepEqual([rpc.status, rpc.body.jsonrpc, rpc.body.error.code], [503, '2.0', -32000])
  for (const path of ['/a2a/v1/tasks', '/.well-known/agent-card.json']) {
    const rest = await manage.ask('GET', path, undefined, V1)
    assert.deepEqual([rest.status, rest.body.error.status], [503, 'UNAVAILABLE'], path)
    assert.equal(rest.headers.get('retry-after'), '5')
  }
})

test('whatever is sent, it is no bug of ours', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const anything = fc.jsonValue({ maxDepth: 4 })
  const part = fc.record(
    { text: anything, data: anything, raw: anything, url: anything, mediaType: anything, metadata: anything },
    { requiredKeys: [] },
  )
  const message = fc.record(
    {
      messageId: fc.oneof(fc.constant('m'), anything),
      role: fc.oneof(fc.constant('ROLE_USER'), anything),
      parts: fc.oneof(fc.array(part, { maxLength: 3 }), anything),
      contextId: anything,
      taskId: anything,
    },
    { requiredKeys: ['messageId', 'role', 'parts'] },
  )
  const params = fc.oneof(
    anything,
    fc.record({ message, configuration: anything, metadata: anything }, { requiredKeys: ['message'] }),
    fc.record({ id: anything, taskId: anything, url: anything, token: anything, authentication: anything }),
    fc.record({ pageSize: anything, pageToken: anything, status: anything, contextId: anything }),
  )
  const method = fc.constantFrom(...Object.keys(METHODS), 'SubscribeToTasks')
  await fc.assert(
    fc.asyncProperty(method, params, async (name, given) => {
      const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: name, params: given })
      const response = await fetch(`${manage.url}/a2a`, {
        method: 'POST',
        headers: { ...V1, 'content-type': 'application/json', authorization: `Bearer ${manage.adminKey}` },
        body: call,
      })
      const text = await response.text()
      assert.ok(response.status < 500, `${call} ${text}`)
      assert.deepEqual(manage.failures, [], call)
    }),
    { numRuns: 400 },
  )
})

async function raw(
  { url, adminKey }: TestManagement,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { ...V1, 'content-type': 'application/json', authorization: `Bearer ${adminKey}`, ...headers },
    body,
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}
