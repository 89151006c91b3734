import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { catalogueRows } from '../../src/runtime/signatures/catalogue-rows.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { type Answered, TestManagement } from './management.ts'
import { said } from './talk.ts'

const GPTBOT = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const LISTS = [
  ['/agents?', 'agents'],
  ['/agents?category=crawler&q=bot', 'agents'],
  ['/signatures?', 'signatures'],
  ['/signatures?sort=confidence&type=ja4', 'signatures'],
  ['/signatures?sort=-observations&min_confidence=0.5', 'signatures'],
  ['/signatures?q=t13d&sort=fingerprint', 'signatures'],
  ['/signatures?unknown_only=true', 'signatures'],
  ['/signatures?agent_id=nobody-at-all', 'signatures'],
  ['/submissions?type=ja4', 'submissions'],
  ['/keys?', 'keys'],
  ['/webhooks?', 'webhooks'],
  ['/audit?action=createKey', 'audit'],
  ['/policy/versions?', 'versions'],
] as const

for (const kind of KINDS) {
  test(`${kind}: what /v2 lists behind cursors is what /v1 lists in pages`, async (t) => {
    const manage = await filled(t, kind)
    for (const [path, name] of LISTS) {
      const pages: unknown[] = []
      for (let page = 1; ; page++) {
        const { status, body } = await manage.ask('GET', `/v1${path}&limit=200&page=${page}`)
        assert.equal(status, 200, path)
        pages.push(...body[name])
        if (body[name].length < 200) break
      }
      const parts: unknown[] = []
      let next: string | null = `/v2${path}&limit=1`
      for (let turn = 0; next !== null; turn++) {
        const { status, body, headers }: Answered = await manage.ask('GET', next)
        assert.equal(status, 200, next)
        assert.deepEqual(Object.keys(body), [name, 'limit', 'next_cursor'], path)
        parts.push(...body[name])
        const links = linksIn(headers)
        assert.equal(links.get('first')?.includes('cursor='), false)
        assert.equal(links.has('next'), body.next_cursor !== null)
        assert.equal(body.next_cursor === null || links.get('next')!.includes(body.next_cursor), true)
        // By the link, and with another limit than the part before.
        next = links.get('next')?.replace(/limit=\d+/, `limit=${[2, 37, 150][turn % 3]}`) ?? null
        next = next === null ? null : next.slice(manage.url.length)
      }
      assert.deepEqual(parts.map(withoutEvidence), pages, path)
      if (!path.includes('nobody')) assert.ok(parts.length > 2, path)
      assert.equal((await manage.ask('GET', `/v2${path}&page=1`)).status, 400, 'there are no pages')
    }
    assert.deepEqual(manage.failures, [])
  })

  test(`${kind}: a cursor that was not given for this list is refused`, async (t) => {
    const manage = await filled(t, kind)
    const cursorOf = async (path: string): Promise<string> =>
      (await manage.ask('GET', `/v2${path}&limit=1`)).body.next_cursor
    const refused = async (path: string, cursor: string) => {
      const answer = await manage.ask('GET', `/v2${path}&cursor=${encodeURIComponent(cursor)}`)
      assert.deepEqual(
        [answer.status, answer.body.code, answer.body.errors?.[0].pointer],
        [400, 'invalid_request', '/cursor'],
        `${path} ${cursor}`,
      )
    }
    for (const [path] of LISTS) {
      if (path.includes('nobody')) continue
      const cursor = await cursorOf(path)
      const [mark, ...position] = contentOf(cursor)
      for (const bad of [
        '',
        ' ',
        '\0',
        'x',
        '=',
        cursor.slice(0, -1),
        `${cursor}=`,
        `${cursor}A`,
        'A'.repeat(3000),
      ])
        await refused(path, bad)
      for (const content of [null, {}, [], [mark], [mark, position], ['x', ...position], 'x', [[]], [null]])
        await refused(path, textOf(content))
      for (const index of position.keys())
        for (const value of [
          null,
          true,
          {},
          [1],
          'a\0b',
          '\ud800',
          -1,
          1.5,
          2 ** 60,
          '1e400',
          [],
          '9'.repeat(20),
        ]) {
          if (typeof value === typeof position[index] && !hasNoPlace(value)) continue
          if (typeof value === 'number' && position[index] % 1 !== 0) continue // a confidence may be anything
          await refused(path, textOf([mark, ...position.with(index, value)]))
        }
      await refused(path, textOf([mark, ...position, 1]))
      await refused(path, textOf([mark, ...position.slice(1)]))
      await refused(path, Buffer.from(`${JSON.stringify([mark, ...position])} `).toString('base64'))
      for (const [other] of LISTS) if (other !== path) await refused(other, cursor)
    }
    assert.deepEqual(manage.failures, [])
  })
}

test('whoever goes on with the cursor of a task follows it to its end', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const items = Array.from({ length: 1_234 }, (_, i) => ({ user_agent: i % 2 === 0 ? GPTBOT : 'curl/8' }))
  const created = await manage.ask('POST', '/v2/tasks/create', { type: 'detect', items })
  assert.equal(created.body.status, 'queued')
  const path = `/v2/tasks/${created.body.task_id}?limit=200`
  const seen: number[] = []
  let last = null
  let first = ''
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body }: Answered = await manage.ask(
      'GET',
      cursor === '' ? path : `${path}&cursor=${cursor}`,
    )
    assert.equal(status, 200)
    seen.push(...body.results.map(({ index }: { index: number }) => index))
    if (body.status === 'running' || body.status === 'queued') assert.notEqual(body.next_cursor, null)
    first ||= body.next_cursor
    cursor = body.next_cursor
    last = body
  }
  assert.deepEqual(seen, [...items.keys()])
  assert.deepEqual(
    [last.status, last.completed, 'total' in last, 'page' in last],
    ['completed', 1_234, true, false],
  )
  const small = await manage.ask('POST', '/v2/tasks/create', { type: 'detect', items: items.slice(0, 3) })
  const other = `/v2/tasks/${small.body.task_id}`
  assert.equal((await manage.ask('GET', other)).body.next_cursor, null)
  const [mark, position] = contentOf(first)
  assert.equal(typeof position, 'number')
  for (const bad of [textOf([mark, -1]), textOf([mark, 0.5]), textOf([mark, '1']), textOf([mark]), 'x'])
    assert.equal((await manage.ask('GET', `${path}&cursor=${bad}`)).body.errors?.[0].pointer, '/cursor')
  assert.equal((await manage.ask('GET', `${other}?cursor=${first}`)).status, 400, 'of another task')
  assert.deepEqual(
    (await manage.ask('GET', `${path}&cursor=${textOf([mark, 2 ** 53 - 1])}`)).body.results,
    [],
  )
  const cancelled = await manage.ask('POST', '/v2/tasks/create', { type: 'explain', items })
  await manage.ask('DELETE', `/v2/tasks/${cancelled.body.task_id}`)
  let end = (await manage.ask('GET', `/v2/tasks/${cancelled.body.task_id}?limit=200`)).body
  while (end.next_cursor !== null)
    end = (await manage.ask('GET', `/v2/tasks/${cancelled.body.task_id}?limit=200&cursor=${end.next_cursor}`))
      .body
  assert.equal(end.status, 'cancelled')
  assert.deepEqual(manage.failures, [])
})

test('every answer under /v2 says that it is in beta, and no other does', async (t) => {
  const manage = await TestManagement.start(t, {
    rateLimits: { freePerDay: 1 },
    front: { corsOrigins: ['https://console.example'], requestTimeoutMs: 1_000 },
  })
  const free = { authorization: `Bearer ${await manage.key({ plan: 'free' })}` }
  const nobody = { authorization: `Bearer ${await manage.key({ scopes: [] })}` }
  const made = await manage.ask('POST', '/v1/keys', { name: 'x', access: 'read' })
  await manage.ask('GET', '/v1/keys', undefined, free)
  const preflight = { origin: 'https://console.example', 'access-control-request-method': 'GET' }
  for (const [status, method, path, body, headers] of [
    [200, 'GET', '/keys'],
    [200, 'HEAD', '/keys'],
    [304, 'GET', '/keys', undefined, { 'if-none-match': '*' }],
    [400, 'GET', '/keys?limit=0'],
    [401, 'GET', '/keys', undefined, { authorization: '' }],
    [403, 'GET', '/keys', undefined, nobody],
    [404, 'GET', '/nothing'],
    [404, 'GET', ''],
    [404, 'GET', '?x'],
    [404, 'GET', '/agents/nobody'],
    [405, 'PUT', '/keys', {}],
    [405, 'POST', '/openapi.json', {}],
    [200, 'GET', '/openapi.json'],
    [413, 'POST', '/keys', { name: 'x'.repeat(1_100_000) }],
    [414, 'GET', `/keys?${'x'.repeat(9_000)}`],
    [415, 'POST', '/keys', {}, { 'content-type': 'text/plain' }],
    [429, 'GET', '/keys', undefined, free],
    [503, 'POST', '/detect', { user_agent: 'x' }],
    [204, 'OPTIONS', '/keys', undefined, preflight],
    [204, 'DELETE', `/keys/${made.body.id}`],
  ] as const) {
    const title = `${status} ${method} ${path.slice(0, 40)}`
    const answer = await manage.ask(method, `/v2${path}`, body, headers)
    assert.deepEqual([answer.status, answer.headers.get('x-api-stability')], [status, 'beta'], title)
    const stable = await manage.ask(method, `/v1${path}`, body, headers)
    assert.equal(stable.headers.get('x-api-stability'), null, title)
  }
  for (const path of ['/docs', '/docs/v2', '/health/live', '/v2x', '/v22/keys', '/', '/V2/keys'])
    assert.equal((await fetch(`${manage.url}${path}`)).headers.get('x-api-stability'), null, path)
  const slow = `POST /v2/keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${manage.adminKey}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{`
  const [late] = await said(manage.url, slow)
  assert.deepEqual([late?.status, late?.headers.get('x-api-stability')], [408, 'beta'])
  const [two] = await said(manage.url, 'GET /v2/keys HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n')
  assert.deepEqual([two?.status, two?.headers.get('x-api-stability')], [400, 'beta'])
  assert.deepEqual(manage.failures, [])
})

test('signatures and agents have evidence wherever they are answered with', async (t) => {
  const manage = await filled(t, 'sqlite')
  const get = async (path: string) => (await manage.ask('GET', path)).body
  const shaped = (evidence: readonly Record<string, unknown>[], title: string) => {
    assert.ok(Array.isArray(evidence), title)
    for (const each of evidence) assert.deepEqual(Object.keys(each), ['kind', 'detail', 'weight'], title)
  }
  const { signatures } = await get('/v2/signatures?limit=20&type=ja4')
  for (const each of signatures) shaped(each.evidence, each.fingerprint)
  const [{ fingerprint }] = signatures
  for (const match of ['exact', 'partial']) {
    const found = await get(`/v2/fingerprint/lookup?ja4=${fingerprint}&match=${match}`)
    assert.ok(found.length > 0)
    for (const each of found) {
      shaped(each.evidence, match)
      assert.equal('score' in each, match === 'partial')
    }
    assert.deepEqual(
      found.map(withoutEvidence),
      await get(`/v1/fingerprint/lookup?ja4=${fingerprint}&match=${match}`),
    )
  }
  const { agents } = await get('/v2/agents?limit=20')
  for (const each of agents) shaped(each.evidence, each.id)
  const detail = await get('/v2/agents/googlebot')
  assert.ok(detail.evidence.some(({ kind }: { kind: string }) => kind === 'verifiable'))
  const sdk = await get('/v2/agents/anthropic-sdk-js')
  assert.ok(sdk.signatures.length > 3)
  for (const each of sdk.signatures) shaped(each.evidence, each.fingerprint)
  assert.deepEqual(
    { ...withoutEvidence(sdk), signatures: sdk.signatures.map(withoutEvidence) },
    await get('/v1/agents/anthropic-sdk-js'),
  )
  const submitted = await manage.ask('POST', '/v2/signatures/submit', {
    submissions: [
      { fingerprint: 't13d2011h1_1f2e3d4c5b6a_a6b5c4d3e2f1', type: 'ja4' },
      { fingerprint: 't13d5212h1_b262b3658495_8e6e362c5eac', type: 'ja4' },
    ],
  })
  const [fresh, known] = submitted.body.submissions
  assert.equal(fresh.signature.evidence[0].kind, 'on-trial')
  assert.equal(known.status, 'duplicate')
  assert.ok(known.signature.evidence.some(({ kind }: { kind: string }) => kind === 'measured'))
  assert.deepEqual(manage.failures, [])
})

test('one request is detected, or a list of them', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const ask = (body: unknown, headers: Record<string, string> = {}) =>
    manage.ask('POST', '/v2/detect', body, headers)
  const one = await ask({ user_agent: GPTBOT }, { 'x-request-id': 'one' })
  assert.deepEqual([one.status, one.body.agent_id, one.body.request_id], [200, 'gptbot', 'one'])
  const id = 'x'.repeat(128)
  const list = await ask([{ user_agent: GPTBOT }, { user_agent: 'curl/8.17.0' }], { 'x-request-id': id })
  assert.equal(list.status, 200)
  assert.deepEqual(
    list.body.map(({ agent_id }: { agent_id: string | null }) => agent_id),
    ['gptbot', null],
  )
  assert.deepEqual({ ...list.body[0], request_id: 'one' }, one.body)
  const ids = list.body.map(({ request_id }: { request_id: string }) => request_id)
  assert.equal(new Set(ids).size, 2)
  for (const request_id of ids) {
    const told = await manage.ask('POST', '/v2/feedback', { request_id, verdict: 'agent' })
    assert.deepEqual([told.status, told.body.decision_id], [200, request_id])
  }
  const short = await ask([{ user_agent: 'x' }], { 'x-request-id': 'mine' })
  assert.equal(short.body[0].request_id, 'mine.0')
  assert.equal((await manage.ask('POST', '/v1/detect', [{ user_agent: 'x' }])).status, 400)
})

test('what is wrong in a list of requests, and where', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const good = { user_agent: 'x' }
  for (const [body, ...pointers] of [
    [[], ''],
    [[good, good, good, { ja4: 'x' }], '/3/ja4'],
    [[{}, good, { user_agent: 7, ip: 'x' }], '/0', '/2/user_agent', '/2/ip'],
    [[good, { useragent: 'x' }], '/1/useragent', '/1'],
    [[good, null], '/1'],
    [[good, [good]], '/1'],
    [[good, { headers: { a: ['x', 'y\n'] } }], '/1/headers/a/1'],
    [[good, { user_agent: 'a\0' }], '/1/user_agent'],
    [Array(10_001).fill(good), ''],
    [{ ja4: 'x' }, '/ja4'],
    [{}, ''],
    ['x', ''],
  ] as const) {
    const answer = await manage.ask('POST', '/v2/detect', body)
    const title = JSON.stringify([body, answer.body.errors]).slice(0, 300)
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], title)
    assert.deepEqual(
      answer.body.errors.map(({ pointer }: { pointer: string }) => pointer),
      pointers,
      title,
    )
  }
  assert.match((await manage.ask('POST', '/v2/detect', [])).body.detail, /is empty/)
  assert.match(
    (await manage.ask('POST', '/v2/detect', Array(10_001).fill(good))).body.detail,
    /more than 10,000/,
  )
  const all = (await manage.ask('POST', '/v2/detect', Array(500).fill({ ja4: 'x' }))).body.errors
  assert.deepEqual([all.length, all[99].pointer], [100, '/99/ja4'])
  assert.deepEqual(manage.failures, [])
})

test('others are served while a long list is detected', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const body = Array.from({ length: 10_000 }, (_, i) => ({ user_agent: `${GPTBOT} ${i}`, method: 'GET' }))
  let isOver = false
  const asked = manage.ask('POST', '/v2/detect', body).finally(() => {
    isOver = true
  })
  let served = 0
  while (!isOver) {
    await manage.ask('GET', '/v2/keys?limit=1')
    served++
  }
  const { status, body: results } = await asked
  assert.deepEqual([status, results.length], [200, 10_000])
  assert.ok(served > 10, `${served} others`)
  const last = await manage.ask('POST', '/v2/feedback', {
    request_id: results[9_999].request_id,
    verdict: 'agent',
  })
  assert.equal(last.status, 200)
})

function linksIn(headers: Headers): ReadonlyMap<string, string> {
  const found = (headers.get('link') ?? '').matchAll(/<([^>]*)>; rel="(\w+)"/g)
  return new Map([...found].map(([, url, rel]) => [rel!, url!]))
}

function withoutEvidence(item: unknown): object {
  const { evidence: _, ...others } = item as { readonly evidence?: unknown }
  return others
}

// biome-ignore lint/suspicious/noExplicitAny: whatever is in it
function contentOf(cursor: string): any[] {
  return JSON.parse(Buffer.from(cursor, 'base64url').toString())
}

function textOf(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url')
}

function hasNoPlace(value: unknown): boolean {
  return typeof value === 'string'
    ? !value.isWellFormed() || value.includes('\0')
    : !Number.isSafeInteger(value) || Number(value) < 0
}

/** Several of everything that is listed. */
async function filled(t: Test, kind: (typeof KINDS)[number]): Promise<TestManagement> {
  const storeUrl = await freshUrl(kind, t)
  const manage = await TestManagement.start(t, { storeUrl, knows: true })
  const store = await Store.open(storeUrl)
  const rows = await catalogueRows({ feeds: [], paths: [] })
  await store.catalogueMerge.merge(rows, { hash: 'x', nowMs: 1, pause: async () => undefined })
  await store.close()
  const { db, close } = await openDatabase(storeUrl, null, async () => undefined)
  for (let i = 0; i < 5; i++)
    await db
      .insertInto('fingerprints_seen')
      .values({
        ...{ type: 'ja4', value: `t13d0101h1_000000000000_00000000000${i}`, first_seen_ms: 1 },
        ...{ last_seen_ms: 2, requests: i % 2, addresses: 1, sketch: '', is_named: 0, rank: 1 },
      })
      .execute()
  await close()
  let version = '*'
  for (let i = 0; i < 4; i++) {
    const hook = { url: `https://93.184.216.34/${i}`, events: ['new_agent'] }
    const policy = { rules: [{ name: `rule ${i}`, when: {}, action: 'tag' }] }
    const fingerprint = `t13d0${i}01h1_000000000000_0000000000a${i}`
    for (const [method, path, body] of [
      ['POST', '/v2/keys', { name: `key ${i}`, access: 'read' }],
      ['POST', '/v2/webhooks', hook],
      ['PUT', '/v2/policy', policy],
      ['POST', '/v2/signatures/submit', { fingerprint, type: 'ja4', agent_name: `Agent Number ${i}` }],
    ] as const) {
      const headers = path === '/v2/policy' ? { 'if-match': version } : {}
      const answer = await manage.ask(method, path, body, headers as Record<string, string>)
      assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
      if (path === '/v2/policy') version = answer.headers.get('etag')!
    }
  }
  return manage
}
