import assert from 'node:assert/strict'
import http2 from 'node:http2'
import { type Test, test } from 'tap'
import type { Exchange } from '../../../src/proxy/connection/exchange.ts'
import {
  CONTINUATION,
  DATA,
  dialHttp2,
  GOAWAY,
  HEADERS,
  type Http2Peer,
  PING,
  PROTOCOL_ERROR,
  SETTINGS,
} from '../../hostile/http2-peer.ts'
import { until } from '../../until.ts'
import { answerText, type Front, type FrontPlan, startFront } from '../front.ts'
import { frame, getRequest, headers, PREFACE, settings, windowUpdate } from '../http2-frames.ts'
import { Uploader } from './uploader.ts'

const PADDED = 8
const get = (path: string, stream = 1) => headers(stream, getRequest({ ':path': path }))
const post = (path: string, stream = 1, ...more: string[]) =>
  headers(stream, getRequest({ ':method': 'POST', ':path': path }, ...more), { hasEnded: false })

test('HTTP/2: an answer takes no more of a window than there is, through every change of SETTINGS', async (t) => {
  const peer = await dial(await start(t))
  peer.write(PREFACE, settings([4, 10]), get('/body/100'))
  await has(peer, 1, 10)
  peer.write(settings([4, 20]))
  await has(peer, 1, 20)
  // 20 were sent of a window of 5: it is 15 below 0.
  peer.write(settings([4, 5]), windowUpdate(15, 1))
  await has(peer, 1, 20)
  peer.write(windowUpdate(1, 1))
  await has(peer, 1, 21)
  peer.write(settings([4, 0]))
  await has(peer, 1, 21)
  peer.write(windowUpdate(5, 1))
  await has(peer, 1, 21)
  peer.write(settings([4, 84]))
  await peer.until(() => peer.isAnswered(1))
  assert.equal(peer.bodyOf(1).length, 100)
})

test('HTTP/2: SETTINGS are acknowledged before an answer uses the window that they open', async (t) => {
  const peer = await dial(await start(t))
  peer.write(PREFACE, settings([4, 10]), get('/body/100'))
  await has(peer, 1, 10)
  const before = peer.frames.length
  peer.write(settings([4, 100]))
  await peer.until(() => peer.isAnswered(1))
  assert.deepEqual(
    peer.frames.slice(before, before + 2).map(({ type }) => type),
    [SETTINGS, DATA],
  )
})

test('HTTP/2: all answers together take no more than the window of the connection', async (t) => {
  const peer = await dial(await start(t))
  const streams = [1, 3, 5, 7]
  peer.write(PREFACE, settings([4, 1_000_000]), ...streams.map((stream) => get('/body/60000', stream)))
  const total = () => streams.reduce((sum, stream) => sum + peer.bodyOf(stream).length, 0)
  await peer.until(() => total() >= 65_535)
  assert.ok(await peer.isRead())
  assert.equal(total(), 65_535)
  peer.write(windowUpdate(1))
  await peer.until(() => total() >= 65_536)
  assert.ok(await peer.isRead())
  assert.equal(total(), 65_536)
  peer.write(windowUpdate(1_000_000))
  for (const stream of streams) await peer.until(() => peer.isAnswered(stream))
  assert.equal(total(), 240_000)
})

test('HTTP/2: the end of an answer needs no window', async (t) => {
  const peer = await dial(await start(t))
  peer.write(PREFACE, settings([4, 0]), get('/body/0'), get('/empty', 3), get('/trailers/0', 5))
  for (const stream of [1, 3, 5]) await peer.until(() => peer.isAnswered(stream))
  assert.deepEqual(peer.headsOf(5).at(-1), ['x-sum', '7'])
  // Trailers wait for the body before them.
  peer.write(get('/trailers/3', 7))
  await has(peer, 7, 0)
  assert.equal(peer.headsOf(7).length, 1)
  peer.write(windowUpdate(3, 7))
  await peer.until(() => peer.isAnswered(7))
  assert.deepEqual([peer.bodyOf(7).length, peer.headsOf(7).at(-1)], [3, ['x-sum', '7']])
})

test('HTTP/2: a reset while an answer waits for its window gives up the answer, and no other', async (t) => {
  const peer = await dial(await start(t))
  peer.write(PREFACE, settings([4, 10]), get('/body/100'), get('/body/100', 3))
  await has(peer, 3, 10)
  peer.write(frame(3, 0, 1, Buffer.of(0, 0, 0, 8)), windowUpdate(1000, 1), windowUpdate(1000, 3))
  await peer.until(() => peer.isAnswered(3))
  assert.deepEqual([peer.bodyOf(1).length, peer.bodyOf(3).length], [10, 100])
})

for (const [size, max] of [
  [null, 16_384],
  [16_384, 16_384],
  [65_536, 65_536],
] as const) {
  test(`HTTP/2: no frame is larger than the client allows: ${size ?? 'without a word of it'}`, async (t) => {
    const peer = await dial(await start(t))
    const wishes = size === null ? [] : [[5, size] as const]
    peer.write(PREFACE, settings([4, 10_000_000], ...wishes), windowUpdate(10_000_000))
    peer.write(get('/body/1000000'), get('/fields/50000', 3))
    await peer.until(() => peer.isAnswered(1) && peer.headsOf(3).length > 0)
    assert.ok(peer.frames.every(({ payload }) => payload.length <= max))
    assert.equal(peer.bodyOf(1).length, 1_000_000)
    const [head] = peer.headsOf(3)
    assert.equal(head?.[head.indexOf('x-long') + 1]?.length, 50_000)
    assertWholeBlocks(peer)
  })
}

test('HTTP/2: an upload that keeps to the windows arrives whole, with padding and without', async (t) => {
  const peer = await dial(await start(t))
  const uploader = await Uploader.open(peer)
  peer.write(post('/count'))
  await uploader.send(1, 5_000_000)
  await peer.until(() => peer.isAnswered(1))
  assert.equal(peer.bodyOf(1).toString(), '5000000')
  // What is padding comes out of the window too, and is given back.
  peer.write(post('/count', 3))
  await uploader.send(3, 500_000, { padding: 255 })
  await peer.until(() => peer.isAnswered(3))
  assert.equal(peer.bodyOf(3).toString(), '500000')
})

test('HTTP/2: what comes for streams that are over is given back to the window of the connection', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  const uploader = await Uploader.open(peer)
  let stream = 1
  for (; stream < 100; stream += 2) {
    // Sent before the client can know of the reset.
    peer.write(post('/count', stream, 'X-Up', 'refused'))
    await uploader.send(stream, 60_000, { hasEnded: false })
  }
  for (; stream < 150; stream += 2) {
    peer.write(post('/early', stream))
    await uploader.send(stream, 60_000, { hasEnded: false })
  }
  for (; stream < 200; stream += 2) {
    peer.write(post('/abort', stream))
    await uploader.send(stream, 60_000, { hasEnded: false })
  }
  peer.write(post('/count', stream))
  await uploader.send(stream, 2_000_000)
  await peer.until(() => peer.isAnswered(stream))
  assert.deepEqual([peer.bodyOf(stream).toString(), peer.goaway], ['2000000', null])
})

test('HTTP/2: an app that does not read holds its own upload back, and no other', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  const uploader = await Uploader.open(peer)
  peer.write(post('/unread'))
  const window = uploader.room(1)
  await uploader.send(1, window, { hasEnded: false })
  peer.write(post('/count', 3))
  await uploader.send(3, 3_000_000)
  await peer.until(() => peer.isAnswered(3))
  assert.equal(peer.bodyOf(3).toString(), '3000000')
  assert.ok(uploader.room(1) < window, 'no more of it is asked for')
  // What was held back is read after all.
  front.exchanges[0]!.body.on('data', () => undefined)
  await uploader.send(1, 1_000_000)
  await peer.until(() => peer.isAnswered(1))
})

test('HTTP/2: padding and empty frames open no window of an upload that is not read', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  const uploader = await Uploader.open(peer)
  peer.write(post('/unread'))
  const window = uploader.room(1)
  await uploader.send(1, window - 3000, { hasEnded: false, padding: 10 })
  for (let count = 0; count < 10; count++) {
    peer.write(frame(DATA, 0, 1), frame(DATA, PADDED, 1, Buffer.of(0)))
    assert.ok(await peer.isRead())
  }
  // What was padding may be given back, and what fits in the buffer of the body.
  assert.ok(uploader.room(1) < window / 4, `${uploader.room(1)} bytes of ${window} may be sent`)
  peer.socket.destroy()
})

test('HTTP/2: what a client sends before it hears of a drain disturbs no request that is served', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  peer.write(PREFACE, settings([4, 0]), get('/body/10'))
  await has(peer, 1, 0)
  const drained = front.listener.drain(10_000, 0)
  await peer.until(() => peer.goaway !== null)
  const [ping] = peer.frames.filter(({ type, flags }) => type === PING && flags === 0)
  peer.write(frame(PING, 1, 0, ping!.payload))
  await peer.until(() => lastStreamsOf(peer).length === 2)
  peer.write(post('/count', 3), frame(DATA, 0, 3, Buffer.alloc(10)), headers(3, ['b', 'c']), get('/empty', 5))
  assert.ok(await peer.isRead())
  peer.write(windowUpdate(10, 1))
  await peer.until(() => peer.isAnswered(1))
  await peer.gone()
  await drained
  assert.deepEqual(lastStreamsOf(peer), [0x7fff_ffff, 1])
  assert.deepEqual([peer.bodyOf(1).length, peer.headsOf(3), peer.headsOf(5)], [10, [], []])
  assert.equal(front.exchanges.length, 1)
  assert.deepEqual(front.failures, [])
})

test('HTTP/2: an error behind a drain names no later stream than the drain did', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  peer.write(PREFACE, settings([4, 0]), get('/body/10'))
  await has(peer, 1, 0)
  const drained = front.listener.drain(10_000, 0)
  await peer.until(() => lastStreamsOf(peer).length === 2)
  peer.write(get('/empty', 3), frame(PING, 0, 1, Buffer.alloc(8)))
  await peer.gone()
  await drained
  assert.deepEqual(lastStreamsOf(peer), [0x7fff_ffff, 1, 1])
})

test('HTTP/2: an upload beyond the windows is an error of flow control', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  const uploader = await Uploader.open(peer)
  peer.write(post('/unread'))
  await uploader.send(1, uploader.room(1), { hasEnded: false })
  peer.write(frame(DATA, 0, 1, Buffer.alloc(1)))
  await peer.until(() => peer.resetOf(1) !== null || peer.goaway !== null)
  assert.equal(peer.resetOf(1) ?? peer.goaway, 3)
})

test('HTTP/2: a client may answer each part of an answer with a PING and two windows, as those of gRPC do', async (t) => {
  const parts = 3000
  let exchange: Exchange | null = null
  const front = await start(t, { request: (asked) => (exchange = asked) })
  const peer = await dial(front)
  peer.write(PREFACE, settings(), get('/'))
  await until(() => exchange !== null)
  exchange!.answer(200, [], null)
  for (let count = 1; count <= parts; count++) {
    exchange!.write(Buffer.from('x'))
    await peer.until(() => peer.bodyOf(1).length === count)
    peer.write(frame(PING, 0, 0, Buffer.alloc(8)), windowUpdate(1), windowUpdate(1, 1))
  }
  exchange!.end([])
  await peer.until(() => peer.isAnswered(1))
  assert.deepEqual([peer.bodyOf(1).length, peer.goaway], [parts, null])
})

test('HTTP/2: nghttp2 reads every head with tables of any size', async (t) => {
  const { port } = await start(t)
  for (const headerTableSize of [0, 1, 100, 4096, 65_536, 0xffff_ffff]) {
    const session = http2.connect(`http://127.0.0.1:${port}`, { settings: { headerTableSize } })
    t.teardown(() => session.destroy())
    for (let round = 0; round < 30; round++) {
      // The same, others, and the first ones again.
      const number = [1, 1, round, 40 - round][round % 4]
      const heard = await headOf(session, `/fields/${number! * 10}`)
      assert.equal(heard['x-long'], 'l'.repeat(number! * 10), `table of ${headerTableSize}, ${round}`)
      assert.deepEqual(heard['set-cookie'], ['a=1', 'b=2'])
      if (round === 15) session.settings({ headerTableSize: headerTableSize === 0 ? 4096 : 0 })
    }
    session.close()
  }
})

test('HTTP/2: an answer that waits for its window is not cut off by an upload that is not read', async (t) => {
  const peer = await dial(await start(t))
  const uploader = await Uploader.open(peer)
  peer.write(settings([4, 10]), post('/body/100', 1, 'content-length', '100000000'))
  await uploader.send(1, 200_000, { hasEnded: false })
  await has(peer, 1, 10)
  assert.equal(peer.resetOf(1), null)
  peer.write(windowUpdate(90, 1))
  await peer.until(() => peer.isAnswered(1) && peer.resetOf(1) !== null)
  // The client is to stop (RFC 9113 §8.1).
  assert.deepEqual([peer.bodyOf(1).length, peer.resetOf(1)], [100, 0])
})

test('HTTP/2: GOAWAY names the last request that was begun', async (t) => {
  const peer = await dial(await start(t))
  peer.write(PREFACE, settings(), get('/empty'), get('/empty', 5))
  await peer.until(() => peer.isAnswered(1) && peer.isAnswered(5))
  peer.write(frame(6, 0, 1, Buffer.alloc(8)))
  await peer.gone()
  assert.deepEqual([lastStreamsOf(peer), peer.goaway], [[5], PROTOCOL_ERROR])
})

test('HTTP/2: a drain serves what was begun, and refuses nothing silently', async (t) => {
  const front = await start(t)
  const peer = await dial(front)
  peer.write(PREFACE, settings([4, 0]), get('/body/10'), get('/body/10', 3))
  await has(peer, 3, 0)
  const drained = front.listener.drain(10_000, 0)
  await peer.until(() => peer.goaway !== null)
  assert.equal(peer.goaway, 0)
  peer.write(windowUpdate(10, 1), windowUpdate(10, 3))
  await peer.until(() => peer.isAnswered(1) && peer.isAnswered(3))
  await peer.gone()
  await drained
  assert.deepEqual([peer.bodyOf(1).length, peer.bodyOf(3).length], [10, 10])
})

/** Until everything sent was read: and then a stream has got so much, and no more. */
async function has(peer: Http2Peer, stream: number, bytes: number): Promise<void> {
  await peer.until(() => peer.headsOf(stream).length > 0 && peer.bodyOf(stream).length >= bytes)
  assert.ok(await peer.isRead())
  assert.equal(peer.bodyOf(stream).length, bytes)
}

/** RFC 9113 §6.10: nothing comes between the frames of a block. */
function assertWholeBlocks({ frames }: Http2Peer): void {
  let open = 0
  for (const { type, flags, stream } of frames) {
    assert.equal(type === CONTINUATION ? stream : 0, open)
    if (type === HEADERS || type === CONTINUATION) open = (flags & 4) === 0 ? stream : 0
  }
}

/** Of each GOAWAY. */
function lastStreamsOf({ frames }: Http2Peer): number[] {
  return frames.filter(({ type }) => type === GOAWAY).map(({ payload }) => payload.readUInt32BE(0))
}

function headOf(session: http2.ClientHttp2Session, path: string): Promise<http2.IncomingHttpHeaders> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path })
    stream.on('error', reject).on('response', resolve).resume()
  })
}

test('HTTP/2: a client whose long body is not read gets its answer first, and is then asked to stop', async (t) => {
  const peer = await dial(await start(t, { request: (exchange) => answerText(exchange, 'too large') }))
  peer.write(PREFACE, settings(), post('/', 1, 'content-length', '100000000'))
  await peer.until(() => peer.isAnswered(1))
  assert.ok(await peer.isRead())
  assert.equal(peer.resetOf(1), null)
  peer.write(frame(DATA, 0, 1, Buffer.alloc(16_384)))
  await peer.until(() => peer.resetOf(1) === 0)
  assert.equal(peer.bodyOf(1).toString(), 'too large')
  peer.write(get('/', 3))
  await peer.until(() => peer.isAnswered(3))
})

async function start(t: Test, plan: FrontPlan = {}): Promise<Front> {
  const front = await startFront({ tls: null, options: { http2: 'own' }, request: answer, ...plan })
  t.teardown(() => front.close())
  return front
}

async function dial({ port }: Front): Promise<Http2Peer> {
  return dialHttp2(port, { isTls: false })
}

function answer(exchange: Exchange): void {
  const [, kind, number] = exchange.head.target.split('/')
  const size = Number(number)
  switch (kind) {
    case 'body':
      exchange.answer(200, [], null)
      if (size > 0) exchange.write(Buffer.alloc(size, 'y'))
      return exchange.end([])
    case 'trailers':
      exchange.answer(200, [], null)
      if (size > 0) exchange.write(Buffer.alloc(size, 'y'))
      return exchange.end(['x-sum', '7'])
    case 'fields':
      exchange.answer(200, ['X-Long', 'l'.repeat(size), 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'], 0)
      return exchange.end([])
    case 'early':
      return answerText(exchange, 'early')
    case 'abort':
      return exchange.abort()
    case 'unread':
      exchange.body.on('end', () => answerText(exchange, 'read'))
      return
    case 'count': {
      let count = 0
      exchange.body.on('data', (chunk: Buffer) => (count += chunk.length))
      exchange.body.on('end', () => answerText(exchange, String(count)))
      return
    }
    default:
      exchange.answer(204, [], 0)
      exchange.end([])
  }
}
