import {
  begun,
  type Case,
  chunked,
  cut,
  except,
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

function target(text: string, host = HOST): string {
  return `GET ${text} HTTP/1.1\r\n${host}\r\n`
}

const TARGETS: readonly Row[] = [
  ...[
    ['a URL', `http://b/${MARK}?x`, `/${MARK}?x`, 'b'],
    ['a URL of the same host', `http://a/${MARK}`, `/${MARK}`, 'a'],
    ['a URL with a port', `http://b:81/${MARK}`, `/${MARK}`, 'b:81'],
    ['a URL of https', `https://b/${MARK}`, `/${MARK}`, 'b'],
    ['a URL in upper case', `HTTP://B/${MARK}`, `/${MARK}`, 'B'],
    ['a URL without a path', `http://${MARK}`, '/', MARK],
    ['a URL with a query only', `http://${MARK}?x`, '/?x', MARK],
    ['a URL of an address', `http://[::1]/${MARK}`, `/${MARK}`, '[::1]'],
    ['a URL in a path', `/http://b/${MARK}`, `/http://b/${MARK}`, 'a'],
    ['an encoded line end', `/${MARK}%0d%0aX:%20y`, `/${MARK}%0d%0aX:%20y`, 'a'],
    ['an encoded blank', `/${MARK}%20HTTP/1.1`, `/${MARK}%20HTTP/1.1`, 'a'],
    ['a version in the path', `/${MARK}/HTTP/1.1`, `/${MARK}/HTTP/1.1`, 'a'],
    ['a question mark twice', `/${MARK}?a?b`, `/${MARK}?a?b`, 'a'],
    ['an at sign', `/@b/${MARK}`, `/@b/${MARK}`, 'a'],
    ['a semicolon', `/${MARK};a=b`, `/${MARK};a=b`, 'a'],
  ].map(([name, sent, line, host]) =>
    served(name!, target(sent!) + NEXT, seen(`GET ${line}`, '', { host: host! }), NEXT_SEEN),
  ),
  ...[
    ['a fragment', `/${MARK}#x`],
    ['a blank', `/${MARK} x`],
    ['a tab', `/${MARK}\tx`],
    ['NUL', `/${MARK}\0`],
    ['DEL', `/${MARK}\x7f`],
    ['a byte beyond ASCII', `/${MARK}\xff`],
    ['an asterisk', '*'],
    ['an asterisk and more', `*${MARK}`],
    ['no slash', MARK],
    ['a question mark only', `?${MARK}`],
    ['nothing before the version', ''],
    ['a port only', `:80/${MARK}`],
    ['an authority', `a:${MARK}`],
    ['a backslash', `\\${MARK}`],
    ['another scheme', `ftp://b/${MARK}`],
    ['a file', `file:///${MARK}`],
    ['a script', `javascript:${MARK}`],
    ['an unfinished scheme', `http:${MARK}`],
    ['one slash', `http:/${MARK}`],
    ['a URL without a host', `http:///${MARK}`],
    ['a URL with a user', `http://u@b/${MARK}`],
    ['a URL with a user and a password', `http://u:p@b/${MARK}`],
    ['a URL with an invalid port', `http://b:x/${MARK}`],
    ['a URL with a long port', `http://b:123456/${MARK}`],
    ['a URL with two ports', `http://b:1:2/${MARK}`],
    ['a URL with a backslash', `http://b\\@c/${MARK}`],
    ['a URL with a list of hosts', `http://b,c/${MARK}`],
    ['a URL with a fragment', `http://b/${MARK}#x`],
    ['a URL with a fragment for a path', `http://b#/${MARK}`],
    ['a URL with a blank', `http://b /${MARK}`],
  ].map(([name, sent]) => refused(name!, 400, target(sent!) + INNER)),
  // Which cuts one of them off before it asks its app.
  except('apache2', served('two slashes', target(`//b/${MARK}`), seen(`GET //b/${MARK}`))),
  refused('a fragment that hides a blank', 505, target(`/${MARK}# HTTP/1.1`) + INNER),
  ...[
    ['OPTIONS of a server', `OPTIONS * HTTP/1.1\r\nHost: ${MARK}\r\n\r\n${NEXT}`],
    ['OPTIONS of a server, by URL', `OPTIONS http://${MARK} HTTP/1.1\r\n${HOST}\r\n${NEXT}`],
  ].map(([name, bytes]) =>
    except('nginx', served(name!, bytes!, seen('OPTIONS *', '', { host: MARK }), NEXT_SEEN)),
  ),
  refused('CONNECT', 501, `CONNECT ${MARK}:443 HTTP/1.1\r\n${HOST}\r\n${INNER}`),
  refused('CONNECT to a path', 501, `CONNECT /${MARK} HTTP/1.1\r\n${HOST}\r\n${INNER}`),
  refused(
    'CONNECT with a length',
    501,
    `CONNECT ${MARK}:443 HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello${INNER}`,
  ),
]

const HOSTS: readonly Row[] = [
  ...[
    ['none', ''],
    ['empty', 'Host:\r\n'],
    ['blank', 'Host: \r\n'],
    ['two', 'Host: a\r\nHost: b\r\n'],
    ['two, equal', 'Host: a\r\nHost: a\r\n'],
    ['two, in two spellings', 'Host: a\r\nhOST: b\r\n'],
    ['two, apart', 'Host: a\r\nA: b\r\nHost: b\r\n'],
    ['two, one of them empty', 'Host: a\r\nHost:\r\n'],
    ['a list', 'Host: a, b\r\n'],
    ['a list without blanks', 'Host: a,b\r\n'],
    ['two words', 'Host: a b\r\n'],
    ['a user', 'Host: u@a\r\n'],
    ['a path', 'Host: a/b\r\n'],
    ['a query', 'Host: a?b\r\n'],
    ['a fragment', 'Host: a#b\r\n'],
    ['a URL', 'Host: http://a\r\n'],
    ['an invalid port', 'Host: a:b\r\n'],
    ['two ports', 'Host: a:1:2\r\n'],
    ['a long port', 'Host: a:123456\r\n'],
    ['a port only', 'Host: :80\r\n'],
    ['a quote', 'Host: a"\r\n'],
    ['a backslash', 'Host: a\\b\r\n'],
    ['an open bracket', 'Host: [::1\r\n'],
    ['a byte beyond ASCII', 'Host: \xe4\r\n'],
    ['NUL', 'Host: a\0b\r\n'],
    ['a tab within', 'Host: a\tb\r\n'],
    ['a blank before the colon', 'Host : a\r\n'],
    ['a blank before the name', 'A: b\r\n Host: a\r\n'],
    ['behind a bare line feed', 'A: b\nHost: a\r\n'],
    ['another name', 'X-Host: a\r\n'],
  ].map(([name, lines]) => refused(name!, 400, target(`/${MARK}`, lines!) + INNER)),
  served('a port', target(`/${MARK}`, 'Host: a:81\r\n'), seen(`GET /${MARK}`, '', { host: 'a:81' })),
  served('no blank', target(`/${MARK}`, 'Host:a\r\n'), GET_SEEN),
  served('tabs around', target(`/${MARK}`, 'Host:\ta\t\r\n'), GET_SEEN),
  served(
    'a URL has the last word',
    `GET http://b/${MARK} HTTP/1.1\r\n${HOST}X-Forwarded-Host: c\r\n\r\n${NEXT}`,
    seen(`GET /${MARK}`, '', { host: 'b' }),
    NEXT_SEEN,
  ),
  refused('two, and a URL', 400, `GET http://b/${MARK} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${INNER}`),
  refused('a bad one, and a URL', 400, `GET http://b/${MARK} HTTP/1.1\r\nHost: a b\r\n\r\n${INNER}`),
  refused('none, and a URL', 400, `GET http://b/${MARK} HTTP/1.1\r\n\r\n${INNER}`),
]

const CONNECTIONS: readonly Row[] = [
  ...[
    ['the host', 'Host'],
    ['a tag of ours', 'X-Agent-Verdict, X-Forwarded-For, Forwarded'],
    ['itself', 'Connection'],
    ['invalid names', '@, "a b", ,'],
    ['nothing', ''],
    ['a proxy', 'Proxy-Connection'],
    ['an upgrade that is not named', 'Upgrade'],
    ['the codings', 'TE'],
    ['a fingerprint', 'X-JA4-Fingerprint'],
  ].map(([name, value]) => served(name!, get(`Connection: ${value}\r\n`) + NEXT, GET_SEEN, NEXT_SEEN)),
  servedLast('close', get('Connection: close\r\n') + INNER, GET_SEEN),
  servedLast('close, in upper case', get('CONNECTION: CLOSE\r\n') + INNER, GET_SEEN),
  servedLast('close in a list', get('Connection: a, close\r\n') + INNER, GET_SEEN),
  servedLast('close in a second line', get('Connection: a\r\nConnection: close\r\n') + INNER, GET_SEEN),
  servedLast('close, and keep-alive', get('Connection: close, keep-alive\r\n') + INNER, GET_SEEN),
  servedLast(
    'close, and a body',
    post('Connection: close\r\nContent-Length: 5\r\n', `hello${INNER}`),
    postSeen('hello'),
  ),
  servedLast('close, by Proxy-Connection', get('Proxy-Connection: close\r\n') + INNER, GET_SEEN),
  served('Keep-Alive is ignored', get('Keep-Alive: max=0\r\n') + NEXT, GET_SEEN, NEXT_SEEN),
]

const WEB_SOCKET =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
const SIZE = INNER.length
const UPGRADED = seen(`GET /${MARK}`, '', { isUpgrade: true })

/** None of the upstreams agrees to any, so the bytes behind belong to no request. */
const UPGRADES: readonly Row[] = [
  servedLast('a WebSocket, and a request for a frame', get(WEB_SOCKET) + INNER, UPGRADED),
  servedLast('a WebSocket of an unknown version', get(WEB_SOCKET.replace('13', '777')) + INNER, UPGRADED),
  servedLast('an unknown protocol', get('Connection: Upgrade\r\nUpgrade: foo\r\n') + INNER, UPGRADED),
  servedLast(
    'h2c',
    get(
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n',
    ) + INNER,
    GET_SEEN,
  ),
  servedLast(
    'h2c, and a preface',
    `${get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n')}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
    GET_SEEN,
  ),
  servedLast('h2c that only Upgrade names', get('Connection: Upgrade\r\nUpgrade: h2c\r\n') + INNER, GET_SEEN),
  servedLast('h2c in upper case', get('Connection: upgrade\r\nUpgrade: H2C\r\n') + INNER, GET_SEEN),
  servedLast('h2c in a list', get('Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n') + INNER, GET_SEEN),
  servedLast(
    'h2c in a second line',
    get('Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n') + INNER,
    GET_SEEN,
  ),
  servedLast('h2c behind a tab', get('Connection: Upgrade\r\nUpgrade:\th2c\t\r\n') + INNER, GET_SEEN),
  servedLast('h2', get('Connection: Upgrade\r\nUpgrade: h2\r\n') + INNER, GET_SEEN),
  servedLast('HTTP/2.0', get('Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n') + INNER, GET_SEEN),
  servedLast('TLS/1.2', get('Connection: Upgrade\r\nUpgrade: TLS/1.2, HTTP/1.1\r\n') + INNER, GET_SEEN),
  served('h2c that Connection does not name', get('Upgrade: h2c\r\n') + NEXT, GET_SEEN, NEXT_SEEN),
  served('a Connection without Upgrade', get('Connection: Upgrade\r\n') + NEXT, GET_SEEN, NEXT_SEEN),
  servedLast(
    'a POST that asks for it',
    post(`${WEB_SOCKET}Content-Length: 5\r\n`, `hello${INNER}`),
    postSeen('hello'),
  ),
  servedLast(
    'a POST with chunks that asks for it',
    post(`${WEB_SOCKET}Transfer-Encoding: chunked\r\n`, chunked('hello') + INNER),
    postSeen('hello', 'chunked'),
  ),
  servedLast(
    'a GET with a length that asks for it',
    `${get(`${WEB_SOCKET}Content-Length: ${SIZE}\r\n`)}${INNER}`,
    seen(`GET /${MARK}`, INNER),
  ),
  servedLast(
    'a GET with no bytes that asks for it',
    get(`${WEB_SOCKET}Content-Length: 0\r\n`) + INNER,
    GET_SEEN,
  ),
  servedLast(
    'HTTP/1.0 that asks for it',
    `GET /${MARK} HTTP/1.0\r\n${HOST}${WEB_SOCKET}\r\n${INNER}`,
    GET_SEEN,
  ),
  // One only where it comes when the answer before it is out.
  servedLast('behind another request', NEXT + get(WEB_SOCKET) + INNER, NEXT_SEEN, UPGRADED),
  refused(
    'two framings, and it asks for it',
    400,
    post(`${WEB_SOCKET}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${INNER}`),
  ),
  refused('no host, and it asks for it', 400, `GET /${MARK} HTTP/1.1\r\n${WEB_SOCKET}\r\n${INNER}`),
]

const EXPECTS = `Expect: 100-continue\r\nContent-Length: ${SIZE}\r\n`
const EXPECTATIONS: readonly Row[] = [
  served('100-continue, and the body does not wait', post(EXPECTS, INNER) + NEXT, postSeen(INNER), NEXT_SEEN),
  served(
    'in another spelling',
    post(EXPECTS.replace('continue', 'CONTINUE'), INNER) + NEXT,
    postSeen(INNER),
    NEXT_SEEN,
  ),
  served('of a GET', `${get(EXPECTS)}${INNER}${NEXT}`, seen(`GET /${MARK}`, INNER), NEXT_SEEN),
  served(
    'of chunks',
    post('Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n', chunked(INNER)) + NEXT,
    postSeen(INNER, 'chunked'),
    NEXT_SEEN,
  ),
  // No 100 Continue was sent, so a body may come or not.
  servedLast('of nothing', post('Expect: 100-continue\r\nContent-Length: 0\r\n') + INNER, postSeen()),
  servedLast('of a GET without a body', get('Expect: 100-continue\r\n') + INNER, GET_SEEN),
  served(
    'that Connection takes away',
    post(`Connection: Expect\r\n${EXPECTS}`, INNER) + NEXT,
    postSeen(INNER),
    NEXT_SEEN,
  ),
  ...[
    ['another', '200-ok'],
    ['a word before it', 'y 100-continue'],
    ['a word behind it', '100-continue y'],
    ['a comma behind it', '100-continue,'],
    ['twice', '100-continue, 100-continue'],
    ['a parameter', '100-continue;a=b'],
    ['quoted', '"100-continue"'],
    ['cut short', '100-continu'],
    ['empty', ''],
    ['in two lines', '100-continue\r\nExpect: 100-continue'],
    ['a byte beyond ASCII', '100-continue\xa0'],
  ].map(([name, value]) =>
    refused(name!, 417, post(`Expect: ${value}\r\nContent-Length: ${SIZE}\r\n`, INNER)),
  ),
  refused('folded', 400, post(`Expect:\r\n 100-continue\r\nContent-Length: ${SIZE}\r\n`, INNER)),
  refused(
    'behind a bare line feed',
    400,
    post(`Expect:\n100-continue\r\nContent-Length: ${SIZE}\r\n`, INNER),
  ),
  refused(
    'a blank before the colon',
    400,
    post(`Expect : 100-continue\r\nContent-Length: ${SIZE}\r\n`, INNER),
  ),
  refused(
    'and two framings',
    400,
    post(`Expect: 100-continue\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${INNER}`),
  ),
  cut('and the body does not come', 400, post(EXPECTS), begun(postSeen())),
]

const PIPELINES: readonly Row[] = [
  served(
    'three',
    `${get('', '/1')}${get('', '/2')}${get('', '/3')}`,
    seen(`GET /${MARK}/1`),
    seen(`GET /${MARK}/2`),
    seen(`GET /${MARK}/3`),
  ),
  served(
    'HEAD, and others',
    `HEAD /${MARK} HTTP/1.1\r\n${HOST}\r\n${NEXT}HEAD /${MARK}/3 HTTP/1.1\r\n${HOST}\r\n`,
    seen(`HEAD /${MARK}`),
    NEXT_SEEN,
    seen(`HEAD /${MARK}/3`),
  ),
  served(
    'bodies of both kinds',
    post('Content-Length: 5\r\n', 'hello') + post('Transfer-Encoding: chunked\r\n', chunked('hello')) + NEXT,
    postSeen('hello'),
    postSeen('hello', 'chunked'),
    NEXT_SEEN,
  ),
  refused('a bad one behind a good one', 400, `${NEXT}${get('A B: c\r\n')}${INNER}`, NEXT_SEEN),
  refused(
    'a bad one behind a body',
    400,
    `${post('Content-Length: 5\r\n', 'hello')}${get('A B: c\r\n')}${INNER}`,
    postSeen('hello'),
  ),
  refused(
    'one that is answered by us behind a good one',
    400,
    `${NEXT}GET /${MARK}#x HTTP/1.1\r\n${HOST}\r\n${INNER}`,
    NEXT_SEEN,
  ),
  refused(
    'a body that breaks behind a good one',
    400,
    `${NEXT}${post('Transfer-Encoding: chunked\r\n', `x\r\n${INNER}`)}`,
    NEXT_SEEN,
    begun(postSeen()),
  ),
  servedLast('close between two', `${NEXT}${get('Connection: close\r\n')}${INNER}`, NEXT_SEEN, GET_SEEN),
]

export const ROUTES: readonly Case[] = [
  ...family('targets', TARGETS),
  ...family('hosts', HOSTS),
  ...family('Connection', CONNECTIONS),
  ...family('upgrades', UPGRADES),
  ...family('expectations', EXPECTATIONS),
  ...family('pipelines', PIPELINES),
]
