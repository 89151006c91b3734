import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import { TOOLS, VERSIONS } from '../../src/manage/api/operations.ts'
import { shownTo, sightOf } from '../../src/manage/intake/personal-data.ts'
import { seen } from '../contract/seen.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { calling, clientOf } from './a2a-client.ts'
import { EventReader } from './event-reader.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { connected } from './mcp-client.ts'

const ADDRESSES = ['198.51.100.77', '2001:db8:aa:bb::77'] as const
const TOKEN = 'Zx81kQp92LmN47vB03cD'
const PATH = `/reset/${TOKEN}/zoe.private%40example.com`
const DEVICE = '550e8400-e29b-41d4-a716-446655440000'
/** None of these may be in an answer to a principal without the scope `admin`. */
const PRIVATE = [...ADDRESSES, '2001:db8:aa:bb', TOKEN, 'zoe.private', DEVICE]
const AGENT = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 } as const
/** Everything but `admin`. */
const SCOPES = ['read', 'detect', 'write', 'mcp'] as const

for (const kind of KINDS)
  test(`${kind}: requests and events show networks and redacted paths to a read key and everything to an administrator`, async (t) => {
    const { manage, read } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const { requests } = (await read('/v1/requests')).body
    assert.deepEqual(
      requests.map(({ address, path }: Record<string, string>) => [address, path]),
      [
        ['2001:db8:aa::/48', '/reset/[redacted]/[redacted]'],
        ['198.51.100.0/24', '/reset/[redacted]/[redacted]'],
      ],
    )
    assert.equal(requests[0].user_agent, 'App/1 [redacted]')
    const full = (await manage.ask('GET', '/v1/requests')).body.requests
    assert.deepEqual(
      full.map(({ address, path, user_agent }: Record<string, string>) => [address, path, user_agent]),
      [
        [ADDRESSES[1], PATH, `App/1 ${DEVICE}`],
        [ADDRESSES[0], PATH, `App/1 ${DEVICE}`],
      ],
    )
    const threats = (body: { events: { type: string; data: { request: unknown } }[] }) =>
      body.events.filter(({ type }) => type === 'threat_detected').map(({ data }) => data.request)
    const asJson = { accept: 'application/json' }
    const { method, host } = full[0]
    assert.deepEqual(threats((await read('/v1/events', asJson)).body).at(-1), {
      ...{ method, host, path: '/reset/[redacted]/[redacted]', address: '198.51.100.0/24' },
    })
    assert.deepEqual(threats((await manage.ask('GET', '/v1/events', undefined, asJson)).body).at(-1), {
      ...{ method, host, path: PATH, address: ADDRESSES[0] },
    })
  })

test('no operation shows an address or a secret of a client to a key without admin', async (t) => {
  const { manage, key, read } = await begun(t)
  const ids = await idsOf(manage)
  const walked = new Set<string>()
  for (const { prefix, operations } of VERSIONS)
    for (const operation of operations.filter(isOpen)) {
      const path = `${prefix}${operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => ids[operation.path] ?? ids[name] ?? 'none')}`
      const body = operation.examples.body
      for (const accept of ['application/json', 'text/event-stream']) {
        const isStream = operation.stream !== null && accept !== 'application/json'
        if (isStream) continue // see below
        const headers = { authorization: `Bearer ${key}`, accept }
        const given = await manage.ask(operation.method, path, body, headers)
        assert.ok(given.status < 500, `${operation.id}: ${given.status}`)
        assertPrivate(JSON.stringify(given.body), operation.id)
        if (given.status < 300) walked.add(operation.id)
      }
    }
  for (const id of [
    'listRequests',
    'getRequest',
    'listEvents',
    'getEvent',
    'getStats',
    'getAgent',
    'listSignatures',
  ])
    assert.ok(walked.has(id), `${id} did not answer`)
  for (const { id } of (await manage.ask('GET', '/v1/requests')).body.requests)
    assertPrivate(JSON.stringify((await read(`/v1/requests/${id}`)).body), 'getRequest')
  // What each of these shows to an administrator is there to be found.
  const all = JSON.stringify((await manage.ask('GET', '/v1/requests')).body)
  for (const text of [...ADDRESSES, TOKEN, 'zoe.private', DEVICE]) assert.ok(all.includes(text), text)
  assert.deepEqual(manage.failures, [])
})

test('streams of requests and events show the same as the lists', async (t) => {
  const { manage, key } = await begun(t)
  const open = (path: string, its: string) =>
    EventReader.open(`${manage.url}${path}`, { key: its, accept: 'text/event-stream' })
  const since = 'since=2000-01-01T00:00:00Z'
  const readers = {
    events: await open(`/v1/events?${since}`, key),
    betaEvents: await open(`/v2/events?${since}`, key),
    requests: await open('/v1/requests', key),
  }
  const full = await open(`/v1/events?${since}`, manage.adminKey)
  const fullRequests = await open('/v1/requests', manage.adminKey)
  const all = [...Object.values(readers), full, fullRequests]
  await wait(700) // the feed of requests begins with what comes after its first look
  await manage.take([privateSighting(3, 0), privateSighting(4, 1)])
  for (let tries = 0; all.some(({ told }) => told.length < 2) && tries < 200; tries++) await wait(50)
  for (const [name, reader] of Object.entries(readers)) {
    assert.ok(reader.told.length >= 2, name)
    assertPrivate(reader.text, name)
    assert.match(reader.text, /198\.51\.100\.0\/24/, name)
  }
  assert.ok(full.text.includes(ADDRESSES[0]) && fullRequests.text.includes(TOKEN))
  for (const reader of all) reader.leave()
})

test('a filter finds out nothing that is not shown', async (t) => {
  const { manage, read } = await begun(t)
  const count = async (query: string) => (await read(`/v1/requests?${query}`)).body.requests?.length
  for (const [query, expected] of [
    ['address=198.51.100.0/24', 1],
    ['address=198.51.0.0/16', 1],
    ['address=198.51.101.0/24', 0],
    ['address=2001:db8:aa::/48', 1],
    ['address=2001:db8::/32', 1],
    // What is matched is the path that is shown.
    ['path=/reset/', 2],
    [`path=${encodeURIComponent('/reset/[redacted]')}`, 2],
    ['path=/reset/Z', 0],
    [`path=/reset/${TOKEN}`, 0],
  ] as const)
    assert.equal(await count(query), expected, query)
  for (const narrow of [
    ADDRESSES[0],
    '198.51.100.0/25',
    ADDRESSES[1],
    '2001:db8:aa:bb::/64',
    '::ffff:198.51.100.77',
  ]) {
    for (const accept of ['application/json', 'text/event-stream']) {
      const { status, body, headers } = await read(`/v1/requests?address=${narrow}`, { accept })
      assert.deepEqual([status, body.code], [403, 'insufficient_scope'], narrow)
      assert.match(body.detail, /\/24.*needs the scope admin/)
      assert.match(headers.get('www-authenticate')!, /scope="admin/)
    }
  }
  for (const wrong of ['x', '198.51.100', '198.51.100.0/33', '198.51.100.7/24x']) {
    const { status, body } = await read(`/v1/requests?address=${wrong}`)
    assert.deepEqual([status, body.errors[0].pointer], [400, '/address'], wrong)
  }
  const asAdmin = async (query: string) =>
    (await manage.ask('GET', `/v1/requests?${query}`)).body.requests.length
  for (const [query, expected] of [
    [`address=${ADDRESSES[0]}`, 1],
    ['address=198.51.100.76/31', 1],
    ['address=2001:DB8:AA:BB:0::77', 1],
    [`path=/reset/${TOKEN}`, 2],
    ['path=/reset/[', 0],
  ] as const)
    assert.equal(await asAdmin(query), expected, query)
})

test('MCP and A2A show nothing of clients to a key without admin', async (t) => {
  const { manage, key } = await begun(t)
  const client = await connected(t, manage.url, key)
  const { resources } = await client.listResources()
  assert.ok(resources.length > 3)
  for (const { uri } of resources) assertPrivate(JSON.stringify(await client.readResource({ uri })), uri)
  const agent = await clientOf(manage, key, 'JSONRPC')
  for (const { name } of TOOLS.list) {
    const given = GIVEN[name] ?? {}
    assertPrivate(JSON.stringify(await client.callTool({ name, arguments: given })), `MCP ${name}`)
    const answer = await agent.sendMessage(calling(name, given)).catch((error: Error) => error.message)
    assertPrivate(JSON.stringify(answer), `A2A ${name}`)
  }
})

test('a stream that shows everything ends when its user is an administrator no more', async (t) => {
  const { manage } = await begun(t)
  const id = (await manage.ask('POST', '/v1/keys', { name: 'x', access: 'admin' })).body
  const reader = await EventReader.open(`${manage.url}/v1/events`, {
    key: id.key,
    accept: 'text/event-stream',
  })
  await manage.ask('DELETE', `/v1/keys/${id.id}`)
  for (let tries = 0; !reader.hasEnded && tries < 100; tries++) await wait(50)
  assert.ok(reader.hasEnded)
})

test('every scope but admin sees the reduced form, at any depth of an event', async () => {
  for (const scope of SCOPES) assert.equal(sightOf({ scopes: new Set([scope]) }), 'reduced')
  assert.equal(sightOf({ scopes: new Set(['read', 'admin']) }), 'full')
  const event = {
    examples: [{ address: '203.0.113.7', count: 1 }, { address: null }],
    deep: { request: { path: '/x/203.0.113.7', address: '::1', user_agent: null } },
    addresses: 3,
    other: { address: { path: 'no text' } },
    odd: { address: 'unknown' },
  }
  assert.deepEqual(shownTo('reduced', event), {
    examples: [{ address: '203.0.113.0/24', count: 1 }, { address: null }],
    deep: { request: { path: '/x/[redacted]', address: '::/48', user_agent: null } },
    addresses: 3,
    other: { address: { path: 'no text' } },
    odd: { address: '' },
  })
  assert.equal(shownTo('full', event), event)
})

async function begun(t: Test, options: TestOptions = {}) {
  const manage = await TestManagement.start(t, { knows: true, ...options })
  await manage.fillCatalogue()
  await manage.take([privateSighting(1, 0), privateSighting(2, 1)])
  const key = await manage.key({ scopes: [...SCOPES] })
  const read = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    manage.ask('GET', path, undefined, { authorization: `Bearer ${key}`, ...headers })
  return { manage, key, read }
}

/** A request that was blocked, of a client whose address, path and User-Agent are private. */
function privateSighting(number: number, which: 0 | 1) {
  return seen(number, {
    ...{ ...AGENT, seenAtMs: Date.now(), done: 'block', path: PATH, userAgent: `App/1 ${DEVICE}` },
    ...{ address: ADDRESSES[which], ja4: `t13d1516h2_8daaf615277${number}_e5627efa2ab1`, stable: null },
  })
}

/** Ids of what there is, by the path of its operation or by the name that paths have for it. */
async function idsOf(manage: TestManagement): Promise<Readonly<Record<string, string>>> {
  const asJson = { accept: 'application/json' }
  const events = (await manage.ask('GET', '/v1/events', undefined, asJson)).body.events
  const requests = (await manage.ask('GET', '/v1/requests')).body.requests
  const threat = events.find(({ type }: { type: string }) => type === 'threat_detected')
  return { agent_id: 'gptbot', '/requests/{id}': requests[0].id, id: threat.id }
}

/** To others than administrators. */
function isOpen({ scopes }: AnyOperation): boolean {
  return scopes.some((scope) => scope !== 'admin')
}

function assertPrivate(text: string, where: string): void {
  for (const word of PRIVATE)
    assert.ok(!text.includes(word), `${where} shows ${word}: ${text.slice(0, 2_000)}`)
}

const GIVEN: Readonly<Record<string, Record<string, unknown>>> = {
  detect_agent: { user_agent: 'GPTBot/1.2' },
  lookup_fingerprint: { fingerprint: 't13d1516h2_8daaf6152771_e5627efa2ab1' },
  get_agent: { agent_id: 'gptbot' },
  explain_detection: { user_agent: 'GPTBot/1.2' },
  compare_fingerprints: {
    fingerprints: ['t13d1516h2_8daaf6152771_e5627efa2ab1', 't13d1516h2_8daaf6152772_e5627efa2ab1'],
  },
  get_stats: { window: '1h' },
  submit_signature: { fingerprint: 't13d1516h2_8daaf6152779_e5627efa2ab1', type: 'ja4' },
  create_task: { type: 'lookup', items: [{ ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1' }] },
  get_task: { task_id: 'tsk_none' },
}
