import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { isCollected } from '../collected.ts'
import { bytesCopied } from '../wire/bytes-copied.ts'
import {
  type ResponseContext,
  FIELDS_MAX,
  type ResponseHead,
} from '../../src/proxy/upstream/response-head.ts'
import {
  EXTENSION_BYTES_MAX,
  HEAD_BYTES_MAX,
  INTERIM_MAX,
  type ResponseEvents,
  ResponseReader,
  SIZE_DIGITS_MAX,
  TRAILER_BYTES_MAX,
} from '../../src/proxy/upstream/response-reader.ts'
import { readResponse, ResponseRecorder, type Said } from './response-recorder.ts'

const GET: ResponseContext = { method: 'GET', acceptsTrailers: true }
const OK = 'HTTP/1.1 200 OK\r\n'

function read(pieces: readonly Uint8Array[], asked: ResponseContext = GET, closes = true): Said {
  return readResponse(pieces, asked, closes)
}

function readText(text: string, asked: ResponseContext = GET): Said {
  return read([Buffer.from(text, 'latin1')], asked)
}

/** Apart from whether bytes behind the end were seen in the same read, which depends on the cut. */
function comparable({ isSurplus: _, ...said }: Said): Omit<Said, 'isSurplus'> {
  return said
}

interface Good {
  readonly text: string
  readonly asked?: ResponseContext
  readonly status?: number
  readonly headers: readonly string[]
  readonly body?: string
  readonly reason?: string
  readonly kind?: ResponseHead['body']
  readonly trailers?: readonly string[]
  readonly keepsAlive?: boolean
  readonly keepAliveMs?: number
  readonly informs?: Said['informs']
}

const HEAD: ResponseContext = { method: 'HEAD', acceptsTrailers: true }
const NO_TRAILERS_PLEASE: ResponseContext = { method: 'GET', acceptsTrailers: false }

const GOOD: Readonly<Record<string, Good>> = {
  'a length': {
    text: `${OK}Content-Length: 5\r\nX-A: b\r\n\r\nhello`,
    headers: ['Content-Length', '5', 'X-A', 'b'],
    body: 'hello',
    kind: 'length',
  },
  'a length of 0': { text: `${OK}content-length: 0\r\n\r\n`, headers: ['content-length', '0'] },
  'no reason, and no space before it': {
    text: 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n',
    reason: '',
    headers: ['Content-Length', '0'],
  },
  'a reason of any bytes': {
    text: 'HTTP/1.1 404 \xe9\x20\tNot: Found\r\nContent-Length: 0\r\n\r\n',
    status: 404,
    reason: '\xe9\x20\tNot: Found',
    headers: ['Content-Length', '0'],
  },
  'blanks around a value': {
    text: `${OK}A: \t b c\t \r\nB:\r\nC: \r\nContent-Length:0\r\n\r\n`,
    headers: ['A', 'b c', 'B', '', 'C', '', 'Content-Length', '0'],
  },
  'bytes beyond ASCII in a value, also at its edges': {
    text: `${OK}A: \xa0caf\xe9\xa0\r\nContent-Length: 0\r\n\r\n`,
    headers: ['A', '\xa0caf\xe9\xa0', 'Content-Length', '0'],
  },
  'cookies apart and in order': {
    text: `${OK}Set-Cookie: a=1\r\nX: y\r\nset-cookie: b=2, c\r\nContent-Length: 0\r\n\r\n`,
    headers: ['Set-Cookie', 'a=1', 'X', 'y', 'set-cookie', 'b=2, c', 'Content-Length', '0'],
  },
  'the same length twice': {
    text: `${OK}Content-Length: 3\r\nX: y\r\nContent-Length: 3\r\n\r\nabc`,
    headers: ['Content-Length', '3', 'X', 'y'],
    body: 'abc',
    kind: 'length',
  },
  'the same length in a list': {
    text: `${OK}Content-Length: 3 , 03\r\n\r\nabc`,
    headers: ['Content-Length', '3'],
    body: 'abc',
    kind: 'length',
  },
  chunks: {
    text: `${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n`,
    headers: [],
    body: 'abc0123456789',
    kind: 'chunked',
  },
  'chunks with extensions': {
    text: `${OK}transfer-encoding: Chunked\r\n\r\n3;a\r\nabc\r\n1 \t; b="c;d"\r\nx\r\n0;z=\xe9\r\n\r\n`,
    headers: [],
    body: 'abcx',
    kind: 'chunked',
  },
  'no chunk but the last': {
    text: `${OK}Transfer-Encoding: chunked\r\n\r\n000\r\n\r\n`,
    headers: [],
    kind: 'chunked',
  },
  trailers: {
    text: `${OK}Trailer: A, B\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: 1\r\nB:2 \r\nA: \r\n\r\n`,
    headers: ['Trailer', 'A, B'],
    body: 'x',
    kind: 'chunked',
    trailers: ['A', '1', 'B', '2', 'A', ''],
  },
  'a Trailer field for who takes no trailers': {
    text: `${OK}Trailer: A\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\n\r\n`,
    asked: NO_TRAILERS_PLEASE,
    headers: [],
    kind: 'chunked',
    trailers: ['A', '1'],
  },
  'a Trailer field where none can come': {
    text: `${OK}Trailer: A\r\nContent-Length: 0\r\n\r\n`,
    headers: ['Content-Length', '0'],
  },
  'until the connection closes': {
    text: `${OK}X: y\r\n\r\nall of this\r\n\r\n0\r\n\r\n`,
    headers: ['X', 'y'],
    body: 'all of this\r\n\r\n0\r\n\r\n',
    kind: 'until-close',
    keepsAlive: false,
  },
  'HTTP/1.0': {
    text: 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
    headers: ['Content-Length', '2'],
    body: 'ok',
    kind: 'length',
    keepsAlive: false,
  },
  'HTTP/1.0 that stays': {
    text: 'HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok',
    headers: ['Content-Length', '2'],
    body: 'ok',
    kind: 'length',
  },
  'hop-by-hop fields': {
    text:
      `${OK}Connection: X-Hop, close ,\r\nKeep-Alive: max=100, timeout=5\r\nx-hop: 1\r\nUpgrade: h2c\r\nTE: gzip\r\n` +
      `Proxy-Connection: keep-alive\r\nX-Kept: 2\r\nContent-Length: 0\r\n\r\n`,
    headers: ['X-Kept', '2', 'Content-Length', '0'],
    keepsAlive: false,
    keepAliveMs: 5000,
  },
  'Connection cannot take the length away': {
    text: `${OK}Connection: content-length\r\nContent-Length: 2\r\n\r\nok`,
    headers: ['Content-Length', '2'],
    body: 'ok',
    kind: 'length',
  },
  'an answer to HEAD': {
    text: `${OK}Content-Length: 1000\r\n\r\n`,
    asked: HEAD,
    headers: ['Content-Length', '1000'],
  },
  'an answer to HEAD that would be chunked': {
    text: `${OK}Transfer-Encoding: chunked\r\nTrailer: A\r\n\r\n`,
    asked: HEAD,
    headers: [],
  },
  'an answer to HEAD of no length': { text: `${OK}X: y\r\n\r\n`, asked: HEAD, headers: ['X', 'y'] },
  '204': {
    text: 'HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n',
    status: 204,
    reason: 'No Content',
    headers: [],
  },
  '304': {
    text: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: "x"\r\n\r\n',
    status: 304,
    reason: 'Not Modified',
    headers: ['Content-Length', '7', 'ETag', '"x"'],
  },
  'interim answers': {
    text:
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X\r\nX: y\r\n\r\n' +
      `${OK}Content-Length: 1\r\n\r\nx`,
    headers: ['Content-Length', '1'],
    body: 'x',
    kind: 'length',
    informs: [
      [100, []],
      [103, ['Link', '</a>']],
    ],
  },
}

const BAD: Readonly<Record<string, readonly [text: string, fault: string]>> = {
  nothing: ['', 'truncated'],
  'half a head': [`${OK}Content-Le`, 'truncated'],
  'another protocol': ['SSH-2.0-OpenSSH_9.2\r\n', 'bad-head'],
  'a head of HTTP/0.9': ['<html>', 'bad-head'],
  'an empty line before': [`\r\n${OK}Content-Length: 0\r\n\r\n`, 'bad-head'],
  'a TLS alert': ['\x15\x03\x01\x00\x02\x02\x46', 'bad-head'],
  'HTTP/2': ['\x00\x00\x00\x04\x00\x00\x00\x00\x00', 'bad-head'],
  'HTTP/1.2': ['HTTP/1.2 200 OK\r\n\r\n', 'bad-head'],
  'HTTP/1.10': ['HTTP/1.10 200 OK\r\n\r\n', 'bad-head'],
  'http/1.1': ['http/1.1 200 OK\r\n\r\n', 'bad-head'],
  'two spaces': ['HTTP/1.1  200 OK\r\n\r\n', 'bad-head'],
  'a tab for the space': ['HTTP/1.1\t200 OK\r\n\r\n', 'bad-head'],
  'a status of two digits': ['HTTP/1.1 20 OK\r\n\r\n', 'bad-head'],
  'a status of four digits': ['HTTP/1.1 2000 OK\r\n\r\n', 'bad-head'],
  'a status beyond 599': ['HTTP/1.1 600 OK\r\n\r\n', 'bad-head'],
  'a status below 100': ['HTTP/1.1 099 OK\r\n\r\n', 'bad-head'],
  'an invalid status': ['HTTP/1.1 2x0 OK\r\n\r\n', 'bad-head'],
  'a NUL in the reason': ['HTTP/1.1 200 O\0K\r\n\r\n', 'bad-head'],
  'a bare CR in the reason': ['HTTP/1.1 200 O\rK\r\n\r\n', 'bad-head'],
  'a bare LF at the end of a line': ['HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n', 'bad-head'],
  'bare LFs only': ['HTTP/1.1 200 OK\nContent-Length: 0\n\n', 'bad-head'],
  'a bare LF in a value': [`${OK}A: b\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a bare CR in a value': [`${OK}A: b\rc\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a NUL in a value': [`${OK}A: b\0c\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'DEL in a value': [`${OK}A: \x7f\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a folded line': [`${OK}A: b\r\n c\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a folded line by tab': [`${OK}A: b\r\n\tc: d\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a blank before the first field': [`${OK} A: b\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a blank before the colon': [`${OK}Content-Length : 0\r\n\r\n`, 'bad-head'],
  'no name': [`${OK}: b\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'no colon': [`${OK}Content-Length\r\n\r\n`, 'bad-head'],
  'a colon only in the next line': [`${OK}A\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a name that is not a token': [`${OK}A(b): c\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a name beyond ASCII': [`${OK}\xe9: c\r\nContent-Length: 0\r\n\r\n`, 'bad-head'],
  'a coding and a length': [
    `${OK}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n`,
    'bad-framing',
  ],
  'a length and a coding': [`${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc`, 'bad-framing'],
  'a coding that Connection names, and a length': [
    `${OK}Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc`,
    'bad-framing',
  ],
  'two lengths': [`${OK}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`, 'bad-framing'],
  'two lengths in a list': [`${OK}Content-Length: 3, 4\r\n\r\nabcd`, 'bad-framing'],
  'a length with a sign': [`${OK}Content-Length: +3\r\n\r\nabc`, 'bad-framing'],
  'a negative length': [`${OK}Content-Length: -1\r\n\r\n`, 'bad-framing'],
  'a length in hex': [`${OK}Content-Length: 0x3\r\n\r\nabc`, 'bad-framing'],
  'an empty length': [`${OK}Content-Length:\r\n\r\n`, 'bad-framing'],
  'a length with a space in it': [`${OK}Content-Length: 1 0\r\n\r\n`, 'bad-framing'],
  'a length with a comma too many': [`${OK}Content-Length: 3,\r\n\r\nabc`, 'bad-framing'],
  'a length of more than 15 digits': [`${OK}Content-Length: 9999999999999999\r\n\r\n`, 'bad-framing'],
  'another coding': [`${OK}Transfer-Encoding: gzip\r\n\r\n`, 'bad-framing'],
  'a coding inside chunked': [`${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 'bad-framing'],
  'chunked twice': [`${OK}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, 'bad-framing'],
  'chunked in two lines': [
    `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'bad-framing',
  ],
  'chunked behind another line': [
    `${OK}Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'bad-framing',
  ],
  'an empty coding': [`${OK}Transfer-Encoding:\r\n\r\n`, 'bad-framing'],
  xchunked: [`${OK}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 'bad-framing'],
  'chunked with a parameter': [`${OK}Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n`, 'bad-framing'],
  'chunked in HTTP/1.0': ['HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 'bad-framing'],
  'an unrequested switch': [
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
    'unasked-upgrade',
  ],
  'a body cut short': [`${OK}Content-Length: 5\r\n\r\nhell`, 'truncated'],
}

const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`
const BAD_CHUNKS: Readonly<Record<string, readonly [text: string, fault: string]>> = {
  'no size': ['\r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a size that is not a number': ['g\r\n', 'bad-chunk'],
  'a size with a sign': ['+3\r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a size with 0x': ['0x3\r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a blank before the size': [' 3\r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a blank behind the size': ['3 \r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a bare LF behind the size': ['3\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a bare CR behind the size': ['3\rabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a bare LF in an extension': ['3;a\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a NUL in an extension': ['3;\0\r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a chunk longer than its size': ['3\r\nabcd\r\n0\r\n\r\n', 'bad-chunk'],
  'a chunk shorter than its size': ['4\r\nabc\r\n0\r\n\r\n', 'bad-chunk'],
  'a bare LF behind a chunk': ['3\r\nabc\n0\r\n\r\n', 'bad-chunk'],
  'a chunk cut short': ['5\r\nabc', 'truncated'],
  'no last chunk': ['3\r\nabc\r\n', 'truncated'],
  'no empty line at the end': ['3\r\nabc\r\n0\r\n', 'truncated'],
  'half of the empty line': ['3\r\nabc\r\n0\r\n\r', 'truncated'],
  'a trailer that never ends': ['0\r\nA: b\r\n', 'truncated'],
  'an invalid trailer': ['0\r\nabc\r\n\r\n', 'bad-trailers'],
  'a trailer with a bare LF': ['0\r\nA: b\n\r\n\r\n', 'bad-trailers'],
  'a folded trailer': ['0\r\nA: b\r\n c\r\n\r\n', 'bad-trailers'],
  'a trailer with a NUL': ['0\r\nA: \0\r\n\r\n', 'bad-trailers'],
}

test('responses', async (t) => {
  for (const [name, good] of Object.entries(GOOD)) {
    t.test(name, async () => {
      const said = readText(good.text, good.asked)
      assert.equal(said.fault, null)
      assert.deepEqual(said.head, {
        status: good.status ?? 200,
        reason: good.reason ?? 'OK',
        headers: good.headers,
        body: good.kind ?? 'none',
        length: good.kind === 'length' ? good.body!.length : 0,
        keepsAlive: good.keepsAlive ?? true,
        keepAliveMs: good.keepAliveMs ?? null,
      })
      assert.equal(said.body, good.body ?? '')
      assert.deepEqual(said.trailers, good.trailers ?? [])
      assert.deepEqual(said.informs, good.informs ?? [])
      assert.equal(said.isSurplus, false)
    })
  }
})

test('refused', async (t) => {
  for (const [name, [text, fault]] of Object.entries(BAD)) {
    t.test(name, async () => {
      const said = readText(text)
      assert.equal(said.fault, fault)
      if (fault !== 'truncated') assert.equal(said.head, null, 'nothing of it is passed on')
      assert.equal(said.trailers, null)
    })
  }
  for (const [name, [text, fault]] of Object.entries(BAD_CHUNKS)) {
    t.test(name, async () => {
      const said = readText(CHUNKED + text)
      assert.equal(said.fault, fault)
      assert.equal(said.trailers, null)
    })
  }
})

const ALL: readonly (readonly [name: string, text: string, asked: ResponseContext])[] = [
  ...Object.entries(GOOD).map(([name, { text, asked }]) => [name, text, asked ?? GET] as const),
  ...Object.entries(BAD).map(([name, [text]]) => [name, text, GET] as const),
  ...Object.entries(BAD_CHUNKS).map(([name, [text]]) => [name, CHUNKED + text, GET] as const),
]

test('a cut anywhere changes nothing', async () => {
  for (const [name, text, asked] of ALL) {
    const bytes = Buffer.from(text, 'latin1')
    const whole = comparable(read([bytes], asked))
    for (let at = 0; at <= bytes.length; at++) {
      const cut = read([bytes.subarray(0, at), bytes.subarray(at)], asked)
      assert.deepEqual(comparable(cut), whole, `${name}, cut at ${at}`)
    }
    const single = read(
      Array.from(bytes, (byte) => Buffer.of(byte)),
      asked,
    )
    assert.deepEqual(comparable(single), whole, `${name}, byte by byte`)
  }
})

test('a response cut short is never whole, but for one that ends with its connection', async () => {
  for (const [name, { text, asked, kind }] of Object.entries(GOOD)) {
    const bytes = Buffer.from(text, 'latin1')
    for (let end = 0; end < bytes.length; end++) {
      const said = read([bytes.subarray(0, end)], asked)
      if (kind === 'until-close' && said.head !== null) continue
      assert.equal(said.fault, 'truncated', `${name}, ends at ${end}`)
      assert.equal(said.trailers, null)
    }
  }
})

test('reports bytes behind a response without reading them', async () => {
  for (const [name, { text, asked, kind }] of Object.entries(GOOD)) {
    if (kind === 'until-close') continue
    for (const surplus of ['\r', '\0', text]) {
      const said = readText(text + surplus, asked)
      assert.deepEqual({ ...said, isSurplus: false }, readText(text, asked), name)
      assert.equal(said.isSurplus, true, name)
    }
  }
})

test('one reader reads one response after the other', async () => {
  const answers: string[] = []
  let reader: ResponseReader
  const events: ResponseEvents = {
    informed: () => {},
    headRead: ({ status }) => answers.push(String(status)),
    bodyRead: (bytes) => answers.push(bytes.toString()),
    ended: () => {
      answers.push('.')
      reader.begin(GET) // at once, as a connection with a request waiting for it does
    },
    faulted: (fault) => answers.push(fault),
  }
  reader = new ResponseReader(events)
  reader.begin(GET)
  for (let i = 0; i < 3; i++) {
    for (const text of [
      `${OK}Content-Le`,
      'ngth: 2\r\n\r\no',
      'k',
      `${CHUNKED}1\r\nx\r\n0\r\nA: `,
      'b\r\n\r\n',
    ]) {
      reader.read(Buffer.from(text), text.length)
    }
  }
  assert.equal(answers.join(' '), Array(3).fill('200 o k . 200 x .').join(' '))
})

test('after stop nothing more is said, from within any event', async () => {
  const text = Buffer.from(`HTTP/1.1 103 H\r\n\r\n${CHUNKED}3\r\nabc\r\n2\r\nde\r\n0\r\nA: b\r\n\r\n`)
  for (const last of ['informed', 'headRead', 'bodyRead', 'ended'] as const) {
    const calls: string[] = []
    const note = (name: string) => () => {
      calls.push(name)
      if (name === last) reader.stop()
    }
    const reader: ResponseReader = new ResponseReader({
      informed: note('informed'),
      headRead: note('headRead'),
      bodyRead: note('bodyRead'),
      ended: note('ended'),
      faulted: note('faulted'),
    })
    reader.begin(GET)
    reader.read(Buffer.from(text), text.length) // which moves the data of chunks within it
    reader.close()
    assert.equal(calls.at(-1), last)
    assert.equal(calls.indexOf(last), calls.length - 1)
  }
})

test('limits hold to the byte, however the bytes come', async (t) => {
  const filler = (length: number) => `X: ${'a'.repeat(length - 5)}\r\n`
  const fields = (count: number) => 'A: b\r\n'.repeat(count)
  const heads = (count: number) => 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(count)
  const end = 'Content-Length: 0\r\n\r\n'
  const room = HEAD_BYTES_MAX - OK.length - end.length
  const within: Record<string, string> = {
    'a head': OK + filler(room) + end,
    fields: OK + fields(FIELDS_MAX - 1) + end,
    'interim answers': heads(INTERIM_MAX) + OK + end,
    trailers: `${CHUNKED}0\r\n${filler(TRAILER_BYTES_MAX - 4)}\r\n`,
    'trailer fields': `${CHUNKED}0\r\n${fields(FIELDS_MAX)}\r\n`,
    'an extension': `${CHUNKED}0;${'a'.repeat(EXTENSION_BYTES_MAX)}\r\n\r\n`,
    'digits of a size': `${CHUNKED}${'0'.repeat(SIZE_DIGITS_MAX)}\r\n\r\n`,
  }
  const beyond: Record<string, readonly [string, string]> = {
    'a head': [OK + filler(room + 1) + end, 'head-too-large'],
    'a head without an end': [OK + filler(HEAD_BYTES_MAX * 2), 'head-too-large'],
    'a status line': [`HTTP/1.1 200 ${'a'.repeat(HEAD_BYTES_MAX)}`, 'head-too-large'],
    fields: [OK + fields(FIELDS_MAX) + end, 'too-many-fields'],
    'interim answers': [heads(INTERIM_MAX + 1) + OK + end, 'too-many-interim'],
    trailers: [`${CHUNKED}0\r\n${filler(TRAILER_BYTES_MAX - 3)}\r\n`, 'trailers-too-large'],
    'trailer fields': [`${CHUNKED}0\r\n${fields(FIELDS_MAX + 1)}\r\n`, 'bad-trailers'],
    'an extension': [`${CHUNKED}0;${'a'.repeat(EXTENSION_BYTES_MAX + 1)}\r\n\r\n`, 'bad-chunk'],
    'blanks before an extension': [`${CHUNKED}0${' '.repeat(EXTENSION_BYTES_MAX + 1)};\r\n\r\n`, 'bad-chunk'],
    'digits of a size': [`${CHUNKED}${'0'.repeat(SIZE_DIGITS_MAX + 1)}\r\n\r\n`, 'bad-chunk'],
  }
  const cuts = (bytes: Buffer) => [
    [bytes],
    [bytes.subarray(0, bytes.length >> 1), bytes.subarray(bytes.length >> 1)],
    Array.from(bytes, (byte) => Buffer.of(byte)),
  ]
  for (const [name, text] of Object.entries(within)) {
    t.test(`within: ${name}`, async () => {
      for (const pieces of cuts(Buffer.from(text))) assert.equal(read(pieces).fault, null)
    })
  }
  for (const [name, [text, fault]] of Object.entries(beyond)) {
    t.test(`beyond: ${name}`, async () => {
      for (const pieces of cuts(Buffer.from(text))) assert.equal(read(pieces).fault, fault)
    })
  }
})

test('a head that comes byte by byte is copied, and looked through, in proportion', async () => {
  const work = (length: number) => {
    const pieces = Array.from(Buffer.from(`${OK}X: ${'a'.repeat(length)}`), (byte) => Buffer.of(byte))
    let searched = 0
    const copied = bytesCopied(() => {
      searched = bytesSearched(() => assert.equal(read(pieces).fault, 'truncated'))
    })
    return copied + searched
  }
  assert.ok(work(60_000) < 20 * work(6_000), 'ten times the bytes takes less than a hundred times the work')
})

/** How many bytes `run` looks through with `indexOf`. */
function bytesSearched(run: () => void): number {
  const { indexOf } = Buffer.prototype
  let searched = 0
  Buffer.prototype.indexOf = function (this: Buffer, value: Uint8Array | number, from = 0) {
    searched += this.length - Number(from)
    return indexOf.call(this, value as number, from as number)
  }
  try {
    run()
  } finally {
    Buffer.prototype.indexOf = indexOf
  }
  return searched
}

test('body bytes are views of what was read: nothing is copied', async () => {
  const recorder = new ResponseRecorder()
  const reader = new ResponseReader({
    informed: () => {},
    headRead: (head) => recorder.headRead(head),
    bodyRead: (bytes) => assert.equal(bytes.buffer, piece.buffer),
    ended: () => {},
    faulted: (fault) => assert.fail(fault),
  })
  const piece = Buffer.from(`${OK}Content-Length: 5\r\n\r\nhello`)
  reader.begin(GET)
  reader.read(piece, piece.length)
})

const token = fc.string({ unit: fc.constantFrom(..."!#$%&'*+-.^_`|~09azAZ"), minLength: 1, maxLength: 12 })
const value = fc
  .string({ unit: fc.constantFrom(...'\t !",:;=az09\x80\xff'), maxLength: 20 })
  .map((text) => text.replace(/^[ \t]+|[ \t]+$/g, ''))
const field = fc
  .tuple(token, value)
  .filter(([name]) => !/^(connection|keep-alive|te|upgrade|trailer|content-length)$/i.test(name))
const cutting = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 })

/** The bytes in pieces of these lengths, over and over. */
function cutUp(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length]!
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

test('any response comes out as it was written, however it is cut', async () => {
  const body = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 5 })
  const property = fc.property(
    fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
    fc.array(field, { maxLength: 6 }),
    body,
    fc.array(field, { maxLength: 3 }),
    fc.boolean(),
    cutting,
    (status, fields, chunks, trailers, isChunked, lengths) => {
      const lines = (list: readonly (readonly [string, string])[]) =>
        list.map(([n, v]) => `${n}:${v}\r\n`).join('')
      const content = Buffer.concat(chunks)
      const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`
      const head = Buffer.from(`HTTP/1.1 ${status} X\r\n${lines(fields)}${framing}\r\n\r\n`, 'latin1')
      const coded = chunks.flatMap((chunk) => [`${chunk.length.toString(16)}\r\n`, chunk, '\r\n'])
      coded.push(`0\r\n${lines(trailers)}\r\n`)
      const tail = isChunked ? coded.map((part) => Buffer.from(part as string, 'latin1')) : [content]
      const said = read(cutUp(Buffer.concat([head, ...tail]), lengths))
      assert.equal(said.fault, null)
      assert.equal(said.head!.status, status)
      const expected = [...fields.flat(), ...(isChunked ? [] : ['Content-Length', String(content.length)])]
      assert.deepEqual(said.head!.headers, expected)
      assert.equal(said.body, content.toString('latin1'))
      assert.deepEqual(said.trailers, isChunked ? trailers.flat() : [])
    },
  )
  fc.assert(property, { numRuns: 1000 })
})

test('hostile bytes never throw, and how they are cut changes nothing', async () => {
  const seeds = ALL.map(([, text]) => text)
  const piece = fc.oneof(
    fc.constantFrom(...seeds),
    fc.constantFrom(
      '\r\n',
      '\n',
      '\r',
      '\0',
      ' ',
      ':',
      ';',
      '0\r\n\r\n',
      'HTTP/1.1 ',
      'Content-Length: 1',
      CHUNKED,
    ),
    fc.string({ unit: 'binary-ascii', maxLength: 10 }),
    fc.uint8Array({ maxLength: 10 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  )
  const edit = fc.tuple(fc.nat(), fc.nat(20), piece)
  const hostile = fc
    .tuple(fc.constantFrom(...seeds), fc.array(edit, { maxLength: 4 }))
    .map(([seed, edits]) => {
      let text = seed
      for (const [at, length, instead] of edits) {
        const from = at % (text.length + 1)
        text = text.slice(0, from) + instead + text.slice(from + length)
      }
      return text
    })
  const property = fc.property(
    fc.oneof(
      { weight: 4, arbitrary: hostile },
      fc.array(piece).map((pieces) => pieces.join('')),
    ),
    fc.constantFrom(GET, HEAD, NO_TRAILERS_PLEASE),
    cutting,
    (text, asked, lengths) => {
      const bytes = Buffer.from(text, 'latin1')
      const whole = read([bytes], asked)
      assert.ok(whole.fault !== null || whole.trailers !== null, 'a closed connection settles every response')
      assert.deepEqual(comparable(read(cutUp(bytes, lengths), asked)), comparable(whole))
      for (let i = 1; i < (whole.head?.headers.length ?? 0); i += 2) {
        assert.doesNotMatch(whole.head!.headers[i]!, /[\r\n\0]/)
      }
    },
  )
  fc.assert(property, { numRuns: 4000 })
})

test('what was asked is not kept once its answer is over, whatever became of it', async () => {
  const ends: Readonly<Record<string, (reader: ResponseReader) => void>> = {
    answered: (reader) => readBytes(reader, `${OK}Content-Length: 5\r\n\r\nhello`),
    'answered until the end': (reader) => {
      readBytes(reader, `${OK}\r\nhello`)
      reader.close()
    },
    'answered by another protocol': (reader) => readBytes(reader, 'SSH-2.0\r\n\r\n'),
    'cut off': (reader) => {
      readBytes(reader, `${OK}Content-Length: 5\r\n\r\nhel`)
      reader.close()
    },
    'not waited for': (reader) => reader.stop(),
  }
  for (const [name, end] of Object.entries(ends)) {
    const reader = new ResponseReader(new ResponseRecorder())
    const asked = beginAnew(reader)
    end(reader)
    assert.ok(await isCollected(asked), name)
    reader.begin(GET) // it is still there, and may be asked again
  }
})

function beginAnew(reader: ResponseReader): WeakRef<object> {
  const asked = { ...GET }
  reader.begin(asked)
  return new WeakRef(asked)
}

function readBytes(reader: ResponseReader, text: string): void {
  const bytes = Buffer.from(text, 'latin1')
  reader.read(bytes, bytes.length)
}
