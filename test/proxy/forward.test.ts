import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'tap'
import { WAITING_MAX } from '../../src/proxy/upstream/waiting-line.ts'
import type { MemoryRequest } from './memory-exchange.ts'
import {
  answering,
  answerOf,
  ask,
  assertClean,
  closed,
  eachHead,
  groupOf,
  HEADERS,
  upstream,
} from './upstream-fixture.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** What an upstream got for one request, which is answered once `until` has come. */
async function sent(
  request: MemoryRequest,
  until: string,
  headers: readonly string[] = HEADERS,
  changes: Parameters<typeof groupOf>[1] = {},
): Promise<string> {
  let text = ''
  const server = await upstream((socket) => {
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (text.endsWith(until)) socket.write(OK)
    })
  })
  const group = groupOf([server.url], changes)
  const asking = ask(group, request, headers)
  assert.equal((await asking.outcome).kind, 'answered')
  assertClean(asking)
  await closed(group, server)
  return text.replaceAll(String(server.port), 'PORT')
}

const BODY = Buffer.from('hello')
const FIELDS = 'Host: app.example.test\r\nUser-Agent: test\r\n'

test('how long an upstream takes to begin its answer is told, but not how long it takes to end it', async () => {
  const server = await upstream((socket) => {
    socket.on('data', () => {
      setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no'), 30)
      setTimeout(() => socket.write('k'), 300)
    })
  })
  const group = groupOf([server.url])
  await ask(group).outcome
  const samples = [...group.headDurations.samples('x')]
  const [sum, count] = ['x_sum', 'x_count'].map(
    (name) => samples.find(({ metricName }) => metricName === name)!.value,
  )
  assert.equal(count, 1)
  assert.ok(sum! >= 0.029 && sum! < 0.25, String(sum))
  await closed(group, server)
})

test('the request is written anew', async (t) => {
  const cases: readonly (readonly [string, MemoryRequest, string])[] = [
    ['GET', {}, `GET / HTTP/1.1\r\n${FIELDS}\r\n`],
    ['a query', { target: '/a?b=c&d="<\xe9>"' }, `GET /a?b=c&d="<\xe9>" HTTP/1.1\r\n${FIELDS}\r\n`],
    ['a path of slashes', { target: '//a//b' }, `GET //a//b HTTP/1.1\r\n${FIELDS}\r\n`],
    ['HEAD', { method: 'HEAD' }, `HEAD / HTTP/1.1\r\n${FIELDS}\r\n`],
    ['OPTIONS *', { method: 'OPTIONS', target: '*' }, `OPTIONS * HTTP/1.1\r\n${FIELDS}\r\n`],
    [
      'an absolute target',
      { target: 'HTTP://other.example.test:81/a?b' },
      `GET /a?b HTTP/1.1\r\n${FIELDS}\r\n`,
    ],
    ['an absolute target without a path', { target: 'http://a' }, `GET / HTTP/1.1\r\n${FIELDS}\r\n`],
    ['an absolute target with a query alone', { target: 'http://a?b' }, `GET /?b HTTP/1.1\r\n${FIELDS}\r\n`],
    [
      'OPTIONS for the whole of a server',
      { method: 'OPTIONS', target: 'http://a' },
      `OPTIONS * HTTP/1.1\r\n${FIELDS}\r\n`,
    ],
    ['POST without a body', { method: 'POST' }, `POST / HTTP/1.1\r\n${FIELDS}Content-Length: 0\r\n\r\n`],
    ['DELETE without a body', { method: 'DELETE' }, `DELETE / HTTP/1.1\r\n${FIELDS}\r\n`],
    [
      'a body of known length',
      { method: 'POST', body: BODY },
      `POST / HTTP/1.1\r\n${FIELDS}Content-Length: 5\r\n\r\nhello`,
    ],
    ['a GET with a body', { body: BODY }, `GET / HTTP/1.1\r\n${FIELDS}Content-Length: 5\r\n\r\nhello`],
    [
      'a body of unknown length',
      { method: 'POST', body: BODY, bodyLength: null },
      `POST / HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ],
    [
      'an empty body of unknown length',
      { method: 'POST', bodyLength: null },
      `POST / HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'trailers, without those that are unsafe behind a body, and ours',
      {
        method: 'POST',
        body: BODY,
        bodyLength: null,
        trailers: [
          ...['X-Sum', '1', 'content-length', '9', 'Host', 'evil.example.test', 'x-agent-verdict', 'human'],
          ...[
            'X_Agent_Name',
            'x',
            'Authorization',
            'x',
            'X-Forwarded-For',
            '1',
            'Bad Name',
            'x',
            'X-Bad',
            'a\r\nb',
          ],
          ...['X-Sum', '2'],
        ],
      },
      `POST / HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n`,
    ],
  ]
  for (const [name, request, expected] of cases) {
    t.test(name, async () => assert.equal(await sent(request, expected.slice(-4)), expected))
  }
  t.test('without a Host, the target says its own', async () => {
    assert.equal(
      await sent({}, '\r\n\r\n', ['Accept', '*/*']),
      'GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAccept: */*\r\n\r\n',
    )
  })
  t.test('the target says its own Host where it should', async () => {
    assert.equal(
      await sent({}, '\r\n\r\n', ['A', 'b', 'host', 'app.example.test', 'C', ''], { host: 'upstream' }),
      'GET / HTTP/1.1\r\nA: b\r\nhost: 127.0.0.1:PORT\r\nC: \r\n\r\n',
    )
  })
})

test('head and first bytes of the body go in one write', async () => {
  const server = await upstream((socket) => {
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString()
      if (!text.endsWith('hello') && !text.endsWith('\r\n0\r\n\r\n')) return
      text = ''
      socket.write(OK)
    })
  })
  const group = groupOf([server.url])
  for (let i = 0; i < 2; i++) {
    for (const bodyLength of [5, null]) {
      const body = new PassThrough()
      const { outcome } = ask(group, { method: 'POST', body, bodyLength })
      // On the first connection the head waits for it; later it goes at once, and the body comes in the same turn.
      const before = i === 0 && bodyLength === 5 ? 0 : writesTo(server.port)
      body.end('hello')
      assert.equal((await outcome).kind, 'answered')
      // Where its length is unknown, the end of the body is only known later.
      assert.ok(writesTo(server.port) - before <= (bodyLength === null ? 2 : 1))
    }
  }
  await closed(group, server)
})

test('what comes in one turn goes in one write, and as soon as the socket is full', async () => {
  const piece = 16_384
  const pieces = 4 * 16 + 1
  const bodyLength = 5 + pieces * piece
  const got: Buffer[] = []
  let length = 0
  const server = await upstream((socket) => {
    socket.on('data', (bytes) => {
      got.push(bytes)
      length += bytes.length
      if (length > bodyLength && Buffer.concat(got).indexOf('\r\n\r\n') + 4 + bodyLength === length)
        socket.write(OK)
    })
  })
  const group = groupOf([server.url])
  const body = new Readable({ read() {} })
  const { outcome } = ask(group, { method: 'POST', body, bodyLength })
  body.push('hello')
  while (!Buffer.concat(got).toString().endsWith('hello'))
    await new Promise((resolve) => setImmediate(resolve))
  const before = writesTo(server.port)
  for (let i = 0; i < 3; i++) body.push(Buffer.alloc(piece, i))
  assert.equal(writesTo(server.port), before, 'they wait for each other')
  body.push(Buffer.alloc(piece, 3))
  assert.equal(writesTo(server.port), before + 1, 'they are as much as the socket holds')
  for (let i = 4; i < pieces; i++) body.push(Buffer.alloc(piece, i))
  body.push(null)
  assert.equal((await outcome).kind, 'answered')
  assert.ok(writesTo(server.port) - before <= Math.ceil(pieces / 4), `${writesTo(server.port) - before}`)
  const sentBody = Buffer.concat(got).subarray(-pieces * piece)
  for (let i = 0; i < pieces; i++)
    assert.ok(sentBody.subarray(i * piece, (i + 1) * piece).equals(Buffer.alloc(piece, i)), `piece ${i}`)
  await closed(group, server)
})

test('what would say something else is not sent', async (t) => {
  const server = await upstream((socket) => socket.destroy())
  const group = groupOf([server.url])
  const cases: Readonly<Record<string, readonly [MemoryRequest, readonly string[]]>> = {
    'a line feed in a value': [{}, ['A', 'b\nC: d']],
    'a carriage return in a value': [{}, ['A', 'b\rc']],
    'a NUL in a value': [{}, ['A', 'b\0c']],
    'a unit that would lose its upper half and be a line feed': [{}, ['A', 'b\u010aC: d']],
    'a colon in a name': [{}, ['A: b\r\nC', 'd']],
    'a space in a name': [{}, ['A B', 'c']],
    'an empty name': [{}, ['', 'c']],
    'a wide unit in a name': [{}, ['\u0141', 'c']],
    'a pseudo-header': [{}, [':path', '/']],
    'a Content-Length': [{}, ['content-length', '3']],
    'a Transfer-Encoding': [{}, ['Transfer-Encoding', 'chunked']],
    'a Connection': [{}, ['Connection', 'close']],
    'an Upgrade': [{}, ['Upgrade', 'h2c']],
    'an Expect': [{}, ['Expect', '100-continue']],
    'two Hosts': [{}, ['Host', 'a', 'host', 'b']],
    'a space in the target': [{ target: '/a b' }, HEADERS],
    'a line feed in the target': [{ target: '/a\nb' }, HEADERS],
    'a wide unit in the target': [{ target: '/\u010a' }, HEADERS],
    'an empty target': [{ target: '' }, HEADERS],
    'a fragment in the target': [{ target: '/a#b' }, HEADERS],
    'a target that is not a path': [{ target: 'a' }, HEADERS],
    'an authority for a target': [{ target: 'a.example.test:443' }, HEADERS],
    'another scheme': [{ target: 'ftp://a/b' }, HEADERS],
    'no host in an absolute target': [{ target: 'http:///a' }, HEADERS],
    '* for GET': [{ target: '*' }, HEADERS],
    CONNECT: [{ method: 'CONNECT', target: '/' }, HEADERS],
    'a method that is not a token': [{ method: 'GET /x' }, HEADERS],
    'an empty method': [{ method: '' }, HEADERS],
  }
  for (const [name, [request, headers]] of Object.entries(cases)) {
    t.test(name, async () => {
      const asking = ask(group, request, headers)
      assert.deepEqual(await asking.outcome, {
        kind: 'failed',
        reason: 'bad-request',
        status: 400,
        target: null,
      })
      assertClean(asking)
    })
  }
  t.test('no connection was made', async () => {
    assert.equal(server.accepted, 0)
    await closed(group, server)
  })
})

const RESPONSES: Readonly<
  Record<string, readonly [text: string, body: string, trailers: readonly string[]]>
> = {
  length: ['HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello', 'hello', []],
  chunked: [
    'HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n',
    'abcde',
    ['X-Sum', '1'],
  ],
}

test('a response cut at any byte is the same response', async () => {
  for (const [name, [text, body, trailers]] of Object.entries(RESPONSES)) {
    let cut = 0
    const server = await upstream((socket) => {
      eachHead(socket, () => {
        const at = cut
        socket.write(text.slice(0, at), () => setImmediate(() => socket.write(text.slice(at))))
      })
    })
    const group = groupOf([server.url])
    for (cut = 0; cut < text.length; cut++) {
      const exchange = await answerOf(group, { acceptsTrailers: true })
      assert.equal(exchange.text, body, `${name} cut at ${cut}`)
      assert.deepEqual(exchange.endTrailers, trailers)
      assert.deepEqual(exchange.headers.slice(0, 2), ['X-A', 'b'])
    }
    assert.equal(server.accepted, 1, 'one connection has done it all')
    await closed(group, server)
  }
})

test('a response that ends at any byte is never whole', async () => {
  for (const [name, [text]] of Object.entries(RESPONSES)) {
    const headEnd = text.indexOf('\r\n\r\n') + 4
    const server = await upstream((socket) => eachHead(socket, () => socket.end(text.slice(0, cut))))
    const group = groupOf([server.url])
    let cut = 0
    for (cut = 0; cut < text.length; cut++) {
      const asking = ask(group)
      const outcome = await asking.outcome
      assertClean(asking)
      const expected = cut < headEnd ? 'failed' : 'broken-off'
      assert.equal(outcome.kind, expected, `${name} ends at ${cut}`)
      assert.equal(outcome.kind === expected && outcome.reason, 'reset')
    }
    await closed(group, server)
  }
})

test('responses to requests without a body, and without a length', async () => {
  const server = await upstream((socket) => {
    eachHead(socket, (head) => {
      if (head.startsWith('HEAD')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n')
      else if (head.includes('/204')) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
      else if (head.includes('/304')) socket.write('HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n')
      else socket.end('HTTP/1.1 200 OK\r\n\r\nto the end')
    })
  })
  const group = groupOf([server.url])
  const head = await answerOf(group, { method: 'HEAD' })
  assert.deepEqual([head.length, head.headers, head.text], [0, ['Content-Length', '7'], ''])
  const noContent = await answerOf(group, { target: '/204' })
  assert.deepEqual([noContent.status, noContent.length], [204, 0])
  const notModified = await answerOf(group, { target: '/304' })
  assert.deepEqual([notModified.status, notModified.length], [304, 0])
  assert.equal(server.accepted, 1)
  const untilClose = await answerOf(group, {})
  assert.deepEqual([untilClose.length, untilClose.text], [null, 'to the end'])
  await closed(group, server)
})

test('a bad response is a fault, and its connection is not used again', async () => {
  const bad = [
    'SSH-2.0-x\r\n',
    'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
    'HTTP/1.1 103 Hints\r\n\r\n'.repeat(100),
  ]
  let answer = ''
  const server = await upstream((socket) => eachHead(socket, () => socket.write(answer)))
  const group = groupOf([server.url])
  for (answer of bad) {
    const asking = ask(group)
    const outcome = await asking.outcome
    assert.equal(
      outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`,
      'bad-response 502',
      answer,
    )
    assertClean(asking)
  }
  answer = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX'
  const asking = ask(group)
  assert.deepEqual(await asking.outcome, {
    kind: 'broken-off',
    reason: 'bad-response',
    status: 200,
    target: server.url,
  })
  assertClean(asking)
  assert.equal(server.accepted, bad.length + 1)
  await closed(group, server)
})

test('a connection is used again, and not when it should not be', async (t) => {
  const once = ['GET one', 'GET two']
  const cases: Readonly<Record<string, readonly [answer: string, connections: number]>> = {
    'kept alive': [OK, 1],
    'after chunks': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n', 1],
    'Connection: close': ['HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', 2],
    'HTTP/1.0': ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', 2],
    'HTTP/1.0 kept alive': ['HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n', 1],
    'with a surplus byte': [`${OK}\n`, 2],
    'with a second answer': [OK + OK, 2],
    'kept for less than the margin': [
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n',
      2,
    ],
    'kept for five seconds': ['HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n', 1],
  }
  for (const [name, [answer, connections]] of Object.entries(cases)) {
    t.test(name, async () => {
      const server = await upstream(answering(answer))
      const group = groupOf([server.url])
      for (const _ of once) assert.equal((await answerOf(group)).status, 200)
      assert.equal(server.accepted, connections)
      await closed(group, server)
    })
  }
})

test('bytes on an idle connection close it, and are not an answer', async () => {
  const server = await upstream((socket) => eachHead(socket, () => socket.write(OK)))
  const group = groupOf([server.url])
  await answerOf(group)
  const [socket] = server.sockets
  const gone = once(socket!, 'close')
  socket!.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  await gone
  assert.equal((await answerOf(group)).text, 'ok')
  assert.equal(server.accepted, 2)
  const [second] = server.sockets
  second!.end()
  await once(second!, 'close')
  assert.equal(group.status[0]!.connections, 0, 'an upstream that closes is forgotten at once')
  await closed(group, server)
})

test('an idle connection goes when its time is over', async () => {
  const server = await upstream(answering(OK))
  const group = groupOf([server.url], { keepAliveMs: 150 })
  await answerOf(group)
  assert.equal(group.status[0]!.idle, 1)
  const [socket] = server.sockets
  await once(socket!, 'close')
  assert.deepEqual([group.status[0]!.connections, group.status[0]!.idle], [0, 0])
  await closed(group, server)
})

test('no more idle connections are kept than the setting says', async () => {
  const server = await upstream(answering(OK))
  const group = groupOf([server.url], { connectionsIdleMax: 2 })
  await Promise.all(Array.from({ length: 5 }, () => answerOf(group)))
  assert.deepEqual([group.status[0]!.connections, group.status[0]!.idle], [2, 2])
  await closed(group, server)
})

test('interim answers', async () => {
  const interim = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
  const server = await upstream(answering(interim + OK))
  const group = groupOf([server.url])
  const exchange = await answerOf(group)
  assert.deepEqual(exchange.informs, [{ status: 103, headers: ['Link', '</a>'] }], 'a 100 was not requested')
  await closed(group, server)
})

test('Expect: 100-continue is asked of the upstream, and its 100 handed on', async () => {
  let heads = ''
  const server = await upstream((socket) => {
    eachHead(socket, (head) => {
      heads += head
      socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      socket.once('data', () => socket.write(OK))
    })
  })
  const group = groupOf([server.url])
  const body = new PassThrough()
  const { exchange, outcome } = ask(group, { method: 'POST', body, bodyLength: 5, expectsContinue: true })
  await exchange.until('informed')
  assert.deepEqual(exchange.informs, [{ status: 100, headers: [] }])
  assert.equal(heads, `POST / HTTP/1.1\r\n${FIELDS}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n`)
  body.end('hello')
  assert.deepEqual(await outcome, {
    kind: 'answered',
    status: 200,
    target: server.url,
    bytesSent: 5,
    bytesReceived: 2,
  })
  await closed(group, server)
})

test('a refusal in place of the 100 is passed on, and the connection is not used again', async () => {
  const server = await upstream(answering('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'))
  const group = groupOf([server.url])
  const asking = ask(group, { method: 'POST', body: new PassThrough(), bodyLength: 5, expectsContinue: true })
  assert.equal((await asking.outcome).kind, 'answered')
  assert.equal(asking.exchange.status, 413)
  assertClean(asking)
  assert.equal(group.status[0]!.connections, 0)
  await closed(group, server)
})

test('an answer before the whole request has come is passed on, and the rest of the request is not sent', async () => {
  let got = ''
  const server = await upstream((socket) => {
    socket.on('data', (bytes) => {
      got += bytes.toString()
    })
    socket.once('data', () => socket.write(OK))
  })
  const group = groupOf([server.url])
  const body = new PassThrough()
  body.write('first')
  const asking = ask(group, { method: 'POST', body, bodyLength: null })
  assert.equal((await asking.outcome).kind, 'answered')
  assertClean(asking)
  const [socket] = server.sockets
  const gone = socket === undefined || once(socket, 'close')
  body.end('second') // and the client's connection can go on: it is read to its end
  await once(body, 'end')
  await gone
  assert.doesNotMatch(got, /second/)
  await closed(group, server)
})

test('an answer that comes with the last byte of the request leaves the connection whole', async () => {
  const server = await upstream((socket) => {
    socket.on('data', (bytes) => {
      if (bytes.toString().endsWith('hello')) socket.write(OK)
    })
  })
  const group = groupOf([server.url])
  for (let i = 0; i < 3; i++) {
    const body = new PassThrough()
    const { outcome } = ask(group, { method: 'POST', body, bodyLength: 5 })
    body.write('hello') // its end is not there yet when the answer is
    assert.equal((await outcome).kind, 'answered')
  }
  assert.equal(server.accepted, 1)
  await closed(group, server)
})

test('refuses a body with another length than announced', async (t) => {
  const cases: Readonly<Record<string, readonly [sent: string, ends: boolean]>> = {
    longer: ['hello!', false],
    shorter: ['hell', true],
  }
  for (const [name, [text, ends]] of Object.entries(cases)) {
    t.test(name, async () => {
      let got = ''
      const server = await upstream((socket) => {
        socket.on('data', (bytes) => {
          got += bytes.toString()
        })
      })
      const group = groupOf([server.url])
      const body = new PassThrough()
      body.write(text)
      if (ends) body.end()
      const asking = ask(group, { method: 'POST', body, bodyLength: 5 })
      assert.equal((await asking.outcome).kind, 'client-gone')
      assert.ok(asking.exchange.isAborted)
      await closed(group, server)
      assert.ok(!got.endsWith('hello!'))
    })
  }
})

test('bytes before the request was sent are not its answer', async () => {
  const sockets: net.Socket[] = []
  const server = await upstream((socket) => {
    sockets.push(socket)
    eachHead(socket, () => socket.write(OK))
  })
  const group = groupOf([server.url])
  await answerOf(group)
  // From here the request leaves after what comes has been read.
  await new Promise(setImmediate)
  sockets[0]!.write(OK.replace('ok', 'no'))
  assert.equal((await answerOf(group)).text, 'ok')
  assert.equal(server.accepted, 2)
  await closed(group, server)
})

test('a stale connection', async (t) => {
  /** Answers the first request on each of the first `dying` connections, and hangs up on the second. */
  const mortal = (dying: number) => {
    return upstream((socket, index) => {
      eachHead(socket, (_, nth) => {
        if (index < dying && nth === 1) socket.resetAndDestroy()
        else socket.write(OK)
      })
    })
  }
  t.test('GET is sent once more, on a fresh connection', async () => {
    const server = await mortal(1)
    const group = groupOf([server.url])
    await answerOf(group)
    assert.equal((await answerOf(group)).text, 'ok')
    assert.equal(server.accepted, 2)
    assert.equal(group.counters.retries, 1)
    await closed(group, server)
  })
  t.test('also where another idle one is there, which may be as old', async () => {
    const server = await mortal(2)
    const group = groupOf([server.url])
    await Promise.all([answerOf(group), answerOf(group)])
    assert.equal((await answerOf(group)).text, 'ok')
    assert.equal(server.accepted, 3)
    await closed(group, server)
  })
  for (const [name, request] of Object.entries({
    'POST is not': { method: 'POST' },
    'PATCH is not': { method: 'PATCH' },
    'a PUT whose body has been read from is not': { method: 'PUT', body: BODY },
  })) {
    t.test(name, async () => {
      const server = await mortal(1)
      const group = groupOf([server.url])
      await answerOf(group)
      const asking = ask(group, request)
      assert.deepEqual(await asking.outcome, {
        kind: 'failed',
        reason: 'reset',
        status: 502,
        target: server.url,
      })
      assertClean(asking)
      assert.equal(server.accepted, 1)
      await closed(group, server)
    })
  }
  t.test('nothing is sent a third time', async () => {
    let heads = 0
    const server = await upstream((socket, index) => {
      eachHead(socket, (_, nth) => {
        heads++
        if (index === 0 && nth === 0) socket.write(OK)
        else socket.destroy()
      })
    })
    const group = groupOf([server.url])
    await answerOf(group)
    const outcome = await ask(group).outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'reset')
    assert.equal(heads, 3)
    await closed(group, server)
  })
  t.test('a byte of an answer, and it is not', async () => {
    const server = await upstream((socket) => {
      eachHead(socket, (_, nth) => (nth === 0 ? socket.write(OK) : socket.end('H')))
    })
    const group = groupOf([server.url])
    await answerOf(group)
    const outcome = await ask(group).outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'reset')
    assert.equal(server.accepted, 1)
    await closed(group, server)
  })
  t.test('on a fresh connection it is not', async () => {
    const server = await upstream((socket) => eachHead(socket, () => socket.destroy()))
    const group = groupOf([server.url])
    const outcome = await ask(group).outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'reset')
    assert.equal(server.accepted, 1)
    await closed(group, server)
  })
})

test('the race with an upstream that closes idle connections is never lost', async () => {
  // It hangs up as soon as it has answered, so that many requests are written to a connection that is gone.
  const server = await upstream((socket) => {
    eachHead(socket, () => socket.write(OK, () => setImmediate(() => socket.destroy())))
  })
  const group = groupOf([server.url])
  for (let i = 0; i < 300; i++) {
    await answerOf(group)
    if (i % 3 === 0) await new Promise(setImmediate)
  }
  assert.ok(
    group.counters.connectionsReused > 0 && group.counters.retries > 0,
    JSON.stringify(group.counters),
  )
  await closed(group, server)
})

test('a target that cannot be reached', async (t) => {
  const gone = await upstream(() => {})
  await gone.settled()
  t.test('another one is asked', async () => {
    const server = await upstream(answering(OK))
    for (const urls of [
      [gone.url, server.url],
      [server.url, gone.url],
    ]) {
      const group = groupOf(urls)
      for (let i = 0; i < 4; i++) assert.equal((await answerOf(group)).text, 'ok')
      group.close()
    }
    await server.settled()
  })
  t.test('the body has not been touched, and goes to the other', async () => {
    const server = await upstream((socket) => {
      socket.on('data', (bytes) => bytes.toString().endsWith('hello') && socket.write(OK))
    })
    const group = groupOf([gone.url, server.url])
    await answerOf(group, { method: 'POST', body: BODY })
    await closed(group, server)
  })
  t.test('as often as the setting says', async () => {
    for (const retries of [0, 1, 2, 5]) {
      const group = groupOf([gone.url, gone.url, gone.url], { retries })
      const asking = ask(group)
      assert.deepEqual(await asking.outcome, {
        kind: 'failed',
        reason: 'refused',
        status: 502,
        target: gone.url,
      })
      assertClean(asking)
      assert.equal(group.counters.connectionsOpened, Math.min(retries + 1, 3))
      group.close()
    }
  })
  t.test('an unknown name, a missing socket', async () => {
    for (const url of ['http://unknown.invalid:1', 'unix:/nowhere/at/all.sock']) {
      const group = groupOf([url])
      const outcome = await ask(group).outcome
      assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'unreachable 502')
      group.close()
    }
  })
})

test('time-outs', async (t) => {
  t.test('to connect, TLS included', async () => {
    const server = await upstream((socket) => socket.resume())
    const group = groupOf([server.url.replace('http', 'https')], { connectTimeoutMs: 100 })
    const asking = ask(group)
    assert.deepEqual(await asking.outcome, {
      kind: 'failed',
      reason: 'connect-timeout',
      status: 504,
      target: server.url.replace('http', 'https'),
    })
    assertClean(asking)
    await closed(group, server)
  })
  t.test('for the head, from the end of the request', async () => {
    const server = await upstream((socket) => socket.resume())
    const group = groupOf([server.url], { headTimeoutMs: 100 })
    const body = new PassThrough()
    const asking = ask(group, { method: 'POST', body, bodyLength: null })
    const slow = ask(group, { method: 'POST', body: new PassThrough(), bodyLength: null })
    body.end('hello')
    const outcome = await asking.outcome
    assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'head-timeout 504')
    assertClean(asking)
    const later = await ask(group).outcome
    assert.equal(later.kind === 'failed' && later.reason, 'head-timeout')
    assert.deepEqual(slow.outcomes, [], 'a slow client is not a fault of the upstream')
    slow.exchange.leave()
    await closed(group, server)
  })
  t.test('for an upstream that does not read', async () => {
    const server = await upstream((socket) => socket.pause())
    const group = groupOf([server.url], { headTimeoutMs: 100 })
    const body = new PassThrough()
    const push = () => {
      while (asking.outcomes.length === 0 && body.write(Buffer.alloc(65_536)));
    }
    body.on('drain', push)
    const asking = ask(group, { method: 'POST', body, bodyLength: null })
    push()
    const outcome = await asking.outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'head-timeout')
    body.destroy()
    for (const socket of server.sockets) socket.resume()
    await closed(group, server)
  })
  t.test('for an upstream that says neither 100 nor anything', async () => {
    const server = await upstream((socket) => socket.resume())
    const group = groupOf([server.url], { headTimeoutMs: 100 })
    const request = { method: 'POST', body: new PassThrough(), bodyLength: 5, expectsContinue: true }
    const outcome = await ask(group, request).outcome
    assert.equal(outcome.kind === 'failed' && outcome.reason, 'head-timeout')
    await closed(group, server)
  })
  t.test('between two parts of an answer', async () => {
    const server = await upstream(answering('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel'))
    const group = groupOf([server.url], { idleTimeoutMs: 100 })
    const asking = ask(group)
    assert.deepEqual(await asking.outcome, {
      kind: 'broken-off',
      reason: 'idle-timeout',
      status: 200,
      target: server.url,
    })
    assertClean(asking)
    await closed(group, server)
  })
  t.test('none for an answer that trickles, or whose client is slow', async () => {
    const server = await upstream((socket) => {
      eachHead(socket, async () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n')
        for (const letter of 'trickled') {
          await new Promise((resolve) => setTimeout(resolve, 60))
          socket.write(letter)
        }
      })
    })
    const group = groupOf([server.url], { idleTimeoutMs: 450, headTimeoutMs: 450 })
    const quick = answerOf(group)
    const slow = ask(group)
    slow.exchange.isSlow = true
    await slow.exchange.until('written')
    assert.equal((await quick).text, 'trickled')
    assert.deepEqual(slow.outcomes, [])
    slow.exchange.drain()
    assert.equal((await slow.outcome).kind, 'answered')
    assert.equal(slow.exchange.text, 'trickled')
    await closed(group, server)
  })
})

test('a client that goes away takes its request with it, at any time', async (t) => {
  const silent = () => upstream((socket) => socket.resume())
  const gone = async (asking: ReturnType<typeof ask>) => {
    asking.exchange.leave()
    assert.equal((await asking.outcome).kind, 'client-gone')
    asking.exchange.leave()
    assertClean(asking)
  }
  t.test('while it connects', async () => {
    const server = await silent()
    const group = groupOf([server.url])
    await gone(ask(group))
    assert.equal(group.status[0]!.connections, 0)
    await closed(group, server)
  })
  t.test('while it waits for a connection', async () => {
    const server = await silent()
    const group = groupOf([server.url], { connectionsMax: 1 })
    const first = ask(group)
    const second = ask(group)
    assert.equal(group.status[0]!.waiting, 1)
    await gone(second)
    assert.equal(group.status[0]!.waiting, 0)
    await gone(first)
    await closed(group, server)
  })
  t.test('while the connection connects that it has waited for', async () => {
    const server = await upstream((socket) => eachHead(socket, () => socket.end('HTTP/1.1 200 OK\r\n\r\nx')))
    const group = groupOf([server.url], { connectionsMax: 1 })
    const first = ask(group)
    const second = ask(group)
    await first.outcome
    assert.deepEqual([group.status[0]!.waiting, group.status[0]!.connections], [0, 1])
    await gone(second)
    assert.equal(group.status[0]!.connections, 0)
    // No caller is told later.
    assert.equal((await ask(group).outcome).kind, 'answered')
    await closed(group, server)
  })
  t.test('before the answer', async () => {
    const server = await upstream((socket) => eachHead(socket, () => socket.emit('asked')))
    const group = groupOf([server.url])
    const asking = ask(group)
    while (server.sockets.size === 0) await new Promise(setImmediate)
    const [socket] = server.sockets
    await once(socket!, 'asked')
    const closing = once(socket!, 'close')
    await gone(asking)
    await closing
    await closed(group, server)
  })
  t.test('within the answer', async () => {
    const server = await upstream(answering('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel'))
    const group = groupOf([server.url])
    const asking = ask(group)
    await asking.exchange.until('written')
    await gone(asking)
    assert.equal(group.status[0]!.connections, 0)
    await closed(group, server)
  })
  t.test('within its own request, without a word', async () => {
    const server = await silent()
    const group = groupOf([server.url])
    const body = new PassThrough()
    body.write('x')
    const asking = ask(group, { method: 'POST', body, bodyLength: null })
    while (server.sockets.size === 0) await new Promise(setImmediate)
    body.destroy(new Error('ECONNRESET'))
    assert.equal((await asking.outcome).kind, 'client-gone')
    await closed(group, server)
  })
  t.test('from within each call', async () => {
    const server = await upstream(answering(`HTTP/1.1 103 Hints\r\n\r\n${RESPONSES['chunked']![0]}`))
    const group = groupOf([server.url])
    for (const event of ['informed', 'answered', 'written'] as const) {
      const asking = ask(group)
      asking.exchange.on(event, () => asking.exchange.leave())
      assert.equal((await asking.outcome).kind, 'client-gone', event)
      assertClean(asking)
      assert.equal(group.status[0]!.connections, 0)
    }
    await closed(group, server)
  })
})

test('the line for a connection', async (t) => {
  t.test('is served in order', async () => {
    const heads: string[] = []
    const server = await upstream((socket) => {
      eachHead(socket, (head) => {
        heads.push(head.split(' ')[1]!)
        setImmediate(() => socket.write(OK))
      })
    })
    const group = groupOf([server.url], { connectionsMax: 2 })
    await Promise.all(Array.from({ length: 20 }, (_, i) => answerOf(group, { target: `/${i}` })))
    assert.deepEqual(heads.sort((a, b) => Number(a.slice(1)) - Number(b.slice(1))).length, 20)
    assert.equal(server.accepted, 2)
    assert.equal(group.counters.waits, 18)
    await closed(group, server)
  })
  t.test('goes on when the connections close', async () => {
    const server = await upstream((socket) => eachHead(socket, () => socket.end('HTTP/1.1 200 OK\r\n\r\nx')))
    const group = groupOf([server.url], { connectionsMax: 2 })
    await Promise.all(Array.from({ length: 20 }, () => answerOf(group)))
    assert.equal(server.accepted, 20)
    await closed(group, server)
  })
  t.test('is left after the time to connect', async () => {
    const server = await upstream((socket) => socket.resume())
    const group = groupOf([server.url], { connectionsMax: 1, connectTimeoutMs: 100 })
    const first = ask(group)
    const second = ask(group)
    const outcome = await second.outcome
    assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'overloaded 503')
    assertClean(second)
    first.exchange.leave()
    await closed(group, server)
  })
  t.test('has a bound', async () => {
    const server = await upstream((socket) => socket.resume())
    const group = groupOf([server.url], { connectionsMax: 1 })
    const askings = Array.from({ length: WAITING_MAX + 2 }, () => ask(group))
    const outcome = askings.at(-1)!.outcomes[0]!
    assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'overloaded 503')
    assert.equal(askings.filter(({ outcomes }) => outcomes.length > 0).length, 1)
    group.close()
    for (const asking of askings.slice(0, -1)) {
      const outcome = await asking.outcome
      assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'closing 503')
      assertClean(asking)
    }
    await closed(group, server)
  })
  t.test('a stale connection gives its place to the one that takes over for it', async () => {
    const server = await upstream((socket, index) => {
      eachHead(socket, (_, nth) => (index === 0 && nth === 1 ? socket.destroy() : socket.write(OK)))
    })
    const group = groupOf([server.url], { connectionsMax: 1 })
    await answerOf(group)
    await Promise.all(Array.from({ length: 5 }, () => answerOf(group)))
    await closed(group, server)
  })
})

test('bodies that are still coming hold three of four connections at most', async (t) => {
  const slow = (group: ReturnType<typeof groupOf>, count: number) =>
    Array.from({ length: count }, () => {
      const body = new PassThrough()
      const asking = ask(group, { method: 'POST', body, bodyLength: 2 })
      body.write('o')
      return { body, asking }
    })
  const served = () => {
    return upstream((socket) => {
      let text = ''
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1')
        if (!text.startsWith('GET') && !text.endsWith('ok')) return
        text = ''
        socket.write(OK)
      })
    })
  }
  t.test('others are answered meanwhile', async () => {
    const server = await served()
    const group = groupOf([server.url], { connectionsMax: 4 })
    const uploads = slow(group, 5)
    assert.equal(group.status[0]!.waiting, 2)
    assert.equal(group.counters.waits, 2)
    for (let time = 0; time < 5; time++) await answerOf(group)
    await answerOf(group, { method: 'POST', body: Buffer.from('ok') })
    assert.deepEqual([server.accepted, group.status[0]!.waiting], [4, 2])
    for (const { asking } of uploads) assert.equal(asking.outcomes.length, 0)
    for (const { body } of uploads) body.end('k')
    for (const { asking } of uploads) {
      assert.equal((await asking.outcome).kind, 'answered')
      assertClean(asking)
    }
    await closed(group, server)
  })
  t.test('one that waits goes when its body has come after all, or when another has', async () => {
    const server = await served()
    const group = groupOf([server.url], { connectionsMax: 4 })
    const [first, second, third, whole, next, last] = slow(group, 6) as [
      Upload,
      Upload,
      Upload,
      Upload,
      Upload,
      Upload,
    ]
    whole.body.end('k')
    assert.equal((await whole.asking.outcome).kind, 'answered')
    assert.equal(group.status[0]!.waiting, 2)
    first.body.end('k')
    assert.equal((await first.asking.outcome).kind, 'answered')
    assert.equal(group.status[0]!.waiting, 1)
    next.asking.exchange.leave()
    assert.equal(group.status[0]!.waiting, 0)
    last.asking.exchange.leave()
    assert.equal((await last.asking.outcome).kind, 'client-gone')
    for (const { body, asking } of [second, third]) {
      body.end('k')
      assert.equal((await asking.outcome).kind, 'answered')
    }
    await closed(group, server)
  })
  t.test('they wait no longer than for a connection, and not where all closes', async () => {
    const server = await served()
    for (const isClosed of [false, true]) {
      const group = groupOf([server.url], { connectionsMax: 1, connectTimeoutMs: isClosed ? 5_000 : 100 })
      const [first, second] = slow(group, 2) as [Upload, Upload]
      if (isClosed) group.close()
      const outcome = await second.asking.outcome
      assert.equal(outcome.kind === 'failed' && outcome.reason, isClosed ? 'closing' : 'overloaded')
      first.asking.exchange.leave()
      group.close()
    }
    await server.settled()
  })
  interface Upload {
    readonly body: PassThrough
    readonly asking: ReturnType<typeof ask>
  }
})

test('back-pressure', async (t) => {
  const length = 24 * 1024 * 1024
  t.test('a slow client holds the upstream back', async () => {
    let written = 0
    const server = await upstream((socket) => {
      const fill = () => {
        while (written < length) {
          written += 65_536
          if (!socket.write(Buffer.alloc(65_536, written / 65_536))) return
        }
      }
      eachHead(socket, () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)
        socket.on('drain', fill)
        fill()
      })
    })
    const group = groupOf([server.url])
    const { exchange, outcome } = ask(group)
    exchange.isSlow = true
    await exchange.until('written')
    // Until the system's own buffers are full, and the upstream has stopped.
    for (let before = -1; before !== written; ) {
      before = written
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.ok(written < length, `${written} bytes were taken from the upstream`)
    const held = exchange.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    assert.ok(held <= 256 * 1024, `${held} bytes in one read`)
    exchange.drain()
    assert.equal((await outcome).kind, 'answered')
    const body = Buffer.concat(exchange.chunks)
    assert.equal(body.length, length)
    for (let at = 0; at < length; at += 65_536) assert.equal(body[at], (at / 65_536 + 1) % 256)
    await closed(group, server)
  })
  t.test('a slow upstream holds the client back', async () => {
    let socket: net.Socket | null = null
    let got = 0
    const server = await upstream((found) => {
      socket = found
      found.pause()
    })
    const group = groupOf([server.url])
    const body = new PassThrough()
    let given = 0
    const fill = () => {
      while (given < length) {
        given += 65_536
        if (!body.write(Buffer.alloc(65_536))) return
      }
      body.end()
    }
    body.on('drain', fill)
    fill()
    const { outcome } = ask(group, { method: 'PUT', body, bodyLength: length })
    for (let before = -1; before !== given; ) {
      before = given
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.ok(given < length, `${given} bytes were taken from the client`)
    socket!.on('data', (bytes) => {
      got += bytes.length
      if (got > length) socket!.write(OK)
    })
    socket!.resume()
    assert.equal((await outcome).kind, 'answered')
    await closed(group, server)
  })
})

/** Writes that Node has made on our side of the connections to this port. */
function writesTo(port: number): number {
  return writes.get(port) ?? 0
}

const writes = new Map<number, number>()
for (const name of ['_write', '_writev'] as const) {
  const write = net.Socket.prototype[name] as (...args: unknown[]) => void
  Object.assign(net.Socket.prototype, {
    [name](this: net.Socket, ...args: unknown[]) {
      if (this.remotePort !== undefined) writes.set(this.remotePort, writesTo(this.remotePort) + 1)
      write.apply(this, args)
    },
  })
}
