import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import http2, { type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import https from 'node:https'
import type net from 'node:net'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import { test } from 'tap'
import { BEAT_MS } from '../../src/proxy/connection/beat.ts'
import type { ForwardOutcome } from '../../src/proxy/upstream/forward.ts'
import type { MemoryRequest } from './memory-exchange.ts'
import { answerOf, ask, assertClean, groupOf, HEADERS, upstream } from './upstream-fixture.ts'

const PEM = readFileSync(new URL('../vectors/localhost.pem', import.meta.url), 'utf8')

type Serve = (stream: ServerHttp2Stream, headers: http2.IncomingHttpHeaders, raw: string[]) => void

interface H2App {
  readonly url: string
  readonly sessions: Set<ServerHttp2Session>
  opened: number
  stop(): Promise<void>
}

async function app(serve: Serve, options: http2.ServerOptions = {}): Promise<H2App> {
  return started(http2.createServer(options), 'h2c://127.0.0.1', serve)
}

async function started(server: net.Server, origin: string, serve: Serve): Promise<H2App> {
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session: ServerHttp2Session) => {
    found.opened++
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => {
      sessions.delete(session)
      server.emit('left')
    })
  })
  server.on('stream', (stream: ServerHttp2Stream, headers, _flags, raw) => {
    stream.on('error', () => {})
    serve(stream, headers, raw)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const found: H2App = {
    url: `${origin}:${(server.address() as AddressInfo).port}`,
    sessions,
    opened: 0,
    stop: async () => {
      while (sessions.size > 0) await once(server, 'left')
      server.close()
      await once(server, 'close')
    },
  }
  return found
}

/** Answers with what it got. */
const echo: Serve = (stream, headers) => {
  const hash = createHash('sha256')
  let trailers: http2.IncomingHttpHeaders = {}
  stream.on('trailers', (found) => {
    trailers = found
  })
  stream.on('data', (bytes) => hash.update(bytes))
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'set-cookie': ['a=1', 'b=2'] }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'yes' }))
    stream.end(JSON.stringify({ headers, hash: hash.digest('hex'), trailers }))
  })
}

async function exchangesBodies(group: ReturnType<typeof groupOf>, scheme: string): Promise<void> {
  for (const length of [0, 1, 70_000, 3_000_000]) {
    for (const bodyLength of length === 0 ? [0, null] : [length, null]) {
      const body = randomBytes(length)
      const trailers = ['X-Sum', '1', 'x-sum', '2']
      const request: MemoryRequest = { method: 'POST', target: '/a?b', body, bodyLength, trailers }
      const asking = ask(group, { ...request, acceptsTrailers: true }, [...HEADERS, 'TE', 'trailers'])
      assert.equal((await asking.outcome).kind, 'answered')
      assertClean(asking)
      const said = JSON.parse(asking.exchange.text)
      assert.equal(said.hash, createHash('sha256').update(body).digest('hex'))
      assert.equal(said.headers[':authority'], 'app.example.test')
      assert.equal(said.headers[':path'], '/a?b')
      assert.equal(said.headers[':scheme'], scheme)
      assert.equal(said.headers.te, 'trailers')
      assert.equal(said.headers['content-length'], bodyLength === null ? undefined : String(length))
      assert.equal(said.headers.host, undefined)
      assert.deepEqual(said.trailers, bodyLength === 0 ? {} : { 'x-sum': '1, 2' })
      assert.deepEqual(asking.exchange.endTrailers, ['x-end', 'yes'])
      assert.deepEqual(
        asking.exchange.headers.filter((text) => text.startsWith('set-cookie') || /^[ab]=/.test(text)),
        ['set-cookie', 'a=1', 'set-cookie', 'b=2'],
      )
    }
  }
}

test('trailers that are called as what every object has are trailers like any others', async () => {
  const server = await app(echo)
  const group = groupOf([server.url])
  const trailers = ['constructor', '1', 'Constructor', '3', 'valueof', '4']
  const asking = ask(group, { method: 'POST', body: Buffer.from('x'), bodyLength: null, trailers }, HEADERS)
  assert.equal((await asking.outcome).kind, 'answered')
  const said = Object.entries(JSON.parse(asking.exchange.text).trailers)
  assert.deepEqual(said.toSorted(), [
    ['constructor', '1, 3'],
    ['valueof', '4'],
  ])
  group.close()
  await server.stop()
})

test('HTTP/2 without TLS', async () => {
  const server = await app(echo)
  const group = groupOf([server.url])
  await exchangesBodies(group, 'http')
  assert.equal(server.opened, 1)
  group.close()
  await server.stop()
})

test('HTTP/2 with TLS', async () => {
  const server = await started(
    http2.createSecureServer({ key: PEM, cert: PEM }),
    'h2://localhost'.replace('localhost', '127.0.0.1'),
    echo,
  )
  const group = groupOf([server.url], { tls: { verify: true, ca: PEM, serverName: 'localhost' } })
  await exchangesBodies(group, 'https')
  group.close()
  await server.stop()
})

test('the request as the app sees it', async () => {
  let seen: string[] = []
  const server = await app((stream, _headers, raw) => {
    seen = raw
    stream.respond({ ':status': 204 }, { endStream: true })
  })
  const group = groupOf([server.url])
  const headers = [
    'A',
    'b',
    'HOST',
    'app.example.test',
    'User-Agent',
    'x',
    'user-agent',
    'y',
    'X-\xc9'.slice(0, 2),
    '\xe9',
  ]
  const asking = ask(group, { method: 'DELETE', target: 'http://x.example.test/p?q' }, headers)
  assert.equal((await asking.outcome).kind, 'answered')
  assert.deepEqual(seen.slice(0, 8), [
    ...[':method', 'DELETE', ':scheme', 'http', ':authority', 'app.example.test', ':path', '/p?q'],
  ])
  assert.deepEqual(seen.slice(8), ['a', 'b', 'user-agent', 'x', 'user-agent', 'y', 'x-', '\xe9'])
  assert.deepEqual([asking.exchange.status, asking.exchange.length], [204, 0])
  group.close()
  await server.stop()
})

test('what each kind of answer comes as', async () => {
  const server = await app((stream, headers) => {
    const path = headers[':path']
    if (path === '/trailers-only') stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true })
    else if (path === '/length') {
      stream.respond({ ':status': 201, 'content-length': 2 })
      stream.end('ok')
    } else if (path === '/304') stream.respond({ ':status': 304, etag: '"x"' }, { endStream: true })
    else if (path === '/head') stream.respond({ ':status': 200, 'content-length': 7 }, { endStream: true })
    else if (path === '/hints') {
      stream.additionalHeaders({ ':status': 103, link: '</a>' })
      stream.additionalHeaders({ ':status': 102 })
      stream.respond({ ':status': 200 })
      stream.end('ok')
    }
  })
  const group = groupOf([server.url])
  const trailersOnly = await answerOf(group, { target: '/trailers-only', acceptsTrailers: true })
  assert.deepEqual([trailersOnly.length, trailersOnly.headers.includes('grpc-status')], [0, true])
  const length = await answerOf(group, { target: '/length' })
  assert.deepEqual([length.status, length.length, length.text], [201, 2, 'ok'])
  assert.deepEqual((await answerOf(group, { target: '/304' })).length, 0)
  const head = await answerOf(group, { method: 'HEAD', target: '/head' })
  assert.deepEqual([head.length, head.headers.includes('7')], [0, true])
  const hints = await answerOf(group, { target: '/hints' })
  assert.deepEqual(hints.informs, [
    { status: 103, headers: ['link', '</a>'] },
    { status: 102, headers: [] },
  ])
  assert.deepEqual([hints.length, hints.text], [null, 'ok'])
  group.close()
  await server.stop()
})

test('Expect: 100-continue', async () => {
  const server = await app((stream, headers) => {
    assert.equal(headers.expect, '100-continue')
    stream.additionalHeaders({ ':status': 100 })
    stream.resume()
    stream.on('end', () => stream.respond({ ':status': 204 }, { endStream: true }))
  })
  const group = groupOf([server.url])
  const body = new PassThrough()
  const { exchange, outcome } = ask(group, { method: 'POST', body, bodyLength: 2, expectsContinue: true })
  await exchange.until('informed')
  assert.deepEqual(exchange.informs, [{ status: 100, headers: [] }])
  body.end('ok')
  assert.equal((await outcome).kind, 'answered')
  group.close()
  await server.stop()
})

test('an answer that breaks off', async (t) => {
  // Without an error Node sends RST_STREAM(NO_ERROR), but so it does at the end of some streams that are whole.
  const cases = [
    { name: 'without an error, and without a length', error: undefined, length: {}, kind: 'answered' },
    { name: 'without an error', error: undefined, length: { 'content-length': 5 }, kind: 'broken-off' },
    { name: 'with an error', error: new Error('broke'), length: {}, kind: 'broken-off' },
  ]
  for (const { name, error, length, kind } of cases) {
    t.test(name, async () => {
      const server = await app((stream, headers) => {
        stream.resume()
        if (headers[':path'] === '/before') return void stream.destroy(error)
        stream.respond({ ':status': 200, ...length })
        stream.write('half')
        setTimeout(() => stream.destroy(error), 20)
      })
      const group = groupOf([server.url])
      for (const request of [{}, { method: 'POST', body: Buffer.alloc(10) }]) {
        const before = ask(group, { ...request, target: '/before' })
        const outcome = await before.outcome
        assert.equal(outcome.kind === 'failed' && outcome.reason, 'reset')
        assertClean(before)
        const within = ask(group, request)
        assert.equal((await within.outcome).kind, kind)
        assertClean(within)
      }
      assert.equal(server.opened, 1)
      group.close()
      await server.stop()
    })
  }
  t.test('a connection that goes', async () => {
    const server = await app((stream) => {
      stream.respond({ ':status': 200 })
      stream.write('half', () => stream.session!.destroy())
    })
    const group = groupOf([server.url])
    const asking = ask(group)
    assert.equal((await asking.outcome).kind, 'broken-off')
    assertClean(asking)
    group.close()
    await server.stop()
  })
})

/** A server that has its SETTINGS to say, and these bytes when the first request is there. */
function byHand(
  bytes: Buffer,
  settings = frame(4, 0, 0, Buffer.alloc(0)),
  then: (socket: net.Socket) => void = () => {},
) {
  return upstream((socket) => {
    socket.once('data', () => socket.write(settings))
    let rest = Buffer.alloc(0)
    socket.on('data', (more) => {
      rest = Buffer.concat([rest, more])
      if (rest.subarray(0, 3).toString() === 'PRI') rest = rest.subarray(24)
      while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        if (rest[3] === 1) socket.write(bytes, () => then(socket))
        rest = rest.subarray(9 + rest.readUIntBE(0, 3))
      }
    })
  })
}

test('frames by hand: a stream that is reset with an error is not whole', async () => {
  for (const code of [2, 7, 8]) {
    const server = await byHand(
      Buffer.concat([
        frame(1, 4, 1, STATUS_200),
        frame(0, 0, 1, Buffer.from('half')),
        frame(3, 0, 1, Buffer.from([0, 0, 0, code])),
      ]),
    )
    const group = groupOf([server.url.replace('http', 'h2c')])
    const asking = ask(group)
    const outcome = await asking.outcome
    assert.equal(outcome.kind === 'broken-off' && outcome.reason, 'reset', `RST_STREAM(${code})`)
    assert.ok('half'.startsWith(asking.exchange.text))
    assertClean(asking)
    group.close()
    await server.settled()
  }
})

test('frames by hand: what the connection takes with it is not whole, also after GOAWAY', async () => {
  const goAway = (last: number) => frame(7, 0, 0, Buffer.from([0, 0, 0, last, 0, 0, 0, 0]))
  const half = Buffer.concat([frame(1, 4, 1, STATUS_200), frame(0, 0, 1, Buffer.from('half'))])
  const goodbyes = { none: [], 'last stream 1': [goAway(1)], 'last stream 2^31-1': [goAway(0x7f)] }
  const ends = {
    reset: (socket: net.Socket) => socket.resetAndDestroy(),
    FIN: (socket: net.Socket) => socket.end(),
  }
  for (const [said, goodbye] of Object.entries(goodbyes)) {
    for (const [name, end] of Object.entries(ends)) {
      for (const pauseMs of [0, 20]) {
        const server = await byHand(Buffer.concat([half, ...goodbye]), undefined, (socket) =>
          setTimeout(end, pauseMs, socket),
        )
        const group = groupOf([server.url.replace('http', 'h2c')])
        const asking = ask(group)
        const outcome = await asking.outcome
        assert.ok(
          outcome.kind === 'broken-off' || outcome.kind === 'failed',
          `${name}, ${said}, ${pauseMs} ms: ${outcome.kind}`,
        )
        assertClean(asking)
        group.close()
        await server.settled()
      }
    }
  }
})

test('frames by hand: invalid HTTP/2 is a fault', async () => {
  const answers: Readonly<Record<string, Buffer>> = {
    'an invalid status': frame(1, 5, 1, literal(':status', '99')),
    'no status': frame(1, 5, 1, literal('a', 'b')),
    'a status beyond 599': frame(1, 5, 1, literal(':status', '600')),
    'a switch to another protocol': frame(1, 4, 1, literal(':status', '101')),
    'a connection header': frame(1, 5, 1, Buffer.concat([STATUS_200, literal('connection', 'close')])),
    'a length that is exceeded': Buffer.concat([
      frame(1, 4, 1, Buffer.concat([STATUS_200, literal('content-length', '1')])),
      frame(0, 1, 1, Buffer.from('xx')),
    ]),
    'a length that is not reached': Buffer.concat([
      frame(1, 4, 1, Buffer.concat([STATUS_200, literal('content-length', '3')])),
      frame(0, 1, 1, Buffer.from('xx')),
    ]),
    'a body without a head': frame(0, 1, 1, Buffer.from('xx')),
    'a broken header block': frame(1, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
    garbage: Buffer.alloc(100, 0xfe),
  }
  for (const [name, bytes] of Object.entries(answers)) {
    const server = await byHand(bytes)
    const group = groupOf([server.url.replace('http', 'h2c')])
    const asking = ask(group)
    const outcome = await asking.outcome
    assert.ok(
      outcome.kind === 'failed' || outcome.kind === 'broken-off',
      `${name}: ${JSON.stringify(outcome)}`,
    )
    assert.ok(['bad-response', 'reset'].includes(outcome.reason), `${name}: ${JSON.stringify(outcome)}`)
    assertClean(asking)
    group.close()
    await server.settled()
  }
})

test('a server that speaks something else, or nothing', async () => {
  const answers = {
    'HTTP/1': ['HTTP/1.1 400 Bad Request\r\n\r\n', 'bad-response'],
    'another frame than SETTINGS': [frame(6, 0, 0, Buffer.alloc(8)), 'bad-response'],
    'a word and then the end': ['', 'reset'],
  } as const
  for (const [name, [bytes, reason]] of Object.entries(answers)) {
    const server = await upstream((socket) => {
      socket.once('data', () => (bytes.length === 0 ? socket.end() : socket.write(bytes)))
    })
    const group = groupOf([server.url.replace('http', 'h2c')])
    const asking = ask(group)
    const outcome = await asking.outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, reason, name)
    assertClean(asking)
    group.close()
    await server.settled()
  }
})

test('TLS to a server that does not speak HTTP/2', async () => {
  const server = https.createServer({ key: PEM, cert: PEM }, (_, response) => response.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const group = groupOf([`h2://127.0.0.1:${port}`], {
    tls: { verify: true, ca: PEM, serverName: 'localhost' },
  })
  const outcome = await ask(group).outcome
  assert.equal(outcome.kind === 'failed' && outcome.reason, 'tls')
  group.close()
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
})

test('no server listens', async () => {
  const closed = http.createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  await once(closed, 'close')
  const group = groupOf([`h2c://127.0.0.1:${port}`])
  const askings = Array.from({ length: 10 }, () => ask(group))
  for (const asking of askings) {
    const outcome = await asking.outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'refused')
    assertClean(asking)
  }
  assert.equal(group.counters.connectionsOpened, 1, 'one attempt answers all who wait for it')
  group.close()
})

test('a request that was refused is sent once more, whatever it is', async () => {
  let seen = 0
  const server = await app((stream) => {
    if (seen++ === 0) stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
    else stream.respond({ ':status': 204 }, { endStream: true })
  })
  const group = groupOf([server.url])
  assert.equal((await answerOf(group, { method: 'POST' })).status, 204)
  assert.equal(seen, 2)
  group.close()
  await server.stop()
})

test('an app that leaves with GOAWAY loses nothing', async () => {
  const server = await app((stream, headers) => {
    stream.resume()
    const wait = headers[':path'] === '/slow' ? 150 : 0
    setTimeout(() => {
      if (stream.destroyed) return
      stream.respond({ ':status': 200 })
      stream.end('ok')
    }, wait)
  })
  const group = groupOf([server.url])
  const slow = answerOf(group, { target: '/slow' })
  await answerOf(group)
  const [session] = server.sessions
  session!.close()
  for (let i = 0; i < 20; i++) {
    await answerOf(group)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  assert.equal((await slow).text, 'ok', 'what was under way came to its end')
  assert.equal(server.opened, 2)
  group.close()
  await server.stop()
})

test('an app that leaves with GOAWAY gets the uploads that it has begun to read', async () => {
  const server = await app((stream) => {
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  })
  const group = groupOf([server.url], { headTimeoutMs: 3000, idleTimeoutMs: 3000 })
  const upload = (index: number) => {
    const pieces = Array.from({ length: 1 + ((index * 7) % 40) }, () => Buffer.alloc(5000, index))
    return ask(group, { method: 'POST', body: Readable.from(pieces), bodyLength: null }).outcome
  }
  for (let round = 0; round < 20; round++) {
    const outcomes: Promise<ForwardOutcome>[] = []
    let isOver = false
    const keepAsking = async (first: number) => {
      for (let index = first; !isOver; index++) {
        const outcome = upload(index)
        outcomes.push(outcome)
        await outcome
      }
    }
    for (let index = 0; index < 30; index++) void keepAsking(index)
    await new Promise((resolve) => setTimeout(resolve, 50 + round * 10))
    for (const session of server.sessions) session.close()
    isOver = true
    for (const found of await Promise.all(outcomes)) {
      // One that the app has not seen any more when it left is refused, and its body can't be sent again.
      if (found.kind === 'answered') continue
      assert.ok('reason' in found && found.reason === 'reset', `round ${round}: ${JSON.stringify(found)}`)
    }
  }
  group.close()
  await server.stop()
})

test('no more streams than the app allows, and no more requests than the setting says', async (t) => {
  const counting = async (options: http2.ServerOptions) => {
    let now = 0
    let most = 0
    const server = await app((stream) => {
      most = Math.max(most, ++now)
      setTimeout(() => {
        now--
        stream.respond({ ':status': 204 }, { endStream: true })
      }, 5)
    }, options)
    return { server, most: () => most }
  }
  t.test('the app', async () => {
    const { server, most } = await counting({ settings: { maxConcurrentStreams: 4 } })
    const group = groupOf([server.url])
    await answerOf(group) // its SETTINGS are known from here on
    await Promise.all(Array.from({ length: 100 }, () => answerOf(group)))
    assert.ok(server.opened <= 8 && most() <= 8 * 4, `${server.opened} connections, ${most()} streams`)
    assert.equal(group.counters.retries, 0)
    group.close()
    await server.stop()
  })
  t.test('the setting', async () => {
    const { server, most } = await counting({})
    const group = groupOf([server.url], { connectionsMax: 10 })
    await Promise.all(Array.from({ length: 100 }, () => answerOf(group)))
    assert.equal(server.opened, 1)
    assert.equal(most(), 10)
    group.close()
    await server.stop()
  })
})

test('time-outs, and a connection that does not answer any more', async () => {
  const server = await app((stream, headers) => {
    if (headers[':path'] === '/half') {
      stream.respond({ ':status': 200 })
      stream.write('half')
    }
  })
  const group = groupOf([server.url], { headTimeoutMs: 100, idleTimeoutMs: 100 })
  const head = await ask(group).outcome
  assert.equal(head.kind === 'failed' && `${head.reason} ${head.status}`, 'head-timeout 504')
  await new Promise((resolve) => setTimeout(resolve, 50))
  const half = await ask(group, { target: '/half' }).outcome
  assert.equal(half.kind === 'broken-off' && half.reason, 'idle-timeout')
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.deepEqual((await ask(group).outcome).kind, 'failed')
  assert.equal(server.opened, 1, 'a connection that answers a PING is kept')
  group.close()
  await server.stop()

  const silent = await upstream((socket) => socket.resume())
  const toSilent = groupOf([silent.url.replace('http', 'h2c')], { connectTimeoutMs: 300, headTimeoutMs: 100 })
  const first = await ask(toSilent).outcome
  assert.equal(first.kind === 'failed' && first.reason, 'connect-timeout', 'it never said SETTINGS')
  toSilent.close()
  await silent.settled()
})

test('a request after a long pause has the full time to wait for a connection', async () => {
  const h2 = http2.createServer((_, response) => response.end('late'))
  h2.on('session', (session) => session.on('error', () => {}))
  const late = await upstream((socket) => setTimeout(() => h2.emit('connection', socket), 3 * BEAT_MS))
  const group = groupOf([late.url.replace('http', 'h2c')], { connectTimeoutMs: 8 * BEAT_MS })
  await new Promise((resolve) => setTimeout(resolve, 10 * BEAT_MS))
  assert.equal((await ask(group).outcome).kind, 'answered')
  group.close()
  await late.settled()
})

test('clients that go away take their streams with them, and leave the connection', async () => {
  let resets = 0
  const server = await app((stream, headers) => {
    stream.on('close', () => {
      if (stream.rstCode === http2.constants.NGHTTP2_CANCEL) resets++
    })
    if (headers[':path'] === '/silent') return
    stream.respond({ ':status': 200 })
    stream.write('half')
    if (headers[':path'] === '/whole') stream.end()
  })
  const group = groupOf([server.url])
  await answerOf(group, { target: '/whole' })
  for (const event of ['answered', 'written'] as const) {
    const asking = ask(group)
    asking.exchange.on(event, () => asking.exchange.leave())
    assert.equal((await asking.outcome).kind, 'client-gone')
    assertClean(asking)
  }
  const silent = ask(group, { target: '/silent' })
  const waiting = ask(group, { target: '/silent', method: 'POST', body: new PassThrough(), bodyLength: null })
  await answerOf(group, { target: '/whole' })
  for (const asking of [silent, waiting]) {
    asking.exchange.leave()
    assert.equal((await asking.outcome).kind, 'client-gone')
    assertClean(asking)
  }
  while (resets < 4) await new Promise(setImmediate)
  await answerOf(group, { target: '/whole' })
  assert.equal(server.opened, 1)
  group.close()
  await server.stop()
})

test('answers that come before the request is sent end it, and leave the connection', async () => {
  const server = await app((stream) => {
    stream.resume()
    stream.respond({ ':status': 413 })
    stream.end(Buffer.alloc(2000))
  })
  const group = groupOf([server.url])
  const lane = async () => {
    for (let round = 0; round < 20; round++) {
      const pieces = Array.from({ length: 40 }, (_, index) =>
        Buffer.alloc(1 + ((index * 7919 + round) % 70_000)),
      )
      const asking = ask(group, { method: 'POST', body: Readable.from(pieces), bodyLength: null })
      const outcome = await asking.outcome
      assert.equal(outcome.kind === 'answered' && outcome.status, 413, JSON.stringify(outcome))
      assertClean(asking)
    }
  }
  await Promise.all(Array.from({ length: 6 }, lane))
  assert.equal(server.sessions.size, server.opened, 'none was closed')
  group.close()
  await server.stop()
})

test('back-pressure both ways, and one slow client does not hold up another', async () => {
  const length = 8 * 1024 * 1024
  let given = 0
  const server = await app((stream, headers) => {
    if (headers[':path'] !== '/big') return echo(stream, headers, [])
    stream.respond({ ':status': 200 })
    const fill = () => {
      while (given < length) {
        given += 65_536
        if (!stream.write(Buffer.alloc(65_536, given / 65_536))) return
      }
      stream.end()
    }
    stream.on('drain', fill)
    fill()
  })
  const group = groupOf([server.url])
  const slow = ask(group, { target: '/big' })
  slow.exchange.isSlow = true
  await slow.exchange.until('written')
  for (let before = -1; before !== given; ) {
    before = given
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.ok(given < length, `${given} bytes were taken from the app`)
  await exchangesBodies(group, 'http')
  slow.exchange.drain()
  assert.equal((await slow.outcome).kind, 'answered')
  assert.equal(Buffer.concat(slow.exchange.chunks).length, length)
  group.close()
  await server.stop()
})

test('an idle connection goes when its time is over', async () => {
  const server = await app((stream) => stream.respond({ ':status': 204 }, { endStream: true }))
  const group = groupOf([server.url], { keepAliveMs: 100 })
  await answerOf(group)
  assert.equal(group.status[0]!.idle, 1)
  const [session] = server.sessions
  await once(session!, 'close')
  assert.equal(group.status[0]!.connections, 0)
  group.close()
  await server.stop()
})

test('an idle connection is kept for ever where nothing says how long', async () => {
  const server = await app((stream) => stream.respond({ ':status': 204 }, { endStream: true }))
  const group = groupOf([server.url], { keepAliveMs: 0 })
  await answerOf(group)
  await new Promise((resolve) => setTimeout(resolve, 400))
  assert.equal(group.status[0]!.idle, 1)
  await answerOf(group)
  assert.equal(group.counters.connectionsOpened, 1)
  group.close()
  await server.stop()
})

test('nor does one go that was found to be well after a request without an answer', async () => {
  const server = await app((stream, headers) => {
    if (headers[':path'] !== '/never') stream.respond({ ':status': 204 }, { endStream: true })
  })
  const group = groupOf([server.url], { keepAliveMs: 0, headTimeoutMs: 100 })
  assert.equal((await ask(group, { target: '/never' }).outcome).kind, 'failed')
  await new Promise((resolve) => setTimeout(resolve, 400))
  assert.equal(group.status[0]!.idle, 1)
  await answerOf(group)
  assert.equal(group.counters.connectionsOpened, 1)
  group.close()
  await server.stop()
})

test('any bodies, in any pieces, broken off anywhere', async () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40_000, size: 'max' }), { maxLength: 5 })
  const plan = fc.record({
    request: pieces,
    response: pieces,
    upstreamBreaksAfter: fc.option(fc.nat(5), { freq: 3 }),
    clientLeavesAt: fc.option(fc.nat(5), { freq: 3 }),
  })
  const property = fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 6 }), async (plans) => {
    const bodies: string[] = plans.map(() => '')
    const server = await app((stream, headers) => {
      const index = Number(headers[':path']!.slice(1))
      const { response, upstreamBreaksAfter } = plans[index]!
      stream.on('data', (bytes: Buffer) => {
        bodies[index] += bytes.toString('latin1')
      })
      stream.on('end', async () => {
        if (stream.destroyed) return
        stream.respond({ ':status': 200 })
        for (const [i, piece] of response.entries()) {
          if (i === upstreamBreaksAfter) return void stream.destroy(new Error('broke'))
          if (!stream.destroyed) stream.write(piece)
          await new Promise(setImmediate)
        }
        if (!stream.destroyed) stream.end()
      })
    })
    const group = groupOf([server.url])
    const run = async (
      { request, response, upstreamBreaksAfter, clientLeavesAt }: (typeof plans)[0],
      i: number,
    ) => {
      const body = new PassThrough()
      const asking = ask(group, { method: 'PUT', target: `/${i}`, body, bodyLength: null })
      asking.exchange.on('written', () => {
        if (asking.exchange.chunks.length === clientLeavesAt) asking.exchange.leave()
      })
      for (const piece of request) body.write(piece)
      body.end()
      const { kind } = await asking.outcome
      assertClean(asking)
      const whole = Buffer.concat(response).toString('latin1')
      assert.ok(whole.startsWith(asking.exchange.text))
      if (kind === 'answered') {
        assert.equal(asking.exchange.text, whole)
        assert.equal(bodies[i], Buffer.concat(request).toString('latin1'))
      } else if (kind === 'client-gone') assert.notEqual(clientLeavesAt, null)
      else assert.notEqual(upstreamBreaksAfter, null)
    }
    await Promise.all(plans.map(run))
    group.close()
    await server.stop()
  })
  await fc.assert(property, { numRuns: 15 })
})

test('many bodies of every size at once, both ways, arrive as they were sent', async () => {
  const filled = (id: number, length: number) => Buffer.alloc(length, `${id} `)
  const serve: Serve = (stream, headers) => {
    const [id, length] = headers[':path']!.slice(1).split('-').map(Number) as [number, number]
    const parts: Buffer[] = []
    stream.on('data', (bytes: Buffer) => parts.push(bytes))
    stream.on('end', () => {
      const isSame = headers[':method'] === 'GET' || Buffer.concat(parts).equals(filled(id, length))
      stream.respond({ ':status': isSame ? 200 : 500 })
      stream.end(filled(id, length))
    })
  }
  const secure = http2.createSecureServer({ key: PEM, cert: PEM })
  const tls = { verify: true, ca: PEM, serverName: 'localhost' }
  for (const server of [await app(serve), await started(secure, 'h2://127.0.0.1', serve)]) {
    const group = groupOf([server.url], { tls })
    let next = 0
    const lane = async () => {
      while (next < 400) {
        const id = next++
        const length = (id * 7919) % (id % 10 === 0 ? 400_000 : 20_000)
        const body = filled(id, length)
        const request = id % 3 === 0 ? { method: 'POST', body, bodyLength: id % 2 === 0 ? length : null } : {}
        const asking = ask(group, { ...request, target: `/${id}-${length}` })
        if (id % 5 === 0) {
          asking.exchange.isSlow = true
          void asking.exchange.until('written').then(() => setTimeout(() => asking.exchange.drain(), id % 7))
        }
        assert.equal((await asking.outcome).kind, 'answered', `${id} of ${length}`)
        assert.equal(asking.exchange.status, 200, `${id} of ${length}`)
        assert.ok(Buffer.concat(asking.exchange.chunks).equals(body), `${id} of ${length}`)
        assertClean(asking)
      }
    }
    await Promise.all(Array.from({ length: 40 }, lane))
    group.close()
    await server.stop()
  }
})

const STATUS_200 = Buffer.of(0x88)

/** RFC 9113 §4.1. */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A field without indexing (RFC 7541 §6.2.2). */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.of(0, name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ])
}

test('uploads that are answered before they are read do not wear a connection out for those that follow', async () => {
  const server = await app((stream, headers, raw) => {
    if (headers[':path'] === '/') return echo(stream, headers, raw)
    stream.respond({ ':status': 413 }, { endStream: true })
  })
  const group = groupOf([server.url])
  for (let i = 0; i < 100; i++) {
    const body = Readable.from([Buffer.alloc(1_000_000)])
    const asking = ask(group, { method: 'POST', target: '/early', body, bodyLength: null })
    assert.equal((await asking.outcome).kind, 'answered', `after ${i}`)
    assert.equal(asking.exchange.status, 413)
    if (i % 20 === 19) assert.equal((await answerOf(group)).status, 200)
  }
  assert.equal(server.opened, 1)
  group.close()
  await server.stop()
})

test('downloads that are broken off do not wear the app out for those that follow', async () => {
  const server = await app((stream, headers) => {
    stream.respond({ ':status': 200 })
    stream.end(headers[':path'] === '/film' ? Buffer.alloc(1_000_000) : 'ok')
  })
  const group = groupOf([server.url])
  for (let i = 0; i < 40; i++) {
    const film = ask(group, { target: '/film' })
    film.exchange.isSlow = true
    await film.exchange.until('written')
    film.exchange.leave()
    await film.outcome
    assert.equal((await answerOf(group)).text, 'ok', `after ${i}`)
  }
  assert.ok(server.opened > 1 && server.opened < 10, `${server.opened} connections`)
  group.close()
  await server.stop()
})

test('a connection of which the app has enough takes no more, and what can be is sent once more', async () => {
  const { NGHTTP2_ENHANCE_YOUR_CALM } = http2.constants
  const seen: string[] = []
  let worn: http2.Http2Session | undefined
  const server = await app((stream, headers) => {
    seen.push(`${headers[':method']} ${headers[':path']}`)
    if (headers[':path'] === '/first') {
      worn = stream.session
      stream.respond({ ':status': 204 }, { endStream: true })
    } else if (stream.session === worn) stream.close(NGHTTP2_ENHANCE_YOUR_CALM)
    else stream.respond({ ':status': 204 }, { endStream: true })
  })
  for (const method of ['GET', 'POST']) {
    const group = groupOf([server.url])
    await answerOf(group, { target: '/first' })
    const refused = await ask(group, { method, target: '/refused' }).outcome
    assert.equal(refused.kind, method === 'GET' ? 'answered' : 'failed')
    if (refused.kind === 'failed') assert.equal(refused.reason, 'reset')
    await answerOf(group, { method: 'POST', target: '/next' })
    group.close()
  }
  assert.deepEqual(seen, [
    ...['GET /first', 'GET /refused', 'GET /refused', 'POST /next'],
    ...['GET /first', 'POST /refused', 'POST /next'],
  ])
  await server.stop()
})

test('connections that only bring long answers to their end leave room for others', async () => {
  const server = await app((stream, headers) => {
    stream.respond({ ':status': 200 })
    if (headers[':path'] === '/events') stream.write('event')
    else stream.end('ok')
  })
  const group = groupOf([server.url])
  const listening = []
  for (let i = 0; i < 12; i++) {
    const events = ask(group, { target: '/events' })
    listening.push(events)
    await events.exchange.until('written')
    for (const session of server.sessions) session.goaway()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.equal((await answerOf(group)).text, 'ok')
  assert.equal(server.opened, 13)
  for (const { exchange, outcome } of listening) {
    exchange.leave()
    assert.equal((await outcome).kind, 'client-gone')
  }
  group.close()
  await server.stop()
})

test('an upload that is reset without an error before its answer fails at once', async () => {
  const server = await app((stream, headers) => {
    if (headers[':method'] === 'GET') stream.respond({ ':status': 204 }, { endStream: true })
    else if (headers.expect !== undefined) stream.close(http2.constants.NGHTTP2_NO_ERROR)
    else stream.once('data', () => stream.close(http2.constants.NGHTTP2_NO_ERROR))
  })
  const group = groupOf([server.url], { headTimeoutMs: 60_000 })
  const requests: readonly MemoryRequest[] = [
    { body: Buffer.alloc(3_000_000), bodyLength: 3_000_000 },
    { body: Buffer.alloc(3_000_000), bodyLength: null },
    { body: new PassThrough(), bodyLength: 10, expectsContinue: true },
  ]
  for (const request of requests) {
    const asking = ask(group, { method: 'POST', ...request })
    const outcome = await asking.outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'reset', JSON.stringify(outcome))
    assertClean(asking)
  }
  await answerOf(group)
  group.close()
  await server.stop()
})

test('a connection on which an upload does not leave in time takes no more requests', async () => {
  const server = await app(
    (stream, headers) => {
      if (headers[':method'] === 'GET') stream.respond({ ':status': 204 }, { endStream: true })
    },
    { settings: { initialWindowSize: 0 } },
  )
  const group = groupOf([server.url], { headTimeoutMs: 200 })
  await answerOf(group)
  const stuck = await ask(group, { method: 'POST', body: Buffer.from('stays here') }).outcome
  assert.equal(stuck.kind === 'failed' && stuck.reason, 'head-timeout')
  await new Promise((resolve) => setTimeout(resolve, 100)) // it is asked whether it is alive, and is
  assert.equal(server.opened, 1)
  await answerOf(group)
  assert.equal(server.opened, 2)
  group.close()
  await server.stop()
})
