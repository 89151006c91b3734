/** What an upstream sends when it is asked, and what its client may get of it. */
export interface AnswerCase {
  readonly name: string
  readonly method: 'GET' | 'HEAD' | 'POST'
  /** Bytes of the answer, and of what comes with it. */
  readonly bytes: string
  readonly after: 'stays' | 'ends' | 'resets'
  /** A complete answer, a visibly broken one, or our error. */
  readonly heard: { readonly status: number; readonly body: string } | 'broken' | 'none'
  /** There is more than the answer: it may not come apart from it, or it would be another request's. */
  readonly hasMore: boolean
}

export const POISON = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'

const OK = 'HTTP/1.1 200 OK\r\n'
const TWO = 'Content-Length: 2\r\n'
const CODED = 'Transfer-Encoding: chunked\r\n'

type More = Partial<Pick<AnswerCase, 'method' | 'after' | 'hasMore'>> & { status?: number; body?: string }

function whole(name: string, bytes: string, more: More = {}): AnswerCase {
  const { status = 200, body = 'ok', method = 'GET', after = 'stays', hasMore = false } = more
  return { name, method, bytes, after, heard: { status, body }, hasMore }
}

function none(name: string, bytes: string, after: AnswerCase['after'] = 'stays'): AnswerCase {
  return { name, method: 'GET', bytes, after, heard: 'none', hasMore: true }
}

function broken(name: string, bytes: string, after: AnswerCase['after'] = 'stays'): AnswerCase {
  return { name, method: 'GET', bytes, after, heard: 'broken', hasMore: true }
}

const WHOLE: readonly AnswerCase[] = [
  whole('a length', `${OK}${TWO}\r\nok`),
  whole('chunks', `${OK}${CODED}\r\n2\r\nok\r\n0\r\n\r\n`),
  whole('chunks with extensions and trailers', `${OK}${CODED}\r\n2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n`),
  whole('until it closes', `${OK}\r\nok`, { after: 'ends' }),
  whole('HTTP/1.0 until it closes', 'HTTP/1.0 200 OK\r\n\r\nok', { after: 'ends' }),
  whole('HTTP/1.0 that is kept alive', `HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n${TWO}\r\nok`),
  whole('two equal lengths', `${OK}${TWO}${TWO}\r\nok`),
  whole('a list of equal lengths', `${OK}Content-Length: 2, 2\r\n\r\nok`),
  whole('a length that Connection takes away', `${OK}Connection: Content-Length\r\n${TWO}\r\nok`),
  whole('no reason', 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok'),
  whole('an unrequested 100', `HTTP/1.1 100 Continue\r\n\r\n${OK}${TWO}\r\nok`),
  whole('a 103', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}${TWO}\r\nok`),
  whole('32 of them', `${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(32)}${OK}${TWO}\r\nok`),
  whole('no body', `${OK}Content-Length: 0\r\n\r\n`, { body: '' }),
  whole('HEAD with a length', `${OK}${TWO}\r\n`, { method: 'HEAD', body: '' }),
  whole('HEAD with chunks', `${OK}${CODED}\r\n`, { method: 'HEAD', body: '' }),
  whole('204', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '' }),
  whole('204 with a length', `HTTP/1.1 204 No Content\r\n${TWO}\r\n`, { status: 204, body: '' }),
  whole('304 with a length', `HTTP/1.1 304 Not Modified\r\n${TWO}\r\n`, { status: 304, body: '' }),
]

/** A complete answer with more bytes behind it, which are discarded. */
const TOO_MUCH: readonly AnswerCase[] = [
  whole('two answers', `${OK}${TWO}\r\nok${POISON}`),
  whole('two answers, the first without a body', `${OK}Content-Length: 0\r\n\r\n${POISON}`, { body: '' }),
  whole('two answers, the first in chunks', `${OK}${CODED}\r\n2\r\nok\r\n0\r\n\r\n${POISON}`),
  whole(
    'two answers, the first in chunks with trailers',
    `${OK}${CODED}\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n${POISON}`,
  ),
  whole('two answers behind an interim one', `HTTP/1.1 103 Early Hints\r\n\r\n${OK}${TWO}\r\nok${POISON}`),
  whole('an answer and an interim one', `${OK}${TWO}\r\nokHTTP/1.1 100 Continue\r\n\r\n`),
  whole('an answer and half of another', `${OK}${TWO}\r\nok${POISON.slice(0, 20)}`),
  whole('an answer and a line end', `${OK}${TWO}\r\nok\r\n`),
  whole('an answer and a byte', `${OK}${TWO}\r\nok!`),
  whole('an answer that closes, and another', `${OK}Connection: close\r\n${TWO}\r\nok${POISON}`),
  whole('many answers', `${OK}${TWO}\r\nok${POISON.repeat(50)}`),
  whole('HEAD with a body', `${OK}${TWO}\r\nok`, { method: 'HEAD', body: '' }),
  whole('HEAD with an answer for a body', `${OK}Content-Length: ${POISON.length}\r\n\r\n${POISON}`, {
    method: 'HEAD',
    body: '',
  }),
  whole('HEAD with chunks that come', `${OK}${CODED}\r\n2\r\nok\r\n0\r\n\r\n`, { method: 'HEAD', body: '' }),
  whole('204 with a body', `HTTP/1.1 204 No Content\r\n${TWO}\r\nok`, { status: 204, body: '' }),
  whole('204 with an answer for a body', `HTTP/1.1 204 No Content\r\n\r\n${POISON}`, {
    status: 204,
    body: '',
  }),
  whole('204 with chunks', `HTTP/1.1 204 No Content\r\n${CODED}\r\n2\r\nok\r\n0\r\n\r\n`, {
    status: 204,
    body: '',
  }),
  whole('304 with a body', `HTTP/1.1 304 Not Modified\r\n${TWO}\r\nok`, { status: 304, body: '' }),
  whole('304 with an answer for a body', `HTTP/1.1 304 Not Modified\r\n\r\n${POISON}`, {
    status: 304,
    body: '',
  }),
  whole('an answer before the body was read, and another', `${OK}${TWO}\r\nok${POISON}`, { method: 'POST' }),
].map((one) => ({ ...one, hasMore: true }))

/** Heads that two readers take in two ways. */
const BAD_HEADS: readonly AnswerCase[] = [
  ...[
    ['two framings', `${TWO}${CODED}`],
    ['two framings, the coding first', `${CODED}${TWO}`],
    ['two lengths', `${TWO}Content-Length: 3\r\n`],
    ['a list of lengths', 'Content-Length: 2, 3\r\n'],
    ['a plus', 'Content-Length: +2\r\n'],
    ['a minus', 'Content-Length: -2\r\n'],
    ['hexadecimal', 'Content-Length: 0x2\r\n'],
    ['an empty length', 'Content-Length:\r\n'],
    ['a length in two words', 'Content-Length: 2 2\r\n'],
    ['a length beyond numbers', `Content-Length: ${'9'.repeat(30)}\r\n`],
    ['another coding', 'Transfer-Encoding: gzip\r\n'],
    ['identity', 'Transfer-Encoding: identity\r\n'],
    ['almost chunked', 'Transfer-Encoding: xchunked\r\n'],
    ['chunked in a list', 'Transfer-Encoding: gzip, chunked\r\n'],
    ['chunked twice', `${CODED}${CODED}`],
    ['chunked behind a vertical tab', 'Transfer-Encoding: \x0bchunked\r\n'],
    ['an empty coding', 'Transfer-Encoding:\r\n'],
    ['a blank before the colon', `A : b\r\n${TWO}`],
    ['a coding with a blank before its colon', 'Transfer-Encoding : chunked\r\n'],
    ['a length with a blank before its colon', 'Content-Length : 2\r\n'],
    ['a folded line', `A: b\r\n c\r\n${TWO}`],
    ['a folded length', 'Content-Length:\r\n 2\r\n'],
    ['a line that begins with a blank', ` A: b\r\n${TWO}`],
    ['a bare line feed', `A: b\nC: d\r\n${TWO}`],
    ['a length behind a bare line feed', 'A: b\nContent-Length: 2\r\n'],
    ['a bare carriage return', `A: b\rC: d\r\n${TWO}`],
    ['NUL', `A: b\0\r\n${TWO}`],
    ['a control character', `A: b\x01\r\n${TWO}`],
    ['DEL', `A: b\x7f\r\n${TWO}`],
    ['an empty name', `: b\r\n${TWO}`],
    ['no colon', `A\r\n${TWO}`],
    ['a name with a blank', `A B: c\r\n${TWO}`],
    ['a name beyond ASCII', `A\xff: b\r\n${TWO}`],
    ['an answer for a field', `HTTP/1.1 200 OK\r\n${TWO}`],
    ['too many fields', `${'A: b\r\n'.repeat(300)}${TWO}`],
    ['a head without end', `A: ${'b'.repeat(70_000)}\r\n`],
  ].map(([name, fields]) => none(name!, `${OK}${fields}\r\n2\r\nok\r\n0\r\n\r\n${POISON}`)),
  ...[
    ['HTTP/2.0', 'HTTP/2.0 200 OK\r\n'],
    ['HTTP/1.2', 'HTTP/1.2 200 OK\r\n'],
    ['HTTP/0.9', 'hello, I am from before there were heads\r\n'],
    ['lower case', 'http/1.1 200 OK\r\n'],
    ['ICY', 'ICY 200 OK\r\n'],
    ['no blank', 'HTTP/1.1200 OK\r\n'],
    ['two blanks', 'HTTP/1.1  200 OK\r\n'],
    ['a tab', 'HTTP/1.1\t200 OK\r\n'],
    ['no status', 'HTTP/1.1 OK\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n'],
    ['status 099', 'HTTP/1.1 099 OK\r\n'],
    ['status 600', 'HTTP/1.1 600 OK\r\n'],
    ['NUL in the reason', 'HTTP/1.1 200 O\0K\r\n'],
    ['a bare carriage return in the reason', 'HTTP/1.1 200 OK\rA: b\r\n'],
    ['a bare line feed behind the first line', 'HTTP/1.1 200 OK\n'],
    ['an empty line before', '\r\nHTTP/1.1 200 OK\r\n'],
    ['a bare line feed before', '\nHTTP/1.1 200 OK\r\n'],
    ['a blank before', ' HTTP/1.1 200 OK\r\n'],
    ['a byte before', '!HTTP/1.1 200 OK\r\n'],
    ['chunks in HTTP/1.0', `HTTP/1.0 200 OK\r\n${CODED}`],
    ['a request', 'GET / HTTP/1.1\r\nHost: a\r\n'],
    ['TLS', '\x15\x03\x01\0\x02\x02\x16'],
    ['a preface of HTTP/2', '\0\0\0\x04\0\0\0\0\0'],
    ['an unrequested 101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'],
    ['101 without an upgrade', 'HTTP/1.1 101 Switching Protocols\r\n'],
    ['an invalid interim answer', 'HTTP/1.1 1x0 Continue\r\n'],
    ['too many interim ones', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(40)],
  ].map(([name, line]) => none(name!, `${line}${TWO}\r\nok${POISON}`)),
  none('nothing', '', 'ends'),
  none('nothing, and a reset', '', 'resets'),
  none('half a head', `${OK}${TWO}`, 'ends'),
  none('half a first line', 'HTTP/1.1 2', 'ends'),
  none('an interim answer and no other', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'ends'),
]

/** A valid start with an invalid rest: no client may take it for complete. */
const BROKEN: readonly AnswerCase[] = [
  broken('a body that is too short', `${OK}Content-Length: 9\r\n\r\nok`, 'ends'),
  broken('a body that is too short, and a reset', `${OK}Content-Length: 9\r\n\r\nok`, 'resets'),
  broken('no last chunk', `${OK}${CODED}\r\n2\r\nok\r\n`, 'ends'),
  broken('no last line', `${OK}${CODED}\r\n2\r\nok\r\n0\r\n`, 'ends'),
  broken('half a chunk', `${OK}${CODED}\r\n9\r\nok`, 'ends'),
  ...[
    ['an invalid size', 'x\r\nok\r\n0\r\n\r\n'],
    ['a negative size', '-2\r\nok\r\n0\r\n\r\n'],
    ['a prefixed size', '0x2\r\nok\r\n0\r\n\r\n'],
    ['a size in quotes', '"2"\r\nok\r\n0\r\n\r\n'],
    ['an empty size', '\r\nok\r\n0\r\n\r\n'],
    ['a size beyond numbers', 'fffffffffffffffff\r\nok\r\n0\r\n\r\n'],
    ['a bare line feed behind a size', '2\nok\r\n0\r\n\r\n'],
    ['a bare carriage return behind a size', '2\rok\r\n0\r\n\r\n'],
    ['a chunk that is too long', '2\r\nokok\r\n0\r\n\r\n'],
    ['a chunk that does not end', '2\r\nok0\r\n\r\n'],
    ['a chunk that ends in a bare line feed', '2\r\nok\n0\r\n\r\n'],
    ['a line feed in an extension', '2;a\nb\r\nok\r\n0\r\n\r\n'],
    ['an extension without end', `2;${'a'.repeat(1000)}\r\nok\r\n0\r\n\r\n`],
    ['a bare line feed in a trailer', '2\r\nok\r\n0\r\nA: b\nC: d\r\n\r\n'],
    ['a folded trailer', '2\r\nok\r\n0\r\nA: b\r\n c\r\n\r\n'],
    ['a trailer without a colon', '2\r\nok\r\n0\r\nA\r\n\r\n'],
    ['NUL in a trailer', '2\r\nok\r\n0\r\nA: b\0\r\n\r\n'],
    ['trailers without end', `2\r\nok\r\n0\r\nA: ${'b'.repeat(20_000)}\r\n\r\n`],
    ['an answer for a last line', `2\r\nok\r\n0\r\n${POISON}`],
  ].map(([name, chunks]) => broken(name!, `${OK}${CODED}\r\n${chunks}${POISON}`)),
]

export const ANSWER_CASES: readonly AnswerCase[] = [...WHOLE, ...TOO_MUCH, ...BAD_HEADS, ...BROKEN]
