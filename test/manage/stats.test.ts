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
  const { by_agent, verified_by, by_category, by_purpose, by_action, by_confidence, ...totals } = detection
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
  ])
  assert.deepEqual([by_confidence['0.9'], by_confidence['0.5'], by_confidence['0.1']], [3, 1, 1])
  assert.equal(series.at(-1).requests, 4)
  const { by_verdict: verdicts, by_category: categories, by_purpose: purposes } = series.at(-1)
  assert.deepEqual(purposes, { archive: 2, training: 3, other: 1, unpublished: 1 })
  assert.deepEqual([verdicts, categories], [{ agent: 4 }, { crawler: 2, custom: 1, unnamed: 1 }])
  const hour = (await management.ask('GET', '/v1/stats?window=1h')).body
  assert.deepEqual([hour.detection.requests, hour.series.length, hour.bucket], [4, 60, '1m'])
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
