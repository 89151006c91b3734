import {
  begun,
  type Case,
  cut,
  family,
  GET_SEEN,
  get,
  HOST,
  INNER,
  MARK,
  NEXT,
  NEXT_SEEN,
  post,
  postSeen,
  type Row,
  refused,
  seen,
  served,
  servedLast,
} from './desync-case.ts'

const LINE = `GET /${MARK} HTTP/1.1\r\n`
const HEAD = `${LINE}${HOST}`

const LINE_ENDS: readonly Row[] = [
  refused('a bare line feed behind the first line', 505, `GET /${MARK} HTTP/1.1\n${HOST}\r\n${INNER}`),
  refused('bare line feeds', 505, `GET /${MARK} HTTP/1.1\nHost: a\n\n${INNER}`),
  refused('a bare line feed behind a field', 400, `${LINE}Host: a\n\r\n${INNER}`),
  refused('a bare line feed that hides a field', 400, `${HEAD}A: b\nC: d\r\n\r\n${INNER}`),
  refused('a bare line feed at the end', 400, `${HEAD}\n${INNER}`),
  refused('two bare line feeds at the end', 400, `${LINE}Host: a\n\n${INNER}`),
  refused('CR LF LF', 400, `${HEAD}A: b\r\n\n${INNER}`),
  refused('LF CR LF', 400, `${HEAD}A: b\n\r\n${INNER}`),
  refused('a bare carriage return behind the first line', 400, `GET /${MARK} HTTP/1.1\r${HOST}\r\n${INNER}`),
  refused('a bare carriage return behind a field', 400, `${HEAD}A: b\rC: d\r\n\r\n${INNER}`),
  refused('a bare carriage return at the end', 400, `${HEAD}\r${INNER}`),
  refused('CR CR LF behind the first line', 400, `GET /${MARK} HTTP/1.1\r\r\n${HOST}\r\n${INNER}`),
  refused('CR CR LF behind a field', 400, `${HEAD}A: b\r\r\n\r\n${INNER}`),
  refused('CR CR LF at the end', 400, `${HEAD}\r\r\n${INNER}`),
  refused('NUL for a line end', 400, `${HEAD}A: b\0\0\r\n\r\n${INNER}`),
  refused('a vertical tab for a line end', 400, `${HEAD}A: b\x0b\r\n\r\n${INNER}`),
  refused('a form feed for a line end', 400, `${HEAD}A: b\x0c\r\n\r\n${INNER}`),
  served(
    'the line end of latin1 is a byte of the value',
    `${HEAD}A: b\x85C: d\r\n\r\n${NEXT}`,
    GET_SEEN,
    NEXT_SEEN,
  ),
  served(
    'the line end of Unicode is three bytes of it',
    `${HEAD}A: \xe2\x80\xa8\r\n\r\n${NEXT}`,
    GET_SEEN,
    NEXT_SEEN,
  ),
  served(
    'letters whose lower byte is a line end',
    `${HEAD}A: \xc4\x8d\xc4\x8a\r\n\r\n${NEXT}`,
    GET_SEEN,
    NEXT_SEEN,
  ),
  served('an empty line before', `\r\n${get()}${NEXT}`, GET_SEEN, NEXT_SEEN),
  served('empty lines before', `\r\n\r\n\r\n${get()}${NEXT}`, GET_SEEN, NEXT_SEEN),
  served('empty lines between', `${get()}\r\n\r\n${NEXT}`, GET_SEEN, NEXT_SEEN),
  served(
    'an empty line behind a body',
    `${post('Content-Length: 5\r\n', 'hello')}\r\n${NEXT}`,
    postSeen('hello'),
    NEXT_SEEN,
  ),
  served('bare line feeds before', `\n\n${get()}${NEXT}`, GET_SEEN, NEXT_SEEN),
  served('bare carriage returns before', `\r\r${get()}${NEXT}`, GET_SEEN, NEXT_SEEN),
  refused('a blank before', 501, ` ${get()}${INNER}`),
  refused('a tab before', 501, `\t${get()}${INNER}`),
  refused('NUL before', 501, `\0${get()}${INNER}`),
  refused('a byte order mark before', 501, `\xef\xbb\xbf${get()}${INNER}`),
]

const FOLDS: readonly Row[] = [
  ['a folded line', `${HEAD}A: b\r\n c\r\n\r\n`],
  ['folded by a tab', `${HEAD}A: b\r\n\tc\r\n\r\n`],
  ['folded, and empty before', `${HEAD}A:\r\n b\r\n\r\n`],
  ['folded, and empty behind', `${HEAD}A: b\r\n \r\n\r\n`],
  ['folded by a bare line feed', `${HEAD}A: b\n c\r\n\r\n`],
  ['folded by a bare carriage return', `${HEAD}A: b\r c\r\n\r\n`],
  ['a folded end of the head', `${HEAD}A: b\r\n \r\n${INNER}`],
  ['a folded Host', `${LINE}Host:\r\n a\r\n\r\n`],
  ['a Host folded on', `${LINE}Host: a\r\n b\r\n\r\n`],
  ['a field hidden in a fold', `${HEAD}A: b\r\n Content-Length: 5\r\n\r\n`],
  ['a Connection folded on', `${HEAD}Connection: keep-alive\r\n , close\r\n\r\n`],
].map(([name, bytes]) => refused(name!, 400, bytes! + INNER))

const FIRST_FOLDED: readonly Row[] = [
  refused('a folded first line', 400, `${LINE} A: b\r\n${HOST}\r\n${INNER}`),
  refused('a folded first line, by a tab', 400, `${LINE}\tA: b\r\n${HOST}\r\n${INNER}`),
  refused('an empty folded first line', 400, `${LINE} \r\n${HOST}\r\n${INNER}`),
]

const NAMES: readonly Row[] = [
  ['a blank before the colon', 'A : b'],
  ['a tab before the colon', 'A\t: b'],
  ['a blank in the name', 'A B: c'],
  ['an empty name', ': b'],
  ['only a colon', ':'],
  ['no colon', 'A'],
  ['a blank for a name', ' : b'],
  ['a slash', 'A/B: c'],
  ['brackets', 'A[0]: b'],
  ['parentheses', 'A(b): c'],
  ['an at sign', '@A: b'],
  ['an equals sign', 'A=B: c'],
  ['quotes', '"A": b'],
  ['a semicolon', 'A;B: c'],
  ['a comma', 'A,B: c'],
  ['a backslash', 'A\\B: c'],
  ['a request for a field', `GET /${MARK}/smuggled HTTP/1.1`],
  ['a length with a blank before its colon', 'Content-Length : 5'],
  ['a Connection with a blank before its colon', 'Connection : close'],
].map(([name, line]) => refused(name!, 400, `${HEAD}${line}\r\n\r\n${INNER}`))

const VERSIONS: readonly Row[] = [
  cut('HTTP/0.9, a line alone', 400, `GET /${MARK}\r\n`),
  refused('HTTP/0.9, and an empty line', 505, `GET /${MARK}\r\n\r\n`),
  refused('HTTP/0.9, and a blank', 400, `GET /${MARK} \r\n\r\n`),
  ...[
    ['HTTP/0.9', 505],
    ['HTTP/1.2', 505],
    ['HTTP/1.9', 505],
    ['HTTP/2.0', 505],
    ['HTTP/2', 505],
    ['HTTP/3.0', 505],
    ['HTTP/0.0', 505],
    ['HTTP/9.9', 505],
    ['HTTP/1.10', 505],
    ['HTTP/1.01', 505],
    ['HTTP/01.1', 505],
    ['HTTP/11.1', 505],
    ['HTTP/1', 505],
    ['HTTP/1.', 505],
    ['HTTP/.1', 505],
    ['HTTP/', 505],
    ['HTTP', 400],
    ['HTTP/11', 505],
    ['HTTP/1,1', 505],
    ['HTTP/1.1.1', 505],
    ['HTTP/+1.1', 505],
    ['HTTP/-1.1', 505],
    ['HTTP/0x1.1', 505],
    ['HTTP/1.1x', 505],
    ['HTTP/1.1 ', 505],
    ['HTTP/1.1\t', 505],
    ['HTTP/1.1 HTTP/1.1', 505],
    ['HTTP/1.1\0', 505],
    ['HTTP/1.\xb9', 505],
    ['HTTP/ 1.1', 505],
    ['HTTP /1.1', 400],
    ['http/1.1', 400],
    ['Http/1.1', 400],
    ['HTTPS/1.1', 400],
    ['XTTP/1.1', 400],
    ['ICE/1.0', 400],
    ['SIP/2.0', 400],
    ['\0HTTP/1.1', 400],
    ['x HTTP/1.1', 400],
  ].map(([version, status]) =>
    refused(`${version}`, Number(status), `GET /${MARK} ${version}\r\n${HOST}\r\n${INNER}`),
  ),
  served(
    'two blanks before the version',
    `GET /${MARK}  HTTP/1.1\r\n${HOST}\r\n${NEXT}`,
    GET_SEEN,
    NEXT_SEEN,
  ),
  served('two blanks before the target', `GET  /${MARK} HTTP/1.1\r\n${HOST}\r\n${NEXT}`, GET_SEEN, NEXT_SEEN),
  // Node (24.21) takes both for HTTP, and tells of neither.
  servedLast('RTSP/1.0', `GET /${MARK} RTSP/1.0\r\n${HOST}\r\n${INNER}`, GET_SEEN),
  served('RTSP/1.1', `OPTIONS /${MARK} RTSP/1.1\r\n${HOST}\r\n${NEXT}`, seen(`OPTIONS /${MARK}`), NEXT_SEEN),
  refused('a tab before the version', 400, `GET /${MARK}\tHTTP/1.1\r\n${HOST}\r\n${INNER}`),
  refused('a tab before the target', 501, `GET\t/${MARK} HTTP/1.1\r\n${HOST}\r\n${INNER}`),
  refused('a form feed before the version', 400, `GET /${MARK}\x0cHTTP/1.1\r\n${HOST}\r\n${INNER}`),
  servedLast('HTTP/1.0', `GET /${MARK} HTTP/1.0\r\n${HOST}\r\n${INNER}`, GET_SEEN),
  servedLast(
    'HTTP/1.0, and a length',
    `POST /${MARK} HTTP/1.0\r\n${HOST}Content-Length: 5\r\n\r\nhello${INNER}`,
    postSeen('hello'),
  ),
  served(
    'HTTP/1.0 that is kept alive',
    `GET /${MARK} HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n\r\n${NEXT}`,
    GET_SEEN,
    NEXT_SEEN,
  ),
  refused(
    'HTTP/1.0, and chunks',
    400,
    `POST /${MARK} HTTP/1.0\r\n${HOST}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${INNER}`,
  ),
  servedLast(
    'HTTP/1.0 expects nothing',
    `POST /${MARK} HTTP/1.0\r\n${HOST}Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello`,
    postSeen('hello'),
  ),
]

const METHODS: readonly Row[] = [
  ['unknown', 'FOO', 501],
  ['in lower case', 'get', 400],
  ['in mixed case', 'Get', 400],
  ['with NUL', 'GE\0T', 501],
  ['with a byte beyond ASCII', 'GET\xff', 501],
  ['with a suffix', 'GETX', 501],
  ['cut short', 'GE', 501],
  ['none', '', 501],
  ['with a colon', 'GET:', 501],
  ['with a bare line feed', 'GET\n', 501],
  ['of HTTP/2', 'PRI', 505],
  ['of RTSP', 'DESCRIBE', 400],
  ['CONNECT', 'CONNECT', 501],
].map(([name, method, status]) =>
  refused(`a method ${name}`, Number(status), `${method} /${MARK} HTTP/1.1\r\n${HOST}\r\n${INNER}`),
)

const KNOWN: readonly Row[] = ['TRACE', 'DELETE', 'PUT', 'PATCH', 'SEARCH', 'M-SEARCH', 'REPORT', 'LOCK'].map(
  (method) => {
    const hasLength = method === 'PUT' || method === 'PATCH'
    return served(
      method,
      `${method} /${MARK} HTTP/1.1\r\n${HOST}\r\n${NEXT}`,
      seen(`${method} /${MARK}`, '', { framing: hasLength ? 'length' : 'none' }),
      NEXT_SEEN,
    )
  },
)

const PREFACES: readonly Row[] = [
  refused('a preface of HTTP/2 behind a request', 400, `${get()}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, GET_SEEN),
  refused('half a preface behind a request', 505, `${get()}PRI * HTTP/2.0\r\n\r\n${INNER}`, GET_SEEN),
  refused('TLS behind a request', 501, `${get()}\x16\x03\x01\x02\0\x01\0`, GET_SEEN),
  refused(
    'a header of PROXY behind a request',
    501,
    `${get()}PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n${INNER}`,
    GET_SEEN,
  ),
]

const CUT: readonly Row[] = [
  cut('a first line', 400, `GET /${MARK}`),
  cut('a head', 400, `${HEAD}A: b\r\n`),
  cut('a head before its last byte', 400, `${HEAD}\r`),
  cut('a body', 400, post('Content-Length: 9\r\n', 'hello'), begun(postSeen('hello'))),
  cut('a body that has not begun', 400, post('Content-Length: 9\r\n'), begun(postSeen())),
]

export const LINES: readonly Case[] = [
  ...family('line ends', LINE_ENDS),
  ...family('folds', [...FOLDS, ...FIRST_FOLDED]),
  ...family('names', NAMES),
  ...family('versions', VERSIONS),
  ...family('methods', [...METHODS, ...KNOWN]),
  ...family('other protocols', PREFACES),
  ...family('requests that break off', CUT),
]
