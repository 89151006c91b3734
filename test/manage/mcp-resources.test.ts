import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { PROTOCOL_VERSION } from '../../src/manage/mcp/offer.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'
import { connected, modern, sent } from './mcp-client.ts'

test('resources are what the API answers, part after part', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.fillCatalogue()
  const client = await connected(t, manage.url, manage.adminKey)
  // What there is one of, and every agent.
  const uris: string[] = []
  let parts = 0
  for (
    let cursor: string | undefined, isFirst = true;
    isFirst || cursor !== undefined;
    isFirst = false, parts++
  ) {
    const message = modern('resources/list', cursor === undefined ? {} : { cursor })
    const { result } = (await sent(manage.url, manage.adminKey, message)).body
    uris.push(...result.resources.map(({ uri }: { uri: string }) => uri))
    cursor = result.nextCursor
  }
  const { body } = await manage.ask('GET', '/v1/agents?limit=1')
  const agents = uris.filter((uri) => uri.startsWith('gatehouse://agents/'))
  assert.equal(agents.length, body.total)
  assert.ok(parts > 1)
  assert.equal(new Set(uris).size, uris.length)
  const read = async (uri: string) =>
    JSON.parse(((await client.readResource({ uri })).contents[0] as { text: string }).text)
  for (const [uri, path] of [
    ['gatehouse://agents', '/v2/agents'],
    ['gatehouse://agents?category=crawler&limit=2', '/v2/agents?category=crawler&limit=2'],
    ['gatehouse://agents?purpose=training&limit=2', '/v2/agents?purpose=training&limit=2'],
    ['gatehouse://agents/gptbot', '/v1/agents/gptbot'],
    ['gatehouse://agents/GPTBot', '/v1/agents/GPTBot'],
    ['gatehouse://signatures?type=ja4&limit=3', '/v2/signatures?type=ja4&limit=3'],
    ['gatehouse://policy', '/v1/policy'],
    ['gatehouse://openapi', '/v1/openapi.json'],
  ] as const)
    assert.deepEqual(await read(uri), (await manage.ask('GET', path)).body, uri)
  const first = await read('gatehouse://signatures?limit=1')
  const [{ type, fingerprint }] = first.signatures
  const looked = await manage.ask('GET', `/v1/fingerprint/lookup?${type}=${encodeURIComponent(fingerprint)}`)
  const found = await read(`gatehouse://signatures/${type}/${encodeURIComponent(fingerprint)}`)
  assert.deepEqual(found.signatures, looked.body)
  const next = await read(`gatehouse://signatures?limit=1&cursor=${first.next_cursor}`)
  assert.notDeepEqual(next.signatures, first.signatures)
})

test('apps and their policies are resources, for those who may see them', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
  await manage.ask('PUT', '/v1/apps/shop/policy', { otherwise: 'block' }, { 'if-match': '*' })
  const client = await connected(t, manage.url, manage.adminKey)
  const read = async (uri: string, from = client) =>
    JSON.parse(((await from.readResource({ uri })).contents[0] as { text: string }).text)
  for (const [uri, path] of [
    ['gatehouse://apps', '/v2/apps'],
    ['gatehouse://apps?limit=1', '/v2/apps?limit=1'],
    ['gatehouse://apps/shop/policy', '/v1/apps/shop/policy'],
    ['gatehouse://apps/default/policy', '/v1/apps/default/policy'],
  ] as const)
    assert.deepEqual(await read(uri), (await manage.ask('GET', path)).body, uri)
  for (const uri of ['gatehouse://apps/gone/policy', 'gatehouse://apps/shop/x', 'gatehouse://apps/shop'])
    await assert.rejects(client.readResource({ uri }), { code: -32602, data: { uri } }, uri)
  const team = await connected(t, manage.url, await manage.key({ apps: ['shop'] }))
  const { apps } = await read('gatehouse://apps', team)
  assert.deepEqual(
    apps.map(({ id }: { id: string }) => id),
    ['shop'],
  )
  assert.equal((await read('gatehouse://apps/shop/policy', team)).policy.otherwise, 'block')
  for (const app of ['blog', 'default', 'gone']) {
    const uri = `gatehouse://apps/${app}/policy`
    await assert.rejects(team.readResource({ uri }), { code: -32602, data: { uri } }, uri)
  }
  const ids = async (from: typeof client, value: string) => {
    const ref = { type: 'ref/resource' as const, uri: 'gatehouse://apps/{app_id}/policy' }
    return (await from.complete({ ref, argument: { name: 'app_id', value } })).completion.values
  }
  assert.deepEqual(await ids(client, ''), ['default', 'blog', 'shop'])
  assert.deepEqual(await ids(client, 'B'), ['blog'])
  assert.deepEqual(await ids(team, ''), ['shop'])
  const prompt = { name: 'write_policy_rule', arguments: { goal: 'calm', app: 'shop' } }
  const { messages } = await client.getPrompt(prompt)
  assert.match(JSON.stringify(messages), /gatehouse:\/\/apps\/shop\/policy/)
})

test('what is not there is said as the protocol has it, and what is wrong with a query', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await connected(t, manage.url, manage.adminKey)
  for (const uri of [
    ...[
      'gatehouse://agents/nobody-at-all',
      'gatehouse://nothing',
      'gatehouse://agents/',
      'gatehouse://agents/a/b',
    ],
    ...[
      'gatehouse://policy?x=1',
      'gatehouse://agents?q=1&q=2',
      'http://127.0.0.1/v1/keys',
      'file:///etc/passwd',
    ],
    ...['gatehouse://agents/%ff', 'gatehouse://signatures/ja4/t13d0000h1_000000000000_000000000000', 'x'],
  ])
    await assert.rejects(client.readResource({ uri }), { code: -32602, data: { uri } }, uri)
  for (const [uri, said] of [
    ['gatehouse://agents?colour=red', /colour/],
    ['gatehouse://agents?limit=5000', /limit/],
    ['gatehouse://agents?cursor=AAAA', /cursor/],
    ['gatehouse://signatures/ja5/abc', /ja5/],
    ['gatehouse://signatures/ja4/abc', /ja4/],
  ] as const)
    await assert.rejects(client.readResource({ uri }), { code: -32602, message: said }, uri)
  await assert.rejects(client.listResources({ cursor: 'AAAA' }), { code: -32602, message: /cursor/ })
  await assert.rejects(client.listTools({ cursor: 'AAAA' }), { code: -32602, message: /no cursor/ })
  await assert.rejects(client.getPrompt({ name: 'investigate' }), { code: -32602, message: /unknown prompt/ })
  await assert.rejects(
    client.getPrompt({ name: 'investigate_fingerprint', arguments: { fingerprint: 'x' } }),
    {
      code: -32602,
      message: /fingerprint/,
    },
  )
})

test('arguments are completed with what there is, and the caller may see', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.fillCatalogue()
  const client = await connected(t, manage.url, manage.adminKey)
  const values = async (uri: string, name: string, value: string, filled: Record<string, string> = {}) => {
    const asked = { ref: { type: 'ref/resource' as const, uri }, argument: { name, value } }
    return (await client.complete({ ...asked, context: { arguments: filled } })).completion.values
  }
  const AGENT = 'gatehouse://agents/{agent_id}'
  assert.deepEqual(await values(AGENT, 'agent_id', 'gptb'), ['gptbot'])
  assert.ok((await values(AGENT, 'agent_id', '')).length > 50)
  const SIGNATURE = 'gatehouse://signatures/{type}/{fingerprint}'
  assert.deepEqual(await values(SIGNATURE, 'type', 'ja4h'), ['ja4h'])
  const prints = await values(SIGNATURE, 'fingerprint', 't13d3112', { type: 'ja4' })
  assert.ok(prints.length > 0 && prints.every((each) => each.startsWith('t13d3112')))
  const STATISTICS = 'gatehouse://statistics{?window,bucket,app}'
  assert.deepEqual(await values(STATISTICS, 'bucket', '', { window: '1h' }), ['1m', '5m', '15m'])
  assert.deepEqual(await values(STATISTICS, 'bucket', '', { window: '__proto__' }), [])
  await assert.rejects(values(AGENT, 'colour', ''), { code: -32602 })
  await assert.rejects(values('gatehouse://nothing/{x}', 'x', ''), { code: -32602 })
  const blind = await connected(t, manage.url, await manage.key({ name: 'blind', scopes: ['mcp'] }))
  const { completion } = await blind.complete({
    ref: { type: 'ref/resource', uri: AGENT },
    argument: { name: 'agent_id', value: '' },
  })
  assert.deepEqual(completion.values, [])
})

test('who listens hears of what has changed, and of nothing else', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await connected(t, manage.url, manage.adminKey)
  const heard: string[] = []
  client.setNotificationHandler('notifications/resources/list_changed', () => void heard.push('list'))
  client.setNotificationHandler(
    'notifications/resources/updated',
    ({ params }) => void heard.push(params.uri),
  )
  const listening = await client.listen({
    resourcesListChanged: true,
    toolsListChanged: true,
    resourceSubscriptions: ['gatehouse://policy', 'gatehouse://agents/gptbot'],
  })
  await manage.publish({ rules: [{ name: 'a', when: {}, action: 'tag' }] })
  for (let tries = 0; heard.length < 2 && tries < 100; tries++) await wait(20)
  assert.deepEqual(heard, ['list', 'gatehouse://policy'])
  await manage.publish({ rules: [{ name: 'a', when: {}, action: 'tag' }] })
  for (let tries = 0; heard.length < 3 && tries < 100; tries++) await wait(20)
  assert.deepEqual(heard, ['list', 'gatehouse://policy', 'list'])
  await listening.close()
  await manage.publish({ rules: [] })
  await wait(200)
  assert.equal(heard.length, 3)
})

test('a subscriber to the policy of an app gets its changes, and none of an app of others', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
  const team = await connected(t, manage.url, await manage.key({ apps: ['shop'] }))
  const heard: string[] = []
  team.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
  const [shop, blog] = ['gatehouse://apps/shop/policy', 'gatehouse://apps/blog/policy']
  await team.listen({ resourceSubscriptions: [shop] })
  for (const uri of [blog, 'gatehouse://apps/gone/policy', 'gatehouse://apps/%62log/policy']) {
    const message = modern('subscriptions/listen', { notifications: { resourceSubscriptions: [shop, uri] } })
    const refused = await sent(manage.url, await manage.key({ apps: ['shop'] }), message)
    assert.deepEqual([refused.status, refused.body.error.data.code], [404, 'not_found'], uri)
  }
  const publish = (...texts: readonly (readonly [app: string, document: string])[]) =>
    manage.publish(
      { rules: [] },
      undefined,
      texts.map(([app, document]) => ({ app, document })),
    )
  await publish(['blog', '{"rules":[]}'])
  await publish(['blog', '{"otherwise":"block"}'], ['shop', '{"rules":[]}'])
  await until(() => heard.length === 1)
  await publish(['blog', '{"rules":[]}'], ['shop', '{"rules":[]}'])
  await publish(['shop', '{"otherwise":"block"}'])
  await until(() => heard.length === 2)
  await publish()
  await until(() => heard.length === 3)
  assert.deepEqual(heard, [shop, shop, shop])
})

test('what it says of itself is there for who looks for it, without a key', async (t) => {
  const manage = await TestManagement.start(t, { publicUrl: 'https://gate.example.com' })
  const found = await fetch(`${manage.url}/.well-known/mcp.json`)
  assert.equal(found.headers.get('access-control-allow-origin'), '*')
  assert.ok(found.headers.get('etag'))
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  const document = (await found.json()) as any
  const { tools, capabilities, ...rest } = document
  assert.deepEqual(rest, {
    name: 'gatehouse',
    version: '1.2.3',
    description: rest.description,
    protocol_version: '2026-07-28',
    endpoint: 'https://gate.example.com/mcp',
    token_endpoint: 'https://gate.example.com/oauth/token',
  })
  assert.deepEqual(Object.keys(capabilities), ['tools', 'resources', 'prompts', 'completions'])
  const listed = await sent(manage.url, manage.adminKey, modern('tools/list'))
  assert.deepEqual(
    tools,
    listed.body.result.tools.map(({ name, description, inputSchema }: Record<string, unknown>) => {
      return { name, description, inputSchema }
    }),
  )
  const registry = await manage.ask('GET', '/.well-known/mcp/server.json')
  const { name, remotes, description, $schema } = registry.body
  assert.equal(name, 'com.example.gate/gatehouse')
  // As the registry's schema has them.
  assert.match(name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  assert.ok(description.length <= 100 && $schema.endsWith('/2025-12-11/server.schema.json'))
  assert.deepEqual([remotes[0].type, remotes[0].url], ['streamable-http', 'https://gate.example.com/mcp'])
  assert.equal((await manage.ask('POST', '/.well-known/mcp.json')).status, 405)
  // Which the SDK says as well.
  const discovered = await sent(manage.url, manage.adminKey, modern('server/discover'))
  assert.deepEqual(discovered.body.result.supportedVersions, [PROTOCOL_VERSION])
  assert.deepEqual(discovered.body.result.capabilities, capabilities)
})
