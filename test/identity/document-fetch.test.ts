import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { LookupFunction } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import { DocumentMetrics } from '../../src/identity/fetch/document-metrics.ts'
import { type DocumentSettings, Documents } from '../../src/identity/fetch/document-fetch.ts'
import { type Answer, DocumentServer, HERE, TEST_CA } from './document-server.ts'

const KIND = {
  name: 'keys' as const,
  accept: 'application/json',
  parse(value: unknown) {
    if ((value as { bad?: boolean }).bad) throw new Fault('X_INVALID', 'bad is not for here')
    return value
  },
}

function documents(more: Partial<DocumentSettings> = {}): Documents<unknown> {
  return new Documents(KIND, { allowPrivate: true, nowMs: Date.now, ca: TEST_CA, lookup: HERE, ...more })
}

const json = { 'content-type': 'application/json' }

test('key directories have a type of their own, today and in older drafts', async (t) => {
  const server = await DocumentServer.start(t)
  const found = documents({})
  for (const form of ['', '+json']) {
    const type = `application/http-message-signatures-directory${form}`
    server.serveJson(`/${form}`, { form }, { 'content-type': type })
    assert.deepEqual(await found.get(server.url(`/${form}`)), { form })
  }
})

test('a document is fetched once for all who ask, and again when it is no longer fresh', async (t) => {
  const server = await DocumentServer.start(t)
  let nowMs = 1_000_000
  const found = documents({ nowMs: () => nowMs })
  const fresh = {
    none: 300_000,
    'max-age=5': 10_000,
    'public, max-age=60': 60_000,
    'max-age=99999': 3_600_000,
  }
  for (const [control, freshMs] of [...Object.entries(fresh), ['max-age=60, no-cache', 10_000] as const]) {
    const path = `/${freshMs}/${control.length}`
    server.serveJson(path, { control }, control === 'none' ? {} : { 'cache-control': control })
    const url = server.url(path)
    const asked = () => server.asked.filter((request) => request.url === path).length
    const all = await Promise.all([found.get(url), found.get(url), found.get(url)])
    assert.deepEqual([all, asked()], [Array(3).fill({ control }), 1])
    nowMs += freshMs - 1
    await found.get(url)
    assert.equal(asked(), 1, control)
    nowMs += 1
    await found.get(url)
    assert.equal(asked(), 2, control)
  }
  const { headers } = server.asked[0]!
  assert.deepEqual(
    [headers.accept, headers['accept-encoding'], headers.authorization, headers.cookie],
    ['application/json', 'identity', undefined, undefined],
  )
})

const endless: Answer = (_, response) => {
  response.writeHead(200, json)
  const more = () => {
    while (!response.destroyed && response.write('x'.repeat(16_384)));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}
/** Bytes as they are, a few every 20 ms, for ever. */
const dripping = (start: string, piece: string): Answer => {
  return ({ socket }) => {
    socket.write(start)
    const timer = setInterval(() => socket.write(piece), 20)
    socket.on('close', () => clearInterval(timer))
  }
}
const slowBody = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n'
const text = (body: string | Buffer, headers: Record<string, string> = json): Answer => {
  return (_, response) => response.writeHead(200, headers).end(body)
}

/** What a server may answer, and what is said of it. */
const BAD: readonly (readonly [title: string, kind: string, answer: Answer, message: RegExp])[] = [
  [
    'a redirect',
    'away',
    (_, r) => r.writeHead(302, { location: '/good' }).end(),
    /it answers 302, and no redirect/,
  ],
  [
    'a redirect inside',
    'away',
    (_, r) => r.writeHead(307, { location: 'http://127.0.0.1/' }).end(),
    /answers 307/,
  ],
  ['not there', 'wrong', (_, r) => r.writeHead(404, json).end('{}'), /it answers 404/],
  ['gone', 'wrong', (_, r) => r.writeHead(410, json).end('{}'), /it answers 410/],
  ['an error', 'away', (_, r) => r.writeHead(500, json).end('{}'), /it answers 500/],
  ['nothing new', 'away', (_, r) => r.writeHead(304).end(), /it answers 304/],
  ['no content', 'away', (_, r) => r.writeHead(204).end(), /it answers 204/],
  ['an endless body', 'away', endless, /longer than 65536 bytes/],
  ['a body that is a byte too long', 'away', text(`"${'x'.repeat(65_535)}"`), /longer than 65536 bytes/],
  ['a length that is', 'away', text(JSON.stringify('x'.repeat(1e6))), /longer than 65536 bytes/],
  ['no head', 'away', () => undefined, /not come within 300 ms/],
  ['a slow head', 'away', dripping('HTTP/1.1 200 OK\r\nx: ', 'x'), /within 300 ms/],
  ['a slow body', 'away', dripping(slowBody, ' '), /within 300 ms/],
  ['hints without end', 'away', dripping('', 'HTTP/1.1 103 Early Hints\r\n\r\n'), /within 300 ms/],
  [
    'a huge head',
    'away',
    text('{}', { ...json, x: 'x'.repeat(20_000) }),
    /cannot be fetched \(UND_ERR_HEADERS_OVERFLOW\)/,
  ],
  [
    'half a body',
    'away',
    (_, r) => void r.writeHead(200, { ...json, 'content-length': '99' }).write('{}', () => r.destroy()),
    /cannot be fetched/,
  ],
  ['no HTTP', 'away', (request) => request.socket.end('SSH-2.0-x\r\n'), /cannot be fetched/],
  ['a hang-up', 'away', (request) => request.socket.destroy(), /cannot be fetched \(UND_ERR_SOCKET\)/],
  ['a page', 'away', text('{}', { 'content-type': 'text/html' }), /its Content-Type is not JSON/],
  ['no type', 'away', text('{}', {}), /its Content-Type is not JSON/],
  [
    'a type that only begins so',
    'away',
    text('{}', { 'content-type': 'application/jsonp' }),
    /its Content-Type is not JSON/,
  ],
  [
    'a bomb',
    'away',
    text(gzipSync('0'.repeat(5_000_000)), { ...json, 'content-encoding': 'gzip' }),
    /compressed/,
  ],
  ['no UTF-8', 'away', text(Buffer.from([0x22, 0xff, 0x22])), /it is not UTF-8/],
  ['no JSON', 'away', text('{"a":1'), /it is not valid JSON/],
  ['nothing', 'away', text(''), /it is not valid JSON/],
  ['depth', 'away', text(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), /nested deeper than 64/],
  ['a prototype', 'away', text('{"a":{"__proto__":{}}}'), /member __proto__/],
  ['what its kind refuses', 'wrong', text('{"bad":true}'), /bad is not for here/],
]

test('whatever a server answers', async (t) => {
  for (const [title, kind, answer, message] of BAD)
    t.test(title, async (t) => {
      const server = await DocumentServer.start(t)
      server.serve('/doc', answer)
      server.serveJson('/good', {})
      const found = documents({ timeoutMs: /within/.test(message.source) ? 300 : 5_000 })
      const problem = { name: 'DocumentUnusable', kind, message }
      await assert.rejects(found.get(server.url('/doc')), problem)
      await assert.rejects(found.get(server.url('/doc')), problem)
      assert.equal(server.asked.length, 1, 'a failure is remembered')
      await assert.rejects(found.get(server.url('/doc')), (error: Error) =>
        error.message.startsWith(server.url('/doc: ')),
      )
    })
})

test('where a last good document is kept, and where it is not', async (t) => {
  const server = await DocumentServer.start(t)
  for (const [title, kind, answer] of BAD.filter(([, , , message]) => !/within/.test(message.source)))
    t.test(title, async () => {
      let nowMs = 0
      const found = documents({ nowMs: () => nowMs })
      const url = server.url('/doc')
      server.serveJson('/doc', { good: title }, { 'cache-control': 'max-age=60' })
      await found.get(url)
      server.serve('/doc', answer)
      nowMs = 60_000
      if (kind === 'wrong') return assert.rejects(found.get(url), { kind })
      assert.deepEqual(await found.get(url), { good: title })
      const { length } = server.asked
      nowMs += 9_999
      assert.deepEqual(await found.get(url), { good: title })
      assert.equal(server.asked.length, length, 'it is not asked for each time')
      nowMs = 60_000 + 3_600_000
      await assert.rejects(found.get(url), { kind }, 'an hour is enough')
    })
})

test('who misses something has it fetched again, every ten seconds at most', async (t) => {
  const server = await DocumentServer.start(t)
  server.serveJson('/doc', {})
  let nowMs = 0
  const found = documents({ nowMs: () => nowMs })
  const counts = []
  for (nowMs of [0, 0, 9_999, 10_000, 10_000, 19_999, 20_000]) {
    await found.get(server.url('/doc'), 0)
    counts.push(server.asked.length)
  }
  assert.deepEqual(counts, [1, 1, 1, 2, 2, 2, 3])
  server.serve('/doc', (request) => request.socket.destroy())
  for (nowMs of [30_000, 39_999]) await found.get(server.url('/doc'), 0)
  assert.equal(server.asked.length, 4)
})

test('what becomes of documents is counted: fetched, remembered, stale, refused and why', async (t) => {
  const server = await DocumentServer.start(t)
  let nowMs = 0
  const [metrics, counted] = [new Metrics(), new DocumentMetrics()]
  counted.addTo(metrics, () => nowMs)
  const found = documents({ nowMs: () => nowMs, metrics: counted, timeoutMs: 1_000 })
  const guarded = documents({ nowMs: () => nowMs, metrics: counted, allowPrivate: false })
  server.serveJson('/good', {}, { 'cache-control': 'max-age=60' })
  for (const _ of [1, 2, 3]) await found.get(server.url('/good'))
  nowMs = 70_000
  server.serve('/good', (_, response) => response.writeHead(503).end())
  for (const _ of [1, 2]) await found.get(server.url('/good'))
  for (const [path, answer] of Object.entries<Answer>({
    '/redirect': (_, response) => response.writeHead(302, { location: '/' }).end(),
    '/large': text(JSON.stringify('x'.repeat(100_000))),
    '/slow': () => undefined,
    '/page': text('{}', { 'content-type': 'text/html' }),
    '/bad': text('{"bad":true}'),
    '/hang-up': (request) => request.socket.destroy(),
  })) {
    server.serve(path, answer)
    for (const _ of [1, 2]) await assert.rejects(found.get(server.url(path)))
  }
  await assert.rejects(guarded.get(server.url('/', '10.0.0.1')))
  await assert.rejects(guarded.get('http://agent.example.test/'))
  const values = async () =>
    (await metricsText([await metrics.read()]))
      .split('\n')
      .filter((line) => line.includes('document="keys"') && !line.endsWith(' 0'))
      .map((line) =>
        line.replace(/^gatehouse_document_(\w+)\{document="keys"(?:,\w+="([\w-]+)")?\}/, '$1 $2'),
      )
  assert.deepEqual(await values(), [
    'fetches_total fetched 1',
    'fetches_total malformed 2',
    'fetches_total address 1',
    'fetches_total redirect 1',
    'fetches_total status 1',
    'fetches_total too-large 1',
    'fetches_total timeout 1',
    'fetches_total network 1',
    'uses_total fetched 1',
    'uses_total remembered 2',
    'uses_total stale 2',
    'uses_total none 14',
    'age_seconds  70',
  ])
  nowMs = 700_000
  assert.ok(!(await values()).some((line) => line.startsWith('age_seconds')), 'it was not used any more')
})

test('addresses that are no addresses of documents', async () => {
  for (const [url, message] of [
    ['http://agent.example.test/', /must be a URL with https/],
    ['ftp://agent.example.test/', /must be a URL with https/],
    ['file:///etc/passwd', /must be a URL with https/],
    ['data:application/json,{}', /must be a URL with https/],
    ['agent.example.test', /must be a URL with https/],
    ['', /must be a URL with https/],
    ['https://user@agent.example.test/', /a user or a password/],
    ['https://:word@agent.example.test/', /a user or a password/],
    ['https://agent.example.test/#', /a fragment/],
    ['https://agent.example.test/x#y', /a fragment/],
    [`https://agent.example.test/${'x'.repeat(2_048)}`, /longer than 2048/],
  ] as const)
    await assert.rejects(documents({ allowPrivate: false }).get(url), {
      name: 'DocumentUnusable',
      kind: 'wrong',
      message,
    })
})

test('no private address, however it is written', async (t) => {
  const server = await DocumentServer.start(t)
  server.serve('*', text('{}'))
  const guarded = documents({ allowPrivate: false })
  for (const host of [
    ...['127.0.0.1', '127.1', '0x7f.1', '0177.0.0.1', '2130706433', '0', '169.254.169.254', '10.0.0.1'],
    ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
    ...[
      '[fe80::1]',
      '[fd00:ec2::254]',
      '[2002:7f00:1::]',
      '①②⑦.⓪.⓪.①',
      'localhost',
      'LOCALHOST',
      'x.localhost',
    ],
  ])
    await assert.rejects(
      guarded.get(server.url('/', host)),
      { kind: 'wrong', message: /is not on the public internet/ },
      host,
    )
  assert.equal(server.asked.length, 0)
})

test('a name that is public when it is looked at, and private when it is connected to', async (t) => {
  const server = await DocumentServer.start(t)
  server.serve('*', text('{}'))
  for (const turns of [
    [['127.0.0.1']],
    [['1.1.1.1', '127.0.0.1']],
    [['::ffff:127.0.0.1']],
    [['64:ff9b::7f00:1']],
    [[]],
  ]) {
    let turn = 0
    const lookup: LookupFunction = (_name, options, callback) => {
      const addresses = turns[turn++]!.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
      return options.all ? callback(null, addresses) : callback(null, addresses[0]!.address, 4)
    }
    const guarded = documents({ allowPrivate: false, lookup })
    await assert.rejects(guarded.get(server.url('/')), {
      kind: 'wrong',
      message: /agent\.example\.test is not on/,
    })
    assert.equal(turn, 1, 'it is asked for once: what was looked at is what is connected to')
  }
  assert.equal(server.asked.length, 0)
})

test('a name server that does not answer, or knows nothing', async (t) => {
  const alive = setInterval(() => undefined, 100) // our own timers keep no process alive
  t.teardown(() => clearInterval(alive))
  const silent = documents({ timeoutMs: 200, lookup: () => undefined })
  await assert.rejects(silent.get('https://a.example/'), { kind: 'away', message: /not come within 200 ms/ })
  const missing: LookupFunction = (_name, _options, callback) =>
    callback(Object.assign(new Error('secret'), { code: 'ENOTFOUND' }), '')
  await assert.rejects(documents({ lookup: missing }).get('https://a.example/'), {
    message: 'https://a.example/: it cannot be fetched (ENOTFOUND)',
  })
})

test('a server that is not who it says, or speaks no TLS', async (t) => {
  const server = await DocumentServer.start(t)
  server.serve('*', text('{}'))
  const plain = await DocumentServer.start(t, 'http')
  plain.serve('*', text('{}'))
  const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const untrusting = new Documents(KIND, { allowPrivate: true, nowMs: Date.now, lookup: HERE })
  for (const [found, url] of [
    [documents(), server.url('/', 'other.example')],
    [untrusting, server.url('/')],
    [documents(), plain.url('/').replace('http:', 'https:')],
    [documents(), server.url('/').replace('https:', 'http:')],
  ] as const)
    await assert.rejects(found.get(url), { kind: 'away' }, url)
  assert.deepEqual([server.asked.length, plain.asked.length], [0, 0])
  assert.deepEqual(await documents().get(plain.url('/')), {})
})

test('two at a time from a host, sixteen in all; who waits too long is told, and asks again at once', async (t) => {
  const server = await DocumentServer.start(t)
  const held: ServerResponse[] = []
  server.serve('*', (_, response) => held.push(response))
  const found = documents({ timeoutMs: 1_500 })
  const get = (host: number, path: number) => found.get(server.url(`/${path}`, `h${host}.example.test`))
  const outcome = (document: Promise<unknown>) =>
    document.then(
      () => 'had',
      (error) => error.kind,
    )
  const three = [1, 2, 3].map((path) => outcome(get(0, path)))
  const others = Array.from({ length: 15 }, (_, host) => outcome(get(host + 1, 0)))
  await wait(700)
  assert.equal(held.length, 16)
  assert.equal(held.filter(({ req }) => req.headers.host!.startsWith('h0.')).length, 2)
  for (const response of held.splice(0, 8)) response.writeHead(200, json).end('{}')
  await wait(300)
  assert.equal(held.length, 10, 'the places of those that are done are given to the two that waited')
  for (const response of held) response.writeHead(200, json).end('{}')
  assert.deepEqual(await Promise.all([...three, ...others]), Array(18).fill('had'))
  held.length = 0
  const late = [4, 5, 6].map((path) => outcome(get(0, path)))
  assert.deepEqual(await Promise.all(late), ['away', 'away', 'busy'])
  server.serve('*', text('{}'))
  assert.equal(await outcome(get(0, 6)), 'had')
})

test('no host is asked for more than sixty documents a minute', async (t) => {
  const server = await DocumentServer.start(t)
  server.serve('*', text('{}'))
  let nowMs = 0
  const found = documents({ nowMs: () => nowMs })
  const one = (path: number) => found.get(server.url(`/${path}`))
  for (let path = 0; path < 60; path++) await one(path)
  await assert.rejects(one(60), { kind: 'busy', message: /too much is fetched at the moment/ })
  await found.get(server.url('/', 'other.example.test'))
  nowMs = 60_000
  await one(60)
  assert.equal(server.asked.length, 62)
})

test('what is under way is given up at the end', async (t) => {
  const server = await DocumentServer.start(t)
  const asked = Promise.withResolvers<void>()
  server.serve('*', () => asked.resolve())
  const found = documents()
  const getting = assert.rejects(found.get(server.url('/')), { kind: 'away' })
  await asked.promise
  found.close()
  await getting
})
