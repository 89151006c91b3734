import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { test } from 'tap'
import {
  HEAD_BYTES_MAX,
  HEADERS_MAX,
  Http1Requests,
  looksLikeRequest,
  REQUEST_LINE_BYTES_MAX,
} from '../../src/capture/http1.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'
import { recorded } from './recorded.ts'
import { skipped } from '../e2e/programs.ts'
import { timeBox } from '../time-box.ts'

const skip = skipped('curl')

interface Stream {
  readonly name: string
  readonly bytes: string
  readonly heads: readonly RequestHead[]
  /** What is left when the stream turns opaque; `null` when it does not. */
  readonly rest: string | null
}

const streams: readonly Stream[] = [
  {
    name: 'names, values and order as sent, blanks around a value not',
    bytes: 'GET /a?b HTTP/1.1\r\nHost:x\r\naccept: \t*/* \t\r\nACCEPT:\r\nX-Empty: \r\n\r\n',
    heads: [head('GET', '/a?b', '11', ['Host', 'x', 'accept', '*/*', 'ACCEPT', '', 'X-Empty', ''])],
    rest: null,
  },
  {
    name: 'latin1, where 0xa0 is not a blank',
    bytes: 'GET /\xfc HTTP/1.1\r\nX: \xa0\xe9\xa0\r\n\r\n',
    heads: [head('GET', '/\xfc', '11', ['X', '\xa0\xe9\xa0'])],
    rest: null,
  },
  {
    name: 'no headers, HTTP/1.0, bare line feeds, empty lines between requests',
    bytes: '\r\n\nGET / HTTP/1.0\n\n\r\nGET /2 HTTP/1.1\r\n\n',
    heads: [head('GET', '/', '10'), head('GET', '/2', '11')],
    rest: null,
  },
  {
    name: 'any token is a method',
    bytes: ['M-SEARCH', 'RPC_IN_DATA', 'PROPFIND', 'get', "!#$%&'*+-.^_`|~09"]
      .map((method) => `${method} * HTTP/1.1\r\n\r\n`)
      .join(''),
    heads: ['M-SEARCH', 'RPC_IN_DATA', 'PROPFIND', 'get', "!#$%&'*+-.^_`|~09"].map((method) =>
      head(method, '*', '11'),
    ),
    rest: null,
  },
  {
    name: 'a target with blanks in it',
    bytes: 'GET /a b HTTP/1.0 HTTP/1.1\r\n\r\n',
    heads: [head('GET', '/a b HTTP/1.0', '11')],
    rest: null,
  },
  {
    name: 'folded lines go on with the value before them, lines without a name are left out',
    bytes: 'GET / HTTP/1.1\r\n first\r\nA: 1\r\n\t 2 \r\n  3\r\nnonsense\r\n: none\r\nB: 4:5\r\n\r\n',
    heads: [head('GET', '/', '11', ['A', '1 2 3', 'B', '4:5'])],
    rest: null,
  },
  {
    name: 'a body of known length, said twice',
    bytes: `POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5, 5\r\n\r\nGET /${get('/2')}`,
    heads: [
      head('POST', '/', '11', ['Content-Length', '5', 'content-length', '5, 5']),
      head('GET', '/2', '11'),
    ],
    rest: null,
  },
  {
    name: 'chunks with extensions and trailers',
    bytes: `PUT / HTTP/1.1\r\ntransfer-encoding: gzip, Chunked\r\ncontent-length: 1\r\n\r\n0a;x="y"\r\n0123456789\r\n1 \t;q\r\n\n\r\nA\nabcdefghij\n000\r\nExpires: 0\r\n\r\n${get('/2')}`,
    heads: [
      head('PUT', '/', '11', ['transfer-encoding', 'gzip, Chunked', 'content-length', '1']),
      head('GET', '/2', '11'),
    ],
    rest: null,
  },
  {
    name: 'a refused CONNECT, then one that is a tunnel for TLS',
    bytes:
      'CONNECT a:443 HTTP/1.1\r\nContent-Length: 9\r\n\r\nCONNECT a:443 HTTP/1.0\r\n\r\n\x16\x03\x01\x02\x00\x01',
    heads: [head('CONNECT', 'a:443', '11', ['Content-Length', '9']), head('CONNECT', 'a:443', '10')],
    rest: '\x16\x03\x01\x02\x00\x01',
  },
  {
    name: 'a tunnel for SSH',
    bytes: 'CONNECT a:22 HTTP/1.1\r\n\r\nSSH-2.0-OpenSSH_9.9\r\n',
    heads: [head('CONNECT', 'a:22', '11')],
    rest: 'SSH-2.0-OpenSSH_9.9\r\n',
  },
  {
    name: 'an upgrade to HTTP/2',
    bytes: 'GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00',
    heads: [head('GET', '/', '11', ['Upgrade', 'h2c'])],
    rest: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00',
  },
  {
    name: 'an upgrade to WebSocket',
    bytes: 'GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n\x81\x85abcd\n',
    heads: [head('GET', '/', '11', ['Upgrade', 'websocket'])],
    rest: '\x81\x85abcd\n',
  },
  { name: 'not HTTP at all', bytes: '\x00\x01', heads: [], rest: '\x00\x01' },
  { name: 'no target', bytes: 'GET  HTTP/1.1\r\n\r\n', heads: [], rest: 'GET  HTTP/1.1\r\n\r\n' },
  {
    name: 'a carriage return astray',
    bytes: '\rGET / HTTP/1.1\r\n\r\n',
    heads: [],
    rest: '\rGET / HTTP/1.1\r\n\r\n',
  },
  ...['5, 6', '-1', '5x', '', '9007199254740993'].map((length) => ({
    name: `a body of unknown length: content-length ${length}`,
    bytes: `POST / HTTP/1.1\r\nContent-Length: ${length}\r\n\r\n${get('/2')}`,
    heads: [head('POST', '/', '11', ['Content-Length', length])],
    rest: get('/2'),
  })),
  {
    name: 'a body of unknown length: a coding after chunked',
    bytes: `POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n${get('/2')}`,
    heads: [head('POST', '/', '11', ['Transfer-Encoding', 'chunked, gzip'])],
    rest: get('/2'),
  },
  ...['x', '', '-1', '0x1', '5 5', '20000000000000', '11111111111111111'].map((size) => ({
    name: `a chunk of no size: ${size}`,
    bytes: `POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${get('/2')}`,
    heads: [head('POST', '/', '11', ['Transfer-Encoding', 'chunked'])],
    rest: `${size}\r\n${get('/2')}`,
  })),
  {
    name: 'a chunk longer than its size',
    bytes: 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n',
    heads: [head('POST', '/', '11', ['Transfer-Encoding', 'chunked'])],
    rest: 'b\r\n',
  },
]

for (const { name, bytes, heads, rest } of streams) {
  test(`http1: ${name}`, async () => {
    const whole = latin1(bytes)
    const expected = { heads, rest: rest === null ? null : latin1(rest) }
    assert.deepEqual(read([whole]), expected)
    assert.deepEqual(read(cutEvery(whole, 1)), expected, 'byte by byte')
    for (let cut = 1; cut < whole.length; cut++) {
      assert.deepEqual(read([whole.subarray(0, cut), whole.subarray(cut)]), expected, `cut at ${cut}`)
    }
  })
}

test('http1: the chunk may be used again after the call', async () => {
  const heads: RequestHead[] = []
  const requests = new Http1Requests((each) => heads.push(each))
  for (const piece of cutEvery(latin1(get('/kept')), 3)) {
    const chunk = Buffer.from(piece)
    requests.push(chunk, 1)
    chunk.fill(0)
  }
  assert.deepEqual(heads, [head('GET', '/kept', '11')])
})

test('http1: a request is reported under the frame its message ended in', async () => {
  const frames: number[] = []
  const requests = new Http1Requests((_head, frame) => frames.push(frame))
  requests.push(latin1('GET / HTTP/1.1\r\n\r'), 1)
  requests.push(latin1('\nPOST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n1'), 2)
  requests.push(latin1('23'), 3)
  requests.push(latin1('4PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n'), 4)
  requests.push(latin1('A: 1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n'), 5)
  requests.skip(4)
  requests.push(latin1(get('/')), 6)
  assert.deepEqual(frames, [2, 4, 5, 5, 6])
})

test('http1: a request whose message does not end is reported once that is known', async () => {
  const post = 'POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n'
  const endings: readonly ((requests: Http1Requests) => void)[] = [
    (requests) => requests.end(),
    (requests) => requests.skip(5),
    (requests) => requests.push(latin1('0\r\n\r\n\r\n'), 2),
  ]
  for (const [i, ending] of endings.entries()) {
    const frames: number[] = []
    const requests = new Http1Requests((_head, frame) => frames.push(frame))
    const chunked = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nq'
    requests.push(latin1(i === 2 ? chunked : post), 1)
    assert.deepEqual(frames, [])
    ending(requests)
    requests.end()
    assert.deepEqual(frames, [1])
  }
})

test('http1: bytes missing from a body of known length are no loss', async () => {
  const heads: RequestHead[] = []
  const requests = new Http1Requests((each) => heads.push(each))
  requests.push(latin1('POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n12'), 1)
  assert.equal(requests.skip(0), true)
  assert.equal(requests.skip(8), true)
  requests.push(latin1(`${get('/2')}POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n`), 2)
  assert.equal(requests.skip(4), true)
  assert.equal(requests.push(latin1(`\r\n0\r\n\r\n${get('/3')}`), 3), 'reading')
  assert.deepEqual(heads.map(targetOf), ['/', '/2', '/', '/3'])
})

test('http1: after bytes missing elsewhere, reading goes on at a chunk that begins with a request line', async () => {
  for (const before of [
    '',
    'GET',
    'GET / HTTP/1.1\r\nA: 1',
    'POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n1',
  ]) {
    const heads: RequestHead[] = []
    const requests = new Http1Requests((each) => heads.push(each))
    requests.push(latin1(before), 1)
    assert.equal(requests.skip(2), false)
    assert.equal(requests.push(latin1('rest of something\r\n\r\n'), 2), 'lost')
    assert.equal(requests.skip(1), false)
    assert.equal(requests.push(latin1('GET /half'), 3), 'lost')
    assert.equal(requests.push(latin1(get('/2')), 4), 'reading')
    assert.equal(targetOf(heads.at(-1)!), '/2')
    assert.deepEqual(heads.at(-1)!.rawHeaders, [])
  }
})

test('http1: once opaque, for good', async () => {
  const requests = new Http1Requests(() => assert.fail('no request'))
  assert.equal(requests.push(latin1('\x16\x03\x01'), 1), 'opaque')
  assert.equal(requests.push(latin1(get('/')), 2), 'opaque')
  assert.equal(requests.skip(1), false)
  assert.deepEqual(Buffer.from(requests.rest()), latin1('\x16\x03\x01'))
})

test('http1: heads, trailers and lines have limits', async () => {
  const start = 'GET / HTTP/1.1\r\nA: '
  const fits = `${start}${'x'.repeat(HEAD_BYTES_MAX - start.length - 4)}\r\n\r\n`
  const chunked = 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
  const outcomes: readonly [string, number, boolean][] = [
    [fits, 1, true],
    [fits.replace('x', 'xx'), 0, false],
    [`GET / HTTP/1.1\r\n${'A: 1\r\n'.repeat(HEADERS_MAX)}\r\n`, 1, true],
    [`GET / HTTP/1.1\r\n${'A: 1\r\n'.repeat(HEADERS_MAX + 1)}\r\n`, 0, false],
    [`GET /${'x'.repeat(HEAD_BYTES_MAX)}`, 0, false],
    [`${'x'.repeat(65)} / HTTP/1.1\r\n\r\n`, 0, false],
    [`${chunked}1;${'x'.repeat(HEAD_BYTES_MAX)}`, 1, false],
    [`${chunked}0\r\n${'A: 1\r\n'.repeat(HEAD_BYTES_MAX / 4)}`, 1, false],
    [`${chunked}${'1\r\nx\r\n'.repeat(HEAD_BYTES_MAX / 4)}`, 1, true],
    [`\r\n`.repeat(HEAD_BYTES_MAX), 0, true],
  ]
  for (const [bytes, requests, readable] of outcomes) {
    for (const pieces of [[latin1(bytes)], cutEvery(latin1(bytes), 1)]) {
      const { heads, rest } = read(pieces)
      assert.deepEqual([heads.length, rest === null], [requests, readable], bytes.slice(0, 80))
    }
  }
})

test('looksLikeRequest: yes and no come with the first line, no often sooner', async () => {
  const verdicts: readonly [string, 'yes' | 'no' | 'maybe'][] = [
    ['GET / HTTP/1.1\r\n', 'yes'],
    ['\r\n\nM-SEARCH * HTTP/1.0\nHost', 'yes'],
    ['', 'maybe'],
    ['\r', 'maybe'],
    ['G', 'maybe'],
    ['GET / HTTP/1.1', 'maybe'],
    ['GET / HTTP/1.1\r', 'maybe'],
    [`GET /${'x'.repeat(REQUEST_LINE_BYTES_MAX - 6)}`, 'maybe'],
    [`GET /${'x'.repeat(REQUEST_LINE_BYTES_MAX - 5)}`, 'no'],
    [`${'x'.repeat(64)} /`, 'maybe'],
    ['x'.repeat(65), 'no'],
    ['GET /\r\n', 'no'],
    ['GET / HTTP/1.2\r\n', 'no'],
    ['GET / http/1.1\r\n', 'no'],
    ['GET HTTP/1.1\r\n', 'no'],
    ['PRI * HTTP/2.0\r\n', 'no'],
    ['HTTP/1.1 200 OK', 'no'],
    [' GET / HTTP/1.1\r\n', 'no'],
    ['\rGET / HTTP/1.1\r\n', 'no'],
    ['\x16\x03\x01', 'no'],
    ['\x80', 'no'],
    ['SSH-2.0-OpenSSH_9.9\r\n', 'no'],
    ['EHLO mail.example.com\r\n', 'no'],
    ['220 mail.example.com ESMTP\r\n', 'no'],
    ['USER anonymous\r\n', 'no'],
    ['NICK x\r\nUSER x 0 * :x\r\n', 'no'],
    ['* OK IMAP4rev1\r\n', 'no'],
    ['OPTIONS rtsp://a/ RTSP/1.0\r\n', 'no'],
    ['INVITE sip:a@b SIP/2.0\r\n', 'no'],
    ['REQMOD icap://a/ ICAP/1.0\r\n', 'no'],
  ]
  for (const [bytes, verdict] of verdicts)
    assert.equal(looksLikeRequest(latin1(bytes)), verdict, bytes.slice(0, 80))
})

test('looksLikeRequest: it may be one until it is', async () => {
  const line = latin1('\r\nRPC_IN_DATA /x y HTTP/1.1\r\n')
  for (let end = 0; end < line.length; end++) assert.equal(looksLikeRequest(line.subarray(0, end)), 'maybe')
  assert.equal(looksLikeRequest(line), 'yes')
})

test('http1: pieces of any size give the same requests', async () => {
  const property = fc.property(
    fc.array(fc.constantFrom(...streams), { maxLength: 4 }),
    sizes,
    (chosen, cuts) => {
      const whole = latin1(chosen.map(({ bytes }) => bytes).join(''))
      assert.deepEqual(read(cutInto(whole, cuts)), read([whole]))
    },
  )
  fc.assert(property, TIME_BOX)
})

test('http1: any bytes, lost ones too, are read to the end without a throw', async () => {
  const mutated = fc
    .tuple(fc.constantFrom(...streams), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }))
    .map(([{ bytes }, changes]) => {
      const whole = latin1(bytes)
      for (const [at, byte] of changes) whole[at % whole.length] = byte
      return whole
    })
  const bytes = fc.oneof(mutated, fc.uint8Array({ maxLength: 200 }))
  const property = fc.property(
    fc.array(fc.tuple(bytes, fc.nat(20)), { maxLength: 6 }),
    sizes,
    (parts, cuts) => {
      const requests = new Http1Requests((each) => assert.equal(each.rawHeaders.length % 2, 0))
      for (const [part, missing] of parts) {
        looksLikeRequest(part)
        for (const piece of cutInto(part, cuts)) requests.push(piece, 1)
        requests.skip(missing)
      }
      const whole = Buffer.concat(parts.map(([part]) => part))
      assert.deepEqual(read(cutInto(whole, cuts)), read([whole]))
    },
  )
  fc.assert(property, TIME_BOX)
})

test('http1: what node:http sends is read as node:http reads it', async () => {
  const { sent, seen } = await record(async (port) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    await ask({ port, agent, path: '/get?q=1', headers: { 'X-Mixed-Case': 'a', cookie: ['a=1', 'b=2'] } })
    await ask(
      { port, agent, path: '/sized', method: 'POST', headers: { 'Content-Length': 70_000 } },
      'x'.repeat(70_000),
    )
    await ask(
      { port, agent, path: '/chunked', method: 'PUT', headers: { Expect: '100-continue' } },
      'y'.repeat(70_000),
    )
    await ask({ port, agent, path: '/last', method: 'PROPFIND' })
    agent.destroy()
  })
  assert.equal(seen.length, 4)
  assert.deepEqual(read([sent]), { heads: seen, rest: null })
  assert.deepEqual(read(cutEvery(sent, 1)), { heads: seen, rest: null })
})

test('http1: what curl sends is read as node:http reads it', { skip }, async () => {
  const { sent, seen } = await record(async (port) => {
    const base = `http://127.0.0.1:${port}`
    await run('curl', ['-s', '-H', 'x-empty;', '-b', 'a=1; b=2', `${base}/1`, `${base}/2`])
    await run('curl', ['-s', '-0', '-d', 'a=b', `${base}/3`])
    await run('curl', ['-s', '-T', '-', '-H', 'Expect: 100-continue', `${base}/4`])
  })
  assert.deepEqual(seen.map(targetOf), ['/1', '/2', '/3', '/4'])
  assert.deepEqual(read([sent]), { heads: seen, rest: null })
})

function head(
  method: string,
  target: string,
  version: RequestHead['version'],
  rawHeaders: readonly string[] = [],
): RequestHead {
  return { method, target, version, rawHeaders }
}

function get(target: string): string {
  return `GET ${target} HTTP/1.1\r\n\r\n`
}

function targetOf(each: RequestHead): string {
  return each.target
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

/** All requests in the pieces and, when they end or turn opaque, what is left: the pieces never pushed too. */
function read(pieces: readonly Uint8Array[]): { heads: RequestHead[]; rest: Buffer | null } {
  const heads: RequestHead[] = []
  const requests = new Http1Requests((each) => heads.push(each))
  for (const [i, piece] of pieces.entries()) {
    if (requests.push(piece, i) === 'opaque') {
      return { heads, rest: Buffer.concat([requests.rest(), ...pieces.slice(i + 1)]) }
    }
  }
  requests.end()
  return { heads, rest: null }
}

function cutEvery(bytes: Uint8Array, length: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) =>
    bytes.subarray(i * length, (i + 1) * length),
  )
}

/** Pieces of these sizes, over and over. */
function cutInto(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length]!
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

/** What clients sent to a server of node:http, connection after connection, and what the server made of it. */
async function record(
  clients: (port: number) => Promise<void>,
): Promise<{ sent: Buffer; seen: RequestHead[] }> {
  const seen: RequestHead[] = []
  const server = http.createServer((request, response) => {
    const version = request.httpVersion === '1.0' ? '10' : '11'
    seen.push(head(request.method!, request.url!, version, request.rawHeaders))
    request.resume().on('end', () => response.end())
  })
  return { sent: await recorded(server, clients), seen }
}

async function ask(options: http.RequestOptions, body = ''): Promise<void> {
  const request = http.request({ host: '127.0.0.1', ...options })
  if (options.headers && 'Expect' in options.headers) await once(request, 'continue')
  if (body !== '') request.write(body)
  request.end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  await once(response.resume(), 'end')
}

/** Without a standard input to wait for. */
async function run(command: string, options: readonly string[]): Promise<void> {
  const running = promisify(execFile)(command, options)
  running.child.stdin!.end('from standard input')
  await running
}

const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 })
const TIME_BOX = timeBox(20_000, 1_500)
