import { data, frame, getRequest, headers } from '../proxy/http2-frames.ts'
import { type Forwarded, INNER, MARK, seen } from './desync-case.ts'

/** Frames behind the preface of a client, and the result of the stream that they open. */
export interface Http2Case {
  readonly family: string
  readonly name: string
  readonly frames: Buffer
  readonly forwarded: readonly Forwarded[]
  /** The status of its answer, or no answer: the stream is reset, or the connection ends. */
  readonly outcome: Http2Outcome
  /** Where node:http2 does something else. */
  readonly node: Pick<Http2Case, 'forwarded' | 'outcome'> | null
  /** Upstreams that serve it otherwise, or do not tell its client. */
  readonly except: readonly string[]
  /** The frames come once the connection is open, where nothing but nghttp2 reads them. */
  readonly isLate: boolean
}

/** `malformed`: a reset, or 400 before it (RFC 9113 §8.1.1). */
export type Http2Outcome = number | 'reset' | 'gone' | 'malformed'

type Row = Omit<Http2Case, 'family'>

const PATH = `/${MARK}`
const SEEN = seen(`GET ${PATH}`)
const SIZE = INNER.length

/** A GET, whole in its head. */
function get(changes: Readonly<Record<string, string | null>> = {}, ...more: readonly string[]): Buffer {
  return headers(1, getRequest({ ':path': PATH, ...changes }, ...more))
}

/** A POST whose body follows. */
function post(...more: readonly string[]): Buffer {
  return headers(1, getRequest({ ':method': 'POST', ':path': PATH }, ...more), { hasEnded: false })
}

function served(name: string, frames: Buffer | readonly Buffer[], ...forwarded: readonly Forwarded[]): Row {
  return { name, frames: joined(frames), forwarded, outcome: 200, except: [], node: null, isLate: false }
}

function refused(name: string, status: number, frames: Buffer | readonly Buffer[]): Row {
  return {
    name,
    frames: joined(frames),
    forwarded: [],
    outcome: status,
    except: [],
    node: null,
    isLate: false,
  }
}

/** Behind the preface, nghttp2 leaves the malformed field out and the request goes on. */
function malformed(name: string, frames: Buffer): Row[] {
  const row = reset(name, frames)
  const node = { forwarded: [SEEN], outcome: 200 }
  return [row, { ...row, name: `${name}, later`, node, isLate: true }]
}

function reset(name: string, frames: Buffer | readonly Buffer[], ...begun: readonly Forwarded[]): Row {
  return {
    name,
    frames: joined(frames),
    forwarded: begun,
    outcome: 'malformed',
    except: [],
    node: null,
    isLate: false,
  }
}

function gone(name: string, frames: Buffer | readonly Buffer[], ...begun: readonly Forwarded[]): Row {
  return {
    name,
    frames: joined(frames),
    forwarded: begun,
    outcome: 'gone',
    except: [],
    node: null,
    isLate: false,
  }
}

/** A reset, and the end of the connection by nghttp2, which may choose it (RFC 9113 §5.4). */
function resetOrGone(name: string, frames: readonly Buffer[], ...begun: readonly Forwarded[]): Row {
  return { ...reset(name, frames, ...begun), node: { forwarded: begun, outcome: 'gone' } }
}

function except(row: Row, ...names: readonly string[]): Row {
  return { ...row, except: names }
}

function joined(frames: Buffer | readonly Buffer[]): Buffer {
  return Buffer.isBuffer(frames) ? frames : Buffer.concat(frames)
}

const POSTED = seen(`POST ${PATH}`, INNER, { framing: 'chunked' })
const MEASURED = seen(`POST ${PATH}`, INNER)
const BEGUN = { ...POSTED, isWhole: false }

/** What would be a field, a line or a request of its own in HTTP/1. nghttp2 leaves a field out that cannot be one. */
const INJECTIONS: readonly Row[] = [
  ...[
    ['CR LF', 'b\r\nC: d'],
    ['CR LF and a length', 'b\r\nContent-Length: 5'],
    ['CR LF and a coding', 'b\r\nTransfer-Encoding: chunked'],
    ['CR LF and a host', 'b\r\nHost: b'],
    ['an end of the head, and a request', `b\r\n\r\n${INNER}`],
    ['LF', 'b\nC: d'],
    ['CR', 'b\rC: d'],
    ['NUL', 'b\0'],
    ['DEL', 'b\x7f'],
    ['a vertical tab', 'b\x0b'],
  ].flatMap(([name, value]) => [
    ...malformed(`${name} in a value`, get({}, 'b', value!)),
    ...malformed(`${name} in a cookie`, get({}, 'cookie', value!)),
    ...malformed(`${name} in a name`, get({}, `b${value!.toLowerCase()}`, 'd')),
    reset(`${name} in :path`, get({ ':path': PATH + value })),
    reset(`${name} in :authority`, get({ ':authority': value! })),
    reset(`${name} in :method`, get({ ':method': `GET ${value}` })),
    reset(`${name} in :scheme`, get({ ':scheme': `http${value}` })),
    reset(`${name} in a host`, get({ ':authority': null }, 'host', value!)),
  ]),
  ...malformed('a colon in a name', get({}, 'b: c\r\nd', 'e')),
  ...malformed('a colon at the end of a name', get({}, 'b:', 'c')),
  ...malformed('a blank in a name', get({}, 'b c', 'd')),
  ...malformed('a blank at the end of a name', get({}, 'content-length ', '5')),
  ...malformed('a blank before a name', get({}, ' content-length', '5')),
  reset('upper case', get({}, 'B', 'c')),
  reset('Transfer-Encoding in upper case', get({}, 'Transfer-Encoding', 'chunked')),
  ...malformed('an empty name', get({}, '', 'b')),
  ...malformed('a name beyond ASCII', get({}, 'b\xff', 'c')),
  served('a tab in a value', get({}, 'b', 'c\td'), SEEN),
  served('a value beyond ASCII', get({}, 'b', '\xc4\x8a\xc4\x8d'), SEEN),
  served('an empty value', get({}, 'b', ''), SEEN),
  ...[' c', 'c ', '\tc', ' '].flatMap((value) => [
    refused(`the value “${value}”`, 400, get({}, 'b', value)),
    { ...refused(`the value “${value}”, later`, 400, get({}, 'b', value)), isLate: true },
  ]),
]

const PSEUDO: readonly Row[] = [
  reset('two paths', headers(1, [':path', `${PATH}/x`, ...getRequest({ ':path': PATH })])),
  reset('two methods', headers(1, [':method', 'POST', ...getRequest({ ':path': PATH })])),
  reset('two authorities', headers(1, [':authority', 'b', ...getRequest({ ':path': PATH })])),
  reset('two schemes', headers(1, [':scheme', 'http', ...getRequest({ ':path': PATH })])),
  reset('no path', get({ ':path': null })),
  reset('no method', get({ ':method': null })),
  reset('no scheme', get({ ':scheme': null })),
  reset('no authority and no host', get({ ':authority': null })),
  reset('an empty path', get({ ':path': '' })),
  reset('an empty method', get({ ':method': '' })),
  reset('an empty authority', get({ ':authority': '' })),
  reset('a late one', headers(1, getRequest({ ':path': null }, 'b', 'c', ':path', PATH))),
  reset('an unknown one', headers(1, [':foo', 'bar', ...getRequest({ ':path': PATH })])),
  reset('one of an answer', headers(1, [':status', '200', ...getRequest({ ':path': PATH })])),
  reset('one in upper case', headers(1, [':Path', PATH, ...getRequest({ ':path': null })])),
  reset('a colon only', headers(1, [':', 'b', ...getRequest({ ':path': PATH })])),
  reset('a path without a slash', get({ ':path': MARK })),
  reset('a URL for a path', get({ ':path': `http://b${PATH}` })),
  reset('an asterisk for GET', get({ ':path': '*' })),
  except(
    served(
      'an asterisk for OPTIONS',
      get({ ':method': 'OPTIONS', ':path': '*', ':authority': MARK }),
      seen('OPTIONS *', '', { host: MARK }),
    ),
    ...['nginx', 'nginx over h2c'],
  ),
  refused('a fragment', 400, get({ ':path': `${PATH}#x` })),
  reset('a blank in the path', get({ ':path': `${PATH} x` })),
  reset('a request line in the path', get({ ':path': `${PATH} HTTP/1.1` })),
  reset('a tab in the path', get({ ':path': `${PATH}\tx` })),
  refused('a path beyond ASCII', 400, get({ ':path': `${PATH}\xff` })),
  except(served('two slashes', get({ ':path': `//b${PATH}` }), seen(`GET //b${PATH}`)), 'apache2'),
  served('an encoded line end', get({ ':path': `${PATH}%0d%0ab` }), seen(`GET ${PATH}%0d%0ab`)),
  reset('a method with a path', get({ ':method': 'GET /smuggled HTTP/1.1' })),
  reset('a method with a slash', get({ ':method': 'GET/' })),
  served('another method', get({ ':method': 'M-SEARCH' }), seen(`M-SEARCH ${PATH}`)),
  refused('another scheme', 400, get({ ':scheme': 'ftp' })),
  reset('a scheme with a host', get({ ':scheme': 'http://b/x' })),
  refused('a list of authorities', 400, get({ ':authority': 'a,b' })),
  reset('an authority with a user', get({ ':authority': 'u@a' })),
  reset('an authority with a path', get({ ':authority': 'a/b' })),
  reset('an authority with a blank', get({ ':authority': 'a b' })),
  refused('an authority with an invalid port', 400, get({ ':authority': 'a:b' })),
  served(
    'an authority with a port',
    get({ ':authority': 'a:81' }),
    seen(`GET ${PATH}`, '', { host: 'a:81' }),
  ),
  served('a host in place of an authority', get({ ':authority': null }, 'host', 'a'), SEEN),
  served('a host that is the authority', get({}, 'host', 'a'), SEEN),
  refused('a host that is another', 400, get({}, 'host', 'b')),
  reset('an empty host', get({}, 'host', '')),
  reset('two hosts', get({ ':authority': null }, 'host', 'a', 'host', 'b')),
  refused('CONNECT', 501, headers(1, [':method', 'CONNECT', ':authority', `${MARK}:443`])),
  reset('CONNECT with a path', get({ ':method': 'CONNECT' })),
  reset(
    'an extended CONNECT',
    headers(1, [':protocol', 'websocket', ...getRequest({ ':method': 'CONNECT', ':path': PATH })]),
  ),
  reset('a protocol of a GET', headers(1, [':protocol', 'websocket', ...getRequest({ ':path': PATH })])),
]

const CONNECTION_FIELDS: readonly Row[] = [
  ['transfer-encoding', 'chunked'],
  ['transfer-encoding', 'identity'],
  ['connection', 'close'],
  ['connection', 'keep-alive, transfer-encoding'],
  ['keep-alive', 'timeout=5'],
  ['proxy-connection', 'close'],
  ['upgrade', 'websocket'],
  ['upgrade', 'h2c'],
  ['te', 'gzip'],
  ['te', 'chunked'],
  ['te', 'trailers, chunked'],
].flatMap(([name, value]) => [
  reset(`${name}: ${value}`, get({}, name!, value!)),
  reset(`${name}: ${value}, and a body`, [post(name!, value!), data(1, `0\r\n\r\n${INNER}`)]),
])

const ALLOWED: readonly Row[] = [
  served('te: trailers', get({}, 'te', 'trailers'), SEEN),
  served('http2-settings', get({}, 'http2-settings', 'AAMAAABk'), SEEN),
  served('an underscore in transfer_encoding', get({}, 'transfer_encoding', 'chunked'), SEEN),
  served('an underscore in content_length', get({}, 'content_length', '5'), SEEN),
  served('a trailer that is announced', get({}, 'trailer', 'b'), SEEN),
  refused('another expectation', 417, get({}, 'expect', '200-ok')),
  refused('an expectation in a list', 417, get({}, 'expect', 'y 100-continue')),
]

const LENGTHS: readonly Row[] = [
  served('a body without a length', [post(), data(1, INNER)], POSTED),
  served('a body with its length', [post('content-length', `${SIZE}`), data(1, INNER)], MEASURED),
  served('leading zeros', [post('content-length', `00${SIZE}`), data(1, INNER)], MEASURED),
  served('a body in pieces', [post(), data(1, INNER.slice(0, 3), false), data(1, INNER.slice(3))], POSTED),
  served('a body that ends in a frame of its own', [post(), data(1, INNER, false), data(1, '')], POSTED),
  served(
    'chunks for a body',
    [post(), data(1, `0\r\n\r\n${INNER}`)],
    seen(`POST ${PATH}`, `0\r\n\r\n${INNER}`, { framing: 'chunked' }),
  ),
  served(
    'a body of a GET',
    [headers(1, getRequest({ ':path': PATH }), { hasEnded: false }), data(1, INNER)],
    seen(`GET ${PATH}`, INNER, { framing: 'chunked' }),
  ),
  served('no body', get({ ':method': 'POST' }), seen(`POST ${PATH}`, '', { framing: 'length' })),
  served('a length of nothing', get({}, 'content-length', '0'), SEEN),
  reset('a length and no body', get({}, 'content-length', '5')),
  reset('a length and an empty body', [post('content-length', '5'), data(1, '')], BEGUN),
  resetOrGone('H2.CL: a length of nothing, and a body', [post('content-length', '0'), data(1, INNER)], BEGUN),
  resetOrGone('H2.CL: a length that is too short', [post('content-length', '5'), data(1, INNER)], BEGUN),
  reset('a length that is too long', [post('content-length', `${SIZE + 1}`), data(1, INNER)], BEGUN),
  resetOrGone(
    'a length that is too short for two frames',
    [post('content-length', '9'), data(1, INNER.slice(0, 3), false), data(1, INNER.slice(3))],
    BEGUN,
  ),
  reset('two lengths', [post('content-length', `${SIZE}`, 'content-length', '0'), data(1, INNER)]),
  reset('two equal lengths', [post(...equal('content-length', `${SIZE}`)), data(1, INNER)]),
  ...['', '+5', '-5', '0x5', '5, 5', '5 5', '5;', '5.0', '1e1', 'x', '99999999999999999999'].map((value) =>
    reset(`a length of “${value}”`, [post('content-length', value), data(1, 'hello')]),
  ),
  ...['99999999999999999', '9007199254740993'].map((value) =>
    refused(`a length of ${value}`, 400, [post('content-length', value)]),
  ),
  reset('H2.TE', [post('transfer-encoding', 'chunked'), data(1, `0\r\n\r\n${INNER}`)]),
  reset('H2.TE and a length', [
    post('content-length', `${SIZE + 5}`, 'transfer-encoding', 'chunked'),
    data(1, `0\r\n\r\n${INNER}`),
  ]),
]

function equal(name: string, value: string): string[] {
  return [name, value, name, value]
}

const TRAILERS: readonly Row[] = [
  // nginx (1.22) knows no trailers of requests.
  except(
    served('trailers', [post(), data(1, INNER, false), headers(1, ['b', 'c'])], POSTED),
    'nginx over h2c',
  ),
  served('a tag for a trailer', [post(), data(1, INNER, false), headers(1, ['x-agent-name', 'c'])], POSTED),
  served('a host for a trailer', [post(), data(1, INNER, false), headers(1, ['host', 'b'])], POSTED),
  ...[
    ['a path', ':path', '/x'],
    ['a method', ':method', 'GET'],
    ['a status', ':status', '200'],
    ['a coding', 'transfer-encoding', 'chunked'],
    ['Connection', 'connection', 'close'],
    ['upper case', 'B', 'c'],
  ].map(([name, field, value]) =>
    reset(`${name} in a trailer`, [post(), data(1, INNER, false), headers(1, [field!, value!])], BEGUN),
  ),
  ...[
    ['CR LF in a value', 'b', 'c\r\nd: e'],
    ['an end and a request', 'b', `c\r\n\r\n${INNER}`],
    ['CR LF in a name', 'b\r\nc', 'd'],
    ['NUL', 'b', '\0'],
  ].map(([name, field, value]) => ({
    ...reset(`${name} in a trailer`, [post(), data(1, INNER, false), headers(1, [field!, value!])], BEGUN),
    node: { forwarded: [POSTED], outcome: 200 },
  })),
  reset(
    'trailers that end nothing',
    [post(), data(1, INNER, false), headers(1, ['b', 'c'], { hasEnded: false })],
    BEGUN,
  ),
]

const FRAMES: readonly Row[] = [
  gone('HEADERS on no stream', headers(0, getRequest({ ':path': PATH }))),
  gone('HEADERS on an even stream', headers(2, getRequest({ ':path': PATH }))),
  gone('DATA on no stream', data(0, INNER)),
  gone('DATA on an idle stream', data(5, INNER)),
  gone('another frame within a head', [
    headers(1, getRequest({ ':path': PATH }), { isWhole: false }),
    data(1, INNER),
  ]),
  gone('a CONTINUATION of another stream', [
    headers(1, getRequest({ ':path': PATH }), { isWhole: false }),
    frame(9, 4, 3),
  ]),
  gone('a CONTINUATION of nothing', frame(9, 4, 1)),
  gone('padding that is longer than its frame', [post(), frame(0, 8, 1, Buffer.of(9, 0))], BEGUN),
  gone('a PUSH_PROMISE', frame(5, 4, 1, Buffer.of(0, 0, 0, 2))),
  gone('an index of nothing in a head', frame(1, 5, 1, Buffer.of(0xff, 0xff, 0x03))),
  gone('half a field', frame(1, 5, 1, Buffer.of(0, 9, 97))),
  gone('HTTP/1 for frames', Buffer.from(`${INNER}${INNER}`)),
]

export const HTTP2_CASES: readonly Http2Case[] = Object.entries({
  injections: INJECTIONS,
  'pseudo-headers': PSEUDO,
  'fields of a connection': [...CONNECTION_FIELDS, ...ALLOWED],
  'lengths over HTTP/2': LENGTHS,
  'trailers over HTTP/2': TRAILERS,
  frames: FRAMES,
}).flatMap(([family, rows]) => rows.map((row) => ({ family, ...row })))
