import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import {
  answerText,
  dialPlain,
  dialTls,
  type Front,
  type FrontPlan,
  HTTP2_SERVER,
  startFront,
} from './front.ts'

const IS_OWN = HTTP2_SERVER === 'own'
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('a drain lets every request under way have its answer, and ends all else', async () => {
  for (const tls of [undefined, null]) {
    const { front, asked } = await holding(tls === null ? { tls } : {})
    const dial = tls === null ? dialPlain : dialTls
    const idle = await dial(front.port)
    idle.write('GET /now HTTP/1.1\r\nHost: a\r\n\r\n')
    await idle.hears('\r\n\r\nnow')
    const [asking, answering] = [await dial(front.port), await dial(front.port)]
    asking.write(GET)
    const first = await asked(1)
    answering.write(GET)
    const second = await asked(2)
    second.answer(200, [], null)
    second.write(Buffer.from('be'))
    await answering.hears('be')
    const silent = await dialPlain(front.port)
    while (front.listener.counts.opening === 0) await new Promise((resolve) => setImmediate(resolve))

    const drained = front.listener.drain(5000, 100)
    await idle.closed
    await silent.closed
    assert.deepEqual(
      front.failures.map(({ reason }) => reason),
      ['draining'],
    )
    await assert.rejects(dialPlain(front.port), { code: 'ECONNREFUSED' })
    answerText(first, 'whole')
    assert.match(await asking.hears('\r\n\r\nwhole'), /Connection: close/)
    second.write(Buffer.from('gun'))
    second.end([])
    await answering.hears('3\r\ngun\r\n0\r\n\r\n')
    await drained
    assert.deepEqual([await asking.closed, await answering.closed], [null, null])
    assert.equal(front.listener.counts.connections, 0)
  }
})

test('what comes behind an answer that could not say it is the last is not begun', async () => {
  // The first is of the fast lane; the second is left to node:http, and its connection with it.
  for (const first of [GET, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n']) {
    const { front, asked } = await holding({})
    const peer = await dialTls(front.port)
    peer.write(first)
    const exchange = await asked(1)
    exchange.answer(200, [], null)
    exchange.write(Buffer.from('be'))
    await peer.hears('be')
    const drained = front.listener.drain(5000, 100)
    peer.socket.pause() // it has not heard that nothing more is taken
    exchange.end([])
    await wait(50)
    peer.write('POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi')
    await wait(50)
    peer.socket.resume()
    await Promise.all([drained, peer.closed])
    assert.equal(front.exchanges.length, 1, first)
    assert.ok(peer.bytes.toString().endsWith('0\r\n\r\n'))
  }
})

test('streams that were begun are served, and one that crosses the farewell may be asked for again', async () => {
  const { front, asked } = await holding({})
  const session = http2.connect(`https://127.0.0.1:${front.port}`, { rejectUnauthorized: false })
  const stream = session.request()
  const first = await asked(1)
  const drained = front.listener.drain(2000, 100)
  const late = session.request({ ':path': '/now' }) // the client has not heard yet
  // Node tells its clients at once which stream was the last.
  if (IS_OWN) assert.equal((await once(late, 'response'))[0][':status'], 200)
  else await assert.rejects(once(late, 'response'), /NGHTTP2_REFUSED_STREAM/)
  late.resume()
  answerText(first, 'whole')
  assert.equal((await once(stream, 'response'))[0][':status'], 200)
  stream.resume()
  await drained
  assert.deepEqual([front.exchanges.length, front.failures], [IS_OWN ? 2 : 1, []])
})

test('a session that begins during a drain is told at once', async () => {
  const { front } = await holding({ limits: { helloTimeoutMs: 5000 } })
  const peer = await dialTls(front.port, { ALPNProtocols: ['h2'] })
  while (front.listener.counts.h2 === 0) await new Promise((resolve) => setImmediate(resolve))
  const drained = front.listener.drain(3000, 100)
  peer.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
  await peer.closed
  await drained
  assert.ok(peer.bytes.includes(Buffer.from('000008070000000000', 'hex')), 'GOAWAY')
})

test('a handshake under way goes on, and its first request is the last', async () => {
  const { front } = await holding({})
  const socket = net.connect({ port: front.port, host: '127.0.0.1' })
  socket.on('error', () => {}) // the client says goodbye after the proxy has ended
  await once(socket, 'connect')
  let pass = (bytes: Buffer): unknown => held.push(bytes)
  const held: Buffer[] = []
  const relay = net.createServer((near) => {
    near.once('data', (hello) => {
      socket.write(hello)
      near.on('data', (bytes) => pass(bytes))
    })
    socket.pipe(near)
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  const dialled = dialTls((relay.address() as net.AddressInfo).port)
  while (front.listener.counts.handshakes === 0) await new Promise((resolve) => setImmediate(resolve))
  const drained = front.listener.drain(5000, 100)
  const peer = await dialled
  peer.write('GET /now HTTP/1.1\r\nHost: a\r\n\r\n')
  pass = (bytes) => socket.write(bytes)
  for (const bytes of held) socket.write(bytes)
  assert.match(await peer.hears('\r\n\r\nnow'), /Connection: close/)
  await drained
  relay.close()
})

test('upgraded connections have their grace', async () => {
  const front = await startFront({
    tls: null,
    upgrade: ({ stream }) => stream.write('HTTP/1.1 101 Go\r\n\r\n'),
  })
  const peer = await dialPlain(front.port)
  peer.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
  await peer.hears('101 Go')
  const started = performance.now()
  await front.listener.drain(5000, 80)
  const took = performance.now() - started
  assert.ok(took > 70 && took < 2000, `${took} ms`)
  await peer.closed
})

test('at the deadline everything ends, and the holder of an exchange is told', async () => {
  let gone = 0
  const front = await startFront({ request: (exchange) => (exchange.onGone = () => gone++) })
  const peer = await dialTls(front.port)
  peer.write(GET)
  const session = http2.connect(`https://127.0.0.1:${front.port}`, { rejectUnauthorized: false })
  session.on('error', () => {})
  session.request().on('error', () => {})
  while (front.exchanges.length < 2) await new Promise((resolve) => setImmediate(resolve))
  const started = performance.now()
  await Promise.all([front.listener.drain(100, 100), front.listener.drain(100, 100)])
  assert.ok(performance.now() - started < 2000)
  assert.equal(front.listener.counts.connections, 0)
  await peer.closed
  assert.equal(gone, 2)
})

test('a drain under a flood loses no request that was begun', async () => {
  const front = await startFront({
    request: (exchange) => void setTimeout(answerText, 5, exchange, 'x'.repeat(20_000)),
  })
  let whole = 0
  let begun = 0
  let isOver = false
  const lanes = Array.from({ length: 30 }, async () => {
    const peer = await dialTls(front.port)
    peer.socket.on('error', () => {})
    while (!isOver) {
      const before = peer.byteCount
      peer.write(GET)
      await peer
        .hears(() => peer.byteCount - before > 20_000)
        .catch(() => assert.equal(peer.byteCount, before, 'half an answer'))
      if (peer.byteCount > before) whole++
      if (peer.socket.destroyed || peer.socket.readableEnded || /Connection: close/.test(peer.text)) return
    }
  })
  while (front.exchanges.length < 300) await new Promise((resolve) => setImmediate(resolve))
  await front.listener.drain(5000, 100)
  begun = front.exchanges.length
  isOver = true
  await Promise.all(lanes)
  assert.equal(whole, begun)
})

/** Holds its requests, but for those to `/now`. */
async function holding(
  plan: FrontPlan,
): Promise<{ front: Front; asked: (count: number) => Promise<Exchange> }> {
  const held: Exchange[] = []
  const front = await startFront({
    ...plan,
    request: (exchange) =>
      exchange.head.target === '/now' ? answerText(exchange, 'now') : held.push(exchange),
  })
  const asked = async (count: number) => {
    while (held.length < count) await new Promise((resolve) => setImmediate(resolve))
    return held[count - 1]!
  }
  return { front, asked }
}
