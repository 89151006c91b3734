import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { test } from 'tap'
import type { FinishedRequest } from '../../src/manage/http/front/traffic.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'
import { answersIn, dialled, said } from './talk.ts'

test('reading: a strong tag, 304 for who has it, HEAD like GET', async (t) => {
  const manage = await TestManagement.start(t)
  await keyIsUsed(manage)
  const first = await manage.ask('GET', '/v1/keys')
  const tag = first.headers.get('etag') ?? ''
  assert.match(tag, /^"[\w-]{24}"$/)
  assert.equal(first.headers.get('cache-control'), 'private, no-cache')
  for (const given of [tag, `"other", ${tag}`, `W/${tag}`, '*']) {
    const again = await manage.ask('GET', '/v1/keys', undefined, { 'if-none-match': given })
    assert.deepEqual([again.status, again.body, again.headers.get('etag')], [304, null, tag], given)
    assert.equal(again.headers.get('content-type'), null)
    assert.ok(again.headers.has('ratelimit'))
  }
  for (const given of ['"other"', tag.slice(1, -1), '', 'W/', '"', '"unended']) {
    const again = await manage.ask('GET', '/v1/keys', undefined, { 'if-none-match': given })
    assert.equal(again.status, 200, given)
  }
  const head = await manage.ask('HEAD', '/v1/keys')
  assert.deepEqual([head.status, head.body, head.headers.get('etag')], [200, null, tag])
  assert.equal(head.headers.get('content-length'), first.headers.get('content-length'))
  await manage.ask('POST', '/v1/keys', { name: 'more', access: 'read' })
  const changed = await manage.ask('GET', '/v1/keys', undefined, { 'if-none-match': tag })
  assert.equal(changed.status, 200)
  const made = await manage.ask('POST', '/v1/keys', { name: 'x', access: 'read' }, { 'if-none-match': '*' })
  assert.deepEqual(
    [made.status, made.headers.get('etag'), made.headers.get('cache-control')],
    [201, null, 'no-store'],
  )
})

test('a short answer is the same to whoever takes it compressed', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const body = JSON.stringify({ user_agent: 'x/1' })
  const ask = async (line: string) => {
    const more = `Content-Type: application/json\r\nX-Request-Id: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${line}`
    const [answer] = await said(manage.url, `${head(manage, 'POST /v1/detect')}${more}\r\n${body}`)
    const headers = Object.fromEntries(answer!.headers)
    return { ...answer!, headers: { ...headers, date: '' } }
  }
  const plain = await ask('')
  assert.equal(plain.status, 200)
  assert.deepEqual(await ask('Accept-Encoding: gzip, br\r\n'), plain)
})

test('what is large enough is compressed as the caller likes, each with a tag of its own', async (t) => {
  const manage = await TestManagement.start(t)
  for (let i = 0; i < 10; i++) await manage.ask('POST', '/v1/keys', { name: `key ${i}`, access: 'read' })
  await keyIsUsed(manage)
  const get = async (path: string, accepted: string) => {
    const lines = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${manage.adminKey}\r\n`
    const socket = await dialled(manage.url)
    socket.write(`${lines}Accept-Encoding: ${accepted}\r\n\r\n`)
    const bytes = Buffer.concat(await socket.toArray())
    const [answer] = answersIn(bytes.toString('latin1'))
    return {
      coding: answer!.headers.get('content-encoding'),
      bytes: Buffer.from(answer!.body, 'latin1'),
      answer: answer!,
    }
  }
  const plain = await get('/v1/keys', 'identity')
  const tags = new Set([plain.answer.headers.get('etag')])
  for (const [accepted, coding] of [
    ['gzip', 'gzip'],
    ['gzip, br', 'br'],
    ['br;q=0.1, gzip;q=0.5', 'gzip'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['GZIP', 'gzip'],
    ['identity, gzip;q=0.5', undefined],
    ['gzip;q=0', undefined],
    ['deflate, zstd', undefined],
    ['', undefined],
    ['gzip;q=7', undefined],
    [',;=q', undefined],
  ] as const) {
    const { coding: used, bytes, answer } = await get('/v1/keys', accepted)
    assert.equal(used, coding, accepted)
    const opened = used === 'br' ? brotliDecompressSync(bytes) : used === 'gzip' ? gunzipSync(bytes) : bytes
    assert.equal(opened.toString(), plain.bytes.toString())
    assert.match(answer.headers.get('vary') ?? '', /Accept-Encoding/)
    tags.add(answer.headers.get('etag'))
  }
  assert.equal(tags.size, 3)
  const small = await get('/v1/keys?limit=1', 'gzip, br')
  assert.equal(small.coding, undefined)
  const zipped = await get('/v1/keys', 'gzip')
  const again = await manage.ask('GET', '/v1/keys', undefined, {
    'accept-encoding': 'gzip',
    'if-none-match': zipped.answer.headers.get('etag')!,
  })
  assert.equal(again.status, 304)
})

const BAD_BODIES: readonly (readonly [title: string, body: string | Buffer, detail: string])[] = [
  ['nothing', ' ', 'is not valid JSON: unexpected end at line 1, column 2'],
  ['a half', '{"name": "x", ', 'is not valid JSON: unexpected end at line 1, column 15'],
  ['a comma too many', '{"name": "x",\n}', 'is not valid JSON: unexpected character at line 2, column 1'],
  ['a tab in a text', '["a\tb"]', 'is not valid JSON: unexpected character at line 1, column 4'],
  ['no escape', '"\\x"', 'is not valid JSON: unexpected character at line 1, column 2'],
  ['a zero in front', '[01]', 'is not valid JSON: unexpected character at line 1, column 3'],
  ['two', '{} {}', 'is not valid JSON: unexpected character at line 1, column 4'],
  ['a brace for a bracket', '[{"a": 1]}', 'is not valid JSON: unexpected character at line 1, column 9'],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'is not UTF-8'],
  ['a prototype', '{"name": "x", "__proto__": {"access": "admin"}}', 'is unknown'],
  ['a deep prototype', '{"name": [{"__proto__": null}]}', 'is unknown'],
  ['a tower', '['.repeat(100_000) + ']'.repeat(100_000), 'is nested deeper than 64 levels'],
  ['a list', '[]', 'must be an object'],
  ['null', 'null', 'must be an object'],
]

test('a body that is no good is a 400 that says where', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [title, body, detail] of BAD_BODIES) {
    const { status, body: problem } = await sent(manage, body)
    assert.deepEqual(
      [status, problem.code, problem.errors?.[0]?.detail],
      [400, 'invalid_request', detail],
      title,
    )
  }
  assert.equal(Object.hasOwn(Object.prototype, 'access'), false)
  const empty = await sent(manage, '')
  assert.deepEqual([empty.status, empty.body.errors], [400, [{ pointer: '', detail: 'is missing' }]])
  assert.equal((await sent(manage, '\ufeff{"name": "x", "access": "read"}')).status, 201)
  assert.deepEqual(manage.failures, [])
})

test('what a body is said to be: type, charset, coding', async (t) => {
  const manage = await TestManagement.start(t)
  const body = JSON.stringify({ name: 'x', access: 'read' })
  for (const [headers, status] of [
    [{ 'content-type': 'application/json; charset=UTF-8' }, 201],
    [{ 'content-type': 'application/vnd.api+json' }, 201],
    [{ 'content-type': 'application/json; charset=latin1' }, 415],
    [{ 'content-type': 'text/json' }, 415],
    [{ 'content-type': 'text/plain' }, 415],
    [{ 'content-type': 'application/x-www-form-urlencoded' }, 415],
    [{ 'content-type': '' }, 415],
    [{ 'content-encoding': 'zstd' }, 415],
    [{ 'content-encoding': 'gzip, gzip' }, 415],
    [{ 'content-encoding': 'identity' }, 201],
    [{ 'content-encoding': 'gzip' }, 400],
  ] as const)
    assert.equal((await sent(manage, body, headers)).status, status, JSON.stringify(headers))
  const zipped = await sent(manage, gzipSync(body), { 'content-encoding': 'gzip' })
  assert.equal(zipped.status, 201)
  const bomb = await sent(manage, gzipSync(Buffer.alloc(64 * 1_048_576, 0x20)), {
    'content-encoding': 'gzip',
  })
  assert.deepEqual([bomb.status, bomb.body.code], [413, 'too_large'])
  assert.deepEqual(manage.failures, [])
})

test('a body that is too large is a 413 that can be read, and the connection goes on', async (t) => {
  const manage = await TestManagement.start(t)
  const large = Buffer.alloc(3_000_000, 0x20)
  for (const framing of [`Content-Length: ${large.length}`, 'Transfer-Encoding: chunked']) {
    const socket = await dialled(manage.url)
    socket.write(`${head(manage, 'POST /v1/keys')}Content-Type: application/json\r\n${framing}\r\n\r\n`)
    if (framing.startsWith('T')) socket.write(`${large.length.toString(16)}\r\n`)
    socket.write(large)
    if (framing.startsWith('T')) socket.write('\r\n0\r\n\r\n')
    socket.write(`GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const answers = answersIn(Buffer.concat(await socket.toArray()).toString())
    assert.deepEqual(
      answers.map(({ status }) => status),
      [413, 200],
      framing,
    )
  }
  const exact = JSON.stringify({ name: 'x', access: 'read' }).padEnd(1_048_576)
  assert.equal((await sent(manage, exact)).status, 201)
  assert.equal((await sent(manage, `${exact} `)).status, 413)
})

test('a body where none is taken', async (t) => {
  const manage = await TestManagement.start(t)
  const length = (body: string) =>
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
  const ask = async (line: string, body: string) =>
    (await said(manage.url, `${head(manage, line)}${length(body)}`)).map(({ status }) => status)
  assert.deepEqual(await ask('GET /v1/keys', '{}'), [200])
  assert.deepEqual(await ask('GET /v1/keys', '{"page": 2}'), [400])
  assert.deepEqual(await ask('GET /v1/keys', ' '.repeat(5000)), [413])
  const id = (await manage.ask('POST', '/v1/keys', { name: 'x', access: 'read' })).body.id
  assert.deepEqual(await ask(`DELETE /v1/keys/${id}`, '{"really": true}'), [400])
  assert.deepEqual(await ask(`DELETE /v1/keys/${id}`, '{}'), [204])
})

test('addresses: what is damaged, doubled or too long', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [target, status, code] of [
    ['/v1/keys?page=1&page=2', 400, 'invalid_request'],
    ['/v1/keys?page=%zz', 400, 'invalid_request'],
    ['/v1/keys?page=%ff', 400, 'invalid_request'],
    ['/v1/keys?%', 400, 'invalid_request'],
    ['/v1/keys?__proto__=1', 400, 'invalid_request'],
    ['/v1/keys?constructor=1', 400, 'invalid_request'],
    ['/v1/keys?page=1%002', 400, 'invalid_request'],
    ['/v1/keys?', 200, undefined],
    ['/v1/keys?page=1#x', 200, undefined],
    ['/v1/keys/%zz', 405, 'method_not_allowed'],
    ['/v1/keys/%ff', 405, 'method_not_allowed'],
    ['/v1/keys/', 404, 'not_found'],
    ['/v1//keys', 404, 'not_found'],
    ['/v1/../v1/keys', 404, 'not_found'],
    ['/V1/keys', 404, 'not_found'],
    ['/v1', 404, 'not_found'],
    ['/v1?x', 404, 'not_found'],
    [`/v1/${'x'.repeat(9000)}`, 414, 'uri_too_long'],
    ['http://elsewhere/v1/keys', 404, 'not_found'],
    ['*', 404, 'not_found'],
  ] as const) {
    const [answer] = await said(manage.url, `${head(manage, `GET ${target}`)}Connection: close\r\n\r\n`)
    const problem = answer!.status < 400 ? undefined : JSON.parse(answer!.body).code
    assert.deepEqual([answer!.status, problem], [status, code], target)
  }
  for (const id of ['%zz', '%ff', '%00', '..%2f', '__proto__', 'x'.repeat(2000)]) {
    const [answer] = await said(
      manage.url,
      `${head(manage, `DELETE /v1/keys/${id}`)}Connection: close\r\n\r\n`,
    )
    assert.equal(answer!.status, 404, id)
  }
  assert.deepEqual(manage.failures, [])
})

test('what is no HTTP is answered with a problem, too', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [bytes, status, code] of [
    ['GET\r\n\r\n', 400, 'invalid_request'],
    ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'invalid_request'],
    ['GET / HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n', 400, 'invalid_request'],
    [
      'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      'invalid_request',
    ],
    ['GET / HTTP/1.1\r\n\r\n', 400, 'invalid_request'],
    ['GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n', 400, 'invalid_request'],
    ['GET / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n', 417, 'expectation_failed'],
    [`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'header_too_large'],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'header_too_large'],
  ] as const) {
    const [answer] = await said(manage.url, bytes)
    const title = bytes.slice(0, 60)
    assert.equal(answer?.status, status, title)
    assert.equal(answer?.headers.get('content-type'), 'application/problem+json', title)
    assert.equal(JSON.parse(answer!.body).code, code, title)
    assert.ok(answer?.headers.get('x-request-id'))
  }
  assert.deepEqual(manage.failures, [])
})

test('requests in a pipe are answered in their order, and what is no HTTP last', async (t) => {
  const manage = await TestManagement.start(t)
  const get = (path: string) => `${head(manage, `GET ${path}`)}\r\n`
  const requests = [get('/v1/keys?limit=1'), get('/v1/nothing'), get('/health/live'), 'NONSENSE\r\n\r\n']
  const answers = await said(manage.url, requests.join(''))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 404, 200, 400],
  )
})

test('who waits for a 100 gets it when the body is wanted', async (t) => {
  const manage = await TestManagement.start(t)
  const body = JSON.stringify({ name: 'x', access: 'read' })
  const expecting = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`
  const refused = await said(manage.url, `POST /v1/keys HTTP/1.1\r\nHost: x\r\n${expecting}`)
  assert.deepEqual(
    refused.map(({ status, headers }) => [status, headers.get('connection')]),
    [[401, 'close']],
  )
  const socket = await dialled(manage.url)
  socket.write(`${head(manage, 'POST /v1/keys')}${expecting}`)
  const [go] = (await once(socket, 'data')) as [Buffer]
  assert.match(go.toString(), /^HTTP\/1\.1 100 /)
  socket.write(body)
  socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const answers = answersIn(Buffer.concat(await socket.toArray()).toString())
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 200],
  )
})

test('what takes too long to arrive is given up', async (t) => {
  const manage = await TestManagement.start(t, { front: { requestTimeoutMs: 1_000 } })
  const slowHead = said(manage.url, 'GET / HTTP/1.1\r\nHost: x\r\n')
  const slowBody = said(
    manage.url,
    `${head(manage, 'POST /v1/keys')}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{`,
  )
  for (const answers of [await slowHead, await slowBody]) {
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers.get('connection')]),
      [[408, 'close']],
    )
    assert.equal(JSON.parse(answers[0]!.body).code, 'request_timeout')
  }
  assert.deepEqual(manage.failures, [])
})

test('who does not take what was asked for is let go', async (t) => {
  const cut = Promise.withResolvers<number>()
  const manage = await TestManagement.start(t, {
    front: { requestTimeoutMs: 400 },
    answered: ({ isComplete, status }) => isComplete || cut.resolve(status),
  })
  const socket = await dialled(manage.url)
  socket.pause()
  socket.write('GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000))
  assert.equal(await cut.promise, 200)
  socket.destroy()
})

test('no more connections than are allowed', async (t) => {
  const manage = await TestManagement.start(t, { front: { connectionsMax: 2 } })
  const sockets = [await dialled(manage.url), await dialled(manage.url)]
  await wait(50)
  const answers = await said(manage.url, 'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  assert.deepEqual(answers, [])
  for (const socket of sockets) socket.destroy()
})

test('pages of other origins: those on the list, and without cookies', async (t) => {
  const origin = 'https://console.example'
  const manage = await TestManagement.start(t, { front: { corsOrigins: [origin] } })
  const preflight = (from: string) =>
    manage.ask('OPTIONS', '/v1/keys', undefined, {
      ...{ origin: from, 'access-control-request-method': 'POST', authorization: '' },
      'access-control-request-headers': 'authorization, idempotency-key',
    })
  const allowed = await preflight(origin)
  assert.equal(allowed.status, 204)
  assert.equal(allowed.headers.get('access-control-allow-origin'), origin)
  assert.match(allowed.headers.get('access-control-allow-methods') ?? '', /POST.*DELETE/)
  assert.match(allowed.headers.get('access-control-allow-headers') ?? '', /Authorization.*Idempotency-Key/)
  const read = await manage.ask('GET', '/v1/keys', undefined, { origin })
  const exposed = read.headers.get('access-control-expose-headers') ?? ''
  for (const name of ['ETag', 'Link', 'RateLimit', 'RateLimit-Policy', 'X-Request-Id'])
    assert.ok(exposed.split(', ').includes(name), name)
  const refused = await manage.ask('GET', '/v1/nothing', undefined, { origin })
  assert.equal(refused.headers.get('access-control-allow-origin'), origin, 'a page reads what is wrong')
  for (const other of ['https://console.example.evil.example', 'http://console.example', 'null', '*', '']) {
    for (const answer of [
      await preflight(other),
      await manage.ask('GET', '/v1/keys', undefined, { origin: other }),
    ]) {
      assert.equal(answer.headers.get('access-control-allow-origin'), null, other)
      assert.match(answer.headers.get('vary') ?? '', /Origin/)
    }
  }
  assert.equal(allowed.headers.get('access-control-allow-credentials'), null)
  const none = await TestManagement.start(t)
  const closed = await none.ask('GET', '/v1/keys', undefined, { origin })
  assert.equal(closed.headers.get('access-control-allow-origin'), null)
})

test('the id of a request: the sane one of its caller, else one of ours; in problems, too', async (t) => {
  const manage = await TestManagement.start(t)
  const asked = (id: string) => manage.ask('GET', '/v1/nothing', undefined, { 'x-request-id': id })
  const kept = await asked('trace:1.2-3=x_y')
  assert.deepEqual([kept.headers.get('x-request-id'), kept.body.request_id], Array(2).fill('trace:1.2-3=x_y'))
  for (const id of ['', 'a b', '<script>', 'x'.repeat(129), 'é']) {
    const { headers, body } = await asked(id)
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
    assert.equal(body.request_id, headers.get('x-request-id'))
  }
})

test('every request is told of when it is over: what for, how it went, and no more', async (t) => {
  const visits: FinishedRequest[] = []
  const manage = await TestManagement.start(t, { answered: (visit) => visits.push(visit) })
  await manage.ask('GET', '/v1/keys?q=secret')
  await manage.ask('GET', '/v1/keys?limit=1')
  await manage.ask('GET', '/v1/keys', undefined, { authorization: 'Bearer secret' })
  await manage.ask('GET', '/v1/none')
  await manage.ask('GET', '/health/live')
  await wait(20)
  assert.deepEqual(
    visits.map(({ operation, status, problem, path }) => [operation, status, problem, path]),
    [
      ['listKeys', 400, 'invalid_request', '/v1/keys'],
      ['listKeys', 200, null, '/v1/keys'],
      ['none', 401, 'invalid_token', '/v1/keys'],
      ['none', 404, 'not_found', '/v1/none'],
      ['probe', 200, null, '/health/live'],
    ],
  )
  assert.match(visits[0]!.principal ?? '', /^key_/)
  assert.equal(visits[2]!.principal, null)
  assert.ok(!JSON.stringify(visits).includes('secret'))
})

/** That a key is used is written within seconds, once a minute, and changes what the list of keys says. */
function keyIsUsed(manage: TestManagement): Promise<void> {
  return until(async () => (await manage.ask('GET', '/v1/keys')).body.keys.at(-1).last_used_at !== null)
}

function head(manage: TestManagement, line: string): string {
  return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${manage.adminKey}\r\n`
}

async function sent(
  manage: TestManagement,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
) {
  const response = await fetch(`${manage.url}/v1/keys`, {
    method: 'POST',
    body: typeof body === 'string' ? Buffer.from(body) : new Uint8Array(body),
    headers: {
      authorization: `Bearer ${manage.adminKey}`,
      'content-type': 'application/json',
      ...headers,
    },
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  return { status: response.status, body: (await response.json()) as any }
}
