import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { once } from 'node:events'
import { test } from 'tap'
import { Agent, EventSource } from 'undici'
import { sighting } from '../contract/bus.ts'
import { freshUrl, KINDS, openAt, type Owner } from '../store/databases.ts'
import { addEvents, type Asking, EventReader, newEvent, until } from './event-reader.ts'
import { TestManagement, type TestOptions } from './management.ts'

const STREAM = '/v1/events'

for (const kind of KINDS) {
  test(`${kind}: who listens is told what is added from then on, and goes on behind it after a restart`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { manage, store, listen } = await started(t, { storeUrl })
    await addEvents(store, newEvent('evt_before'))
    const reader = await listen()
    assert.deepEqual(
      [reader.status, reader.headers['content-type'], reader.headers['cache-control']],
      [200, 'text/event-stream', 'no-cache, no-transform'],
    )
    assert.equal(reader.headers['x-accel-buffering'], 'no')
    await until(() => reader.events.length === 1)
    const atMs = Date.parse('2026-11-21T09:30:00.000Z')
    await addEvents(store, newEvent('evt_a', { atMs, type: 'new_agent', data: '{"agent":{"id":"x"}}' }))
    await until(() => reader.told.length === 1)
    const [first] = reader.told
    assert.equal(first!.event, 'new_agent')
    assert.deepEqual(JSON.parse(first!.data!), {
      ...{ id: 'evt_a', type: 'new_agent', timestamp: '2026-11-21T09:30:00.000Z' },
      data: { agent: { id: 'x' } },
    })
    await manage.stop()
    await until(() => reader.hasEnded)
    await addEvents(store, newEvent('evt_b'), newEvent('evt_c'))
    const again = await TestManagement.start(t, { storeUrl })
    for (const lastEventId of [first!.id!, 'evt_a']) {
      const next = await EventReader.open(`${again.url}${STREAM}`, { key: again.adminKey, lastEventId })
      await until(() => next.told.length === 2)
      assert.deepEqual([next.ids(), next.events[0]!.event], [['evt_b', 'evt_c'], 'position'])
      next.leave()
    }
    assert.deepEqual([...manage.failures, ...again.failures], [])
  })
}

test('a place that is gone, or was never there, is said; then comes all that is kept', async (t) => {
  const { manage, store, listen } = await started(t)
  await addEvents(store, newEvent('evt_a'), newEvent('evt_b'), newEvent('evt_c'))
  const [a, b] = await store.events.after(0, 9)
  await store.events.forget(0, 1, 9)
  const resets = [
    [String(a!.number), 'forgotten'],
    ['999999', 'unknown'],
    ['evt_nobody', 'unknown'],
    [String(b!.number), null],
  ] as const
  for (const [lastEventId, reason] of resets) {
    for (const reader of [await listen({ lastEventId }), await listen({}, `?last_event_id=${lastEventId}`)]) {
      await until(() => reader.told.length === 1)
      const [first] = reader.events
      assert.deepEqual([first!.event, reader.ids()], [reason === null ? 'position' : 'reset', ['evt_c']])
      assert.deepEqual(JSON.parse(first!.data!), {
        last_event_id: String(b!.number),
        ...(reason === null ? {} : { reason }),
      })
      reader.leave()
    }
  }
  const [both] = [await listen({ lastEventId: String(b!.number) }, '?last_event_id=0')]
  await until(() => both.told.length === 1)
  assert.equal(both.events[0]!.event, 'position') // a client that asks again does not change its address
  assert.deepEqual(manage.failures, [])
})

test('what cannot be a stream is a problem, in the order of all others', async (t) => {
  const { manage, listen } = await started(t)
  const ask = (query: string, headers = {}) =>
    manage.ask('GET', `/v1/events${query}`, undefined, { accept: 'text/event-stream', ...headers })
  for (const wrong of ['x', '-1', '1.5', '9999999999999999', 'evt_', "1'", 'evt_a b']) {
    const { status, body } = await ask('', { 'last-event-id': wrong, accept: 'text/event-stream' })
    assert.deepEqual([status, body.errors[0].pointer], [400, '/last_event_id'], wrong)
  }
  const wrongs = [
    ['?types=new_agent,new_agents', '/types'],
    ['?category=crawlers', '/category'],
    ['?min_severity=bad', '/min_severity'],
    ['?min_confidence=1.1', '/min_confidence'],
    ['?since=yesterday', '/since'],
    ['?until=2026-11-21T09:30:00Z', '/until'],
    ['?page=1', '/page'],
    ['?type=new_agent', '/type'],
  ] as const
  for (const [query, pointer] of wrongs) {
    const { status, body } = await ask(query)
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer], query)
  }
  assert.match((await ask('?types=new_agents')).body.detail, /did you mean "new_agent"\?/)
  const html = await ask('', { accept: 'text/html' })
  assert.deepEqual([html.status, html.body.code], [406, 'not_acceptable'])
  assert.equal((await ask('', { authorization: '' })).status, 401)
  const none = await manage.key({ scopes: ['detect'] })
  assert.equal((await ask('', { authorization: `Bearer ${none}` })).status, 403)
  const list = await ask('?last_event_id=1', { accept: 'application/json' })
  assert.deepEqual([list.status, list.body.errors[0].pointer], [400, '/last_event_id'])
  const head = await listen({ method: 'HEAD' })
  assert.deepEqual([head.status, head.headers['content-type']], [200, 'text/event-stream'])
  await until(() => head.hasEnded)
  assert.equal((await manage.ask('POST', '/v1/events', {})).status, 405)
  assert.deepEqual(manage.failures, [])
})

test('events are found by the purpose of their agent', async (t) => {
  const { manage, store } = await started(t, { knows: true })
  const about = { type: 'threat_detected', category: 'crawler', severity: 'low' } as const
  await addEvents(
    store,
    newEvent('evt_training', { ...about, agent: 'gptbot' }),
    newEvent('evt_search', { ...about, agent: 'googlebot' }),
    newEvent('evt_unpublished', { ...about, agent: 'diffbot' }),
    newEvent('evt_none', { ...about, agent: null }),
  )
  const found = async (query: string) => {
    const { status, body } = await manage.ask('GET', `/v1/events?${query}`)
    assert.equal(status, 200, query)
    return body.events.map(({ id }: { id: string }) => id).toSorted()
  }
  assert.deepEqual(await found('purpose=training'), ['evt_training'])
  assert.deepEqual(await found('purpose=search,training'), ['evt_search', 'evt_training'])
  assert.deepEqual(await found('purpose=training&agent=GPTBot'), ['evt_training'])
  assert.deepEqual(await found('purpose=training&agent=googlebot'), [])
  assert.equal((await found('')).length, 4)
  const wrong = await manage.ask('GET', '/v1/events?purpose=traning')
  assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, '/purpose'])
  const reader = await EventReader.open(`${manage.url}/v1/events?since=1970-01-01T00:00:00Z&purpose=search`, {
    ...{ key: manage.adminKey, accept: 'text/event-stream' },
  })
  t.teardown(() => reader.leave())
  await until(() => reader.told.length > 0)
  assert.deepEqual(reader.ids(), ['evt_search'])
})

test('events are found by their app', async (t) => {
  const { manage, store } = await started(t)
  await addEvents(
    store,
    newEvent('evt_shop', { app: 'shop' }),
    newEvent('evt_blog', { app: 'blog' }),
    newEvent('evt_default', { app: 'default' }),
    newEvent('evt_all'),
  )
  const read = async (query: string) => {
    const { body } = await manage.ask('GET', `/v1/events?${query}`)
    return body.events.map(({ id }: { id: string }) => id)
  }
  assert.deepEqual(await read('app=shop'), ['evt_shop'])
  assert.deepEqual(await read('app=shop,default'), ['evt_default', 'evt_shop'])
  assert.deepEqual(await read('app=unheard-of'), [])
  assert.equal((await read('')).length, 4)
  const wrong = await manage.ask('GET', '/v1/events?app=')
  assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, '/app'])
  const reader = await EventReader.open(`${manage.url}/v1/events?since=1970-01-01T00:00:00Z&app=blog`, {
    ...{ key: manage.adminKey, accept: 'text/event-stream' },
  })
  t.teardown(() => reader.leave())
  await addEvents(store, newEvent('evt_later', { app: 'shop' }), newEvent('evt_last', { app: 'blog' }))
  await until(() => reader.told.length === 2)
  assert.deepEqual(reader.ids(), ['evt_blog', 'evt_last'])
})

test('a stream has what was asked for, from a time on, in /v2 too; and who reads compressed gets it at once', async (t) => {
  const { manage, store } = await started(t)
  const threat = { type: 'threat_detected', agent: 'gptbot', category: 'crawler' } as const
  await addEvents(
    store,
    newEvent('evt_old', { atMs: 1_000 }),
    newEvent('evt_low', { ...threat, atMs: 2_000, severity: 'low', confidence: 0.9 }),
    newEvent('evt_high', { ...threat, atMs: 2_000, severity: 'high', confidence: 0.9 }),
    newEvent('evt_unsure', { ...threat, atMs: 3_000, severity: 'critical', confidence: 0.1 }),
    newEvent('evt_new', { atMs: 4_000 }),
  )
  const key = await manage.key({ scopes: ['read'] })
  const since = 'since=1970-01-01T00:00:02Z'
  const asked = [
    [`?${since}`, ['evt_low', 'evt_high', 'evt_unsure', 'evt_new']],
    [`?${since}&types=new_signature,new_agent`, ['evt_new']],
    [
      `?${since}&min_severity=high&category=crawler&agent=gptbot,curl&types=threat_detected`,
      ['evt_high', 'evt_unsure'],
    ],
    [`?${since}&min_severity=high&min_confidence=0.5`, ['evt_high', 'evt_new']],
  ] as const
  for (const [query, expected] of asked) {
    const reader = await EventReader.open(`${manage.url}/v2/events${query}`, {
      ...{ key, accept: 'text/event-stream' },
    })
    assert.equal(reader.headers['x-api-stability'], 'beta')
    await until(() => reader.told.length === expected.length)
    assert.deepEqual(reader.ids(), expected)
    reader.leave()
  }
  const response = await fetch(`${manage.url}${STREAM}?${since}`, {
    headers: {
      ...{ authorization: `Bearer ${key}`, accept: 'text/event-stream', 'accept-encoding': 'gzip, br' },
    },
  })
  assert.equal(response.headers.get('content-encoding'), null)
  const { value } = await response.body!.getReader().read()
  assert.match(Buffer.from(value!).toString(), /^retry: 2000\nid: 1\nevent: position\n/)
})

test('JSON is the answer unless the client prefers a stream', async (t) => {
  const { manage, store } = await started(t)
  await addEvents(store, newEvent('evt_a'))
  const typeFor = async (path: string, accept: string | null) => {
    const response = await sentBare(`${manage.url}${path}`, {
      authorization: `Bearer ${manage.adminKey}`,
      ...(accept === null ? {} : { accept }),
    })
    const type = response.headers['content-type'] ?? ''
    assert.match(response.headers.vary ?? '', /Accept/, String(accept))
    response.destroy()
    return [response.statusCode, type.split(';', 1)[0]]
  }
  const json = [200, 'application/json']
  const stream = [200, 'text/event-stream']
  for (const path of ['/v1/events', '/v2/events', '/v1/requests', '/v2/requests'])
    for (const [accept, expected] of [
      [null, json],
      ['*/*', json],
      ['application/json', json],
      ['application/*', json],
      ['text/html, application/xhtml+xml, */*;q=0.8', json],
      ['application/json, text/event-stream', json],
      ['application/json, text/event-stream;q=0.9', json],
      ['text/event-stream;q=0.5, */*;q=0.8', json],
      ['text/event-stream;q=0, */*', json],
      ['text/event-stream', stream],
      ['TEXT/Event-Stream', stream],
      ['text/event-stream, */*', stream],
      ['text/event-stream, application/json', stream],
      ['application/json;q=0.9, text/event-stream', stream],
      ['text/event-stream;q=0.5', stream],
    ] as const)
      assert.deepEqual(await typeFor(path, accept), expected, `${path} ${accept}`)
  for (const accept of ['text/html', 'application/json;q=0, text/html'])
    assert.deepEqual(await typeFor('/v1/events', accept), [406, 'application/problem+json'], accept)
  assert.deepEqual(manage.failures, [])
})

test('who looks back has a list, and each event by itself', async (t) => {
  const { manage, store } = await started(t)
  const ids = ['evt_a', 'evt_b', 'evt_c']
  await addEvents(store, ...ids.map((id, at) => newEvent(id, { atMs: at * 1_000 })))
  await addEvents(store, newEvent('evt_test', { type: 'test' }))
  const read = (path: string) => manage.ask('GET', path, undefined, { accept: 'application/json' })
  const idsOf = ({ body }: { body: { events: { id: string }[] } }) => body.events.map(({ id }) => id)
  const page = await read('/v1/events?limit=2')
  assert.deepEqual([idsOf(page), page.body.total], [['evt_c', 'evt_b'], 3])
  assert.match(page.headers.get('vary')!, /Accept\b/)
  assert.deepEqual(idsOf(await read('/v1/events?since=1970-01-01T00:00:01Z&until=1970-01-01T00:00:02Z')), [
    'evt_b',
  ])
  const first = await read('/v2/events?limit=2&types=new_signature')
  const second = await read(`/v2/events?limit=2&types=new_signature&cursor=${first.body.next_cursor}`)
  assert.deepEqual([idsOf(first), idsOf(second)].flat(), ['evt_c', 'evt_b', 'evt_a'])
  assert.deepEqual((await read('/v1/events/evt_b')).body, page.body.events[1])
  for (const none of ['evt_test', 'evt_x']) assert.equal((await read(`/v1/events/${none}`)).status, 404)
  assert.deepEqual(manage.failures, [])
})

test('a revoked key ends its streams within a second or two, and too many are refused', async (t) => {
  const { manage, listen } = await started(t)
  const key = await manage.key({ name: 'gone', scopes: ['read'] })
  const readers = await Promise.all(Array.from({ length: 100 }, () => listen({ key })))
  assert.equal((await listen({ key })).status, 429)
  const { body } = await manage.ask('GET', '/v1/keys')
  const { id } = body.keys.find(({ name }: { name: string }) => name === 'gone')
  const atMs = performance.now()
  assert.equal((await manage.ask('DELETE', `/v1/keys/${id}`)).status, 204)
  await until(() => readers.every(({ hasEnded }) => hasEnded))
  assert.ok(performance.now() - atMs < 5_000)
  assert.equal((await listen({ key })).status, 401)
})

const GPTBOT = { verdict: 'agent', agent: 'gptbot', category: 'crawler', purposes: ['archive', 'training'] }

test('who asks for it is told once a second how much traffic there is, beside events or alone', async (t) => {
  const { manage, store, listen } = await started(t)
  const alone = await listen({}, '?types=traffic')
  const both = await listen({}, '?types=traffic,new_signature')
  await until(() => alone.told.length > 0)
  const seen = [
    { ...sighting(1), ...GPTBOT, done: 'block' },
    { ...sighting(2), ...GPTBOT, done: 'tag' },
    { ...sighting(3), verdict: 'human', agent: null, category: null, done: 'tag' },
  ]
  await manage.take(seen.map((each) => ({ ...each, seenAtMs: Date.now() })))
  await addEvents(store, newEvent('evt_a'))
  const traffic = ({ told }: EventReader) =>
    told.filter(({ event }) => event === 'traffic').map(({ data }) => JSON.parse(data!).data)
  const busy = (reader: EventReader) => traffic(reader).find(({ requests }) => requests > 0)
  await until(() => [alone, both].every((reader) => busy(reader) !== undefined) && both.seen === 1)
  assert.deepEqual(busy(alone), {
    ...{ requests: 3, by_verdict: { agent: 2, human: 1 }, by_action: { block: 1, tag: 2 } },
    ...{ by_category: { crawler: 2 }, by_purpose: { archive: 2, training: 2 } },
    agents: [{ id: 'gptbot', requests: 2 }],
  })
  assert.deepEqual([alone.seen, alone.told.some(({ id }) => id !== undefined)], [0, false])
  const list = await manage.ask('GET', '/v1/events?types=traffic', undefined, { accept: 'application/json' })
  assert.deepEqual([list.status, list.body.errors[0].pointer], [400, '/types'])
  assert.deepEqual(manage.failures, [])
})

test("a browser's EventSource is told all, across connections that break", async (t) => {
  const { manage, store } = await started(t)
  const authorization = `Bearer ${manage.adminKey}`
  const dispatcher = new Agent().compose((dispatch) => (options, handler) => {
    const headers = { ...(options.headers as Record<string, string>), authorization }
    return dispatch({ ...options, headers }, handler)
  })
  const source = new EventSource(`${manage.url}${STREAM}`, { node: { dispatcher, reconnectionTime: 10 } })
  t.teardown(() => source.close())
  const told: string[] = []
  source.addEventListener('new_signature', (event) => {
    told.push((JSON.parse((event as MessageEvent).data as string) as { id: string }).id)
  })
  await once(source, 'position')
  await addEvents(store, newEvent('evt_a'), newEvent('evt_b'))
  await until(() => told.length === 2)
  manage.cutOff()
  await addEvents(store, newEvent('evt_c'))
  await until(() => told.length === 3)
  assert.deepEqual(told, ['evt_a', 'evt_b', 'evt_c'])
})

async function started(t: Owner, options: TestOptions = {}) {
  const manage = await TestManagement.start(t, options)
  const store = await openAt(t, manage.storeUrl)
  const listen = async (asking: Partial<Asking> = {}, query = '') => {
    const reader = await EventReader.open(`${manage.url}${STREAM}${query}`, {
      ...{ key: manage.adminKey },
      ...asking,
    })
    t.teardown(() => reader.leave())
    return reader
  }
  return { manage, store, listen }
}

/** With these headers and no others: `fetch` adds an Accept of its own. */
async function sentBare(url: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const asked = request(url, { headers, agent: false }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return response
}
