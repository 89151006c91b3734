import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { answerText, dialPlain, dialTls, type Front, LOOPBACK, type Peer, startFront } from './front.ts'
import { headerV1 } from './proxy-header.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n'

test('connections over the total are refused, and only those', async () => {
  const front = await startFront({ tls: null, limits: { connectionsMax: 3 } })
  const held = await Promise.all([1, 2, 3].map(() => dialPlain(front.port)))
  await counted(front, 3)
  const refused = await dialPlain(front.port)
  await refused.closed
  assert.deepEqual(front.failures, [
    { reason: 'too-many-connections', code: 'total', address: '127.0.0.1', isTls: false },
  ])
  held[0]!.socket.destroy()
  await counted(front, 2)
  await served(await dialPlain(front.port))
  await front.close()
})

test('connections of one address are counted exactly, by what a PROXY header says', async () => {
  const front = await startFront({
    tls: null,
    limits: { connectionsPerAddressMax: 2 },
    options: { proxyProtocol: 'required', trusted: LOOPBACK },
  })
  const dialAs = async (address: string) => {
    const peer = await dialPlain(front.port)
    peer.write(headerV1(`${address.includes(':') ? 'TCP6' : 'TCP4'} ${address} ${address} 1 443`))
    return peer
  }
  const one = [await served(await dialAs('192.0.2.1')), await served(await dialAs('192.0.2.1'))]
  const third = await dialAs('192.0.2.1')
  await third.closed
  await served(await dialAs('192.0.2.2'))
  assert.deepEqual(
    front.failures.map(({ reason, code, address }) => [reason, code, address]),
    [['too-many-connections', 'address', '192.0.2.1']],
  )
  one[0]!.socket.destroy()
  while (front.listener.counts.connections > 2) await new Promise((resolve) => setImmediate(resolve))
  await served(await dialAs('192.0.2.1'))
  // Of IPv6 a client owns at least a /64.
  await served(await dialAs('2001:db8::1'))
  await served(await dialAs('2001:db8::2'))
  await (await dialAs('2001:db8::3')).closed
  await served(await dialAs('2001:db8:0:1::3'))
  // A proxy has the connections of many.
  for (let count = 0; count < 5; count++) await served(await dialAs('127.0.0.9'))
  assert.equal(front.failures.length, 2)
  await front.close()
})

test('connections that come to nothing are not counted any longer', async () => {
  const front = await startFront({ tls: null, limits: { connectionsPerAddressMax: 1, headerTimeoutMs: 40 } })
  for (let round = 0; round < 3; round++) {
    const peer = await dialPlain(front.port)
    await peer.closed
    await counted(front, 0)
  }
  await served(await dialPlain(front.port))
  assert.equal(front.listener.counts.connections, 1)
  await front.close()
})

test('a head that does not come, or comes drop by drop, is given up', async () => {
  const ways: readonly [
    title: string,
    code: string,
    answer: RegExp,
    send: (peer: Peer) => NodeJS.Timeout | undefined,
  ][] = [
    ['silent', 'silent', /^$/, () => undefined],
    [
      'half',
      'cut',
      /^HTTP\/1.1 408 .*Connection: close\r\n\r\nRequest Timeout\n$/s,
      (peer) => void peer.write('GET / HTTP/1.1\r\nHo'),
    ],
    ['drop by drop', 'cut', /^HTTP\/1.1 408 /, (peer) => setInterval(() => peer.write('A: b\r\n'), 10)],
  ]
  for (const dial of [dialPlain, dialTls]) {
    const front = await startFront({
      ...(dial === dialPlain && { tls: null }),
      limits: { headerTimeoutMs: 80 },
    })
    for (const [index, [title, code, answer, send]] of ways.entries()) {
      const peer = await dial(front.port)
      if (title === 'drop by drop') peer.write('GET / HTTP/1.1\r\n')
      const timer = send(peer)
      await peer.closed
      clearInterval(timer)
      await front.failed(index + 1)
      assert.deepEqual(
        [front.failures[index]!.reason, front.failures[index]!.code],
        ['header-timeout', code],
        title,
      )
      assert.match(peer.text, answer, title)
    }
    await front.close()
  }
})

test('a connection that waits for its next request is closed in time, and one that is served is not', async () => {
  const open: Exchange[] = []
  const front = await startFront({
    tls: null,
    limits: { keepAliveTimeoutMs: 60 },
    request: (exchange) => open.push(exchange),
  })
  const [idle, busy] = [await dialPlain(front.port), await dialPlain(front.port)]
  idle.write(GET)
  busy.write(GET)
  while (open.length < 2) await new Promise((resolve) => setImmediate(resolve))
  const [first, second] = open[0]!.connection.port === idle.socket.localPort ? open : open.toReversed()
  answerText(first!, 'x')
  assert.equal(await idle.closed, null)
  answerText(second!, 'late')
  await busy.hears('\r\n\r\nlate')
  assert.deepEqual(front.failures, [])
  await busy.closed
  await front.close()
})

test('a body that stops coming ends its request', async () => {
  for (const stage of ['asked', 'continued'] as const) {
    let gone = 0
    const front = await startFront({
      tls: null,
      limits: { bodyIdleTimeoutMs: 60 },
      request(exchange) {
        exchange.onGone = () => gone++
        if (stage === 'continued') exchange.inform(100, [])
        exchange.body.resume()
      },
    })
    const peer = await dialPlain(front.port)
    peer.write(
      stage === 'asked' ? `${POST}hello` : POST.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'),
    )
    await peer.closed
    assert.match(peer.text, /HTTP\/1.1 408 [^\n]+\r\n.*Request Timeout\n$/s)
    assert.deepEqual(
      [gone, front.failures[0]!.reason, front.failures[0]!.code],
      [1, 'bad-request', 'body-timeout'],
    )
    await front.close()
  }
})

test('waits for a body that moves, is unread, is not requested yet, or is being answered', async () => {
  const ways: readonly [title: string, serve: (exchange: Exchange) => void, head: string][] = [
    ['moves', echoBody, POST],
    ['is not read', (exchange) => setTimeout(echoBody, 150, exchange), POST],
    [
      'is not asked for',
      (exchange) =>
        setTimeout(() => {
          exchange.inform(100, [])
          echoBody(exchange)
        }, 150),
      POST.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'),
    ],
    [
      'is being answered',
      (exchange) => {
        exchange.answer(200, [], null)
        exchange.body.on('data', (chunk) => exchange.write(chunk)).on('end', () => exchange.end([]))
      },
      POST,
    ],
  ]
  for (const [title, serve, head] of ways) {
    const front = await startFront({ tls: null, limits: { bodyIdleTimeoutMs: 50 }, request: serve })
    const peer = await dialPlain(front.port)
    peer.write(head)
    const slowly = title === 'moves' || title === 'is being answered'
    if (title === 'is not asked for') await peer.hears('100 Continue')
    if (!slowly) peer.write('0123456789')
    else
      for (const [index, byte] of [...'0123456789'].entries()) {
        await new Promise((resolve) => setTimeout(resolve, title === 'moves' ? 20 : index === 5 ? 130 : 1))
        peer.write(byte)
      }
    await peer.hears(/9(?:$|\r\n)/)
    assert.deepEqual(front.failures, [], title)
    peer.socket.destroy()
    await front.close()
  }
})

test('the same holds for HTTP/2, where a call may be silent for long', async () => {
  let gone = 0
  const front = await startFront({
    limits: { bodyIdleTimeoutMs: 60 },
    request(exchange) {
      exchange.onGone = () => gone++
      if (exchange.head.target !== '/held') echoBody(exchange)
      else setTimeout(echoBody, 150, exchange)
    },
  })
  const session = http2.connect(`https://127.0.0.1:${front.port}`, { rejectUnauthorized: false })
  const stalled = session.request({ ':method': 'POST', ':path': '/stalled' })
  stalled.write('hello')
  const [head] = await once(stalled, 'response')
  assert.equal(head[':status'], 408)
  assert.deepEqual([gone, front.failures[0]!.code], [1, 'body-timeout'])

  const held = session.request({ ':method': 'POST', ':path': '/held' })
  held.write('x'.repeat(200_000)) // fills the buffer of a body that is not read yet
  setTimeout(() => held.end('llo'), 100)
  assert.equal((await once(held, 'response'))[0][':status'], 200)

  const call = session.request({
    ':method': 'POST',
    ':path': '/call',
    'content-type': 'application/grpc+proto',
  })
  call.write('he')
  setTimeout(() => call.end('llo'), 150)
  assert.equal((await once(call, 'response'))[0][':status'], 200)
  assert.equal(front.failures.length, 1)
  session.destroy()
  await front.close()
})

test('a session without a request is closed in time, and one with a silent stream is not', async () => {
  const open: Exchange[] = []
  const front = await startFront({
    limits: { keepAliveTimeoutMs: 60 },
    request: (exchange) => open.push(exchange),
  })
  const session = http2.connect(`https://127.0.0.1:${front.port}`, { rejectUnauthorized: false })
  const stream = session.request()
  const closed = once(session, 'close')
  await new Promise((resolve) => setTimeout(resolve, 500))
  answerText(open[0]!, 'late')
  assert.equal((await once(stream, 'response'))[0][':status'], 200)
  stream.resume()
  await closed
  assert.deepEqual(front.failures, [])
  await front.close()
})

test('a connection has so many requests and no more', async () => {
  const front = await startFront({ tls: null, limits: { requestsPerConnectionMax: 3 } })
  const peer = await dialPlain(front.port)
  peer.write(GET.repeat(5))
  await peer.closed
  assert.deepEqual(peer.text.match(/Connection: [\w-]+/g), [
    'Connection: keep-alive',
    'Connection: keep-alive',
    'Connection: close',
  ])
  assert.equal(front.exchanges.length, 3)
  await front.close()
})

test('a flood behind the last request ends the connection, too', async () => {
  const front = await startFront({ tls: null, limits: { requestsPerConnectionMax: 1 }, request: () => {} })
  const peer = await dialPlain(front.port)
  peer.write(GET.repeat(2000))
  await peer.closed
  assert.equal(front.exchanges.length, 1)
  await front.close()
})

function echoBody(exchange: Exchange): void {
  const chunks: Buffer[] = []
  exchange.body.on('data', (chunk: Buffer) => chunks.push(chunk))
  exchange.body.on('end', () => answerText(exchange, Buffer.concat(chunks).toString()))
}

async function served(peer: Peer): Promise<Peer> {
  peer.write(GET)
  await peer.hears('200 OK')
  return peer
}

async function counted(front: Front, connections: number): Promise<void> {
  while (front.listener.counts.connections !== connections)
    await new Promise((resolve) => setImmediate(resolve))
}
