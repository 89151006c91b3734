import assert from 'node:assert/strict'
import type net from 'node:net'
import { type Test, test } from 'tap'
import { data, frame, getRequest, headers, PREFACE, settings, windowUpdate } from '../proxy/http2-frames.ts'
import { type Gate, startGate } from '../proxy/test-gate.ts'
import { until } from '../proxy/test-worker.ts'
import { eachHead, settingsFor, type Upstream, upstream } from '../proxy/upstream-fixture.ts'
import { agreement } from '../proxy/web-socket.ts'
import { CANCEL, dialHttp2, ENHANCE_YOUR_CALM, type Http2Peer, RST_STREAM } from './http2-peer.ts'

const open = (stream: number, path = '/') =>
  headers(stream, getRequest({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': path }), {
    hasEnded: false,
  })
const reset = (stream: number) => frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, CANCEL))
const isOpen = (peer: Http2Peer, stream: number) => peer.statusOf(stream) === 200

test('a thousand tunnels on one connection, within its streams, and no more than these', async (t) => {
  const { gate, app } = await start(t, { streamsPerConnectionMax: 100 })
  const peer = await dial(gate)
  for (let round = 0; round < 10; round++) {
    const streams = Array.from({ length: 100 }, (_, i) => 2 * (101 * round + i) + 1)
    peer.write(...streams.map((stream) => open(stream)))
    await peer.until(() => streams.every((stream) => isOpen(peer, stream)))
    const over = streams.at(-1)! + 2
    peer.write(open(over), ...streams.map((stream) => data(stream, `echo ${stream}`, false)))
    await peer.until(() => streams.every((stream) => peer.bodyOf(stream).toString() === `echo ${stream}`))
    assert.equal(peer.resetOf(over), REFUSED)
    assert.deepEqual([gate.context.upgrades.count, app.sockets.size], [100, 100])
    peer.write(...streams.map((stream) => data(stream, '', true)))
    await peer.until(() => streams.every((stream) => peer.isAnswered(stream)))
  }
  await until(() => gate.context.upgrades.count === 0 && app.sockets.size === 0)
  peer.write(headers(4001, getRequest({ ':path': '/plain' })))
  await peer.until(() => peer.isAnswered(4001))
  await leave(peer, gate, app)
})

test('tunnels that are opened and taken back end the connection, in whatever way it is done', async (t) => {
  const { gate, app } = await start(t, { h2ResetBurst: 50, h2ResetRate: 1 })
  const ways: readonly ((stream: number) => Buffer)[] = [
    reset,
    (stream) => data(stream, '', true),
    (stream) => headers(stream, ['a', 'b']),
    (stream) => windowUpdate(0, stream),
  ]
  for (const way of ways) {
    for (const path of ['/hold', '/']) {
      const peer = await dial(gate)
      // After an answer END_STREAM is half a close, which takes nothing back.
      const isHalfClose = path === '/' && way === ways[1]
      for (let stream = 1; stream < 301 && !peer.isClosed; stream += 2) {
        peer.write(open(stream, path))
        if (path === '/') await peer.until(() => isOpen(peer, stream))
        peer.write(way(stream))
        await peer.sent()
      }
      if (isHalfClose) assert.ok(await peer.isRead())
      else {
        await peer.gone()
        assert.equal(peer.goaway, ENHANCE_YOUR_CALM)
      }
      await leave(peer, gate, app)
    }
  }
})

test('a tunnel that is cut at any byte leaves nothing behind, and its pieces are put together', async (t) => {
  const { gate, app } = await start(t)
  const whole = Buffer.concat([open(1), data(1, 'hello', false), data(1, '', true)])
  for (let at = 0; at <= whole.length; at++) {
    const [broken, slow] = await Promise.all([dial(gate), dial(gate)])
    broken.write(whole.subarray(0, at))
    await broken.sent()
    broken.socket.destroy()
    // At the end the client closes its side before the answer, if both come in one turn.
    slow.write(whole.subarray(0, at))
    await slow.sent()
    slow.write(whole.subarray(at))
    await slow.until(() => slow.isAnswered(1) || slow.resetOf(1) !== null)
    const said = slow.resetOf(1) === CANCEL ? CANCEL : slow.bodyOf(1).toString()
    assert.ok(said === CANCEL || said === 'hello', `${at}: ${said}`)
    await leave(slow, gate, app)
  }
})

test('bytes of a tunnel are never a request, and those of a request never a tunnel’s', async (t) => {
  const { gate, app, heads } = await start(t)
  const peer = await dial(gate)
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
  for (const [index, path] of ['/', '/decline', '/200', '/hold'].entries()) {
    const stream = 4 * index + 1
    peer.write(
      open(stream, path),
      data(stream, smuggled, false),
      headers(stream + 2, getRequest({ ':path': '/plain' })),
    )
    await peer.until(() => peer.isAnswered(stream + 2))
    assert.equal(peer.statusOf(stream + 2), 200)
    if (path !== '/hold') await peer.until(() => peer.statusOf(stream) !== null)
  }
  assert.deepEqual(
    heads.filter((head) => head.includes('smuggled')),
    [],
  )
  assert.ok(await peer.isRead())
  await leave(peer, gate, app)
})

async function start(t: Test, limits = {}): Promise<{ gate: Gate; app: Upstream; heads: readonly string[] }> {
  const heads: string[] = []
  const app = await upstream((socket) => {
    let isTunnel = false
    socket.on('data', (bytes) => isTunnel && socket.write(bytes))
    socket.on('end', () => socket.end())
    eachHead(socket, (head) => {
      if (isTunnel) return
      heads.push(head)
      isTunnel = answer(socket, head)
    })
  })
  t.teardown(() => {
    for (const socket of app.sockets) socket.destroy()
    return app.settled()
  })
  const options = { http2: 'own' } as const
  const gate = await startGate(t, { upstreams: [settingsFor([app.url])], options, limits })
  return { gate, app, heads }
}

/** Whether it is a tunnel now. */
function answer(socket: net.Socket, head: string): boolean {
  if (head.startsWith('GET / ')) return socket.write(agreement(head)) || true
  if (head.startsWith('GET /hold ')) return false
  const status = head.startsWith('GET /decline ') ? '404 No' : '200 OK'
  socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\n\r\nok`)
  return false
}

async function dial(gate: Gate): Promise<Http2Peer> {
  const peer = await dialHttp2(gate.plain.port, { isTls: false })
  peer.write(PREFACE, settings())
  return peer
}

async function leave(peer: Http2Peer, gate: Gate, app: Upstream): Promise<void> {
  peer.socket.destroy()
  const open = () => gate.plain.listener.counts.connections
  await until(() => gate.context.upgrades.count === 0 && open() === 0)
  // Connections to the app that requests have used are kept.
  await until(() => app.sockets.size <= 4)
}

const REFUSED = 7
