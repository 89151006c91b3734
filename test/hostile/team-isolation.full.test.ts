import assert from 'node:assert/strict'
import { test } from 'tap'
import { METHODS } from '../../src/manage/a2a/methods.ts'
import { TOOLS, VERSIONS } from '../../src/manage/api/operations.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { seen } from '../contract/seen.ts'
import { EventReader } from '../manage/event-reader.ts'
import type { Answered } from '../manage/management.ts'
import { modern, sent } from '../manage/mcp-client.ts'
import { HookReceiver } from '../manage/webhook-receiver.ts'
import { event } from '../manage/webhook-site.ts'
import { KINDS, openAt } from '../store/databases.ts'
import { until } from '../until.ts'
import { bodyFor, changedIn, Estate, tablesOf } from './management-estate.ts'

/** The app of the estate, of which the other team must not see anything. */
const THEIRS = 'theirs'
/** The app of the team that asks. */
const OURS = 'ours'
const ABSENT = 'zzz_AAAAAAAAAAAAAAAA'
const OPERATIONS = VERSIONS.flatMap(({ prefix, operations }) =>
  operations.map((operation) => ({
    prefix,
    operation,
    name: `${operation.method} ${prefix}${operation.path}`,
  })),
)
/** The catalogue is the same for all. What a team sees of it has a test of its own. */
const CATALOGUE = '/agents/{agent_id}'
/** Lists that hold something of the estate, for their owner. `own`: only for the principal that made it. */
const LISTS = [
  ...['listApps', 'listKeys', 'listClients', 'listTrust', 'listUsers', 'listWebhooks', 'listDeliveries'],
  ...['listRequests', 'listCases', 'listEvents', 'listTasks', 'listAudit'],
]

for (const kind of KINDS) {
  test(`${kind}: no operation shows or changes an object of another team`, async (t) => {
    const { estate, authorization } = await twoTeams(t, kind)
    const { manage } = estate
    const traces = tracesOf(estate)
    const before = await tablesOf(manage.storeUrl)
    for (const { prefix, operation, name } of OPERATIONS) {
      const ask = (path: string) =>
        manage.ask(operation.method, path, bodyFor(operation) ?? undefined, { authorization })
      const isNamed = operation.path.includes('{')
      const { path } = operation
      if (!isNamed && operation.method !== 'GET' && operation.reach !== 'organisation') continue
      const query = new URLSearchParams(operation.examples.query).toString()
      const found = await ask(`${estate.pathFor(operation, prefix)}${query === '' ? '' : `?${query}`}`)
      if (operation.reach === 'organisation')
        assert.deepEqual([found.status, found.body.code], [403, 'needs_all_apps'], name)
      else if (isNamed && !path.startsWith(CATALOGUE)) assert.equal(found.status, 404, name)
      if (isNamed && !path.startsWith(CATALOGUE)) {
        const missed = await ask(prefix + path.replace(/\{\w+\}/, ABSENT))
        assert.deepEqual(told(found, estate.nameFor(operation)), told(missed, ABSENT), name)
      } else if (operation.reach !== 'organisation')
        assert.equal(found.status, 200, `${name}: ${said(found)}`)
      assertNothingOf(traces, found, name)
    }
    assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
    assert.deepEqual(manage.failures, [])
  })

  test(`${kind}: the owner sees in each list what the other team does not`, async (t) => {
    const { estate, authorization } = await twoTeams(t, kind)
    const tried = new Set<string>()
    for (const { prefix, operation, name } of OPERATIONS) {
      if (!LISTS.includes(operation.id)) continue
      tried.add(operation.id)
      const path = estate.pathFor(operation, prefix)
      const isOwn = operation.id === 'listTasks'
      const owner = isOwn ? `Bearer ${estate.key}` : estate.authorization
      const mine = await estate.manage.ask('GET', path, undefined, { authorization: owner })
      assert.equal(mine.status, 200, name)
      const listed = Object.values(mine.body).find((each) => Array.isArray(each) && each.length > 0)
      assert.ok(listed !== undefined, `${name}: ${said(mine)}`)
      const theirs = await estate.manage.ask('GET', path, undefined, { authorization })
      assertNothingOf(tracesOf(estate), theirs, name)
    }
    assert.deepEqual([...tried].toSorted(), LISTS.toSorted())
  })

  test(`${kind}: counts are the sums of the own apps`, async (t) => {
    const { estate, authorization } = await twoTeams(t, kind)
    const { manage } = estate
    const ask = async (path: string, as = authorization) =>
      (await manage.ask('GET', path, undefined, { authorization: as })).body
    for (const query of ['', '?app=theirs', '?window=30d']) {
      const stats = await ask(`/v1/stats${query}`)
      assert.deepEqual(
        [stats.detection.requests, stats.agents.seen, stats.detection.by_agent],
        [0, 0, []],
        query,
      )
      assert.deepEqual([stats.agents.new, stats.fingerprints], [null, null])
    }
    assert.equal((await ask('/v1/stats', estate.authorization)).detection.requests, 3)
    assert.equal((await ask('/v1/stats?app=theirs', estate.authorization)).detection.requests, 3)
    const [mine, theirs] = [
      await ask('/v1/agents/gptbot'),
      await ask('/v1/agents/gptbot', estate.authorization),
    ]
    assert.deepEqual([mine.last_seen, mine.sightings], [null, { '24h': 0, '7d': 0, total: 0 }])
    assert.deepEqual(
      [theirs.last_seen !== null, theirs.sightings.total, theirs.sightings['24h']],
      [true, 3, 3],
    )
    assert.equal((await ask('/v1/agents/gptbot/traffic')).requests, 0)
    assert.equal((await ask('/v1/agents/gptbot/traffic', estate.authorization)).requests, 3)
    assert.deepEqual((await ask('/v1/stats/agents')).agents, [])
    assert.deepEqual((await ask('/v1/stats/agents?app=theirs')).agents, [])
    assert.equal((await ask('/v1/stats/agents', estate.authorization)).agents[0].requests, 3)
    assert.equal((await ask('/v1/agents/gptbot/fingerprints')).requests, 0)
    assert.equal((await ask('/v1/agents/gptbot/fingerprints', estate.authorization)).requests, 3)
    assert.equal((await ask('/v1/agents/gptbot/robots')).requests, 0)
    assert.equal((await ask('/v1/agents/gptbot/robots?app=theirs')).requests, 0)
    assert.equal((await ask('/v1/agents/gptbot/robots', estate.authorization)).requests, 3)
    for (const filter of ['app=theirs', 'seen_since=2020-01-01T00:00:00Z'])
      assert.deepEqual((await ask(`/v1/agents?${filter}`)).agents, [], filter)
    const listed = (await ask('/v1/agents?q=gptbot')).agents
    assert.deepEqual([listed.length > 0, listed[0]?.last_seen], [true, null])
    assert.equal((await ask('/v1/agents?app=theirs', estate.authorization)).agents[0].id, 'gptbot')
    assert.deepEqual((await ask('/v1/signatures?unknown_only=true')).signatures, [])
    const seenSignatures = (await ask('/v1/signatures?limit=200')).signatures as { requests_seen: number }[]
    assert.ok(seenSignatures.length > 0 && seenSignatures.every(({ requests_seen }) => requests_seen === 0))
  })
}

for (const kind of KINDS) {
  test(`${kind}: a team sees in the audit log what happened to its objects, by any principal`, async (t) => {
    const { estate, authorization } = await twoTeams(t, kind)
    const { manage } = estate
    const listed = async (query = '', as = authorization) => {
      const { status, body } = await manage.ask('GET', `/v1/audit?limit=200${query}`, undefined, {
        authorization: as,
      })
      assert.equal(status, 200)
      return body.audit as { action: string; subject: string | null; apps: unknown }[]
    }
    const made = await manage.ask('POST', '/v1/keys', { name: 'x', access: 'read', apps: [OURS] })
    const shared = await manage.ask('POST', '/v1/keys', { name: 'y', access: 'read', apps: [OURS, THEIRS] })
    const put = await manage.ask('PUT', `/v1/apps/${OURS}/policy`, { rules: [] }, { 'if-match': '*' })
    const user = await manage.ask('POST', '/v1/users', {
      email: 'o@example.com',
      scopes: ['read'],
      apps: [OURS],
    })
    const widened = await manage.ask('PATCH', `/v1/users/${user.body.id}`, { apps: [OURS, THEIRS] })
    const revoked = await manage.ask('DELETE', `/v1/keys/${made.body.id}`, undefined, { authorization })
    assert.deepEqual(
      [made, shared, put, user, widened, revoked].map(({ status }) => status),
      [201, 201, 200, 201, 200, 204],
    )
    const { body: me } = await manage.ask('GET', '/v1/me', undefined, { authorization })
    const ours = [
      `createApp ${OURS}`,
      `createKey ${me.id}`,
      `createKey ${made.body.id}`,
      `putAppPolicy ${OURS}`,
      `createUser ${user.body.id}`,
      `revokeKey ${made.body.id}`,
    ].toSorted()
    const told = (entries: Awaited<ReturnType<typeof listed>>) =>
      entries.map(({ action, subject }) => `${action} ${subject}`).toSorted()
    const seen = await listed()
    assert.deepEqual(told(seen), ours)
    for (const { apps } of seen) assert.deepEqual(apps, [OURS])
    assert.deepEqual(told(await listed(`&app=${OURS}`)), ours)
    assert.deepEqual(await listed(`&app=${THEIRS}`), [])
    const owner = told(await listed('', estate.authorization))
    assert.ok(owner.length > 5 && !owner.includes(`createKey ${shared.body.id}`))
    const both = [`updateUser ${user.body.id}`, `createKey ${shared.body.id}`]
    const all = told(await listed(`&app=${OURS}`, `Bearer ${manage.adminKey}`))
    assert.deepEqual(all, [...ours, ...both].toSorted())
  })
}

test('a team gives no more apps than it has, and finds none of another', async (t) => {
  const { estate, authorization } = await twoTeams(t, 'sqlite')
  const { manage } = estate
  const ask = (path: string, body: object) => manage.ask('POST', path, body, { authorization })
  const bodies: Readonly<Record<string, object>> = {
    '/v1/keys': { name: 'x', access: 'read' },
    '/v1/clients': { name: 'x', grant_types: ['client_credentials'], scopes: ['read'] },
    '/v1/trust': { agent_id: 'https://other.example/id.json', scopes: ['read'] },
    '/v1/users': { email: 'x@example.com', scopes: ['read'] },
    '/v1/webhooks': { url: 'http://127.0.0.1:9/', events: ['new_agent'] },
  }
  for (const [path, body] of Object.entries(bodies)) {
    for (const apps of ['*', [THEIRS], [OURS, THEIRS], ['thiers'], []]) {
      const refused = await ask(path, { ...body, apps })
      assert.equal(refused.status, 400, `${path} ${JSON.stringify(apps)}`)
      assert.ok(!said(refused).includes('did you mean "theirs"'), said(refused))
    }
    const near = await ask(path, { ...body, apps: ['our'] })
    assert.match(said(near), /did you mean \\"ours\\"/)
    const made = await ask(path, body)
    assert.deepEqual([made.status, made.body.apps], [201, [OURS]], said(made))
  }
  const app = await manage.ask('PATCH', `/v1/apps/${OURS}`, { labels: ['x'] }, { authorization })
  assert.deepEqual([app.status, app.body.labels], [200, ['x']])
  for (const change of [{ hosts: ['kept.example'] }, { upstream: 'x' }, { team: 'x' }, { quota: null }]) {
    const refused = await manage.ask('PATCH', `/v1/apps/${OURS}`, change, { authorization })
    assert.deepEqual([refused.status, refused.body.code], [403, 'needs_all_apps'])
  }
  const me = await manage.ask('GET', '/v1/me', undefined, { authorization })
  assert.deepEqual(me.body.apps, [OURS])
})

test('tools, resources and A2A show nothing of another team', async (t) => {
  const { estate, authorization } = await twoTeams(t, 'sqlite')
  const { manage } = estate
  const traces = tracesOf(estate)
  const key = authorization.slice('Bearer '.length)
  const before = await tablesOf(manage.storeUrl)
  const task = estate.nameFor(VERSIONS[0]!.operations.find(({ id }) => id === 'getTask')!)
  const given: Readonly<Record<string, object>> = {
    detect_agent: { user_agent: 'curl/8.17.0' },
    lookup_fingerprint: { fingerprint: 't13d1312h2_f57a46bbacb6_ab7e3b40a677', type: 'ja4' },
    list_agents: {},
    get_agent: { agent_id: 'gptbot' },
    submit_signature: { fingerprint: 't13d1312h2_f57a46bbacb6_ab7e3b40a677', type: 'ja4' },
    create_task: { type: 'none', items: [] },
    get_task: { task_id: task },
    get_stats: { app: THEIRS },
    compare_fingerprints: {
      fingerprints: ['t13d1312h2_f57a46bbacb6_ab7e3b40a677', 't13d1516h2_8daaf6152771_e5627efa2ab1'],
    },
    explain_detection: { user_agent: 'curl/8.17.0' },
  }
  for (const { name } of TOOLS.list) {
    const asked = given[name]
    assert.ok(asked !== undefined, `the tool ${name} needs a row here`)
    const rest = await manage.ask('POST', '/v1/execute', { tool: name, arguments: asked }, { authorization })
    assertNothingOf(traces, rest, name)
    const mcp = await sent(manage.url, key, modern('tools/call', { name, arguments: asked }))
    assertNothingOf(traces, mcp, name)
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ data: { tool: name, arguments: asked } }] }
    assertNothingOf(traces, await rpc('SendMessage', { message }), name)
  }
  const submitted = await manage.ask(
    ...(['POST', '/v1/execute', { tool: 'submit_signature', arguments: given['submit_signature'] }] as const),
    { authorization },
  )
  assert.equal(submitted.body.result.code, 'needs_all_apps')
  const { body: list } = await sent(manage.url, key, modern('resources/list'))
  const { body: templates } = await sent(manage.url, key, modern('resources/templates/list'))
  const uris: string[] = [
    ...list.result.resources.map(({ uri }: { uri: string }) => uri),
    ...templates.result.resourceTemplates.map(({ uriTemplate }: { uriTemplate: string }) =>
      uriTemplate
        .replace(/\{\?.*/, '')
        .replace('{agent_id}', 'gptbot')
        .replace('{type}', 'ja4')
        .replace(/\{.*\}/, ABSENT),
    ),
  ]
  assert.ok(uris.length > 5 && !uris.includes('gatehouse://policy'))
  for (const uri of uris.filter((each) => each !== 'gatehouse://openapi'))
    assertNothingOf(traces, await sent(manage.url, key, modern('resources/read', { uri })), uri)
  const uri = `gatehouse://statistics?app=${THEIRS}`
  const statistics = await sent(manage.url, key, modern('resources/read', { uri }))
  assert.match(said(statistics), /\\"requests\\":0/)
  assertNothingOf(traces, statistics, uri, [THEIRS])
  const policy = await sent(manage.url, key, modern('resources/read', { uri: 'gatehouse://policy' }))
  assert.equal(policy.status, 403)
  for (const method of Object.keys(METHODS).filter((each) => !each.startsWith('Send'))) {
    const config = method.includes('Push') ? { taskId: task, url: 'https://hooks.example/x' } : {}
    assertNothingOf(traces, await rpc(method, { id: task, ...config }), method, [task])
  }
  assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])

  function rpc(method: string, params: object) {
    const body = { jsonrpc: '2.0', id: 1, method, params }
    return manage.ask('POST', '/a2a', body, { authorization, 'a2a-version': '1.0' })
  }
})

test('streams and webhooks carry events and requests of the own apps only', async (t) => {
  const { estate, authorization } = await twoTeams(t, 'sqlite')
  const { manage } = estate
  const key = authorization.slice('Bearer '.length)
  const receiver = await HookReceiver.start(t)
  const hook = { url: receiver.url, events: ['new_agent', 'new_signature', 'threat_detected'] }
  assert.equal((await manage.ask('POST', '/v1/webhooks', hook, { authorization })).status, 201)
  const events = await EventReader.open(`${manage.url}/v1/events`, { key })
  const requests = await EventReader.open(`${manage.url}/v1/requests`, { key })
  assert.deepEqual([events.status, requests.status], [200, 200])
  const traffic = await manage.ask('GET', '/v1/events?types=traffic', undefined, {
    ...{ authorization, accept: 'text/event-stream' },
  })
  assert.equal(traffic.status, 400)
  const store = await openAt(t, manage.storeUrl)
  const [theirs, none, ours] = [event({ app: THEIRS }), event(), event({ app: OURS })]
  await store.transaction((queries) => new EventLog(store).add([theirs, none, ours], queries))
  const one = (number: number, app: string) => seen(number, { app, path: `/${app}`, seenAtMs: Date.now() })
  await until(async () => {
    await manage.take([
      one(Math.floor(Math.random() * 50_000) + 100, THEIRS),
      one(Math.floor(Math.random() * 50_000) + 100, OURS),
    ])
    return requests.text.includes('/ours')
  })
  await until(() => events.text.includes(ours.id))
  await receiver.has(1)
  assert.ok(receiver.ids.includes(ours.id))
  for (const id of receiver.ids) assert.notEqual(await store.events.byId(id, new Set([OURS])), null)
  assert.ok(!events.text.includes(theirs.id) && !events.text.includes(none.id))
  assert.ok(!requests.text.includes('/theirs') && !requests.text.includes(THEIRS))
  events.leave()
  requests.leave()
})

async function twoTeams(t: Parameters<typeof Estate.start>[0], kind: (typeof KINDS)[number]) {
  const estate = await Estate.start(t, kind, {}, THEIRS)
  const made = await estate.manage.ask('POST', '/v1/apps', { id: OURS, hosts: ['ours.example'] })
  assert.equal(made.status, 201)
  const scopes = ['read', 'detect', 'write', 'mcp', 'admin'] as const
  return { estate, authorization: `Bearer ${await estate.manage.key({ scopes, apps: [OURS] })}` }
}

/** What an answer to the other team must not contain. */
function tracesOf(estate: Estate): readonly string[] {
  const names = OPERATIONS.filter(
    ({ operation }) => operation.path.includes('{') && !operation.path.startsWith(CATALOGUE),
  )
  const ids = names.map(({ operation }) => estate.nameFor(operation)).filter((name) => name.length > 3)
  return [...new Set([...ids, THEIRS, 'kept.example', 'kept@example.com', '"kept"', 'agent.example/id.json'])]
}

/** `but`: what the request itself named. */
function assertNothingOf(
  traces: readonly string[],
  answered: Answered,
  name: string,
  but: readonly string[] = [],
) {
  const text = said(answered).replaceAll(/"instance":"[^"]*"/g, '')
  const found = traces.filter((trace) => !but.includes(trace) && text.includes(trace))
  assert.deepEqual(found, [], `${name}: ${text.slice(0, 1_000)}`)
}

function said({ body }: Answered): string {
  return JSON.stringify(body) ?? ''
}

/** An answer without what differs from request to request. */
function told({ status, body }: Answered, name: string): unknown {
  const text = JSON.stringify(body ?? null)
    .replaceAll(encodeURIComponent(name), 'NAME')
    .replaceAll(name, 'NAME')
  return [status, { ...JSON.parse(text), request_id: null, instance: null }]
}
