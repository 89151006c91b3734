import assert from 'node:assert/strict'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { StreamableHTTPClientTransport, Client } from '@modelcontextprotocol/client'
import * as oauth from 'oauth4webapi'
import { test } from 'tap'
import { TestManagement } from './management.ts'
import { connected, headersFor, legacy, modern, sent } from './mcp-client.ts'
import { clientFor, tokenFor } from './oauth-client.ts'

const CALL = { name: 'list_agents', arguments: {} }

test('who is not known is told how to be, in the error of the protocol', async (t) => {
  const manage = await TestManagement.start(t)
  const metadata = `resource_metadata="${manage.url}/.well-known/oauth-protected-resource/mcp"`
  for (const message of [modern('tools/list'), legacy('tools/list')]) {
    const none = await sent(manage.url, '', message, { authorization: '' })
    assert.equal(none.status, 401)
    const { jsonrpc, id, error } = none.body
    assert.deepEqual([jsonrpc, id, error.code, error.data.code], ['2.0', null, -32000, 'missing_token'])
    const challenge = none.headers.get('www-authenticate') ?? ''
    assert.ok(challenge.startsWith('Bearer realm="gatehouse", ') && challenge.endsWith(metadata), challenge)
    const wrong = await sent(manage.url, 'x', message)
    assert.deepEqual([wrong.status, wrong.body.error.data.code], [401, 'invalid_token'])
    assert.match(wrong.headers.get('www-authenticate') ?? '', /error="invalid_token".*resource_metadata/)
    assert.equal(wrong.headers.get('ratelimit'), null)
  }
  const document = await manage.ask('GET', '/.well-known/oauth-protected-resource/mcp')
  assert.equal(document.body.resource, `${manage.url}/mcp`)
  // Whatever the method: who looks whether there is a stream to listen to is told the same.
  for (const method of ['GET', 'DELETE', 'PUT']) {
    assert.equal((await fetch(`${manage.url}/mcp`, { method })).status, 401)
    const known = await fetch(`${manage.url}/mcp`, { method, headers: headersFor(manage.adminKey, null) })
    assert.deepEqual([known.status, known.headers.get('allow')], [405, 'POST'])
  }
})

test('the scope mcp opens the endpoint, and each thing needs what it needs in the API', async (t) => {
  const manage = await TestManagement.start(t)
  const metadata = `resource_metadata="${manage.url}/.well-known/oauth-protected-resource/mcp"`
  const scopesIn = async (key: string, message: unknown) => {
    const { status, headers, body } = await sent(manage.url, key, message)
    if (status === 200) return null
    assert.deepEqual([status, body.error.data.code, body.id], [403, 'insufficient_scope', 1])
    const challenge = headers.get('www-authenticate') ?? ''
    assert.ok(challenge.includes('error="insufficient_scope"') && challenge.endsWith(metadata), challenge)
    assert.ok(headers.get('ratelimit'), 'it has been counted')
    return /scope="([^"]*)"/.exec(challenge)?.[1]
  }
  const outside = await manage.key({ name: 'a', scopes: ['read', 'detect', 'write'] })
  const refused = await sent(manage.url, outside, modern('tools/list'))
  assert.deepEqual([refused.status, refused.body.id], [403, 1])
  assert.match(refused.headers.get('www-authenticate') ?? '', /scope="mcp read detect write"/)
  const bare = await manage.key({ name: 'b', scopes: ['mcp'] })
  const reader = await manage.key({ name: 'c', scopes: ['mcp', 'read'] })
  for (const form of [modern, legacy]) {
    assert.equal(await scopesIn(bare, form('tools/list')), null)
    assert.equal(await scopesIn(bare, form('tools/call', CALL)), 'mcp read')
    assert.equal(
      await scopesIn(bare, form('tools/call', { name: 'nothing' })),
      null,
      'which is none to be kept from',
    )
    assert.equal(await scopesIn(bare, form('resources/read', { uri: 'gatehouse://agents' })), 'mcp read')
    assert.equal(await scopesIn(bare, form('resources/read', { uri: 'gatehouse://openapi' })), null)
    assert.equal(await scopesIn(reader, form('tools/call', CALL)), null)
    assert.equal(await scopesIn(reader, form('tools/call', { name: 'detect_agent' })), 'mcp detect read')
    assert.equal(
      await scopesIn(reader, form('resources/read', { uri: 'gatehouse://policy' })),
      'mcp admin read',
    )
    assert.equal(await scopesIn(manage.adminKey, form('resources/read', { uri: 'gatehouse://policy' })), null)
  }
  const listening = modern('subscriptions/listen', {
    notifications: { resourceSubscriptions: ['gatehouse://agents', 'gatehouse://policy'] },
  })
  assert.equal(await scopesIn(reader, listening), 'mcp read admin')
  // What may not be read is not listed.
  const seen = async (key: string) =>
    (await sent(manage.url, key, modern('resources/list'))).body.result.resources.map(
      ({ name }: { name: string }) => name,
    )
  assert.deepEqual(await seen(bare), ['openapi'])
  assert.deepEqual(await seen(reader), ['agents', 'signatures', 'statistics', 'openapi', 'apps'])
  assert.ok((await seen(manage.adminKey)).includes('policy'))
})

test('tokens of OAuth: for this endpoint, or for the API with the scope mcp; bound to a key, too', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, { scopes: ['read', 'detect', 'mcp'] })
  const tokens = [
    await tokenFor(manage, client, { resource: `${manage.url}/mcp`, scope: 'read mcp' }),
    await tokenFor(manage, client, { scope: 'read mcp' }),
  ]
  for (const token of tokens) {
    const mcp = await connected(t, manage.url, token)
    assert.equal((await mcp.callTool(CALL)).isError ?? false, false)
  }
  const narrow = await tokenFor(manage, client, { scope: 'read' })
  assert.equal((await sent(manage.url, narrow, modern('tools/list'))).status, 403)
  assert.equal((await manage.ask('GET', '/v1/agents', undefined, bearer(tokens[0]!))).status, 401)

  const keys = await oauth.generateKeyPair('ES256')
  const handle = oauth.DPoP({}, keys)
  const server = { issuer: manage.url, token_endpoint: `${manage.url}/oauth/token` }
  const insecure = { [oauth.allowInsecureRequests]: true }
  const asked = new URLSearchParams({ resource: `${manage.url}/mcp`, scope: 'read mcp' })
  const response = await oauth.clientCredentialsGrantRequest(
    server,
    { client_id: client.client_id },
    oauth.ClientSecretBasic(client.client_secret!),
    asked,
    { DPoP: handle, ...insecure },
  )
  const bound = await oauth.processClientCredentialsResponse(
    server,
    { client_id: client.client_id },
    response,
  )
  const proving = (url: URL | string, init?: RequestInit) =>
    oauth.protectedResourceRequest(
      bound.access_token,
      init?.method ?? 'GET',
      new URL(url),
      new Headers(init?.headers),
      (init?.body ?? null) as string | null,
      { DPoP: handle, ...insecure },
    )
  const dpop = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  t.teardown(() => dpop.close())
  await dpop.connect(new StreamableHTTPClientTransport(new URL(`${manage.url}/mcp`), { fetch: proving }))
  assert.equal((await dpop.callTool(CALL)).isError ?? false, false)
  const stolen = await sent(manage.url, bound.access_token, modern('tools/list'))
  assert.equal(stolen.status, 401)
  assert.match(stolen.headers.get('www-authenticate') ?? '', /^DPoP .*oauth-protected-resource\/mcp"/)
})

test('each request counts once, and the order of what is said is that of the API', async (t) => {
  const manage = await TestManagement.start(t, { rateLimits: { standardPerHour: 4 } })
  const key = await manage.key({ name: 'a', scopes: ['mcp', 'read'], plan: 'standard' })
  const left = async (message: unknown) => {
    const { status, headers } = await sent(manage.url, key, message)
    return [status, /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]]
  }
  assert.deepEqual(await left(modern('tools/call', CALL)), [200, '3'])
  assert.deepEqual(await left(legacy('tools/list')), [200, '2'])
  assert.deepEqual(await left(modern('resources/read', { uri: 'gatehouse://policy' })), [403, '1'])
  assert.deepEqual(await left('{'), [400, '0'])
  const over = await sent(manage.url, key, modern('resources/read', { uri: 'gatehouse://policy' }))
  assert.deepEqual([over.status, over.body.error.data.code, over.body.id], [429, 'rate_limited', null])
  assert.ok(Number(over.headers.get('retry-after')) > 0)
  assert.equal((await sent(manage.url, 'x', '{')).status, 401)
})

test('pages elsewhere may not ask, nor those that have their own name lead here', async (t) => {
  const publicUrl = 'https://gate.example.com'
  const origin = 'https://console.example'
  const manage = await TestManagement.start(t, { publicUrl, front: { corsOrigins: [origin] } })
  const { port } = new URL(manage.url)
  const asked = (headers: Record<string, string>) => withHeaders(manage, headers)
  for (const host of ['gate.example.com', 'gate.example.com:443', 'GATE.example.com', `localhost:${port}`])
    assert.equal((await asked({ host })).status, 200, host)
  for (const host of [`127.0.0.1:${port}`, `[::1]:${port}`, 'localhost'])
    assert.equal((await asked({ host })).status, 200, host)
  for (const host of [
    'evil.example',
    'gate.example.com.evil.example',
    '10.0.0.1',
    'x y',
    'a@localhost',
    '127.0.0.2',
  ]) {
    const { status, body } = await asked({ host })
    assert.deepEqual([status, body.error.data.code], [403, 'origin_not_allowed'], host)
    assert.match(body.error.message, /manage\.public_url/)
  }
  const host = `127.0.0.1:${port}`
  for (const from of [publicUrl, origin, `http://${host}`])
    assert.equal((await asked({ host, origin: from })).status, 200, from)
  for (const from of [
    'https://evil.example',
    'null',
    '',
    'https://console.example.evil.example',
    'http://localhost',
  ]) {
    const { status, body } = await asked({ host, origin: from })
    assert.deepEqual([status, body.error.data.code], [403, 'origin_not_allowed'], from)
  }
  // Before it is known who asks: a page is told nothing.
  assert.equal((await asked({ host: 'evil.example', authorization: 'Bearer x' })).status, 403)
  const preflight = await fetch(`${manage.url}/mcp`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  })
  assert.equal(preflight.status, 204)
  for (const name of ['MCP-Protocol-Version', 'Mcp-Session-Id', 'Mcp-Method', 'Mcp-Name'])
    assert.ok(preflight.headers.get('access-control-allow-headers')?.includes(name), name)
})

test('while there is no database it says so, in the error of the protocol', async (t) => {
  const manage = await TestManagement.start(t, { storeUrl: 'postgres://x@127.0.0.1:1/x', admin: null })
  const { status, headers, body } = await sent(manage.url, 'x', modern('tools/list'))
  assert.deepEqual([status, body.error.data.code, headers.get('retry-after')], [503, 'unavailable', '5'])
  assert.equal((await fetch(`${manage.url}/.well-known/mcp.json`)).status, 200)
})

test('what is asked is counted and logged as mcp, with who asked', async (t) => {
  const visits: unknown[][] = []
  const manage = await TestManagement.start(t, {
    answered: ({ operation, status, principal, problem }) =>
      visits.push([operation, status, principal, problem]),
  })
  await sent(manage.url, manage.adminKey, modern('tools/list'))
  await sent(manage.url, 'x', modern('tools/list'))
  for (let tries = 0; visits.length < 2 && tries < 50; tries++)
    await new Promise((done) => setTimeout(done, 10))
  const [[operation, status, principal, problem], wrong] = visits as [unknown[], unknown[]]
  assert.deepEqual([operation, status, problem], ['mcp', 200, null])
  assert.match(String(principal), /^key_/)
  assert.deepEqual(wrong, ['mcp', 401, null, 'invalid_token'])
})

function bearer(token: string) {
  return { authorization: `Bearer ${token}` }
}

/** fetch has its own mind about some headers. */
async function withHeaders(manage: TestManagement, headers: Record<string, string>) {
  const message = modern('tools/list')
  const given = { ...headersFor(manage.adminKey, message), ...headers }
  const asked = request(`${manage.url}/mcp`, { method: 'POST', headers: given })
  asked.end(JSON.stringify(message))
  const [answer] = await new Promise<[import('node:http').IncomingMessage]>((resolve, reject) =>
    asked.on('response', (response) => resolve([response])).on('error', reject),
  )
  return { status: answer.statusCode, body: JSON.parse(await text(answer)) }
}
