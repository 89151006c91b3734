import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { until } from '../until.ts'
import { EventReader } from './event-reader.ts'
import { TestManagement } from './management.ts'

const AGENT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 },
  purposes: ['archive', 'training'],
}

for (const kind of KINDS)
  test(`${kind}: requests are read, newest first, by what was seen of them`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const atMs = Date.now()
    await manage.take([
      seen(1, { ...AGENT, seenAtMs: atMs, path: '/a/1', host: 'shop.example', app: 'shop', done: 'tag' }),
      seen(2, { verdict: 'human', confidence: 0.2, seenAtMs: atMs, path: '/b', done: 'pass', sampled: 0.01 }),
      seen(3, {
        ...AGENT,
        seenAtMs: atMs,
        path: '/a/2',
        done: 'block',
        verified: 'ip-range',
        evidence: ['signed-as-another', 'names-agent'],
      }),
    ])
    const ask = async (query: string) => (await manage.ask('GET', `/v1/requests?${query}`)).body
    const paths = async (query: string) =>
      (await ask(query)).requests.map(({ path }: { path: string }) => path)
    assert.deepEqual(await paths(''), ['/a/2', '/b', '/a/1'])
    const shares = (await ask('')).requests.map(({ sampled }: { sampled: number }) => sampled)
    assert.deepEqual(shares, [1, 0.01, 1])
    for (const [query, expected] of [
      ['verdict=human', ['/b']],
      ['category=crawler', ['/a/2', '/a/1']],
      ['purpose=training', ['/a/2', '/a/1']],
      ['purpose=archive&action=block', ['/a/2']],
      ['purpose=search', []],
      ['agent_id=gptbot&action=block', ['/a/2']],
      ['host=shop.example', ['/a/1']],
      ['app=shop', ['/a/1']],
      ['app=default', ['/a/2', '/b']],
      ['app=other', []],
      ['path=/a', ['/a/2', '/a/1']],
      ['address=203.0.113.99', []],
      ['ja4=none', []],
    ] as const)
      assert.deepEqual(await paths(query), expected, query)
    const first = await ask('limit=2')
    const rest = await ask(`limit=2&cursor=${first.next_cursor}`)
    assert.deepEqual([first.requests.length, rest.requests.length, rest.next_cursor], [2, 1, null])
    const [newest] = first.requests
    assert.deepEqual(
      [newest.agent_id, newest.action, newest.verified, newest.dry_run, newest.seen_at, newest.conflicts],
      ['gptbot', 'block', 'ip-range', null, new Date(atMs).toISOString(), ['signed-as-another']],
    )
    assert.equal(newest.app, 'default')
    assert.deepEqual(newest.agent_purpose, ['archive', 'training'])
    const one = await manage.ask('GET', `/v1/requests/${newest.id}`)
    assert.deepEqual([one.status, one.body], [200, newest])
    assert.equal((await manage.ask('GET', '/v1/requests/none')).status, 404)
    for (const [query, pointer] of [
      ['verdict=humn', '/verdict'],
      ['purpose=traning', '/purpose'],
      ['limit=0', '/limit'],
      [`verdict=human&cursor=${first.next_cursor}`, '/cursor'],
      ['cursor=x', '/cursor'],
      ['vedict=human', '/vedict'],
      ['path=', '/path'],
    ]) {
      const { status, body } = await manage.ask('GET', `/v1/requests?${query}`)
      assert.deepEqual([status, body.errors[0].pointer], [400, pointer], query)
    }
  })

for (const kind of KINDS)
  test(`${kind}: requests are found by every filter, and paths only as they are shown`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const atMs = Date.now() - 60_000
    await manage.take([
      seen(1, {
        ...{ seenAtMs: atMs, path: '/one', rule: 'no-bots', ja4h: 'ge_a_b_111111111111', app: 'shop' },
        verified: 'reverse-dns',
      }),
      seen(2, {
        seenAtMs: atMs + 5_000,
        path: '/reset/Xk29fLq0aB/two',
        address: '2001:db8::1',
        host: 'b.example',
      }),
      seen(3, {
        seenAtMs: atMs + 9_000,
        path: '/three',
        ja4h: 'ge20_b_222222222222',
        address: '203.0.113.9',
      }),
    ])
    const paths = async (query: string, key?: string) => {
      const { status, body } = await manage.ask(
        'GET',
        `/v1/requests?${query}`,
        undefined,
        key === undefined ? {} : { authorization: `Bearer ${key}` },
      )
      assert.equal(status, 200, query)
      assert.equal(body.stopped_at, null)
      return body.requests.map(({ path }: { path: string }) => path)
    }
    const time = (ms: number) => encodeURIComponent(new Date(ms).toISOString())
    for (const [query, expected] of [
      [`id=${seen(2).id}`, ['/reset/Xk29fLq0aB/two']],
      ['id=none', []],
      ['rule=no-bots', ['/one']],
      ['ja4h=ge20_b_222222222222', ['/three']],
      ['http_version=2', ['/three']],
      ['http_version=1.1', []],
      ['verified=true', ['/one']],
      ['verified=reverse-dns', ['/one']],
      ['verified=ip-range', []],
      ['verified=false&http_version=2', ['/three']],
      ['ja4h=ge_a_b', []],
      ['address=2001:db8::/32', ['/reset/Xk29fLq0aB/two']],
      ['address=203.0.113.0/24&host=b.example', []],
      [`since=${time(atMs + 5_000)}`, ['/three', '/reset/Xk29fLq0aB/two']],
      [`until=${time(atMs + 5_000)}`, ['/one']],
      [`since=${time(atMs + 1)}&until=${time(atMs + 9_000)}&host=b.example`, ['/reset/Xk29fLq0aB/two']],
      ['path=/reset/Xk', ['/reset/Xk29fLq0aB/two']],
    ] as const)
      assert.deepEqual(await paths(query), expected, query)
    const key = await manage.key({ scopes: ['read'] })
    assert.deepEqual(await paths('path=/reset/Xk', key), [])
    assert.deepEqual(await paths('path=/reset/[redacted]/[', key), ['/reset/[redacted]/[redacted]'])
    assert.deepEqual(await paths('path=/re', key), ['/reset/[redacted]/[redacted]'])
    for (const query of ['since=yesterday', 'until=1', 'rule=', 'ja4h=', 'verified=yes', 'http_version=4'])
      assert.equal((await manage.ask('GET', `/v1/requests?${query}`)).status, 400, query)
  })

test('a search that finds nothing soon says where it has stopped, and goes on from there', async (t) => {
  const manage = await TestManagement.start(t)
  const { db, close } = await openDatabase(manage.storeUrl, null, async () => undefined)
  t.teardown(close)
  for (let part = 0; part < 3; part++) {
    await manage.take(
      Array.from({ length: 2_000 }, (_, at) =>
        seen(part * 2_000 + at, { path: part + at === 0 ? '/rare' : '/', seenAtMs: Date.now() }),
      ),
    )
    const change = { last_sighting: (part + 1) * 65_536 - 1 }
    await db.updateTable('sighting_parts').set(change).where('number', '=', part).execute()
  }
  const ask = async (query: string) => (await manage.ask('GET', `/v1/requests?${query}`)).body
  let cursor = ''
  const found: string[] = []
  let pages = 0
  do {
    const body = await ask(`path=/rare&limit=200${cursor}`)
    found.push(...body.requests.map(({ path }: { path: string }) => path))
    assert.equal(body.stopped_at === null, body.next_cursor === null)
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    pages++
  } while (cursor !== '' && pages < 100)
  assert.deepEqual(found, ['/rare'])
})

for (const kind of KINDS)
  test(`${kind}: whoever listens is told of requests, wherever they were taken in`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const other = kind === 'postgres' ? await TestManagement.start(t, { storeUrl }) : manage
    const listen = (query: string) =>
      EventReader.open(`${manage.url}/v1/requests${query}`, {
        key: manage.adminKey,
        accept: 'text/event-stream',
      })
    const [all, blocked] = [await listen(''), await listen('?action=block')]
    assert.match(all.headers['content-type']!, /^text\/event-stream/)
    await wait(700)
    const atMs = Date.now()
    await other.take([
      seen(1, { ...AGENT, seenAtMs: atMs }),
      seen(2, { ...AGENT, done: 'block', seenAtMs: atMs }),
    ])
    const told = (reader: EventReader) => reader.events.filter(({ event }) => event === 'request')
    await until(() => told(all).length >= 2 && told(blocked).length >= 1)
    const actions = (reader: EventReader) => told(reader).map(({ data }) => JSON.parse(data!).action)
    assert.deepEqual([actions(all), actions(blocked)], [['tag', 'block'], ['block']])
    // Faster than anybody reads.
    await other.take(Array.from({ length: 1_000 }, (_, at) => seen(10 + at, { seenAtMs: atMs })))
    const skipped = () => all.events.find(({ event }) => event === 'skipped')
    await until(() => skipped() !== undefined)
    const count = told(all).length - 2 + JSON.parse(skipped()!.data!).requests
    assert.equal(count, 1_000)
    assert.ok(told(all).length <= 2 + 25)
    all.leave()
    blocked.leave()
    const { status, body } = await manage.ask('GET', '/v1/requests?cursor=x', undefined, {
      accept: 'text/event-stream',
    })
    assert.deepEqual([status, body.errors[0].pointer], [400, '/cursor'])
    // Who does not say gets JSON.
    const usual = await manage.ask('GET', '/v1/requests?limit=1', undefined, { accept: '*/*' })
    assert.equal(usual.body.requests.length, 1)
    assert.deepEqual(manage.failures, [])
  })

for (const kind of KINDS)
  test(`${kind}: many requests to one app displace none of another in streams`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const team = await manage.key({ scopes: ['read'], apps: ['quiet'] })
    const listen = (query: string, key: string) =>
      EventReader.open(`${manage.url}/v1/requests${query}`, { key, accept: 'text/event-stream' })
    const streams = [await listen('', team), await listen('?app=quiet', manage.adminKey)]
    const told = ({ events }: EventReader, name: string) => events.filter(({ event }) => event === name)
    const atMs = Date.now()
    const taken: string[] = []
    const take = async (app: string, count: number) => {
      const apps = Array.from({ length: count }, () => app)
      const from = taken.push(...apps) - count
      await manage.take(
        apps.map((_, each) => seen(from + each, { app, path: `/${from + each}`, seenAtMs: atMs })),
      )
    }
    const numberOf = ({ data }: { readonly data?: string }) => Number(JSON.parse(data!).path.slice(1))
    // They follow from their first read on.
    await until(async () => {
      await take('quiet', 1)
      await wait(50) // slower than a stream shows them
      return streams.every((stream) => told(stream, 'request').length > 0)
    })
    const before = streams.map((stream) => told(stream, 'request').length)
    await Promise.all([take('quiet', 1), take('noisy', 1_000)])
    await until(() => streams.every((stream, each) => told(stream, 'request').length > before[each]!))
    for (const stream of streams) {
      assert.deepEqual(told(stream, 'skipped'), [])
      assert.ok(told(stream, 'request').every(({ data }) => JSON.parse(data!).app === 'quiet'))
    }
    await take('quiet', 600)
    await until(() => streams.every((stream) => told(stream, 'skipped').length > 0))
    for (const stream of streams) {
      const skipped = told(stream, 'skipped').map(({ data }) => JSON.parse(data!).requests as number)
      const sum = skipped.reduce((sum, requests) => sum + requests, 0)
      const shown = told(stream, 'request')
      const all = taken.slice(numberOf(shown[0]!)).filter((app) => app === 'quiet')
      assert.equal(shown.length + sum, all.length)
      stream.leave()
    }
  })

test('requests have the names of the catalogue, in lists, alone and in streams', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  await manage.fillCatalogue()
  const reader = await EventReader.open(`${manage.url}/v1/requests`, {
    key: manage.adminKey,
    accept: 'text/event-stream',
  })
  t.teardown(() => reader.leave())
  await wait(700) // for the stream to follow
  await manage.take([
    seen(1, { ...AGENT, software: 'curl', seenAtMs: Date.now() }),
    seen(2, { verdict: 'agent', agent: 'made-up', software: null, seenAtMs: Date.now() }),
  ])
  const { requests } = (await manage.ask('GET', '/v1/requests')).body
  const named = (request: Readonly<Record<string, unknown>>) => [
    ...[request['agent_id'], request['agent_name'], request['software_id'], request['software_name']],
  ]
  const expected = [
    ['made-up', null, null, null],
    ['gptbot', 'GPTBot', 'curl', 'curl'],
  ]
  assert.deepEqual(requests.map(named), expected)
  assert.deepEqual(named((await manage.ask('GET', `/v1/requests/${requests[1].id}`)).body), expected[1])
  const told = () => reader.events.filter(({ event }) => event === 'request')
  await until(() => told().length >= 2)
  assert.deepEqual(
    told()
      .map(({ data }) => named(JSON.parse(data!)))
      .toReversed(),
    expected,
  )
})

for (const kind of KINDS)
  test(`${kind}: the evidence of a request is weighed between a person and a program`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    const evidence = ['names-agent', 'signature-proven', 'browser-headers']
    const shop = { app: 'shop', seenAtMs: Date.now() }
    const [one, none] = [seen(1, { ...AGENT, ...shop, evidence }), seen(2, { ...shop, evidence: [] })]
    await manage.take([one, none])
    const path = `/v1/requests/${one.id}/evidence`
    const { status, body } = await manage.ask('GET', path)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.request_id, body.verdict, body.program], [one.id, 'agent', 'agent'])
    const weights = new Map<string, number>(
      body.evidence.map(({ kind, weight }: { kind: string; weight: number }) => [kind, weight]),
    )
    assert.ok(weights.get('names-agent')! > 0, 'a name of an agent speaks for an agent')
    assert.equal(weights.get('signature-proven'), 0)
    const shown = [...weights.values()].reduce((sum, weight) => sum + weight, body.start)
    assert.ok(Math.abs(shown - body.sum) < 1e-9)
    const empty = (await manage.ask('GET', `/v1/requests/${none.id}/evidence`)).body
    assert.deepEqual([empty.evidence, empty.sum], [[], empty.start])
    const team = { authorization: `Bearer ${await manage.key({ apps: ['blog'], scopes: ['read'] })}` }
    assert.equal((await manage.ask('GET', path, undefined, team)).status, 404)
  })

for (const kind of KINDS)
  test(`${kind}: requests are listed oldest first, and a cursor is for one order`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const seenAtMs = Date.now()
    await manage.take(Array.from({ length: 7 }, (_, at) => seen(at, { path: `/${at}`, seenAtMs })))
    const page = async (query: string) => {
      const { status, body } = await manage.ask('GET', `/v1/requests?limit=3&${query}`)
      assert.equal(status, 200, JSON.stringify(body))
      const paths = body.requests.map(({ path }: { path: string }) => path)
      return { paths, cursor: body.next_cursor }
    }
    const first = await page('order=oldest')
    assert.deepEqual(first.paths, ['/0', '/1', '/2'])
    const second = await page(`order=oldest&cursor=${first.cursor}`)
    assert.deepEqual(second.paths, ['/3', '/4', '/5'])
    const third = await page(`order=oldest&cursor=${second.cursor}`)
    assert.deepEqual([third.paths, third.cursor], [['/6'], null])
    const newest = await page('order=newest')
    assert.deepEqual(
      [newest.paths, (await page('')).paths],
      [
        ['/6', '/5', '/4'],
        ['/6', '/5', '/4'],
      ],
    )
    assert.deepEqual((await page(`cursor=${newest.cursor}`)).paths, ['/3', '/2', '/1'])
    for (const query of [`cursor=${first.cursor}`, `order=oldest&cursor=${newest.cursor}`, 'order=path'])
      assert.equal((await manage.ask('GET', `/v1/requests?${query}`)).status, 400, query)
    const stream = { accept: 'text/event-stream' }
    assert.equal((await manage.ask('GET', '/v1/requests?order=oldest', undefined, stream)).status, 400)
  })
