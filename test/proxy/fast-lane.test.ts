import assert from 'node:assert/strict'
import { test } from 'tap'
import { Http1Exchange } from '../../src/proxy/http/exchange-h1.ts'
import { FastExchange } from '../../src/proxy/http/exchange-fast.ts'
import { answerText, dialPlain, dialTls, startFront } from './front.ts'

const HOST = 'Host: a\r\n'
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`

test('what nearly all clients send stays in the fast lane', async () => {
  const plain = [
    GET,
    `HEAD /x?y=z HTTP/1.1\r\n${HOST}Connection: keep-alive\r\n\r\n`,
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\nContent-Type: text/plain\r\n\r\nabc`,
    `DELETE / HTTP/1.1\r\n${HOST}Content-Length: 0\r\nCookie: a=b\r\nTE: trailers\r\n\r\n`,
  ]
  for (const request of plain) assert.deepEqual(await lanesOf(request, request), ['fast', 'fast'], request)
})

test('anything else goes to the robust lane with its connection, and what comes behind it', async () => {
  const others = [
    `GET / HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n\r\n`,
    `PROPFIND / HTTP/1.1\r\n${HOST}\r\n`,
    `GET http://a/ HTTP/1.1\r\n${HOST}\r\n`,
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `GET / HTTP/1.1\r\n${HOST}Connection: keep-alive, x\r\n\r\n`,
    `GET / HTTP/1.1\r\n${HOST}X: ${'x'.repeat(9000)}\r\n\r\n`,
    `\r\n${GET}`,
  ]
  for (const request of others) {
    assert.deepEqual(await lanesOf(GET, request, GET), ['fast', 'robust', 'robust'], request)
  }
})

test('a head in two pieces is read by the robust lane, wherever it is cut, also in two records of TLS', async () => {
  const request = `POST /there HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`
  for (let cut = 1; cut < request.length; cut++) {
    const front = await startFront()
    const peer = await dialTls(front.port)
    peer.write(request.slice(0, cut))
    peer.write(request.slice(cut))
    await peer.hears('\r\n\r\nhello')
    assert.deepEqual(
      front.exchanges.map(({ head }) => head.target),
      ['/there'],
    )
    peer.socket.destroy()
    await front.close()
  }
})

test('requests behind one that is not answered are not read for ever', async () => {
  const front = await startFront({ tls: null, request: () => {} })
  const peer = await dialPlain(front.port)
  const flood = Buffer.from(GET.repeat(1000))
  // The client's side of the kernel takes some of it, too.
  for (let sent = 0; sent < 64_000_000 && peer.socket.writableLength < 4_000_000; sent += flood.length) {
    peer.socket.write(flood)
    await new Promise(setImmediate)
  }
  for (let turn = 0; turn < 500; turn++) await new Promise(setImmediate)
  assert.ok(peer.socket.writableLength > 0, 'all of it was read')
  assert.equal(front.exchanges.length, 1)
  peer.socket.destroy()
  await front.close()
})

/** Which lane has each of the requests, sent one after the other on one connection. */
async function lanesOf(...requests: readonly string[]): Promise<readonly string[]> {
  const lanes: string[] = []
  const front = await startFront({
    tls: null,
    request: (exchange) => {
      lanes.push(
        exchange instanceof FastExchange ? 'fast' : exchange instanceof Http1Exchange ? 'robust' : 'none',
      )
      const answer = () => answerText(exchange, `answer ${lanes.length}`)
      if (exchange.bodyLength === 0) answer()
      else exchange.body.on('end', answer).resume()
    },
  })
  const peer = await dialPlain(front.port)
  for (const [index, request] of requests.entries()) {
    peer.write(request)
    // To HEAD there is no more than a head.
    await peer.hears(() => peer.text.split('\r\n\r\n').length > index + 1 && lanes.length === index + 1)
  }
  peer.socket.destroy()
  await front.close()
  return lanes
}
