import { mutate, type Random } from '../fuzz/mutate.ts'

/** What a client sends on one connection, in these pieces. */
export type LaneCase = readonly Buffer[]

/**
 * Some requests, valid, odd or changed at random, cut anywhere, and one that ends the connection where all before it were
 * understood. Behind it comes what no request begins with: so that neither lane waits for the rest of a body.
 */
export function laneCase(random: Random): LaneCase {
  const requests = Array.from({ length: 1 + random.below(4) }, () => request(random))
  let bytes: Buffer = Buffer.from(requests.join(''), 'latin1')
  if (random.below(3) === 0)
    bytes = mutate(bytes, [bytes, Buffer.from(ODD_LINES.join('\r\n'), 'latin1')], random)
  return cut(Buffer.concat([bytes, Buffer.from(LAST, 'latin1'), Buffer.alloc(4000, '!')]), random)
}

function request(random: Random): string {
  const method = random.of(random.below(8) === 0 ? ODD_METHODS : METHODS)
  const target = random.of(random.below(8) === 0 ? ODD_TARGETS : TARGETS)
  const version =
    random.below(20) === 0 ? random.of(['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1']) : 'HTTP/1.1'
  const lines = ['Host: a.example.test']
  for (let left = random.below(5); left > 0; left--) lines.push(random.of(LINES))
  if (random.below(6) === 0) lines.splice(random.below(lines.length + 1), 0, random.of(ODD_LINES))
  const body = random.below(3) === 0 ? random.of(BODIES) : ''
  if (body !== '' || random.below(5) === 0) lines.push(`Content-Length: ${body.length}`)
  return `${method} ${target} ${version}\r\n${lines.join('\r\n')}\r\n\r\n${body}`
}

function cut(bytes: Buffer, random: Random): LaneCase {
  const pieces: Buffer[] = []
  let at = 0
  for (let left = random.below(4); left > 0 && at < bytes.length; left--) {
    const end = at + 1 + random.below(random.of([3, 40, 400]))
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  if (at < bytes.length) pieces.push(bytes.subarray(at))
  return pieces
}

const METHODS = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']
const ODD_METHODS = ['TRACE', 'CONNECT', 'PROPFIND', 'get', 'M-SEARCH', 'PURGE', 'G', 'GET\t', 'QUERY']
/** The app answers by what is asked for: see lane-app.ts. */
const TARGETS = [
  ...[
    '/',
    '/length',
    '/chunked',
    '/none',
    '/304',
    '/close',
    '/early',
    '/big',
    '/odd',
    '/until-close',
    '/broken',
  ],
  ...['/blocked', '/moved', '/length?a=b&c=%20', '/a/../length', '//length', '/length;x', '/"<>\\^`{|}'],
]
const ODD_TARGETS = [
  ...[
    '*',
    'http://a.example.test/length',
    'http://b.example.test',
    '/#x',
    '/ x',
    '',
    'length',
    '/\x7f',
    '/\xe4',
  ],
  ...['https://a:1/x?y', 'a.example.test:443', `/${'x'.repeat(9000)}`],
]
const LINES = [
  ...[
    'Accept: */*',
    'accept-encoding: gzip, br',
    'User-Agent: curl/8.5.0',
    'Cookie: b=2; a=1',
    'Referer: https://a/',
  ],
  ...[
    'X-Empty:',
    'X-Tabs:\t a \t b \t',
    'X-Latin: \xe4\xff',
    'Connection: keep-alive',
    'connection: Keep-Alive',
  ],
  ...[
    'Cookie: c=3',
    'TE: trailers',
    'X-Forwarded-For: 192.0.2.7',
    'X-Agent-Name: gptbot',
    'Authorization: Basic eDp5',
  ],
  ...[
    'Accept-Language: de, en;q=0.5',
    'If-None-Match: "x"',
    'Content-Type: application/json',
    'Priority: u=1',
  ],
]
const ODD_LINES = [
  ...[
    'Connection: close',
    'Connection: x-empty, keep-alive',
    'Connection: upgrade',
    'Upgrade: websocket',
    'Upgrade: h2c',
  ],
  ...[
    'Expect: 100-continue',
    'Expect: x',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip',
    'Host: b.example.test',
  ],
  ...[
    'Content-Length: 3',
    'Content-Length: +3',
    'Content-Length: 3, 3',
    'Content-Length : 3',
    'X-Folded: a\r\n b',
  ],
  ...[
    'X Y: z',
    ': x',
    'X-Nul: a\x00b',
    'X-Bare: a\nb',
    'X-Cr: a\rb',
    'Proxy-Connection: close',
    'Keep-Alive: timeout=1',
  ],
  ...[
    'HTTP2-Settings: AAAA',
    'Trailer: X-Sum',
    'TE: gzip, trailers;q=1',
    `X-Long: ${'y'.repeat(9000)}`,
    'X_Agent_Name: a',
  ],
  ...[
    'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1',
    'Proxy-Authorization: Basic eDp5',
    'Via: 1.0 x',
  ],
]
const BODIES = ['a', 'abc', '{"a":1}', 'GET /length HTTP/1.1\r\n\r\n', 'z'.repeat(3000)]
const LAST = 'GET /last HTTP/1.1\r\nHost: a.example.test\r\nConnection: close\r\n\r\n'
