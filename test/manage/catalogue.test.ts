import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { catalogueRows } from '../../src/runtime/signatures/catalogue-rows.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { signatureOf, softwareOf } from '../contract/catalogue.ts'
import { Store } from '../../src/store/store.ts'
import { type Answered, TestManagement } from './management.ts'

const SDK = 't13d5212h1_b262b3658495_8e6e362c5eac'
const CATEGORIES = ['llm-sdk', 'browser-agent', 'orchestrator', 'crawler', 'mcp-client', 'custom']
const DAY_MS = 86_400_000

test('agents: every one that is known is listed once, with what the interface names', async (t) => {
  const { ask } = await start(t)
  const { body, status, headers } = await ask('/v1/agents')
  assert.equal(status, 200)
  assert.deepEqual([body.page, body.limit, body.agents.length], [1, 50, 50])
  assert.match(headers.get('link')!, /<http:\/\/127.0.0.1:\d+\/v1\/agents\?page=2>; rel="next"/)
  const all = new Map<string, { category: string }>()
  for (let page = 1; all.size < body.total; page++) {
    const { agents } = (await ask(`/v1/agents?limit=200&page=${page}`)).body
    assert.notEqual(agents.length, 0)
    for (const agent of agents) {
      assert.ok(!all.has(agent.id), agent.id)
      all.set(agent.id, agent)
      assert.deepEqual(Object.keys(agent.fingerprints), ['ja4', 'ja4s', 'ja4h', 'ja4x'])
      assert.ok(agent.name !== '' && typeof agent.description === 'string')
      assert.match(agent.first_seen, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.equal(agent.last_seen, null)
    }
  }
  let sum = 0
  for (const category of CATEGORIES) {
    const { total, agents } = (await ask(`/v1/agents?category=${category}`)).body
    assert.ok(agents.every((agent: { category: string }) => agent.category === category))
    sum += total
  }
  assert.equal(sum, body.total)
  const training = (await ask('/v1/agents?purpose=training&limit=200')).body
  const ids: string[] = training.agents.map(({ id }: { id: string }) => id)
  for (const id of ['gptbot', 'claudebot', 'ccbot', 'applebot']) assert.ok(ids.includes(id), id)
  assert.equal(training.total, ids.length)
  assert.ok(training.agents.every((agent: { purpose: string[] }) => agent.purpose.includes('training')))
  assert.ok(!ids.includes('chatgpt-user') && !ids.includes('googlebot'))
  const wrong = await ask('/v1/agents?category=crawlers')
  assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, '/category'])
  assert.match(wrong.body.errors[0].detail, /did you mean "crawler"/)
})

test('agents: what is looked for is taken as it is written', async (t) => {
  const { ask, write } = await start(t, false)
  await write(async (store, queries) => {
    const add = (document: object) => store.catalogue.addSoftware(softwareOf({ ...document }), 1, queries)
    await add({ id: 'percent', name: '100% Bot_x\\', vendor: 'ACME', description: 'Überall' })
    await add({ id: 'plain', name: 'Plain', aliases: ['Über-Name 💥'] })
    await add({ id: 'tool', name: 'percent tool', kind: 'tool' })
  })
  const ids = async (q: string) => {
    const { body } = await ask(`/v1/agents?q=${encodeURIComponent(q)}`)
    assert.equal(body.agents?.length, body.total, q)
    return body.agents.map(({ id }: { id: string }) => id)
  }
  for (const [q, found] of [
    ['%', ['percent']],
    ['_', ['percent']],
    ['\\', ['percent']],
    ['_x\\', ['percent']],
    ['acme', ['percent']],
    ['ÜBER', ['percent', 'plain']],
    ['name 💥', ['plain']],
    ['tool', []],
    ['%%', []],
    ["' or 1=1 --", []],
  ] as const)
    assert.deepEqual(await ids(q), found, q)
  for (const query of [
    'q=',
    'q=%00',
    `q=${'x'.repeat(201)}`,
    'q=a&q=b',
    'page=0',
    'limit=201',
    'page=1e3',
    'qq=1',
  ])
    assert.equal((await ask(`/v1/agents?${query}`)).status, 400, query)
  const far = await ask('/v1/agents?page=1000000&limit=200')
  assert.deepEqual([far.status, far.body.agents, far.body.total], [200, [], 2])
})

test('agents: in detail by id and by exact name, with what live traffic shows', async (t) => {
  const { ask, db } = await start(t)
  const nowMs = Date.now()
  await db
    .insertInto('agents_seen')
    .values({
      ...{ software_id: 'openai-sdk-python', first_seen_ms: 1, last_seen_ms: nowMs, requests: 9 },
      versions: JSON.stringify(Array.from({ length: 64 }, (_, i) => [`1.${i}`, 99 - i, nowMs])),
    })
    .execute()
  const rollup = { dimension: 'agent', key: 'openai-sdk-python', agents: 0, blocked: 0 }
  const at = (ms: number, grain: number) => ({ grain_ms: grain, at_ms: Math.floor(ms / grain) * grain })
  for (const [agoMs, requests] of [
    [0, 1],
    [2 * DAY_MS, 3],
    [9 * DAY_MS, 5],
  ] as const)
    for (const grain of [60_000, 3_600_000, DAY_MS])
      await db
        .insertInto('rollups')
        .values({ ...rollup, ...at(nowMs - agoMs, grain), requests })
        .execute()
  const { status, body } = await ask('/v1/agents/openai-python') // what it is also called
  assert.equal(status, 200)
  assert.deepEqual(
    [body.id, body.category, body.kind, body.vendor, body.sightings],
    ['openai-sdk-python', 'llm-sdk', 'agent', 'OpenAI', { '24h': 1, '7d': 4, total: 9 }],
  )
  assert.equal(Date.parse(body.last_seen), nowMs)
  assert.ok(body.user_agent_patterns.length > 0 && body.signatures.length > 0)
  assert.ok(body.signatures.every((each: { agent_id: string }) => each.agent_id === 'openai-sdk-python'))
  assert.deepEqual((await ask(`/v1/agents/${encodeURIComponent(body.name)}`)).body, body)
  assert.deepEqual([body.versions.length, body.versions[0], body.versions[49]], [50, '1.0', '1.49'])
  const googlebot = (await ask('/v1/agents/googlebot')).body
  assert.deepEqual(googlebot.versions, [])
  assert.deepEqual(googlebot.purpose, ['search'])
  assert.equal(googlebot.purpose_sources[0].purpose, 'search')
  assert.match(googlebot.purpose_sources[0].source, /^developers\.google\.com/)
  assert.deepEqual([body.purpose, body.purpose_sources], [[], []])
  assert.deepEqual(googlebot.verification.methods, ['ip-range', 'reverse-dns'])
  assert.ok(
    googlebot.verification.sources.some((each: { source: string }) => each.source === '.googlebot.com'),
  )
  for (const seen of ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5+02:00'])
    assert.deepEqual(
      (await ask(`/v1/agents?seen_since=${encodeURIComponent(seen)}`)).body.agents.map(
        (each: { id: string }) => each.id,
      ),
      ['openai-sdk-python'],
    )
  const later = new Date(nowMs + 1).toISOString()
  assert.equal((await ask(`/v1/agents?seen_since=${later}`)).body.total, 0)
  assert.equal((await ask('/v1/agents?seen_since=yesterday')).status, 400)
  for (const nobody of [
    'no-such',
    '%00',
    '%25',
    '%F0%9F%92%A5',
    'openai-sdk-python%00',
    'x'.repeat(5000),
    '..%2f',
  ])
    assert.equal((await ask(`/v1/agents/${nobody}`)).status, 404, nobody)
})

test('signatures: every agent_id leads somewhere, and nobody is named by one that has none', async (t) => {
  const { ask } = await start(t)
  const { body } = await ask('/v1/signatures?limit=200&sort=fingerprint')
  assert.equal(body.total > 100, true)
  const ids = new Set<string>()
  for (const each of body.signatures) {
    assert.ok(each.confidence > 0 && each.confidence < 1, each.fingerprint)
    assert.deepEqual([each.source, each.status, each.last_seen], ['builtin', 'active', null])
    ids.add(each.agent_id)
  }
  for (const id of [...ids].slice(0, 10)) assert.equal((await ask(`/v1/agents/${id}`)).status, 200, id)
})

test('signatures: filters, and orders', async (t) => {
  const { ask } = await start(t)
  const list = async (query: string) => (await ask(`/v1/signatures?limit=200&${query}`)).body
  const fingerprints = (body: Answered['body']) => body.signatures.map((each: Shown) => each.fingerprint)
  let total = 0
  for (const type of ['ja4', 'ja4s', 'ja4h', 'ja4x']) {
    const body = await list(`type=${type}`)
    assert.ok(body.signatures.every((each: Shown) => each.type === type))
    total += body.total
  }
  assert.equal((await list('')).total, total)
  const ofAgent = await list('agent_id=anthropic-sdk-js')
  assert.ok(
    ofAgent.total > 3 && ofAgent.signatures.every((each: Shown) => each.agent_id === 'anthropic-sdk-js'),
  )
  assert.equal((await list('agent_id=Anthropic%20TypeScript%20SDK')).total, ofAgent.total)
  assert.equal((await list('agent_id=nobody-at-all')).total, 0)
  const sure = await list('min_confidence=0.9&sort=confidence')
  assert.ok(sure.total > 0 && sure.signatures.every(({ confidence }: Shown) => confidence >= 0.9))
  assert.deepEqual(
    sure.signatures.map(({ confidence }: Shown) => confidence),
    sure.signatures.map(({ confidence }: Shown) => confidence).sort(),
  )
  assert.deepEqual(
    fingerprints(await list('sort=-fingerprint&q=b262')),
    fingerprints(await list('sort=fingerprint&q=b262')).reverse(),
  )
  const most = (await list('sort=-observations')).signatures.map(({ observations }: Shown) => observations)
  assert.deepEqual(
    most,
    most.toSorted((one: number, other: number) => other - one),
  )
  for (const q of [SDK, SDK.slice(0, 6), 'b262b3658495', '8e6e362c'])
    assert.ok(fingerprints(await list(`q=${q}`)).includes(SDK), q)
  assert.ok((await list('q=anthropic%20typescript')).total >= ofAgent.total)
  const ofOne = (await ask('/v1/signatures?q=b262&limit=1')).body
  assert.ok(ofOne.total > 1 && ofOne.signatures.length === 1)
  const behind = (await ask(`/v1/signatures?q=b262&limit=1&page=${ofOne.total + 1}`)).body
  assert.deepEqual([behind.total, behind.signatures], [ofOne.total, []])
  for (const q of ['262b3658495', '%25%25', '%F0%9F%92%A5']) assert.equal((await list(`q=${q}`)).total, 0, q)
  for (const query of [
    'type=ja3',
    'unknown_only=yes',
    'min_confidence=2',
    'min_confidence=-0',
    'min_confidence=NaN',
    'sort=name',
    'agent_id=',
    'q=%00',
    'agent_id=%00',
    'agent=x',
  ])
    assert.equal((await ask(`/v1/signatures?${query}`)).status, 400, query)
})

test('signatures: what is seen and nobody is named for is unknown', async (t) => {
  const { ask, see } = await start(t)
  const unknown = 't13d0101h1_000000000000_000000000001'
  // An SDK's by all it says: what it has as `*` is anything here.
  const byStars = 'po11nn192a00_9b1a6c96d1f4_000000000000_0123456789ab'
  const unlike = 'po11nn192a00_9b1a6c96d1f5_000000000000_0123456789ab'
  await see('ja4', SDK, 10)
  await see('ja4', unknown, 20)
  await see('ja4h', byStars, 30)
  await see('ja4h', unlike, 40)
  const { body } = await ask('/v1/signatures?unknown_only=true&sort=-observations')
  assert.deepEqual(
    body.signatures.map((each: Shown) => [
      each.fingerprint,
      each.agent_name,
      each.agent_id,
      each.kind,
      each.source,
      each.status,
      each.confidence,
      each.observations,
    ]),
    [
      [unlike, null, null, null, 'observed', 'unknown', 0, 40],
      [unknown, null, null, null, 'observed', 'unknown', 0, 20],
    ],
  )
  assert.equal(body.total, 2)
  assert.equal((await ask('/v1/signatures?unknown_only=true&type=ja4')).body.total, 1)
  assert.equal((await ask('/v1/signatures?unknown_only=true&q=po11')).body.total, 1)
  assert.equal((await ask('/v1/signatures?unknown_only=true&agent_id=anthropic-sdk-js')).body.total, 0)
  const [known] = (await ask(`/v1/fingerprint/lookup?ja4=${SDK}`)).body
  assert.deepEqual([known.requests_seen, Date.parse(known.last_seen)], [10, 2000])
  const [seen] = (await ask(`/v1/fingerprint/lookup?ja4=${unknown}`)).body
  assert.deepEqual([seen.agent_name, seen.status, seen.requests_seen], [null, 'unknown', 20])
})

test('lookup: exactly those that say nothing else, of all types asked for', async (t) => {
  const { ask } = await start(t)
  const { status, body } = await ask(`/v1/fingerprint/lookup?ja4=${SDK}`)
  assert.equal(status, 200)
  assert.ok(Array.isArray(body) && body.length > 0)
  assert.ok(
    body.every((each: Shown) => each.fingerprint === SDK && each.type === 'ja4' && !('score' in each)),
  )
  assert.ok(body.some((each: Shown) => each.agent_id === 'anthropic-sdk-js'))
  const ja4h = 'po11nn192a00_9b1a6c96d1f4_000000000000_0123456789ab'
  const byStars = (await ask(`/v1/fingerprint/lookup?ja4h=${ja4h}`)).body
  assert.deepEqual(
    byStars.map((each: Shown) => each.fingerprint),
    ['po11nn192a00_9b1a6c96d1f4_*_*'],
  )
  const pattern = await ask('/v1/fingerprint/lookup?ja4h=po11nn192a00_9b1a6c96d1f4_*_*')
  assert.deepEqual(pattern.body, byStars)
  const both = (
    await ask(`/v1/fingerprint/lookup?ja4=${SDK},${SDK}%20,t13d0101h1_000000000000_000000000001&ja4h=${ja4h}`)
  ).body
  assert.equal(both.length, body.length + 1)
  for (const nothing of ['ja4s=t130200_c0ff_0123456789ab', 'ja4x=0123456789ab_0123456789ab_0123456789ab'])
    assert.deepEqual((await ask(`/v1/fingerprint/lookup?${nothing}`)).body, [])
})

test('lookup: partly those that share the stable parts, the most alike first', async (t) => {
  const { ask, write } = await start(t, false)
  const [a, b, c] = ['t13d1516h2', '8daaf6152771', 'e5627efa2ab1']
  const other = '111111111111'
  const values = {
    same: `${a}_${b}_${c}`,
    alpn: `t13d1516h1_${b}_${c}`,
    ciphers: `${a}_${other}_${c}`,
    extensions: `${a}_${b}_${other}`,
    onlyCiphers: `t12i0101h1_${b}_${other}`,
    onlyExtensions: `t12i0101h1_${other}_${c}`,
    stars: `*_${b}_${c}`,
    nothing: `t12i0101h1_${other}_${other}`,
    onlyPrefix: `${a}_${other}_${other}`,
  }
  await write(async (store, queries) => {
    await store.catalogue.addSoftware(softwareOf({ id: 'sdk', name: 'SDK' }), 1, queries)
    for (const value of Object.values(values))
      await store.catalogue.addSignature(signatureOf({ value, softwareId: 'sdk' }), queries)
    const taken = signatureOf({ value: `${a}_${b}_222222222222`, softwareId: 'sdk' })
    await store.catalogue.addSignature(taken, queries)
    await store.catalogue.setStatus(taken, 'retired', queries)
  })
  const { body } = await ask(`/v1/fingerprint/lookup?ja4=${values.same}&match=partial`)
  assert.deepEqual(
    body.map((each: Shown) => [each.fingerprint, each.score]),
    [
      [values.same, 1],
      [values.stars, 0.57],
      [values.alpn, 0.57],
      [values.ciphers, 0.45],
      [values.onlyExtensions, 0.36],
      [values.extensions, 0.32],
      [values.onlyCiphers, 0.2],
    ],
  )
  const exact = (await ask(`/v1/fingerprint/lookup?ja4=${values.same}&match=exact`)).body
  assert.deepEqual(
    new Set(exact.map((each: Shown) => each.fingerprint)),
    new Set([values.same, values.stars]),
  )
})

test('lookup: what is no fingerprint is refused with the part that is wrong', async (t) => {
  const { ask } = await start(t, false)
  const refused = async (query: string) => {
    const { status, body } = await ask(`/v1/fingerprint/lookup?${query}`)
    assert.equal(status, 400, query)
    assert.equal(body.code, 'invalid_request')
    return body.errors.map(
      ({ pointer, detail }: { pointer: string; detail: string }) => `${pointer} ${detail}`,
    )
  }
  assert.deepEqual(await refused(''), ['/ja4 is missing: give at least one of ja4, ja4s, ja4h, ja4x'])
  assert.match(
    (await refused(`ja4=${SDK.replace('b262', 'B262')}`))[0]!,
    /^\/ja4 has a part b that is "B262b3658495"; expected 12 hex/,
  )
  assert.match((await refused(`ja4=${SDK},`))[0]!, /^\/ja4 is "", which has one part; a ja4 has 3/)
  assert.match((await refused(`ja4s=${SDK}`))[0]!, /^\/ja4s has a part a/)
  assert.equal((await refused(`ja4=x,y&ja4h=${SDK}`)).length, 3)
  await refused('ja4=*_*_*')
  await refused('ja4=%00')
  await refused('ja4=')
  await refused(`ja3=${SDK}`)
  await refused(`ja4=${SDK}&ja4=${SDK}`)
  await refused(`ja4=${SDK}&match=fuzzy`)
  const many = Array.from({ length: 51 }, (_, number) => `t13d${1000 + number}h2_000000000000_000000000000`)
  assert.match((await refused(`ja4=${many.join(',')}`))[0]!, /must have at most 50 fingerprints/)
  assert.equal((await ask(`/v1/fingerprint/lookup?match=partial&ja4=${many.slice(1).join(',')}`)).status, 200)
})

test('all of it needs the scope read, and no more', async (t) => {
  const { manage } = await start(t, false)
  const paths = ['/v1/agents', '/v1/agents/x', '/v1/signatures', `/v1/fingerprint/lookup?ja4=${SDK}`]
  const bearer = async (scope: 'read' | 'detect') => ({
    authorization: `Bearer ${await manage.key({ scopes: [scope] })}`,
  })
  const [read, detect] = [await bearer('read'), await bearer('detect')]
  for (const path of paths) {
    assert.equal(
      (await manage.ask('GET', path, undefined, read)).status,
      path.endsWith('/x') ? 404 : 200,
      path,
    )
    assert.equal((await manage.ask('GET', path, undefined, detect)).status, 403, path)
  }
})

interface Shown {
  readonly fingerprint: string
  readonly type: string
  readonly agent_id: string | null
  readonly agent_name: string | null
  readonly kind: string | null
  readonly source: string
  readonly status: string
  readonly confidence: number
  readonly observations: number
  readonly score: number
}

/** With all that comes with Gatehouse, unless it is not wanted. */
async function start(t: Test, isFull = true) {
  const manage = await TestManagement.start(t)
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const { db, close } = await openDatabase(manage.storeUrl, null, async () => undefined)
  t.teardown(close)
  if (isFull) {
    const rows = await catalogueRows({ feeds: [], paths: [] })
    await store.catalogueMerge.merge(rows, { hash: 'x', nowMs: 1, pause: async () => undefined })
  }
  t.teardown(() => assert.deepEqual(manage.failures, []))
  return {
    manage,
    db,
    ask: (path: string) => manage.ask('GET', path),
    write: (
      work: (of: Store, queries: Parameters<Parameters<Store['transaction']>[0]>[0]) => Promise<void>,
    ) => store.transaction((queries) => work(store, queries)),
    see: (type: 'ja4' | 'ja4h', value: string, requests: number) =>
      db
        .insertInto('fingerprints_seen')
        .values({
          ...{ type, value, requests, first_seen_ms: 1000, last_seen_ms: 2000 },
          ...{ addresses: 1, sketch: '', is_named: 0, rank: 1 },
        })
        .execute(),
  }
}
