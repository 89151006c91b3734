import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import type { Exchange } from '../../../src/proxy/connection/exchange.ts'
import { STREAM_WINDOW_BYTES } from '../../../src/proxy/http/h2/body.ts'
import { DATA, dialHttp2, GOAWAY, type Http2Peer, STREAM_CLOSED } from '../../hostile/http2-peer.ts'
import { answerText, type Front, startFront } from '../front.ts'
import { frame, getRequest, headers } from '../http2-frames.ts'
import { Uploader } from './uploader.ts'

const request = (stream: number, path: string, hasEnded = false) =>
  headers(stream, getRequest({ ':method': hasEnded ? 'GET' : 'POST', ':path': path }), { hasEnded })

test('HTTP/2: a stream that was reset takes no more than its window, which is given back to the connection', async (t) => {
  const { front, peer, uploader } = await start(t)
  for (let stream = 1; stream < 16; stream += 2) {
    peer.write(request(stream, '/abort'))
    await peer.until(() => peer.resetOf(stream) !== null)
    await uploader.send(stream, STREAM_WINDOW_BYTES, { hasEnded: false, isDeaf: true })
  }
  peer.write(request(17, '/count'))
  await uploader.send(17, 2_000_000)
  await peer.until(() => peer.isAnswered(17))
  assert.deepEqual([peer.bodyOf(17).toString(), peer.goaway, front.failures], ['2000000', null, []])
  peer.write(frame(DATA, 0, 1, Buffer.alloc(1)))
  await peer.gone()
  assert.equal(peer.goaway, STREAM_CLOSED)
  assert.deepEqual(
    front.failures.map(({ code }) => code),
    ['late-data'],
  )
})

test('HTTP/2: streams behind a drain take no more than the window of the connection together', async (t) => {
  const { front, peer, uploader } = await start(t)
  peer.write(request(1, '/hold', true))
  assert.ok(await peer.isRead())
  const drained = front.listener.drain(10_000, 0)
  await peer.until((frames) => frames.filter(({ type }) => type === GOAWAY).length === 2)
  for (let stream = 3; stream < 11; stream += 2) {
    peer.write(request(stream, '/count'))
    await uploader.send(stream, STREAM_WINDOW_BYTES, { hasEnded: false })
  }
  assert.ok(await peer.isRead())
  peer.write(request(11, '/count'), frame(DATA, 0, 11, Buffer.alloc(1)))
  await peer.gone()
  await drained
  assert.equal(front.failures[0]?.code, 'late-data')
})

async function start(t: Test): Promise<{ front: Front; peer: Http2Peer; uploader: Uploader }> {
  const front = await startFront({ tls: null, options: { http2: 'own' }, request: answer })
  t.teardown(() => front.close())
  const peer = await dialHttp2(front.port, { isTls: false })
  return { front, peer, uploader: await Uploader.open(peer) }
}

function answer(exchange: Exchange): void {
  if (exchange.head.target === '/abort') return exchange.abort()
  if (exchange.head.target === '/hold') return
  let count = 0
  exchange.body.on('data', (chunk: Buffer) => (count += chunk.length))
  exchange.body.on('end', () => answerText(exchange, String(count)))
}
