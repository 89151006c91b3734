import assert from 'node:assert/strict'
import { test } from 'tap'
import { analyze, hellosOf } from './analysis.ts'
import { Talk } from './packet-builder.ts'
import { record } from './recorded-tls.ts'

const HELLOS = hellosOf((await record({ client: { servername: 'example.test' } })).chunks)

type Step = readonly [who: 'client' | 'server', bytes: string]

/** What peers say before TLS. */
const PROLOGUES: readonly (readonly [name: string, ...steps: readonly Step[]])[] = [
  ['nothing'],
  [
    'HTTP CONNECT',
    ['client', 'CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n'],
    ['server', 'HTTP/1.1 200 Connection established\r\n\r\n'],
  ],
  [
    'HTTP CONNECT, first without a password',
    ['client', 'CONNECT example.test:443 HTTP/1.1\r\n\r\n'],
    ['server', 'HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nno\r\n'],
    ['client', 'CONNECT example.test:443 HTTP/1.1\r\nProxy-Authorization: Basic eDp4\r\n\r\n'],
    ['server', 'HTTP/1.0 200 OK\r\n\r\n'],
  ],
  ['SOCKS4', ['client', '\x04\x01\x01\xbb\xc6\x33\x64\x02user\0'], ['server', '\0\x5a\0\0\0\0\0\0']],
  ['SOCKS4a', ['client', '\x04\x01\x16\x03\0\0\0\x01\0example.test\0'], ['server', '\0\x5a\0\0\0\0\0\0']],
  [
    'SOCKS5',
    ['client', '\x05\x02\0\x02'],
    ['server', '\x05\0'],
    ['client', '\x05\x01\0\x03\x0cexample.test\x01\xbb'],
    ['server', '\x05\0\0\x01\0\0\0\0\0\0'],
  ],
  [
    'SOCKS5 with a password, to port 22',
    ['client', '\x05\x01\x02'],
    ['server', '\x05\x02'],
    ['client', '\x01\x04user\x04pass'],
    ['server', '\x01\0'],
    ['client', '\x05\x01\0\x01\xc6\x33\x64\x02\0\x16'],
    ['server', '\x05\0\0\x01\0\0\0\0\0\0'],
  ],
  [
    'SMTP',
    ['server', '220 mail.example.test ESMTP\r\n'],
    ['client', 'EHLO client.example.test\r\n'],
    ['server', '250-mail.example.test\r\n250-SIZE 1000\r\n250 STARTTLS\r\n'],
    ['client', 'STARTTLS\r\n'],
    ['server', '220 2.0.0 Ready to start TLS\r\n'],
  ],
  ['IMAP', ['server', '* OK ready\r\n'], ['client', 'a1 STARTTLS\r\n'], ['server', 'a1 OK begin\r\n']],
  ['POP3', ['server', '+OK ready\r\n'], ['client', 'STLS\r\n'], ['server', '+OK begin\r\n']],
  ['FTP', ['server', '220 ready\r\n'], ['client', 'AUTH TLS\r\n'], ['server', '234 begin\r\n']],
  [
    'XMPP',
    ['client', "<?xml version='1.0'?><stream:stream to='example.test' xmlns='jabber:client'>"],
    ['server', "<stream:stream from='example.test'><stream:features><starttls/></stream:features>"],
    ['client', "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"],
    ['server', "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"],
  ],
  [
    'LDAP',
    ['client', '\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037'],
    ['server', '\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\0\x04\0\x04\0'],
  ],
  ['PostgreSQL', ['client', '\0\0\0\x08\x04\xd2\x16\x2f'], ['server', 'S']],
  [
    'MySQL',
    ['server', `\x4a\0\0\0\x0a8.0.36\0${'\x16'.repeat(60)}\0`],
    ['client', `\x20\0\0\x01\x85\xae\xff\x01\0\0\0\x01\xff${'\0'.repeat(23)}`],
  ],
  [
    'RDP',
    ['client', '\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x03\0\0\0'],
    ['server', '\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\0\x08\0\x02\0\0\0'],
  ],
  ['PROXY version 1', ['client', 'PROXY TCP4 192.0.2.1 198.51.100.2 50000 443\r\n']],
  ['PROXY version 2', ['client', `${'\r\n\r\n\0\r\nQUIT\n'}\x21\x11\0\x0c${'\x16\x03\x01\x7f'.repeat(3)}`]],
  [
    'one thing after the other',
    ['client', 'PROXY UNKNOWN\r\nCONNECT proxy.test:1080 HTTP/1.1\r\n\r\n'],
    ['server', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['client', '\x05\x01\0'],
    ['server', '\x05\0'],
    ['client', '\x05\x01\0\x03\x0cexample.test\x01\xbb'],
    ['server', '\x05\0\0\x01\0\0\0\0\0\0'],
    ['client', '\x04\x01\x01\xbb\xc6\x33\x64\x02\0'],
    ['server', '\0\x5a\0\0\0\0\0\0'],
  ],
]

for (const [name, ...steps] of PROLOGUES) {
  test(`before TLS: ${name}`, async () => {
    const connects = steps.flatMap(([, bytes]) => bytes.match(/CONNECT \S+/g) ?? [])
    const check = (how: string, talk: Talk): void => {
      const { tls, http } = analyze(talk.frames)
      const found = tls.map(({ src, src_port, sni, ja4, ja4s }) => [src, src_port, sni, ja4, ja4s])
      assert.deepEqual(found, [['192.0.2.1', 50_000, 'example.test', HELLOS.ja4, HELLOS.ja4s]], how)
      assert.deepEqual(
        http.map(({ method, path }) => `${method} ${path}`),
        connects,
        how,
      )
    }

    for (const size of [1400, 700, 11, 1])
      check(`segments of ${size}`, play(new Talk().open(), steps, size).close())
    check('the capture begins later', play(new Talk(), steps, 1400))
    check('all in one breath', all('server', all('client', new Talk().open(), steps), steps))
    check('the server seen first', all('client', all('server', new Talk().open(), steps), steps))
  })
}

test('before TLS: an end of the prologue and the hello in segments cut anywhere', async () => {
  const ahead = Buffer.from('\x05\x01\0\x05\x01\0\x01\xc6\x33\x64\x02\x16\x16', 'latin1')
  const said = Buffer.concat([ahead, HELLOS.client])
  for (let cut = 1; cut < ahead.length + 20; cut++) {
    const talk = new Talk()
      .open()
      .client(said.subarray(0, cut))
      .client(said.subarray(cut))
      .server(HELLOS.server)
    const { tls } = analyze(talk.frames)
    assert.deepEqual(
      tls.map(({ ja4, ja4s }) => [ja4, ja4s]),
      [[HELLOS.ja4, HELLOS.ja4s]],
      `cut at ${cut}`,
    )
  }
})

test('TLS on any port, and either side may have spoken first', async () => {
  for (const port of [1, 25, 80, 8080, 65_535]) {
    const talk = new Talk({ from: 40_000, to: port }).open().client(HELLOS.client).server(HELLOS.server)
    assert.deepEqual(
      analyze(talk.frames).tls.map(({ src_port, dst_port }) => [src_port, dst_port]),
      [[40_000, port]],
    )
  }
})

test('TLS seen from one side only', async () => {
  const one = analyze(new Talk().client(HELLOS.client).frames)
  assert.deepEqual(
    one.tls.map(({ ja4, ja4s, ja4x }) => [ja4, ja4s, ja4x]),
    [[HELLOS.ja4, null, []]],
  )
  assert.deepEqual(analyze(new Talk().server(HELLOS.server).frames).findings, [])
  assert.equal(
    analyze(new Talk().client(HELLOS.client).server(HELLOS.server).frames, '', false).tls[0]?.ja4s,
    null,
  )
})

test('what only looks like TLS is nothing', async () => {
  const openings = [
    '\x16',
    '\x16\x03',
    '\x16\x03\x01\0\x05',
    '\x16\x03\x01\0\x05\x03\0\0\0\0',
    '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
    `${'x'.repeat(100)}\x16\x03\x01\x40\x01\x01\0\x3f\xfd\x03\x03${'y'.repeat(20_000)}`,
    '\x17\x03\x03\0\x20'.padEnd(37, 'z').repeat(100),
    '\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10', // SSL 2.0
  ]
  for (const bytes of openings) {
    const talk = new Talk().open().client(bytes).server(bytes).close()
    assert.deepEqual(analyze(talk.frames).findings, [], JSON.stringify(bytes.slice(0, 20)))
  }
})

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
/** GET / of a client on a new connection: a preface, empty SETTINGS, and static headers. */
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'
const H2_GET = (stream: number): string => `\0\0\x03\x01\x05\0\0\0${String.fromCharCode(stream)}\x82\x84\x86`

/** HTTP as it stands on the wire: what the client says in turn, and what that is read as. */
const CONVERSATIONS: readonly (readonly [
  name: string,
  said: readonly string[],
  requests: readonly string[],
])[] = [
  ['keep-alive', [get('/1'), get('/2'), get('/3')], ['http1 GET /1', 'http1 GET /2', 'http1 GET /3']],
  ['pipelining', [get('/1') + get('/2') + get('/3')], ['http1 GET /1', 'http1 GET /2', 'http1 GET /3']],
  [
    'bodies with requests in them',
    [
      `POST /1 HTTP/1.1\r\nContent-Length: 200\r\n\r\n${get('/no').padEnd(200)}`,
      `POST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n${get('/no').slice(0, 30)}\r\n0\r\n\r\n${get('/3')}`,
    ],
    ['http1 POST /1', 'http1 POST /2', 'http1 GET /3'],
  ],
  [
    'a WebSocket, then silence',
    [get('/ws', 'Connection: Upgrade\r\nUpgrade: websocket\r\n')],
    ['http1 GET /ws'],
  ],
  [
    'a WebSocket, then its frames',
    [
      get('/ws', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
      '\x81\x8512345',
      '\x82\xfe\x10\0\x16\x16\x03 GET',
    ],
    ['http1 GET /ws'],
  ],
  ['h2c with prior knowledge', [PREFACE + H2_GET(1), H2_GET(3)], ['http2 GET /', 'http2 GET /']],
  [
    'h2c by upgrade',
    [
      get('/1', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n'),
      PREFACE + H2_GET(3),
    ],
    ['http1 GET /1', 'http2 GET /'],
  ],
  ['behind a PROXY header', [`PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n${get('/1')}`], ['http1 GET /1']],
  ['behind SOCKS5', ['\x05\x01\0', '\x05\x01\0\x01\xc6\x33\x64\x02\0\x16', get('/1')], ['http1 GET /1']],
  ['empty lines', [`\r\n\r\n${get('/1')}`], ['http1 GET /1']],
  ['a head that never ends', [get('/1').slice(0, -2)], []],
  ['a body that never ends', ['POST /1 HTTP/1.1\r\nContent-Length: 9\r\n\r\n1'], ['http1 POST /1']],
  ['none', ['SSH-2.0-OpenSSH_9.9\r\n', '\0\0\x01\x02'.repeat(300)], []],
]

for (const [name, said, requests] of CONVERSATIONS) {
  test(`HTTP: ${name}`, async () => {
    for (const size of [1400, 7, 1]) {
      const talk = new Talk({ to: 80 }).open()
      for (const each of said) talk.client(each, size).server(ANSWER, size)
      const { findings, http } = analyze(talk.close().frames)
      assert.deepEqual(
        http.map((found) => `${found.http} ${found.method} ${found.path}`),
        requests,
        `segments of ${size}`,
      )
      assert.equal(findings.length, http.length)
    }
  })
}

test('HTTP: a request is found in the frame it ended in, and named as it was sent', async () => {
  const talk = new Talk()
    .client('GET /caf')
    .client('\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\nGET /\xe9 HTTP/1.1\r\n\r\n')
  assert.deepEqual(
    analyze(talk.frames).http.map(({ frame, path, ja4h }) => [frame, path, ja4h?.slice(0, 12)]),
    [
      [2, '/café', 'ge11nn010000'],
      [2, '/é', 'ge11nn000000'],
    ],
  )
})

test('HTTP: what is missing inside a body does no harm, and of what is missing elsewhere the next request is found', async () => {
  const upload = 'POST /1 HTTP/1.1\r\nContent-Length: 5000\r\n\r\n'
  const talk = new Talk().open().client(upload).client('x'.repeat(1000)).lose(0, 4000).client(get('/2'))
  talk
    .client(get('/3').slice(0, 9))
    .lose(0, get('/3').length - 9)
    .client(get('/4'))
    .close()
  assert.deepEqual(
    analyze(talk.frames).http.map(({ path }) => path),
    ['/1', '/2', '/4'],
  )
})

test('a capture that begins in the middle: TLS is nothing, the next request is found', async () => {
  const sealed = Buffer.concat([Buffer.from('1703031000', 'hex'), Buffer.alloc(4096, 0xa5)])
  assert.deepEqual(analyze(new Talk().client(sealed).server(sealed).frames).findings, [])
  const half = new Talk()
    .server('half a body')
    .client('rest of a cookie\r\n\r\n')
    .server(ANSWER)
    .client(get('/1'))
  assert.deepEqual(
    analyze(half.frames).http.map(({ path }) => path),
    ['/1'],
  )
})

function play(talk: Talk, steps: readonly Step[], size: number): Talk {
  for (const [who, bytes] of steps) talk[who](bytes, size)
  return talk.client(HELLOS.client, size).server(HELLOS.server, size)
}

/** Everything that one side sends, and its hello, without waiting for the other. */
function all(who: 'client' | 'server', talk: Talk, steps: readonly Step[]): Talk {
  const said = steps.filter(([speaker]) => speaker === who).map(([, bytes]) => Buffer.from(bytes, 'latin1'))
  return talk[who](Buffer.concat([...said, HELLOS[who]]))
}
