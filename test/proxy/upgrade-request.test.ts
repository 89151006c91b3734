import assert from 'node:assert/strict'
import { test } from 'tap'
import { dialPlain, dialTls, startFront } from './front.ts'

const UPGRADE =
  'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nX-y: z\r\n\r\n'

test('an upgrade leaves HTTP with the socket and the bytes behind the request', async () => {
  for (const dial of [dialPlain, dialTls]) {
    const front = await startFront({
      ...(dial === dialPlain && { tls: null }),
      limits: { keepAliveTimeoutMs: 50, headerTimeoutMs: 100, bodyIdleTimeoutMs: 50 },
      upgrade(upgrade) {
        upgrade.agree([])
        upgrade.stream.on('data', (chunk) => upgrade.stream.write(chunk))
      },
    })
    const peer = await dial(front.port)
    peer.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await peer.hears('GET /')
    peer.write(`${UPGRADE}first`)
    await peer.hears('\r\n\r\nfirst')
    await new Promise((resolve) => setTimeout(resolve, 300)) // no time-out of HTTP holds any more
    peer.write('second')
    await peer.hears('firstsecond')
    const { requestHead, authority, connection } = front.upgrades[0]!
    assert.deepEqual(
      [requestHead.method, requestHead.target, requestHead.version, authority],
      ['GET', '/chat', '11', 'a'],
    )
    assert.deepEqual(requestHead.rawHeaders.slice(-2), ['X-y', 'z'])
    assert.equal(connection, front.exchanges[0]!.connection)
    assert.equal(front.listener.counts.upgraded, 1)
    peer.socket.destroy()
    await front.close()
    assert.deepEqual(front.failures, [])
  }
})

/** Served as if they had not asked, and the last ones of their connections. */
const DECLINED: readonly [title: string, request: string][] = [
  ['HTTP/2 in the clear', UPGRADE.replace('websocket', 'h2c')],
  ['HTTP/2 among others', UPGRADE.replace('websocket', 'websocket, h2c')],
  ['TLS', UPGRADE.replace('websocket', 'TLS/1.2')],
  ['another HTTP', UPGRADE.replace('websocket', 'HTTP/3.0')],
  ['a POST', UPGRADE.replace('GET', 'POST')],
  ['a length', UPGRADE.replace('X-y: z', 'Content-Length: 3').concat('abc')],
  ['chunks', UPGRADE.replace('X-y: z', 'Transfer-Encoding: chunked').concat('3\r\nabc\r\n0\r\n\r\n')],
]

test('a refused upgrade stays HTTP, and the bytes behind it stay its own', async () => {
  const front = await startFront({ tls: null })
  for (const [title, request] of DECLINED) {
    for (const inOne of [true, false]) {
      const served = front.exchanges.length
      const peer = await dialPlain(front.port)
      const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
      peer.write(inOne ? request + smuggled : request)
      await peer.hears('200 OK')
      peer.write('GET /more HTTP/1.1\r\nHost: a\r\n\r\n')
      await peer.closed
      assert.match(peer.text, /^HTTP\/1.1 200 OK\r\n(?:.+\r\n)*Connection: close\r\n\r\n/, title)
      assert.equal(peer.text.lastIndexOf('HTTP/1.1'), 0, `${title}: one answer`)
      assert.deepEqual(
        front.exchanges.slice(served).map(({ head }) => head.target),
        ['/chat'],
        title,
      )
    }
  }
  assert.equal(front.upgrades.length, 0)
  await front.close()
})

test('without the Connection header there is nothing to upgrade', async () => {
  const front = await startFront({ tls: null })
  const peer = await dialPlain(front.port)
  peer.write(UPGRADE.replace('keep-alive, Upgrade', 'keep-alive').repeat(2))
  await peer.hears(/200 OK.*200 OK/s)
  assert.deepEqual([front.exchanges.length, front.upgrades.length], [2, 0])
  peer.socket.destroy()
  await front.close()
})

test('an upgrade behind a request that is being answered does not write into the answer', async () => {
  const asked = Promise.withResolvers<void>()
  const front = await startFront({ tls: null, request: () => asked.resolve() })
  const peer = await dialPlain(front.port)
  peer.write(`GET /first HTTP/1.1\r\nHost: a\r\n\r\n${UPGRADE}`)
  await asked.promise
  const [first] = front.exchanges
  first!.answer(200, ['Content-Length', '5'], 5)
  first!.write(Buffer.from('first'))
  while (front.exchanges.length < 2) await new Promise((resolve) => setImmediate(resolve))
  front.exchanges[1]!.answer(200, ['Content-Length', '6'], 6)
  front.exchanges[1]!.write(Buffer.from('second'))
  await peer.closed
  assert.match(peer.text, /\r\n\r\nfirstHTTP\/1.1 200 OK.*\r\n\r\nsecond$/s)
  assert.equal(front.upgrades.length, 0)
  await front.close()
})

test('refuses an upgrade that is not a valid request', async () => {
  const front = await startFront({ tls: null })
  for (const request of [
    UPGRADE.replace('Host: a', 'Host: a\r\nHost: b'),
    UPGRADE.replace('/chat', '/a#b'),
    UPGRADE.replace('Host: a\r\n', ''),
  ]) {
    const peer = await dialPlain(front.port)
    peer.write(request)
    await peer.closed
    assert.match(peer.text, /^HTTP\/1.1 400 .*Connection: close/s)
  }
  assert.deepEqual([front.upgrades.length, front.failures.length], [0, 3])
  await front.close()
})
