import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { DATA, dialHttp2, HEADERS, type Http2Peer } from '../../hostile/http2-peer.ts'
import { startFront } from '../front.ts'
import { frame, getRequest, headers, PREFACE, settings, windowUpdate } from '../http2-frames.ts'

const BODY_BYTES = 100_000
const FRAME_BYTES = 16_384
/** RFC 9113 §6.9.2. */
const WINDOW_BYTES = 65_535
const PRIORITY_UPDATE = 16

test('HTTP/2: of the answers that wait, the most urgent comes first', async (t) => {
  const peer = await start(t)
  peer.write(get(3, 'u=5'), get(5, 'u=2'), get(7), get(9, 'u=0'))
  await asked(peer, 4)
  assert.deepEqual(await order(peer, 50_000), [9])
  assert.deepEqual(await order(peer, 100_000), [9, 5])
  assert.deepEqual(await order(peer, 250_000), [5, 7, 3])
})

test('HTTP/2: incremental answers take turns, others come one after another', async (t) => {
  const peer = await start(t)
  peer.write(get(3, 'u=3, i'), get(5, 'u=3, i'), get(7, 'u=4'), get(9, 'u=4'))
  await asked(peer, 4)
  assert.deepEqual(await order(peer, 4 * FRAME_BYTES), [3, 5, 3, 5])
  const rest = await order(peer, 3 * BODY_BYTES)
  assert.deepEqual(rest.slice(rest.indexOf(7)), [7, 9])
})

test('HTTP/2: a PRIORITY_UPDATE counts before its stream begins, and while its answer waits', async (t) => {
  const peer = await start(t)
  peer.write(update(7, 'u=0'), get(3), get(5), get(7, 'u=7'))
  await asked(peer, 3)
  assert.deepEqual(await order(peer, 50_000), [7])
  peer.write(update(5, 'u=1'), update(7, 'u=2'), update(3, 'no structured field ('))
  assert.deepEqual(await order(peer, 250_000), [5, 7, 3])
  assert.equal(peer.goaway, null, 'a malformed value is ignored')
})

test('HTTP/2: a client that announces priorities for ever is served, and they are not kept', async (t) => {
  const peer = await start(t)
  for (let stream = 3; stream < 1_003; stream += 2) peer.write(update(stream, 'u=1'))
  peer.write(get(1_003))
  await asked(peer, 1)
  assert.deepEqual(await order(peer, BODY_BYTES), [1_003])
})

/** A client that has used up the window of its connection, in front of an app with long answers. */
async function start(t: Test): Promise<Http2Peer> {
  const front = await startFront({
    options: { http2: 'own' },
    request(exchange) {
      const length = exchange.head.target === '/first' ? WINDOW_BYTES : BODY_BYTES
      exchange.answer(200, [], length)
      exchange.write(Buffer.alloc(length))
    },
  })
  t.teardown(() => front.close())
  const peer = await dialHttp2(front.port)
  peer.write(PREFACE, settings([4, 1_000_000]), headers(1, getRequest({ ':path': '/first' })))
  await peer.until(() => peer.isAnswered(1))
  return peer
}

function get(stream: number, priority?: string): Buffer {
  return headers(stream, getRequest({}, ...(priority === undefined ? [] : ['priority', priority])))
}

function update(stream: number, priority: string): Buffer {
  const payload = Buffer.concat([Buffer.alloc(4), Buffer.from(priority, 'latin1')])
  payload.writeUInt32BE(stream)
  return frame(PRIORITY_UPDATE, 0, 0, payload)
}

/** Until so many answers have begun: their bodies wait for the window. */
async function asked(peer: Http2Peer, count: number): Promise<void> {
  await peer.until((frames) => frames.filter(({ type }) => type === HEADERS).length === count + 1)
}

/** The streams whose bodies come when the client takes so many more bytes, without repetitions. */
async function order(peer: Http2Peer, bytes: number): Promise<number[]> {
  const before = bodies(peer)
  const from = before.length
  const had = sum(before)
  peer.write(windowUpdate(bytes))
  await peer.until(() => sum(bodies(peer)) === had + bytes)
  const streams = bodies(peer)
    .slice(from)
    .map(({ stream }) => stream)
  return streams.filter((stream, at) => stream !== streams[at - 1])
}

function bodies(peer: Http2Peer) {
  return peer.frames.filter(({ type, payload }) => type === DATA && payload.length > 0)
}

function sum(frames: ReturnType<typeof bodies>): number {
  return frames.reduce((total, { payload }) => total + payload.length, 0)
}
