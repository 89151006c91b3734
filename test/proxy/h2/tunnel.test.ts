import assert from 'node:assert/strict'
import type net from 'node:net'
import { type Test, test } from 'tap'
import type { UpstreamSettings } from '../../../src/proxy/upstream/upstream.ts'
import { memoryInUse } from '../../capture/memory.ts'
import {
  CANCEL,
  dialHttp2,
  GOAWAY,
  type Http2Peer,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  RST_STREAM,
  WINDOW_UPDATE,
} from '../../hostile/http2-peer.ts'
import { data, frame, getRequest, headers, PREFACE, settings, windowUpdate } from '../http2-frames.ts'
import { type Gate, type GatePlan, startGate } from '../test-gate.ts'
import { until } from '../test-worker.ts'
import { eachHead, settingsFor, upstream } from '../upstream-fixture.ts'
import { agreement, CLOSE, echoer, frame as message, maskedFrame, TEXT } from '../web-socket.ts'

/** A WebSocket over HTTP/2 (RFC 8441). */
const open = (stream: number, path = '/chat', ...more: readonly string[]) =>
  headers(stream, getRequest({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': path }, ...more), {
    hasEnded: false,
  })
const VERSION = ['sec-websocket-version', '13']

test('a tunnel is asked of the app as a WebSocket of HTTP/1.1, and answered with 200', async (t) => {
  const { gate, heads } = await gateTo(t, (socket, head) => {
    socket.write(
      agreement(
        head,
        'Sec-WebSocket-Protocol: one',
        'Set-Cookie: a=1',
        'Set-Cookie: b=2',
        'Content-Length: 0',
      ),
    )
  })
  const peer = await dial(gate)
  const more = [
    'sec-websocket-protocol',
    'one, two',
    'sec-websocket-key',
    'the client has none',
    'cookie',
    'c=3',
  ]
  peer.write(open(1, '/chat?room=1', ...VERSION, ...more, 'cookie', 'd=4', 'expect', '100-continue'))
  await peer.until(() => peer.statusOf(1) !== null)
  const answer = peer.headsOf(1)[0]!.filter((_, i, all) => all[i - (i % 2)] !== 'date')
  const told = [':status', '200', 'sec-websocket-protocol', 'one', 'set-cookie', 'a=1', 'set-cookie', 'b=2']
  assert.deepEqual(answer, told)
  assert.equal(peer.isAnswered(1), false)
  const lines = heads[0]!.trimEnd().split('\r\n')
  assert.equal(lines[0], 'GET /chat?room=1 HTTP/1.1')
  const asked = lines.map((line) => line.toLowerCase())
  for (const line of [
    'host: a',
    'upgrade: websocket',
    'connection: upgrade',
    'sec-websocket-version: 13',
    'sec-websocket-protocol: one, two',
    'cookie: c=3; d=4',
  ])
    assert.equal(asked.filter((each) => each === line).length, 1, line)
  const keys = lines.flatMap((line) => /^sec-websocket-key: (.*)$/i.exec(line)?.[1] ?? [])
  assert.equal(keys.length, 1)
  assert.equal(Buffer.from(keys[0]!, 'base64').length, 16)
  assert.ok(!asked.some((line) => line.startsWith(':') || line.startsWith('expect')))
  const [sighting] = gate.sightings
  assert.deepEqual([sighting?.method, sighting?.path], ['GET', '/chat'])
  assert.match(sighting!.ja4h!, /^ge20/)
  assert.equal(sighting!.http2!.endsWith('|m,s,a,p'), true)
  peer.socket.destroy()
  await untilNothingIsLeft(gate)
  assert.deepEqual(gate.done, [{ verdict: 'unknown', action: 'tag', status: 101 }])
})

test('messages pass both ways, also those that were sent before the answer', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const peer = await dial(gate)
  for (const stream of [1, 3, 5]) {
    const frames = [
      maskedFrame(TEXT, Buffer.from(`first ${stream}`)),
      maskedFrame(TEXT, Buffer.from('second')),
    ]
    peer.write(open(stream), ...frames.map((bytes) => data(stream, bytes, false)))
  }
  const echoed = (stream: number) =>
    [`first ${stream}`, 'second'].map((text) => message(TEXT, Buffer.from(text)))
  for (const stream of [1, 3, 5]) {
    await peer.until(() => peer.bodyOf(stream).equals(Buffer.concat(echoed(stream))))
    assert.equal(peer.statusOf(stream), 200)
  }
  assert.deepEqual([gate.context.upgrades.count, gate.plain.listener.counts.streams], [3, 3])
  for (const stream of [1, 3, 5]) peer.write(data(stream, maskedFrame(CLOSE, Buffer.alloc(0)), true))
  await peer.until(() => [1, 3, 5].every((stream) => peer.isAnswered(stream)))
  await until(() => gate.context.upgrades.count === 0 && app.sockets.size === 0)
  assert.equal(peer.frames.filter(({ type }) => type === RST_STREAM).length, 0)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('END_STREAM is half a close: the app may go on, and its end is END_STREAM', async (t) => {
  const { gate, app } = await gateTo(t, (socket, head) => {
    socket.write(agreement(head))
    socket.on('end', () => socket.end('the last words'))
  })
  const peer = await dial(gate)
  peer.write(open(1))
  await peer.until(() => peer.statusOf(1) === 200)
  peer.write(data(1, '', true))
  await peer.until(() => peer.isAnswered(1))
  assert.equal(peer.bodyOf(1).toString(), 'the last words')
  assert.ok(await peer.isRead())
  assert.equal(peer.resetOf(1), null)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('an app that closes ends the tunnel, and one that resets its connection resets it', async (t) => {
  const apps: net.Socket[] = []
  const { gate, app } = await gateTo(t, (socket, head) => {
    apps.push(socket)
    socket.write(agreement(head))
  })
  const peer = await dial(gate)
  peer.write(open(1), open(3))
  await peer.until(() => peer.statusOf(1) === 200 && peer.statusOf(3) === 200)
  apps[0]!.end('bye')
  apps[1]!.resetAndDestroy()
  const streams = [1, 3]
  await peer.until(() => streams.some((stream) => peer.isAnswered(stream)))
  await peer.until(() => streams.some((stream) => peer.resetOf(stream) === CANCEL))
  const [ended] = streams.filter((stream) => peer.isAnswered(stream))
  assert.equal(peer.bodyOf(ended!).toString(), 'bye')
  // The client has not ended its side: it is asked to.
  await peer.until(() => peer.resetOf(ended!) === 0)
  await until(() => gate.context.upgrades.count === 0 && app.sockets.size === 0)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('a client that resets its stream, or takes it back, lets go of the app', async (t) => {
  const { gate, app } = await gateTo(t, (socket, head) => {
    if (head.startsWith('GET /chat')) socket.write(agreement(head))
  })
  const peer = await dial(gate)
  const reset = (stream: number) => frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, CANCEL))
  const leave: readonly (readonly [path: string, bytes: (stream: number) => Buffer])[] = [
    ['/chat', reset],
    ['/hold', reset],
    ['/hold', (stream) => data(stream, '', true)],
    ['/hold', (stream) => data(stream, 'x'.repeat(9_000), true)],
    ['/hold', (stream) => headers(stream, ['a', 'b'])],
    ['/chat', (stream) => headers(stream, ['a', 'b'])],
    ['/chat', (stream) => windowUpdate(0, stream)],
  ]
  for (const [index, [path, bytes]] of leave.entries()) {
    const stream = 2 * index + 1
    peer.write(open(stream, path))
    await until(() => app.sockets.size === 1)
    if (path === '/chat') await peer.until(() => peer.statusOf(stream) === 200)
    peer.write(bytes(stream))
    await until(() => gate.context.upgrades.count === 0 && app.sockets.size === 0)
    assert.ok(await peer.isRead())
    assert.equal(peer.isAnswered(stream), false)
    const code = bytes === reset ? null : index < 4 ? CANCEL : PROTOCOL_ERROR
    assert.equal(peer.resetOf(stream), code, `${index}`)
  }
  // At the end of its turn, such a request has not begun.
  peer.write(Buffer.concat([open(21, '/hold'), reset(21), open(23, '/hold'), data(23, '', true)]))
  assert.ok(await peer.isRead())
  assert.equal(peer.resetOf(23), CANCEL)
  assert.equal(app.accepted, leave.length)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [101, 0, 0, 0, 0, 101, 101],
  )
})

test('the app’s own answer is passed on, unless it is one that would open a tunnel', async (t) => {
  const { gate, app } = await gateTo(t, (socket, head) => {
    const status = /^GET \/(\S+)/.exec(head)![1]!
    const text = 'Sec-WebSocket-Version: 13\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n'
    if (status === 'bad') socket.write('HTTP/1.1 4x4 No\r\n\r\n')
    else if (status === 'key') socket.write(agreement(head.replace(/Key: .*/, 'Key: another')))
    else if (status === 'twice') socket.write(agreement(head, 'Sec-WebSocket-Accept: a'))
    else if (status === 'other') socket.write(agreement(head).replace('websocket', 'other'))
    else if (status === 'cut') socket.end(`HTTP/1.1 404 No\r\n${text}Content-Length: 9\r\n\r\nhalf`)
    else if (status === '304') socket.write(`HTTP/1.1 304 No\r\n${text}\r\n`)
    else if (status === '503')
      socket.write(`HTTP/1.1 503 No\r\n${text}Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n`)
    else socket.write(`HTTP/1.1 ${status} No\r\n${text}Content-Length: 2\r\n\r\nno`)
  })
  const peer = await dial(gate)
  let stream = -1
  const asked = async (path: string) => {
    stream += 2
    peer.write(open(stream, path))
    await peer.until(() => peer.isAnswered(stream) || peer.resetOf(stream) !== null)
    return stream
  }
  for (const status of [302, 401, 404, 426, 503]) {
    const at = await asked(`/${status}`)
    assert.deepEqual([peer.statusOf(at), peer.bodyOf(at).toString()], [status, 'no'])
    const head = peer.headsOf(at)[0]!
    assert.equal(head.filter((text) => text === 'set-cookie').length, 2)
    assert.equal(head.includes('connection'), false)
  }
  const unmodified = await asked('/304')
  assert.deepEqual([peer.statusOf(unmodified), peer.bodyOf(unmodified).length], [304, 0])
  for (const path of ['/200', '/204', '/key', '/twice', '/other']) {
    const at = await asked(path)
    assert.equal(peer.statusOf(at), 502, path)
    assert.match(peer.bodyOf(at).toString(), /"code":"upstream_no_websocket"/, path)
  }
  const bad = await asked('/bad')
  assert.match(peer.bodyOf(bad).toString(), /"code":"upstream_bad_response"/)
  const cut = await asked('/cut')
  assert.deepEqual([peer.statusOf(cut), peer.bodyOf(cut).toString()], [404, 'half'])
  assert.notEqual(peer.resetOf(cut), null)
  assert.ok(gate.context.defaultUpstream.status.every(({ isHealthy }) => isHealthy))
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
  assert.equal(gate.context.defaultUpstream.counters.failed['bad-response'], 6)
})

test('a policy holds for a tunnel as for the WebSocket that it is', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const rules = [
    { when: { header: { upgrade: 'websocket' }, path: '/a' }, action: 'block' },
    { when: { header: { connection: 'Upgrade' }, path: '/b' }, action: { block: { status: 451 } } },
    { when: { method: 'GET', path: '/c' }, action: { redirect: { to: '/docs' } } },
    { when: { path: '/d' }, action: { tarpit: { delay: '50ms', connections_max: 2 } } },
    { when: { method: 'CONNECT' }, action: { block: { status: 404 } } },
  ]
  gate.judgeBy({ rules: rules.map((rule, index) => ({ name: `rule ${index}`, ...rule })) })
  const peer = await dial(gate)
  const expected = { '/a': 403, '/b': 451, '/c': 302, '/d': 403 }
  for (const [index, [path, status]] of Object.entries(expected).entries()) {
    const stream = 2 * index + 1
    peer.write(open(stream, path), data(stream, 'early', false))
    await peer.until(() => peer.isAnswered(stream))
    const head = peer.headsOf(stream)[0]!
    assert.deepEqual(head.slice(0, 2), [':status', String(status)], path)
    const id = head[head.indexOf('x-agent-decision-id') + 1]!
    assert.ok(peer.bodyOf(stream).includes(`"decision_id":"${id}"`))
    if (path === '/c') assert.equal(head[head.indexOf('location') + 1], '/docs')
  }
  assert.equal(app.accepted, 0)
  peer.write(open(11, '/e'))
  await peer.until(() => peer.statusOf(11) === 200)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('an upstream that only speaks HTTP/2 gets no tunnel, as it gets no upgrade', async (t) => {
  const gate = await startGate(t, { upstreams: [settingsFor(['h2c://127.0.0.1:1'])] })
  const peer = await dial(gate)
  peer.write(open(1))
  await peer.until(() => peer.isAnswered(1))
  assert.equal(peer.statusOf(1), 502)
  assert.match(peer.bodyOf(1).toString(), /"code":"upstream_unreachable"/)
  peer.socket.destroy()
  await untilNothingIsLeft(gate)
})

test('a side that does not read holds the other one back, and no other tunnel', async (t) => {
  const sent = { app: 0 }
  const { gate, app } = await gateTo(t, (socket, head) => {
    socket.write(agreement(head))
    const more = () => {
      if (sent.app >= 20_000_000) return
      sent.app += 65_536
      if (socket.write(Buffer.alloc(65_536, 'y'))) setImmediate(more)
      else socket.once('drain', more)
    }
    if (head.startsWith('GET /deaf')) socket.pause()
    else if (head.startsWith('GET /echo')) socket.on('data', (bytes) => socket.write(bytes))
    else more()
  })
  const peer = await dial(gate)
  peer.write(open(1, '/flood'), open(3, '/deaf'), open(5, '/echo'))
  await peer.until(() => [1, 3, 5].every((stream) => peer.statusOf(stream) === 200))
  // The windows of the client are 64 KiB: the connection’s is opened so that others can go on.
  peer.write(windowUpdate(10_000_000))
  await peer.until(() => peer.bodyOf(1).length === 65_535)
  for (let i = 0; i < 16; i++) peer.write(data(3, 'z'.repeat(16_000), false))
  assert.ok(await peer.isRead())
  peer.write(data(5, 'hello', false))
  await peer.until(() => peer.bodyOf(5).toString() === 'hello')
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal(peer.bodyOf(1).length, 65_535)
  assert.ok(sent.app < 8_000_000, `the app could send ${sent.app}`)
  peer.write(windowUpdate(1_000_000, 1))
  await peer.until(() => peer.bodyOf(1).length === 1_065_535)
  for (const socket of app.sockets) socket.resume()
  await peer.until((frames) => frames.some(({ type, stream }) => type === WINDOW_UPDATE && stream === 3))
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('an open tunnel may be read as slowly as the client likes; an answer in its place may not', async (t) => {
  const { gate, app } = await gateTo(
    t,
    (socket, head) => {
      const isOpen = head.startsWith('GET /chat')
      socket.write(isOpen ? agreement(head) : 'HTTP/1.1 404 No\r\nContent-Length: 200000\r\n\r\n')
      socket.write('y'.repeat(200_000))
    },
    {},
    { limits: { answerUnreadTimeoutMs: 400 } },
  )
  const peer = await dial(gate)
  peer.write(windowUpdate(10_000_000), open(1), open(3, '/other'))
  await peer.until(() => peer.resetOf(3) === CANCEL)
  await new Promise((resolve) => setTimeout(resolve, 900))
  assert.deepEqual([peer.statusOf(1), peer.resetOf(1), gate.context.upgrades.count], [200, null, 1])
  peer.write(windowUpdate(200_000, 1))
  await peer.until(() => peer.bodyOf(1).length === 200_000)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('a tunnel that is silent too long is ended; one that talks is not, nor its connection', async (t) => {
  const { gate, app } = await gateTo(t, echoApp, {}, { context: { upgradeIdleTimeoutMs: 600 } })
  const peer = await dial(gate)
  peer.write(open(1), open(3))
  const timer = setInterval(() => peer.write(data(3, maskedFrame(TEXT, Buffer.from('x')), false)), 20)
  t.teardown(() => clearInterval(timer))
  await peer.until(() => peer.resetOf(1) === CANCEL)
  assert.deepEqual([peer.resetOf(3), gate.context.upgrades.count], [null, 1])
  clearInterval(timer)
  await peer.until(() => peer.resetOf(3) === CANCEL)
  assert.equal(peer.goaway, null)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('a drain says GOAWAY, gives tunnels their grace, ends them and then the connection', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const peer = await dial(gate)
  peer.write(open(1))
  await peer.until(() => peer.statusOf(1) === 200)
  const drained = gate.plain.listener.drain(20_000, 1_500)
  const begunMs = performance.now()
  await peer.until((frames) => frames.filter(({ type }) => type === GOAWAY).length === 2)
  peer.write(data(1, maskedFrame(TEXT, Buffer.from('still here')), false))
  await peer.until(() => peer.bodyOf(1).includes('still here'))
  await peer.gone()
  assert.equal(peer.resetOf(1), CANCEL)
  assert.ok(performance.now() - begunMs > 1_400)
  await drained
  await untilNothingIsLeft(gate, app)
})

test('a drain without a grace takes no tunnel, and serves the requests on their way', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  // This client does not answer the PING that asks whether it has heard the first GOAWAY.
  const peer = await dial(gate)
  assert.ok(await peer.isRead())
  const drained = gate.plain.listener.drain(20_000, 0)
  await peer.until((frames) => frames.some(({ type }) => type === GOAWAY))
  await new Promise((resolve) => setTimeout(resolve, 50))
  peer.write(open(1), open(3))
  await peer.until(() => peer.resetOf(3) !== null)
  assert.deepEqual([peer.resetOf(1), peer.resetOf(3), app.accepted], [REFUSED_STREAM, REFUSED_STREAM, 0])
  await drained
  await untilNothingIsLeft(gate, app)
})

test('a drain ends at once when the last tunnel ends', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const peer = await dial(gate)
  peer.write(open(1))
  await peer.until(() => peer.statusOf(1) === 200)
  const drained = gate.plain.listener.drain(60_000, 60_000)
  await peer.until((frames) => frames.filter(({ type }) => type === GOAWAY).length === 2)
  peer.write(data(1, maskedFrame(CLOSE, Buffer.alloc(0)), true))
  await drained
  assert.ok(peer.isAnswered(1))
  await untilNothingIsLeft(gate, app)
})

test('tunnels end when the worker ends all upgrades', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const peer = await dial(gate)
  peer.write(open(1), open(3))
  await peer.until(() => peer.statusOf(1) === 200 && peer.statusOf(3) === 200)
  gate.context.upgrades.close()
  await peer.until(() => peer.resetOf(1) === CANCEL && peer.resetOf(3) === CANCEL)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('node:http2 offers no tunnel', async (t) => {
  const { gate } = await gateTo(t, echoApp, {}, { options: { http2: 'node' } })
  const peer = await dial(gate)
  peer.write(open(1))
  await peer.until(() => peer.resetOf(1) !== null)
  assert.equal(peer.resetOf(1), PROTOCOL_ERROR)
  peer.socket.destroy()
})

test('a small piece does not keep the chunk in which it came, while the app does not read', async (t) => {
  const { gate, app } = await gateTo(t, (socket, head) => void socket.pause().write(agreement(head)))
  const peer = await dial(gate)
  peer.write(open(1))
  await peer.until(() => peer.statusOf(1) === 200)
  const filler = frame(0xfa, 0, 0, Buffer.alloc(16_000))
  const before = memoryInUse()
  for (let i = 0; i < 900; i++) {
    peer.write(Buffer.concat([filler, data(1, 'x', false), filler]))
    if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 110))
  }
  assert.ok(await peer.isRead())
  const held = memoryInUse() - before
  assert.ok(held < 12_000_000, `${held} bytes are held`)
  for (const socket of app.sockets) socket.resume()
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

type Serve = (socket: net.Socket, head: string) => unknown

async function gateTo(
  t: Test,
  serve: Serve,
  changes: Partial<UpstreamSettings> = {},
  plan: Partial<GatePlan> = {},
) {
  const heads: string[] = []
  const app = await upstream((socket) => {
    eachHead(socket, (head, index) => {
      if (index > 0) return
      heads.push(head)
      serve(socket, head)
    })
  })
  const gate = await startGate(t, {
    ...plan,
    options: { http2: 'own', ...plan.options },
    upstreams: [settingsFor([app.url], changes)],
  })
  t.teardown(() => app.settled())
  return { gate, app, heads }
}

/** RFC 6455, by hand. */
function echoApp(socket: net.Socket, head: string): void {
  const echo = echoer(() => socket.end())
  socket.removeAllListeners('data')
  socket.on('data', (bytes: Buffer) => socket.write(echo(bytes)))
  socket.on('end', () => socket.end())
  socket.write(agreement(head))
}

async function dial(gate: Gate): Promise<Http2Peer> {
  const peer = await dialHttp2(gate.plain.port, { isTls: false })
  peer.write(PREFACE, settings())
  return peer
}

async function untilNothingIsLeft(
  gate: Gate,
  app?: { readonly sockets: ReadonlySet<net.Socket> },
): Promise<void> {
  const open = () => gate.plain.listener.counts.connections
  await until(() => gate.context.upgrades.count === 0 && open() === 0 && (app?.sockets.size ?? 0) === 0)
}
