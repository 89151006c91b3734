import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { answerText, dialPlain, dialTls, type Front, type FrontPlan, type Peer, startFront } from './front.ts'

const TOTAL = 12_000_000
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

/** What an exchange of HTTP/1 keeps to, in either lane. */
export function exchangeContract(fastLane: boolean): void {
  const plain = (plan: FrontPlan) => plainFront({ ...plan, options: { fastLane } })
  const overTls = (plan: FrontPlan) => tlsFront({ ...plan, options: { fastLane } })

  test('answers are framed by what is known of their length', async () => {
    const cases: readonly [
      title: string,
      request: string,
      answer: (exchange: Exchange) => void,
      wanted: RegExp,
    ][] = [
      ['known', GET, (x) => send(x, 5, 'he', 'llo'), /Content-Length: 5\r\n(?:.+\r\n)*\r\nhello$/],
      [
        'unknown',
        GET,
        (x) => send(x, null, 'he', '', 'llo'),
        /Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n$/,
      ],
      ['unknown and empty', GET, (x) => send(x, null), /Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n$/],
      [
        'unknown, for HTTP/1.0',
        'GET / HTTP/1.0\r\nTE: chunked\r\nConnection: keep-alive\r\n\r\n',
        (x) => send(x, null, 'hello'),
        /200 OK\r\n(?!.*chunked)(?:.+\r\n)*Connection: close\r\n\r\nhello$/,
      ],
      [
        'known, for HTTP/1.0',
        'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
        (x) => send(x, 5, 'hello'),
        /Connection: keep-alive\r\n(?:.+\r\n)*\r\nhello$/,
      ],
      [
        'nothing',
        GET,
        (x) => x.answer(200, [], 0),
        /^HTTP\/1.1 200 OK\r\nContent-Length: 0\r\n(?:.+\r\n)*\r\n$/,
      ],
      [
        '204',
        GET,
        (x) => x.answer(204, ['Content-Length', '0', 'A', 'b'], 0),
        /^HTTP\/1.1 204 No Content\r\nA: b\r\n(?!.*-Length)(?:.+\r\n)*\r\n$/,
      ],
      [
        '304',
        GET,
        (x) => x.answer(304, ['Content-Length', '5', 'ETag', '"x"'], 0),
        /^HTTP\/1.1 304 .*\r\nContent-Length: 5\r\nETag: "x"\r\n(?:.+\r\n)*\r\n$/,
      ],
      [
        'HEAD',
        GET.replace('GET', 'HEAD'),
        (x) => x.answer(200, ['Content-Length', '5'], 0),
        /200 OK\r\nContent-Length: 5\r\n(?:.+\r\n)*\r\n$/,
      ],
      [
        'HEAD of unknown length',
        GET.replace('GET', 'HEAD'),
        (x) => x.answer(200, [], 0),
        /200 OK\r\n(?!.*(?:-Length|chunked))(?:.+\r\n)*\r\n$/,
      ],
      [
        'headers as they are',
        GET,
        (x) => x.answer(200, ['sEt-CooKie', 'a=1', 'B', '\xff', 'set-cookie', 'b=2', 'Date', 'then'], 0),
        /OK\r\nsEt-CooKie: a=1\r\nB: \xff\r\nset-cookie: b=2\r\nDate: then\r\nContent-Length: 0\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n$/,
      ],
      ['an unknown status', GET, (x) => x.answer(299, [], 0), /^HTTP\/1.1 299 /],
      [
        'words of its own beside it',
        GET,
        (x) => x.answer(404, [], 0, 'caf\xe9 closed'),
        /^HTTP\/1.1 404 caf\xe9 closed\r\n/,
      ],
      ['no words beside it', GET, (x) => x.answer(404, [], 0, ''), /^HTTP\/1.1 404 \r\n/],
    ]
    for (const start of [plain, overTls]) {
      for (const [title, request, answer, wanted] of cases) {
        const { front, peer } = await start({ request: answer })
        peer.write(request)
        await peer.hears(wanted).catch(() => {})
        assert.match(peer.text, wanted, title)
        await leave(front, peer)
      }
    }
  })

  test('trailers pass both ways, but for those that would frame or route', async () => {
    const { front, peer } = await plain({
      request(exchange) {
        exchange.body.resume().on('end', () => {
          exchange.answer(200, ['Trailer', 'X-Sum'], null)
          exchange.write(Buffer.from('x'))
          exchange.end(['X-Sum', '1', 'X-Sum', '2'])
        })
      },
    })
    const trailers = ['X-A: 1', 'Host: b', 'Cookie: a=b', 'x-b: 2']
    peer.write(
      `POST / HTTP/1.1\r\nHost: a\r\nTE: gzip, Trailers\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${trailers.join('\r\n')}\r\n\r\n`,
    )
    await peer.hears('1\r\nx\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n')
    assert.deepEqual(front.exchanges[0]!.trailers, ['X-A', '1', 'x-b', '2'])
    assert.equal(front.exchanges[0]!.acceptsTrailers, true)
    peer.write(GET)
    await peer.hears(/200 OK.*200 OK/s)
    assert.equal(front.exchanges[1]!.acceptsTrailers, false)
    await leave(front, peer)
  })

  test('a Trailer header without chunks to put trailers behind is left out', async () => {
    const { front, peer } = await plain({
      request: (exchange) => {
        exchange.answer(200, ['Content-Length', '1', 'trailer', 'X-Sum'], 1)
        exchange.write(Buffer.from('x'))
        exchange.end(['X-Sum', '1'])
      },
    })
    peer.write(GET)
    assert.match(await peer.hears('\r\n\r\nx'), /^HTTP\/1.1 200 OK\r\nContent-Length: 1\r\nDate/)
    await leave(front, peer)
  })

  test('interim answers go out as they come, and never to HTTP/1.0', async () => {
    const { front, peer } = await plain({
      request(exchange) {
        exchange.inform(103, ['Link', '</a>; rel=preload', 'Link', '</b>; rel=preload'])
        exchange.inform(103, ['Bad\r\n', 'x'])
        answerText(exchange, 'ok')
        exchange.inform(103, ['Too', 'late'])
      },
    })
    peer.write(GET)
    await peer.hears('\r\n\r\nok')
    assert.match(
      peer.text,
      /^HTTP\/1.1 103 Early Hints\r\nLink: <\/a>; rel=preload\r\nLink: <\/b>; rel=preload\r\n\r\nHTTP\/1.1 200 OK\r\n/,
    )
    const old = await dialPlain(front.port)
    old.write('GET / HTTP/1.0\r\n\r\n')
    assert.match(await old.hears('\r\n\r\nok'), /^HTTP\/1.1 200 OK\r\n/)
    await leave(front, peer)
  })

  test('100 is said when the app says so, and not before', async () => {
    const asked = Promise.withResolvers<Exchange>()
    const { front, peer } = await plain({ request: asked.resolve })
    peer.write('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n')
    const exchange = await asked.promise
    assert.equal(exchange.expectsContinue, true)
    assert.equal(peer.text, '')
    exchange.inform(100, [])
    await peer.hears('HTTP/1.1 100 Continue\r\n\r\n')
    peer.write('hello')
    exchange.body.on('data', (chunk: Buffer) => answerText(exchange, chunk.toString()))
    assert.match(await peer.hears('\r\n\r\nhello'), /Connection: keep-alive/)
    await leave(front, peer)
  })

  test('a body that was never asked for ends its connection', async () => {
    const { front, peer } = await plain({ request: (exchange) => answerText(exchange, 'no', 403) })
    peer.write('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n')
    assert.match(await peer.hears('\r\n\r\nno'), /^HTTP\/1.1 403 .*Connection: close/s)
    assert.equal(await peer.closed, null)
    await front.close()
  })

  test('an answer that is shorter or longer than announced is cut off, and its writer is told', async () => {
    const writes: readonly ((exchange: Exchange) => void)[] = [
      (exchange) => send(exchange, 10, 'hello'),
      (exchange) => send(exchange, 4, 'hello'),
      (exchange) => {
        exchange.answer(200, ['A', 'b\r\nc: d'], 0)
        exchange.end([])
      },
      (exchange) => exchange.answer(200, ['A b', 'c'], 0),
    ]
    for (const start of [plain, overTls]) {
      for (const write of writes) {
        let gone = 0
        const { front, peer } = await start({
          request(exchange) {
            exchange.onGone = () => gone++
            write(exchange)
            exchange.write(Buffer.from('more'))
            exchange.end([])
            exchange.abort()
          },
        })
        peer.write(GET)
        await peer.closed
        assert.equal(peer.text.includes('\r\n\r\nhello') && peer.text.includes('Content-Length: 4'), false)
        assert.equal(gone, 1)
        await front.close()
      }
    }
  })

  test('an answer that is broken off does not look whole', async () => {
    const breakOff = (bodyLength: number | null) => (exchange: Exchange) => {
      exchange.onGone = () => assert.fail('it was not the client')
      exchange.answer(200, bodyLength === null ? [] : ['Content-Length', String(bodyLength)], bodyLength)
      exchange.write(Buffer.from('hello'))
      setImmediate(() => exchange.abort())
    }
    const { front, peer } = await plain({ request: breakOff(null) })
    peer.write(GET)
    await peer.closed
    assert.ok(!peer.text.endsWith('0\r\n\r\n'))
    const old = await dialPlain(front.port)
    old.write('GET / HTTP/1.0\r\n\r\n')
    assert.equal(await old.closed, 'ECONNRESET', 'what ends with the connection must not end well')
    await front.close()
    const secure = await overTls({ request: breakOff(10) })
    secure.peer.write(GET)
    await secure.peer.closed
    assert.ok(secure.peer.text.endsWith('\r\n\r\nhello'))
    await secure.front.close()
  })

  test('requests that are not waited for have their turns one after another', async () => {
    const open: Exchange[] = []
    const { front, peer } = await plain({ request: (exchange) => open.push(exchange) })
    peer.write(
      'GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /3 HT',
    )
    peer.write('TP/1.1\r\nHost: a\r\n\r\n')
    for (const text of ['one', 'two', 'three']) {
      while (open.length === 0) await new Promise((resolve) => setImmediate(resolve))
      assert.equal(open.length, 1)
      answerText(open.shift()!, text)
      await peer.hears(`\r\n\r\n${text}`)
    }
    assert.deepEqual(
      front.exchanges.map((exchange) => exchange.head.target),
      ['/1', '/2', '/3'],
    )
    await leave(front, peer)
  })

  test('the holder of an exchange is told once that the client left, and not after the answer', async () => {
    const leaves: readonly [title: string, bytes: string, leave: (peer: Peer) => void, gone: number][] = [
      ['reset', GET, (peer) => peer.socket.resetAndDestroy(), 1],
      ['half close', GET, (peer) => peer.socket.end(), 1],
      [
        'in mid-body',
        'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello',
        (peer) => peer.socket.end(),
        1,
      ],
    ]
    for (const stage of ['asked', 'answering', 'answered'] as const) {
      for (const [title, bytes, goAway, gone] of leaves) {
        const asked = Promise.withResolvers<void>()
        let heard = 0
        const { front, peer } = await plain({
          request(exchange) {
            exchange.onGone = () => heard++
            if (stage === 'answering') {
              exchange.answer(200, [], null)
              exchange.write(Buffer.from('x'))
            } else if (stage === 'answered') answerText(exchange, 'x')
            asked.resolve()
          },
        })
        peer.write(bytes)
        await asked.promise
        goAway(peer)
        while (front.listener.counts.connections > 0) await new Promise((resolve) => setImmediate(resolve))
        assert.equal(heard, stage === 'answered' ? 0 : gone, `${title} ${stage}`)
        const exchange = front.exchanges[0]!
        assert.doesNotThrow(() => {
          exchange.inform(103, [])
          exchange.answer(200, [], null)
          exchange.write(Buffer.from('x'))
          exchange.end(['a', 'b'])
          exchange.abort()
        })
        assert.equal(heard, stage === 'answered' ? 0 : gone)
        await front.close()
      }
    }
  })

  test('bytes are the same, whatever becomes of the buffer after the call, and a slow client holds the writer back', async () => {
    for (const start of [plain, overTls]) {
      for (const bodyLength of [TOTAL, null]) {
        let most = 0
        const { front, peer } = await start({
          request(exchange) {
            const buffer = Buffer.alloc(200_000)
            let sent = 0
            let turn = 0
            const go = () => {
              for (;;) {
                const size = Math.min(TOTAL - sent, [100, 16_384, 200_000, 5000, 70_000][turn++ % 5]!)
                for (let i = 0; i < size; i++) buffer[i] = (sent + i) % 251
                sent += size
                const hasRoom = exchange.write(buffer.subarray(0, size))
                buffer.fill(255) // what was written is no longer there
                most = Math.max(most, sent)
                if (sent === TOTAL) return exchange.end([])
                if (!hasRoom) return
              }
            }
            exchange.onDrain = go
            exchange.answer(200, bodyLength === null ? [] : ['Content-Length', String(TOTAL)], bodyLength)
            go()
          },
        })
        peer.socket.pause()
        peer.write(GET)
        while (front.exchanges.length === 0) await new Promise((resolve) => setImmediate(resolve))
        for (let last = -1; last !== most; await new Promise((resolve) => setTimeout(resolve, 60)))
          last = most
        assert.ok(most < TOTAL / 2, `${most} bytes written to a client that does not read`)
        const body = await bodyOf(peer, bodyLength === null)
        assert.equal(body.length, TOTAL)
        assert.ok(body.every((byte, index) => byte === index % 251))
        await leave(front, peer)
      }
    }
  })

  test('an unread body holds the client back', async () => {
    for (const start of [plain, overTls]) {
      const asked = Promise.withResolvers<Exchange>()
      const { front, peer } = await start({ request: asked.resolve })
      peer.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${TOTAL}\r\n\r\n`)
      const exchange = await asked.promise
      peer.write(Buffer.alloc(TOTAL, 'x'))
      for (let last = -1; last !== peer.socket.bytesWritten - peer.socket.writableLength; ) {
        last = peer.socket.bytesWritten - peer.socket.writableLength
        await new Promise((resolve) => setTimeout(resolve, 60))
      }
      assert.ok(exchange.body.readableLength < 300_000, `${exchange.body.readableLength} bytes held`)
      let read = 0
      exchange.body.on('data', (chunk: Buffer) => (read += chunk.length))
      await once(exchange.body, 'end')
      assert.equal(read, TOTAL)
      answerText(exchange, 'done')
      await peer.hears('done')
      await leave(front, peer)
    }
  })

  test('the head of an answer does not wait for its body', async () => {
    for (const start of [plain, overTls]) {
      const { front, peer } = await start({
        request: (exchange) => exchange.answer(200, ['Content-Type', 'text/event-stream'], null),
      })
      peer.write(GET)
      await peer.hears('chunked\r\n\r\n')
      assert.match(peer.text, /^HTTP\/1\.1 200 .*\r\nContent-Type: text\/event-stream\r\n/s)
      await leave(front, peer)
    }
  })

  test('an answer to a long upload arrives, although the upload goes on', async () => {
    const { front, peer } = await plain({
      request: (exchange) => answerText(exchange, 'x'.repeat(50_000), 413),
    })
    peer.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${TOTAL}\r\n\r\n`)
    const timer = setInterval(() => peer.write(Buffer.alloc(60_000)), 1)
    await peer.hears(/x{50000}$/)
    clearInterval(timer)
    assert.match(peer.text, /Connection: close/)
    await leave(front, peer)
  })

  test('a short body that is answered early costs nothing', async () => {
    const { front, peer } = await plain({
      request: (exchange) => answerText(exchange, exchange.head.target, 403),
    })
    peer.write('POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel')
    await peer.hears('\r\n\r\n/1')
    peer.write('loGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
    await peer.hears('\r\n\r\n/2')
    assert.equal(peer.text.split('HTTP/1.1 403 ').length, 1 + 2)
    await leave(front, peer)
  })
}

function send(exchange: Exchange, bodyLength: number | null, ...chunks: readonly string[]): void {
  exchange.answer(200, bodyLength === null ? [] : ['Content-Length', String(bodyLength)], bodyLength)
  for (const chunk of chunks) exchange.write(Buffer.from(chunk))
  exchange.end([])
}

export async function plainFront(plan: FrontPlan): Promise<{ front: Front; peer: Peer }> {
  const front = await startFront({ ...plan, tls: null })
  return { front, peer: await dialPlain(front.port) }
}

async function tlsFront(plan: FrontPlan): Promise<{ front: Front; peer: Peer }> {
  const front = await startFront(plan)
  return { front, peer: await dialTls(front.port) }
}

export async function leave(front: Front, peer: Peer): Promise<void> {
  peer.socket.destroy()
  await front.close()
}

/** Of the one answer that comes, read from here on. */
async function bodyOf(peer: Peer, isChunked: boolean): Promise<Buffer> {
  peer.socket.resume()
  await peer.hears('\r\n\r\n')
  let at = peer.bytes.indexOf('\r\n\r\n') + 4
  await peer.hears(() => {
    if (!isChunked || peer.byteCount < TOTAL) return peer.byteCount === at + TOTAL
    return peer.bytes.toString('latin1', peer.byteCount - 5) === '0\r\n\r\n'
  })
  const all = peer.bytes
  if (!isChunked) return all.subarray(at)
  const chunks: Buffer[] = []
  for (;;) {
    const lineEnd = all.indexOf('\r\n', at)
    const size = Number.parseInt(all.toString('latin1', at, lineEnd), 16)
    if (size === 0) return Buffer.concat(chunks)
    chunks.push(all.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
