import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
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
      seen(2, { verdict: 'human', confidence: 0.2, seenAtMs: atMs, path: '/b', done: 'pass' }),
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

test('what is rare is looked for in parts, and what is damaged is left out', async (t) => {
  const manage = await TestManagement.start(t)
  const atMs = Date.now()
  for (let from = 0; from < 25_000; from += 5_000)
    await manage.take(
      Array.from({ length: 5_000 }, (_, at) =>
        seen(from + at, { verdict: 'human', seenAtMs: atMs, path: from + at === 7 ? '/rare' : '/' }),
      ),
    )
  const { db, close } = await openDatabase(manage.storeUrl, null, async () => undefined)
  for (const [number, document] of [
    [20_000, '{"not": "one"}'],
    [25_000, 'no JSON at all'],
  ] as const)
    await db.updateTable('sightings').set({ document }).where('number', '=', number).execute()
  await close()
  let cursor = ''
  const found: string[] = []
  let parts = 0
  do {
    const { body } = await manage.ask('GET', `/v1/requests?path=/rare&limit=200${cursor}`)
    found.push(...body.requests.map(({ path }: { path: string }) => path))
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    parts++
  } while (cursor !== '' && parts < 100)
  assert.deepEqual(found, ['/rare'])
  assert.ok(parts > 1, 'no part looks at all')
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
    for (let tries = 0; told(all).length < 2 && tries < 100; tries++) await wait(50)
    const actions = (reader: EventReader) => told(reader).map(({ data }) => JSON.parse(data!).action)
    assert.deepEqual([actions(all), actions(blocked)], [['tag', 'block'], ['block']])
    // Faster than anybody reads.
    await other.take(Array.from({ length: 1_000 }, (_, at) => seen(10 + at, { seenAtMs: atMs })))
    const skipped = () => all.events.find(({ event }) => event === 'skipped')
    for (let tries = 0; skipped() === undefined && tries < 100; tries++) await wait(50)
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
