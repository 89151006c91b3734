import assert from 'node:assert/strict'
import { test } from 'tap'
import { dialPlain, startFront } from './front.ts'

const SMALL = { headerCountMax: 20, headerBytesMax: 8192, requestLineBytesMax: 1024 }
const HOST = 'Host: a\r\n'
const CHUNKED = `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`

/** What could be read in two ways, or goes beyond a limit: refused in one way, and never forwarded. */
const REFUSED: readonly [title: string, status: number, code: string, request: string][] = [
  [
    'length after chunks',
    400,
    'HPE_INVALID_CONTENT_LENGTH',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
  ],
  [
    'chunks after length',
    400,
    'HPE_INVALID_TRANSFER_ENCODING',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  ['two lengths', 400, 'HPE_UNEXPECTED_CONTENT_LENGTH', lengths('5', '6')],
  ['two equal lengths', 400, 'HPE_UNEXPECTED_CONTENT_LENGTH', lengths('5', '5')],
  ['a list of lengths', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('5, 5')],
  ['a signed length', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('+5')],
  ['a negative length', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('-5')],
  ['a hexadecimal length', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('0x5')],
  ['an empty length', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('')],
  ['a length in two parts', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('5 5')],
  ['a length beyond 64 bits', 400, 'HPE_INVALID_CONTENT_LENGTH', lengths('99999999999999999999')],
  ['a length beyond 2^53', 400, 'content-length', lengths('99999999999999999')],
  ['another coding before chunked', 400, 'transfer-encoding', encoded('gzip, chunked')],
  ['another coding', 400, 'transfer-encoding', encoded('identity')],
  ['almost chunked', 400, 'transfer-encoding', encoded('xchunked')],
  ['chunked with a parameter', 400, 'transfer-encoding', encoded('chunked;q=1')],
  ['chunked behind a control character', 400, 'HPE_INVALID_HEADER_TOKEN', encoded('\x0bchunked')],
  [
    'chunked twice',
    400,
    'HPE_INVALID_TRANSFER_ENCODING',
    `POST / HTTP/1.1\r\n${HOST}${'Transfer-Encoding: chunked\r\n'.repeat(2)}\r\n0\r\n\r\n`,
  ],
  [
    'chunked in HTTP/1.0',
    400,
    'transfer-encoding',
    `POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    'a blank before the colon',
    400,
    'HPE_INVALID_HEADER_TOKEN',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  ],
  ['a folded line', 400, 'HPE_INVALID_HEADER_TOKEN', `GET / HTTP/1.1\r\n${HOST}A: 1\r\n 2\r\n\r\n`],
  ['a folded first line', 400, 'HPE_UNEXPECTED_SPACE', `GET / HTTP/1.1\r\n A: 1\r\n${HOST}\r\n`],
  ['no Host', 400, 'no-host', 'GET / HTTP/1.1\r\n\r\n'],
  ['an empty Host', 400, 'host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
  ['two Hosts', 400, 'hosts', `GET / HTTP/1.1\r\n${HOST}hOST: a\r\n\r\n`],
  ['a Host with a user', 400, 'host', 'GET / HTTP/1.1\r\nHost: u@a\r\n\r\n'],
  ['a Host with a path', 400, 'host', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n'],
  ['a list of Hosts', 400, 'host', 'GET / HTTP/1.1\r\nHost: a,b\r\n\r\n'],
  ['a Host with a blank', 400, 'host', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'],
  ['a Host with a quote', 400, 'host', 'GET / HTTP/1.1\r\nHost: a";for=x\r\n\r\n'],
  ['a Host beyond ASCII', 400, 'host', 'GET / HTTP/1.1\r\nHost: \xff\r\n\r\n'],
  ['a Host with an invalid port', 400, 'host', 'GET / HTTP/1.1\r\nHost: a:b\r\n\r\n'],
  ['an open bracket', 400, 'host', 'GET / HTTP/1.1\r\nHost: [::1\r\n\r\n'],
  ['HTTP/0.9', 505, 'version', `GET / HTTP/0.9\r\n${HOST}\r\n`],
  ['HTTP/1.2', 505, 'HPE_INVALID_VERSION', `GET / HTTP/1.2\r\n${HOST}\r\n`],
  ['HTTP/2.0', 505, 'version', `GET / HTTP/2.0\r\n${HOST}\r\n`],
  ['HTTP/1.10', 505, 'HPE_INVALID_VERSION', `GET / HTTP/1.10\r\n${HOST}\r\n`],
  ['http/1.1', 400, 'HPE_INVALID_CONSTANT', `GET / http/1.1\r\n${HOST}\r\n`],
  ['a bare line feed', 400, 'HPE_CR_EXPECTED', 'GET / HTTP/1.1\r\nHost: a\n\r\n'],
  ['a bare line feed in the first line', 505, 'HPE_INVALID_VERSION', 'GET / HTTP/1.1\nHost: a\n\n'],
  ['a bare carriage return', 400, 'HPE_LF_EXPECTED', value('a\rb')],
  ['NUL in a value', 400, 'HPE_INVALID_HEADER_TOKEN', value('a\0b')],
  ['a control character in a value', 400, 'HPE_INVALID_HEADER_TOKEN', value('a\x01b')],
  ['DEL in a value', 400, 'HPE_INVALID_HEADER_TOKEN', value('a\x7fb')],
  ['a name with a blank', 400, 'HPE_INVALID_HEADER_TOKEN', `GET / HTTP/1.1\r\n${HOST}A B: c\r\n\r\n`],
  ['an empty name', 400, 'HPE_INVALID_HEADER_TOKEN', `GET / HTTP/1.1\r\n${HOST}: c\r\n\r\n`],
  ['a name beyond ASCII', 400, 'HPE_INVALID_HEADER_TOKEN', `GET / HTTP/1.1\r\n${HOST}A\xff: c\r\n\r\n`],
  ['a name with a delimiter', 400, 'HPE_INVALID_HEADER_TOKEN', `GET / HTTP/1.1\r\n${HOST}A(: c\r\n\r\n`],
  ['a line without a colon', 400, 'HPE_INVALID_HEADER_TOKEN', `GET / HTTP/1.1\r\n${HOST}A\r\n\r\n`],
  ['a tab for a blank', 501, 'HPE_INVALID_METHOD', `GET\t/ HTTP/1.1\r\n${HOST}\r\n`],
  ['a blank after the version', 505, 'HPE_INVALID_VERSION', `GET / HTTP/1.1 \r\n${HOST}\r\n`],
  ['a blank in the target', 400, 'HPE_INVALID_CONSTANT', `GET /a b HTTP/1.1\r\n${HOST}\r\n`],
  ['a target beyond ASCII', 400, 'HPE_INVALID_URL', `GET /\xff HTTP/1.1\r\n${HOST}\r\n`],
  ['NUL in the target', 400, 'HPE_INVALID_URL', `GET /\0 HTTP/1.1\r\n${HOST}\r\n`],
  ['a fragment', 400, 'target', `GET /a#b HTTP/1.1\r\n${HOST}\r\n`],
  ['a target without a slash', 400, 'HPE_INVALID_URL', `GET a HTTP/1.1\r\n${HOST}\r\n`],
  ['an asterisk for GET', 400, 'target', `GET * HTTP/1.1\r\n${HOST}\r\n`],
  ['a URL of another scheme', 400, 'target', `GET ftp://b/ HTTP/1.1\r\n${HOST}\r\n`],
  ['a URL with a user', 400, 'target', `GET http://u:p@b/ HTTP/1.1\r\n${HOST}\r\n`],
  ['a URL without a host', 400, 'target', `GET http:///x HTTP/1.1\r\n${HOST}\r\n`],
  ['CONNECT', 501, 'connect', `CONNECT a:443 HTTP/1.1\r\n${HOST}\r\n`],
  ['an unknown method', 501, 'HPE_INVALID_METHOD', `FOO / HTTP/1.1\r\n${HOST}\r\n`],
  ['a registered method in lower case', 400, 'method-case', `get / HTTP/1.1\r\n${HOST}\r\n`],
  ['a registered method in mixed case', 400, 'method-case', `GeT / HTTP/1.1\r\n${HOST}\r\n`],
  ['a registered method with one small letter', 400, 'method-case', `POSt / HTTP/1.1\r\n${HOST}\r\n`],
  ['a method of WebDAV in lower case', 400, 'method-case', `version-control / HTTP/1.1\r\n${HOST}\r\n`],
  ['a registered method in lower case, in HTTP/1.0', 400, 'method-case', 'post / HTTP/1.0\r\n\r\n'],
  ['a miscased CONNECT', 400, 'method-case', `Connect a:443 HTTP/1.1\r\n${HOST}\r\n`],
  [
    'a miscased method that asks for an upgrade',
    400,
    'method-case',
    `get / HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  ],
  ['an unregistered method in lower case', 501, 'HPE_INVALID_METHOD', `purge / HTTP/1.1\r\n${HOST}\r\n`],
  ['a miscased method behind a blank', 501, 'HPE_INVALID_METHOD', ` get / HTTP/1.1\r\n${HOST}\r\n`],
  [
    'another expectation',
    417,
    'expectation',
    `POST / HTTP/1.1\r\n${HOST}Expect: 200-ok\r\nContent-Length: 0\r\n\r\n`,
  ],
  [
    'two expectations',
    417,
    'expectation',
    `POST / HTTP/1.1\r\n${HOST}Expect: 100-continue, x\r\nContent-Length: 0\r\n\r\n`,
  ],
  ['too many headers', 431, 'many-headers', `GET / HTTP/1.1\r\n${HOST}${'A: b\r\n'.repeat(20)}\r\n`],
  ['headers too large', 431, 'HPE_HEADER_OVERFLOW', value('b'.repeat(9000))],
  [
    'many small headers too large',
    431,
    'HPE_HEADER_OVERFLOW',
    `GET / HTTP/1.1\r\n${HOST}${'A: b\r\n'.repeat(5000)}\r\n`,
  ],
  ['a long target', 414, 'long-target', `GET /${'b'.repeat(1024)} HTTP/1.1\r\n${HOST}\r\n`],
  ['a very long target', 431, 'HPE_HEADER_OVERFLOW', `GET /${'b'.repeat(10_000)} HTTP/1.1\r\n${HOST}\r\n`],
]

test('ambiguous, broken and oversized requests are refused, reported once, and never forwarded', async () => {
  const front = await startFront({ tls: null, limits: SMALL })
  for (const [title, status, code, request] of REFUSED) {
    const reported = front.failures.length
    const peer = await dialPlain(front.port)
    peer.write(request)
    await peer.hears('\r\n\r\n')
    await peer.closed
    assert.match(
      peer.text,
      new RegExp(`^HTTP/1\\.1 ${status} .*\\r\\n(?:.+\\r\\n)*Connection: close\\r\\n\\r\\n`),
      title,
    )
    assert.equal(peer.text.lastIndexOf('HTTP/1.1 '), 0, `${title}: one answer`)
    const said = front.failures.slice(reported).map((failure) => `${failure.reason} ${failure.code}`)
    assert.deepEqual(said, [`bad-request ${code}`], title)
  }
  assert.equal(front.exchanges.length, 0)
  await front.close()
})

test('a miscased method is refused in both lanes, also behind another request', async () => {
  const before = [
    '',
    `GET / HTTP/1.1\r\n${HOST}\r\n`,
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`,
  ]
  for (const fastLane of [true, false]) {
    const front = await startFront({ tls: null, options: { fastLane } })
    for (const first of before) {
      const reported = front.failures.length
      const peer = await dialPlain(front.port)
      peer.write(`${first}post / HTTP/1.1\r\n${HOST}\r\n`)
      await peer.hears('HTTP/1.1 400')
      const codes = front.failures.slice(reported).map(({ code }) => code)
      assert.deepEqual(codes, ['method-case'], first)
      peer.socket.destroy()
    }
    assert.deepEqual(
      front.exchanges.map(({ head }) => head.method),
      ['GET', 'POST'],
    )
    await front.close()
  }
})

/** These begin like a request that is fine. */
const BROKEN_BODIES: readonly [title: string, code: string, request: string][] = [
  ['an invalid size', 'HPE_INVALID_CHUNK_SIZE', `${CHUNKED}x\r\n\r\n`],
  ['a prefixed size', 'HPE_INVALID_CHUNK_SIZE', `${CHUNKED}0x5\r\nhello\r\n0\r\n\r\n`],
  ['a negative size', 'HPE_INVALID_CHUNK_SIZE', `${CHUNKED}-1\r\nhello\r\n0\r\n\r\n`],
  ['a size beyond 64 bits', 'HPE_INVALID_CHUNK_SIZE', `${CHUNKED}fffffffffffffffff\r\nhello\r\n0\r\n\r\n`],
  ['a blank after the size', 'HPE_INVALID_CHUNK_SIZE', `${CHUNKED}5 \r\nhello\r\n0\r\n\r\n`],
  ['a bare line feed after the size', 'HPE_CR_EXPECTED', `${CHUNKED}5\nhello\r\n0\r\n\r\n`],
  ['a bare line feed in an extension', 'HPE_CR_EXPECTED', `${CHUNKED}5;a\nb\r\nhello\r\n0\r\n\r\n`],
  ['a chunk that goes on', 'HPE_STRICT', `${CHUNKED}5\r\nhelloxx0\r\n\r\n`],
  ['extensions without end', 'HPE_CHUNK_EXTENSIONS_OVERFLOW', `${CHUNKED}5;${'a'.repeat(20_000)}`],
  ['a trailer with a blank in its name', 'HPE_INVALID_HEADER_TOKEN', `${CHUNKED}0\r\nA B: 1\r\n\r\n`],
  ['trailers too large', 'HPE_HEADER_OVERFLOW', `${CHUNKED}0\r\nA: ${'b'.repeat(9000)}\r\n\r\n`],
  ['chunked before a tab', 'HPE_INVALID_TRANSFER_ENCODING', encoded('chunked\t')],
]

test('a body that breaks off takes its request with it', async () => {
  let lost = 0
  const request = (exchange: { onGone: (() => void) | null; body: NodeJS.ReadableStream }) => {
    exchange.onGone = () => lost++
    exchange.body.resume()
  }
  const front = await startFront({ tls: null, limits: SMALL, request })
  for (const [index, [title, code, bytes]] of BROKEN_BODIES.entries()) {
    const peer = await dialPlain(front.port)
    peer.write(bytes)
    await peer.closed
    assert.match(peer.text, /^HTTP\/1\.1 4(?:00|13|31) /, title)
    assert.deepEqual([lost, front.failures.length], [index + 1, index + 1], title)
    assert.equal(front.failures[index]!.code, code, title)
  }
  await front.close()
})

const SERVED: readonly [
  title: string,
  request: string,
  method: string,
  authority: string | null,
  target: string,
  bodyLength: number | null,
][] = [
  ['plain', `GET /a?b=c HTTP/1.1\r\n${HOST}\r\n`, 'GET', 'a', '/a?b=c', 0],
  ['after empty lines', `\r\n\r\nGET / HTTP/1.1\r\n${HOST}\r\n`, 'GET', 'a', '/', 0],
  ['HTTP/1.0 without a host', 'GET / HTTP/1.0\r\n\r\n', 'GET', null, '/', 0],
  ['a port', 'GET / HTTP/1.1\r\nHost: a:8443\r\n\r\n', 'GET', 'a:8443', '/', 0],
  ['IPv6', 'GET / HTTP/1.1\r\nHost: [::1]:8443\r\n\r\n', 'GET', '[::1]:8443', '/', 0],
  [
    'a URL has the last word',
    `GET http://b.example.test:1/x?y HTTP/1.1\r\n${HOST}\r\n`,
    'GET',
    'b.example.test:1',
    '/x?y',
    0,
  ],
  ['a URL without a path', `GET HTTPS://b HTTP/1.1\r\n${HOST}\r\n`, 'GET', 'b', '/', 0],
  ['a URL with a query only', `GET http://b?x HTTP/1.1\r\n${HOST}\r\n`, 'GET', 'b', '/?x', 0],
  ['OPTIONS of a server', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 'OPTIONS', 'a', '*', 0],
  ['OPTIONS of a server, by URL', `OPTIONS http://b HTTP/1.1\r\n${HOST}\r\n`, 'OPTIONS', 'b', '*', 0],
  ['two slashes', `GET //b/x HTTP/1.1\r\n${HOST}\r\n`, 'GET', 'a', '//b/x', 0],
  ['a length', `POST / HTTP/1.1\r\n${HOST}content-LENGTH: 5\r\n\r\nhello`, 'POST', 'a', '/', 5],
  ['a length of zero', `POST / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`, 'POST', 'a', '/', 0],
  ['chunks', `${CHUNKED}5\r\nhello\r\n0\r\n\r\n`, 'POST', 'a', '/', null],
  ['chunks, whatever the case', encoded('CHUNKED'), 'POST', 'a', '/', null],
  ['chunks with extensions', `${CHUNKED}5;a=b\r\nhello\r\n0\r\n\r\n`, 'POST', 'a', '/', null],
  ['a GET with a body', `GET / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, 'GET', 'a', '/', 5],
  [
    'HTTP/1.0 expects nothing',
    `POST / HTTP/1.0\r\n${HOST}Expect: x\r\nContent-Length: 0\r\n\r\n`,
    'POST',
    'a',
    '/',
    0,
  ],
]

test('what can be read in one way is passed on as it was sent', async () => {
  const front = await startFront({ tls: null, limits: SMALL })
  for (const [title, request, method, authority, target, bodyLength] of SERVED) {
    const peer = await dialPlain(front.port)
    peer.write(request)
    await peer.hears('HTTP/1.1 200 OK')
    const exchange = front.exchanges.at(-1)!
    assert.deepEqual(
      [exchange.head.method, exchange.authority, exchange.head.target, exchange.bodyLength],
      [method, authority, target, bodyLength],
      title,
    )
    peer.socket.destroy()
  }
  assert.deepEqual(front.failures, [])
  await front.close()
})

test('headers keep order, case, repetitions, and bytes outside ASCII', async () => {
  const front = await startFront({ tls: null })
  const peer = await dialPlain(front.port)
  peer.write(
    'GET / HTTP/1.1\r\nx-B: 1\r\nHost: a\r\nCOOKIE: a=1\r\nX-b:  2\t\r\ncookie: b=\xff\r\nEmpty:\r\n\r\n',
  )
  await peer.hears('200 OK')
  const raw = ['x-B', '1', 'Host', 'a', 'COOKIE', 'a=1', 'X-b', '2', 'cookie', 'b=\xff', 'Empty', '']
  assert.deepEqual(front.exchanges[0]!.head.rawHeaders, raw)
  peer.socket.destroy()
  await front.close()
})

test('a request is the same however it is cut', async () => {
  const front = await startFront({ tls: null })
  const request = Buffer.from(
    'POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n',
  )
  const peers = await Promise.all(Array.from(request, () => dialPlain(front.port)))
  await Promise.all(
    peers.map(async (peer, cut) => {
      peer.socket.setNoDelay()
      peer.write(request.subarray(0, cut))
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      peer.write(request.subarray(cut))
      await peer.hears('\r\n\r\nabc')
      peer.socket.destroy()
    }),
  )
  assert.equal(front.exchanges.length, request.length)
  for (const { head, trailers } of front.exchanges)
    assert.deepEqual([head.target, ...trailers], ['/p', 'T', '1'])
  await front.close()
})

function lengths(...values: readonly string[]): string {
  const lines = values.map((length) => `Content-Length: ${length}\r\n`)
  return `POST / HTTP/1.1\r\n${HOST}${lines.join('')}\r\nhello`
}

function encoded(coding: string): string {
  return `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`
}

function value(text: string): string {
  return `GET / HTTP/1.1\r\n${HOST}A: ${text}\r\n\r\n`
}
