import assert from 'node:assert/strict'
import { test } from 'tap'
import { Store } from '../../src/store/store.ts'
import { addsUp } from '../contract/sightings.ts'
import { ingestInto, seen } from '../contract/seen.ts'
import { fillCatalogue } from '../dashboard/catalogue.ts'
import { TestManagement } from './management.ts'

const NOTHING = { agent_purpose: [] }
const MORE = { purposes: ['archive', 'training'], confidence: 0.97 }

test('GET /stats says what was seen', async (t) => {
  const management = await TestManagement.start(t)
  const store = await Store.open(management.storeUrl)
  const nowMs = Date.now()
  const { ingest } = ingestInto(store, { nowMs: () => nowMs })
  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler', ...MORE, seenAtMs: nowMs }
  await ingest.take([
    seen(1, { ...agent, verified: 'ip-range' }),
    seen(2, { ...agent, done: 'block' }),
    seen(3, {
      ...agent,
      agent: 'unknown-agent',
      category: 'custom',
      purposes: ['training', 'x'],
      confidence: 1,
    }),
    seen(4, { verdict: 'agent', agent: null, confidence: 0.5, seenAtMs: nowMs }),
    seen(5, { verdict: 'human', confidence: 0.1, seenAtMs: nowMs - 3 * 3_600_000 }),
  ])
  await store.close()
  const { status, body, headers } = await management.ask('GET', '/v1/stats')
  assert.equal(status, 200)
  assert.match(headers.get('content-type')!, /^application\/json/)
  addsUp(body)
  const { detection, agents, fingerprints, series, window, bucket } = body
  assert.deepEqual([window, bucket, series.length], ['24h', '1h', 24])
  assert.deepEqual(agents, { total: 0, seen: 2, new: 2 })
  assert.deepEqual(fingerprints, { unique: 1, by_type: { ja4: 1, ja4s: 0, ja4h: 0, ja4x: 0 }, unknown: 1 })
  const { by_agent, verified_by, by_category, by_purpose, by_action, by_confidence, ...others } = detection
  const { by_verdict, blocked_by_verdict, ...totals } = others
  assert.deepEqual(by_verdict, { agent: 4, automation: 0, human: 1, unknown: 0 })
  assert.deepEqual(blocked_by_verdict, { agent: 1, automation: 0, human: 0, unknown: 0 })
  assert.deepEqual(totals, { requests: 5, agents: 4, rate: 0.8, blocked: 1, tagged: 4, verified: 1 })
  assert.deepEqual(verified_by, { 'web-bot-auth': 0, 'ip-range': 1, 'reverse-dns': 0 })
  assert.deepEqual(by_agent, [
    { agent_id: 'gptbot', agent_name: 'gptbot', agent_category: null, ...NOTHING, requests: 2, blocked: 1 },
    {
      agent_id: 'unknown-agent',
      agent_name: 'unknown-agent',
      agent_category: null,
      ...NOTHING,
      requests: 1,
      blocked: 0,
    },
  ])
  assert.deepEqual(by_category, {
    ...{ 'llm-sdk': 0, 'browser-agent': 0, orchestrator: 0, crawler: 2, 'mcp-client': 0, custom: 1 },
    unnamed: 1,
  })
  // Two of the four agents have two purposes each, and one of them has a word that no list has.
  assert.deepEqual(by_purpose, {
    ...{ search: 0, assistant: 0, agent: 0, training: 3, archive: 2, monitor: 0, preview: 0, seo: 0 },
    ...{ security: 0, other: 1, unpublished: 1 },
  })
  assert.deepEqual(Object.keys(by_action), [
    'pass',
    'tag',
    'block',
    'rate_limit',
    'tarpit',
    'redirect',
    'route',
    'charge',
  ])
  assert.deepEqual([by_confidence['0.9'], by_confidence['0.5'], by_confidence['0.1']], [3, 1, 1])
  assert.equal(series.at(-1).requests, 4)
  const { by_verdict: verdicts, by_category: categories, by_purpose: purposes } = series.at(-1)
  assert.deepEqual(series.at(-1).by_action, { block: 1, tag: 3 })
  assert.deepEqual(purposes, { archive: 2, training: 3, other: 1, unpublished: 1 })
  assert.deepEqual([verdicts, categories], [{ agent: 4 }, { crawler: 2, custom: 1, unnamed: 1 }])
  const hour = (await management.ask('GET', '/v1/stats?window=1h')).body
  assert.deepEqual([hour.detection.requests, hour.series.length, hour.bucket], [4, 60, '1m'])
})

test('GET /stats?include= adds the window before, and the requests by app', async (t) => {
  const management = await TestManagement.start(t)
  const nowMs = Date.now()
  const at = (hours: number) => ({ seenAtMs: nowMs - hours * 3_600_000 })
  await management.take([
    seen(1, { ...at(0), app: 'shop', verdict: 'human', done: 'block' }),
    seen(2, { ...at(2), app: 'shop' }),
    seen(3, { ...at(2), app: 'blog', verdict: 'agent', agent: 'gptbot' }),
    seen(4, { ...at(30), app: 'blog', verdict: 'human', done: 'block' }),
  ])
  const ask = async (query: string) => (await management.ask('GET', `/v1/stats?${query}`)).body
  const plain = await ask('')
  assert.deepEqual([plain.previous, plain.by_app], [null, null])
  const { previous, by_app, counted_since, detection } = await ask('include=previous,apps')
  assert.deepEqual(by_app, [
    { app: 'shop', requests: 2, agents: 0, blocked: 1 },
    { app: 'blog', requests: 1, agents: 1, blocked: 0 },
  ])
  assert.deepEqual([detection.blocked_by_verdict.human, previous.detection.blocked_by_verdict.human], [1, 1])
  assert.deepEqual([previous.detection.requests, previous.series.length], [1, 24])
  const [bucket] = previous.series.filter(({ requests }: { requests: number }) => requests > 0)
  const hourMs = Math.floor((nowMs - 30 * 3_600_000) / 3_600_000) * 3_600_000
  const firstAt = new Date(hourMs).toISOString()
  assert.deepEqual(bucket, { at: firstAt, requests: 1, agents: 0, blocked: 1 })
  assert.equal(counted_since, firstAt)
  const ofShop = await ask('include=previous,apps&app=shop')
  assert.deepEqual([ofShop.by_app.length, ofShop.previous.detection.requests], [1, 0])
  // Of the apps of the caller only.
  const key = await management.key({ scopes: ['read'], apps: ['blog'] })
  const { body } = await management.ask('GET', '/v1/stats?window=7d&include=apps', undefined, {
    authorization: `Bearer ${key}`,
  })
  assert.deepEqual(body.by_app, [{ app: 'blog', requests: 2, agents: 1, blocked: 1 }])
  const { status } = await management.ask('GET', '/v1/stats?include=all')
  assert.equal(status, 400)
})

test('team= shows the apps of a team together, within those of the caller', async (t) => {
  const management = await TestManagement.start(t, { knows: true })
  await management.fillCatalogue()
  for (const [id, team] of [
    ['shop', 'retail'],
    ['till', 'retail'],
    ['blog', 'press'],
  ])
    assert.equal(
      (await management.ask('POST', '/v1/apps', { id, team, hosts: [`${id}.example`] })).status,
      201,
    )
  const agent = { verdict: 'agent', category: 'crawler', seenAtMs: Date.now() } as const
  await management.take([
    seen(1, { ...agent, agent: 'gptbot', app: 'shop' }),
    seen(2, { ...agent, agent: 'claudebot', app: 'till' }),
    seen(3, { ...agent, agent: 'ccbot', app: 'blog' }),
  ])
  const key = await management.key({ scopes: ['read'], apps: ['shop', 'blog'] })
  const limited = { authorization: `Bearer ${key}` }
  const counts = async (team: string, headers = {}) => {
    const ask = async (path: string) => (await management.ask('GET', `/v1/${path}`, undefined, headers)).body
    return [
      (await ask(`stats?team=${team}`)).detection.requests,
      (await ask(`requests?team=${team}`)).requests.length,
      (await ask(`requests/facets?team=${team}`)).requests,
      (await ask(`agents?team=${team}`)).total,
    ]
  }
  assert.deepEqual(await counts('retail'), [2, 2, 2, 2])
  assert.deepEqual(await counts('press'), [1, 1, 1, 1])
  assert.deepEqual(await counts('none'), [0, 0, 0, 0])
  assert.deepEqual(await counts('retail', limited), [1, 1, 1, 1])
  assert.deepEqual((await management.ask('GET', '/v1/events?team=none')).body.total, 0)
})

test('GET /stats?app= counts the requests of one app', async (t) => {
  const management = await TestManagement.start(t)
  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler', ...MORE, seenAtMs: Date.now() }
  await management.take([
    seen(1, { ...agent, app: 'shop', verified: 'ip-range' }),
    seen(2, { ...agent, app: 'shop', done: 'block', agent: 'ccbot' }),
    seen(3, { ...agent, app: 'blog' }),
    seen(4, { seenAtMs: Date.now() }),
  ])
  const ask = async (query: string) => (await management.ask('GET', `/v1/stats?window=1h&${query}`)).body
  const shop = await ask('app=shop')
  addsUp(shop)
  const { requests, blocked, verified, verified_by, by_category, by_agent, by_action } = shop.detection
  assert.deepEqual(
    [requests, blocked, verified, verified_by['ip-range'], by_category.crawler],
    [2, 1, 1, 1, 2],
  )
  assert.deepEqual([by_action.block, by_action.tag, shop.agents.seen], [1, 1, 2])
  assert.deepEqual(
    by_agent.map(({ agent_id }: { agent_id: string }) => agent_id),
    ['ccbot', 'gptbot'],
  )
  assert.deepEqual(shop.series.at(-1).by_verdict, { agent: 2 })
  assert.deepEqual(shop.series.at(-1).by_action, { block: 1, tag: 1 })
  for (const [app, count] of [
    ['blog', 1],
    ['default', 1],
    ['unheard-of', 0],
  ] as const)
    assert.equal((await ask(`app=${app}`)).detection.requests, count, app)
  assert.equal((await ask('')).detection.requests, 4)
  // Counted for the whole installation only.
  assert.deepEqual([shop.agents.new, shop.fingerprints], [null, null])
  const all = await ask('')
  assert.deepEqual([all.agents.new, all.fingerprints.unique], [2, 1])
  const { result } = (
    await management.ask('POST', '/v1/execute', {
      tool: 'get_stats',
      arguments: { window: '1h', app: 'blog' },
    })
  ).body
  assert.equal(result.detection.requests, 1)
  const { status, body } = await management.ask('GET', '/v1/stats?app=')
  assert.deepEqual([status, body.errors[0].pointer], [400, '/app'])
})

test('GET /agents?app= lists the agents of an app', async (t) => {
  const management = await TestManagement.start(t)
  await fillCatalogue(management.storeUrl)
  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler', app: 'shop' } as const
  const nowMs = Date.now()
  const dayMs = 86_400_000
  await management.take([
    seen(1, { ...agent, seenAtMs: nowMs }),
    seen(2, { ...agent, seenAtMs: nowMs - 3 * dayMs, agent: 'claudebot' }),
    seen(3, { ...agent, seenAtMs: nowMs - 40 * dayMs, agent: 'ccbot' }),
    seen(4, { ...agent, seenAtMs: nowMs, agent: 'googlebot', app: 'blog' }),
    seen(5, { ...agent, seenAtMs: nowMs, agent: 'unheard-of' }),
  ])
  const ask = async (query: string) => {
    const { body } = await management.ask('GET', `/v1/agents?${query}`)
    return [body.total, ...body.agents.map(({ id }: { id: string }) => id)]
  }
  assert.deepEqual(await ask('app=shop'), [2, 'claudebot', 'gptbot'])
  assert.deepEqual(await ask('app=shop&limit=1&page=2'), [2, 'gptbot'])
  assert.deepEqual(await ask('app=blog&category=crawler'), [1, 'googlebot'])
  assert.deepEqual(await ask('app=none'), [0])
  const since = (days: number) => `app=shop&seen_since=${new Date(nowMs - days * dayMs).toISOString()}`
  assert.deepEqual(await ask(since(1)), [1, 'gptbot'])
  assert.deepEqual(await ask(since(4)), [2, 'claudebot', 'gptbot'])
  assert.deepEqual(await ask(since(50)), [3, 'ccbot', 'claudebot', 'gptbot'])
  const cursored = await management.ask('GET', '/v2/agents?app=shop&limit=1')
  const rest = await management.ask('GET', `/v2/agents?app=shop&limit=1&cursor=${cursored.body.next_cursor}`)
  assert.deepEqual([rest.body.agents[0].id, rest.body.next_cursor], ['gptbot', null])
  const call = { tool: 'list_agents', arguments: { app: 'blog' } }
  const { result } = (await management.ask('POST', '/v1/execute', call)).body
  assert.equal(result.total, 1)
})

test('GET /agents/{agent_id}/traffic says what was seen of one', async (t) => {
  const management = await TestManagement.start(t)
  await fillCatalogue(management.storeUrl)
  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler', seenAtMs: Date.now() } as const
  const other = { ...agent, agent: 'claudebot' }
  await management.take([seen(1, agent), seen(2, { ...agent, done: 'block' }), seen(3, other)])
  const { status, body } = await management.ask('GET', '/v1/agents/gptbot/traffic?window=1h&bucket=15m')
  const { agent_id, window, bucket, requests, blocked, series } = body
  assert.deepEqual([status, agent_id, window, bucket, requests, blocked], [200, 'gptbot', '1h', '15m', 2, 1])
  assert.deepEqual([series.length, series.at(-1).requests], [4, 2])
  const never = (await management.ask('GET', '/v1/agents/perplexitybot/traffic')).body
  assert.deepEqual([never.requests, never.series.length], [0, 24])
  assert.equal((await management.ask('GET', '/v1/agents/nobody/traffic')).status, 404)
  const wrong = await management.ask('GET', '/v1/agents/gptbot/traffic?window=1h&bucket=1d')
  assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, '/bucket'])
})

test('GET /stats refuses what it cannot say, and says what it can', async (t) => {
  const management = await TestManagement.start(t)
  for (const [query, pointer, detail] of [
    ['window=2h', '/window', /^must be one of 1h, 24h, 7d, 30d/],
    ['window=24h&bucket=1m', '/bucket', /^must be one of 5m, 15m, 1h with a window of 24h$/],
    ['bucket=1d', '/bucket', /with a window of 24h/],
    ['window=30d&bucket=2d', '/bucket', /^must be one of 1m, 5m/],
    ['windows=1h', '/windows', /window/],
    ['window=1h&window=7d', '/window', /./],
  ] as const) {
    const { status, body } = await management.ask('GET', `/v1/stats?${query}`)
    assert.equal(status, 400, query)
    assert.equal(body.errors[0].pointer, pointer, query)
    assert.match(body.errors[0].detail, detail)
  }
  const writer = await management.key({ scopes: ['write'] })
  const { status } = await management.ask('GET', '/v1/stats', undefined, {
    authorization: `Bearer ${writer}`,
  })
  assert.equal(status, 403)
  const reader = await management.key({ scopes: ['read'] })
  const { body } = await management.ask('GET', '/v1/stats', undefined, { authorization: `Bearer ${reader}` })
  assert.deepEqual([body.detection.requests, body.detection.rate], [0, 0])
  addsUp(body)
})
