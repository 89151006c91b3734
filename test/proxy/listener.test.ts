import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import { test } from 'tap'
import { helloTraits } from '../../src/fingerprint/hello-traits.ts'
import { ja4 } from '../../src/fingerprint/ja4.ts'
import { ja4x } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { stableKey } from '../../src/fingerprint/stable-key.ts'
import { CertificateStore } from '../../src/proxy/tls/certificates.ts'
import { createListener } from '../../src/proxy/worker/listener.ts'
import { type ClientHello, parseClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import {
  dialPlain,
  dialTls,
  type Front,
  LIMITS,
  LOOPBACK,
  listenOn,
  NO_ADDRESSES,
  startFront,
} from './front.ts'
import { headerV1, headerV2 } from './proxy-header.ts'
import { skipped } from '../e2e/programs.ts'
import { testPair, testRsa } from './test-certificates.ts'
import { until } from './test-worker.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('fingerprints are those of the very bytes that the client sent', {
  skip: skipped('curl', 'openssl'),
}, async () => {
  const clients: readonly string[] = [
    'curl -sk --http1.1 https://127.0.0.1:$PORT/',
    'curl -sk --http2 --resolve a.example.test:$PORT:127.0.0.1 https://a.example.test:$PORT/',
    'curl -sk --tls-max 1.2 --ciphers ECDHE-RSA-AES128-GCM-SHA256 https://127.0.0.1:$PORT/',
    'openssl s_client -quiet -connect 127.0.0.1:$PORT -servername b.example.test -tls1_2',
    'openssl s_client -quiet -connect 127.0.0.1:$PORT -noservername -curves P-521 -ciphersuites TLS_AES_256_GCM_SHA384',
  ]
  const front = await startFront()
  for (const [index, client] of clients.entries()) {
    const hello = await helloOf(front, client)
    const { print, serverName, isTls } = front.exchanges[index]!.connection
    assert.deepEqual(
      [print.ja4, print.stable, print.traits],
      [ja4(hello, 'tcp'), stableKey(hello, 'tcp'), helloTraits(hello)],
      client,
    )
    assert.deepEqual(
      [print.noHello, print.ja4Source, serverName, isTls],
      [null, 'own', hello.serverName, true],
    )
    assert.match(print.ja4s!, /^t1[23]0\d/)
  }
  await front.close()
})

test('in plain text there is no hello, and that is said', async () => {
  const front = await startFront({ tls: null })
  const peer = await dialPlain(front.port)
  peer.write(GET)
  await peer.hears('200 OK')
  const { print, isTls, serverName, protocol, address, port, localPort } = front.exchanges[0]!.connection
  assert.deepEqual(
    { ...print },
    {
      ...{ ja4: null, unresumed: null, stable: null, traits: null, ja4s: null, ja4x: null, http2: null },
      ...{ pageWeight: null, noHello: 'not-tls', ja4Source: null },
    },
  )
  assert.deepEqual(
    [isTls, serverName, protocol, address, port],
    [false, null, 'h1', '127.0.0.1', peer.socket.localPort],
  )
  assert.equal(localPort, front.port)
  peer.socket.destroy()
  await front.close()
})

test('without JA4+ there is no JA4S and no JA4X', async () => {
  const pair = testRsa(['client.example.test'])
  for (const ja4plus of [true, false]) {
    const front = await startFront({ tls: { requestClientCertificate: true }, options: { ja4plus } })
    const peer = await dialTls(front.port, { cert: pair.certificate, key: pair.key })
    peer.write(GET)
    await peer.hears('200 OK')
    const { ja4s, ja4x: found } = front.exchanges[0]!.connection.print
    const read = parseCertificate(new X509Certificate(pair.certificate).raw)
    assert.equal(read.kind, 'certificate')
    if (read.kind === 'certificate') assert.equal(found, ja4plus ? ja4x(read.oids) : null)
    assert.equal(ja4s !== null, ja4plus)
    peer.socket.destroy()
    await front.close()
  }
})

test('each client gets a certificate for the name it asks for, of a kind that it can verify', async () => {
  const front = await startFront()
  const cases: readonly [options: tls.ConnectionOptions, type: string | undefined, names: string][] = [
    [{ servername: 'a.example.test' }, 'prime256v1', 'DNS:a.example.test'],
    [{ servername: 'a.example.test', sigalgs: 'rsa_pss_rsae_sha256' }, undefined, 'DNS:a.example.test'],
    [
      { servername: 'a.example.test', maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' },
      undefined,
      'DNS:a.example.test',
    ],
    [{ servername: 'b.example.test' }, undefined, 'DNS:b.example.test'],
    [{ servername: 'c.example.test' }, 'prime256v1', 'DNS:a.example.test'],
    [{ servername: '' }, 'prime256v1', 'DNS:a.example.test'],
    [{ servername: '', sigalgs: 'rsa_pss_rsae_sha256' }, undefined, 'DNS:a.example.test'],
  ]
  for (const [options, type, names] of cases) {
    const { socket } = await dialTls(front.port, options)
    const certificate = (socket as tls.TLSSocket).getPeerCertificate() as tls.PeerCertificate & {
      asn1Curve?: string
    }
    assert.deepEqual(
      [certificate.asn1Curve, certificate.subjectaltname?.split(',')[0]],
      [type, names],
      JSON.stringify(options),
    )
    socket.destroy()
  }
  await front.close()
})

test('a session begun at one listener goes on at another with the same ticket keys, and not after they change', async () => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const [one, other] = [await startFront(), await startFront()]
    const options = { maxVersion, servername: 'a.example.test' }
    const first = await dialTls(one.port, options)
    const secure = first.socket as tls.TLSSocket
    const session = maxVersion === 'TLSv1.3' ? (await once(secure, 'session'))[0] : secure.getSession()
    const second = await dialTls(other.port, { ...options, session })
    assert.equal((second.socket as tls.TLSSocket).isSessionReused(), true, maxVersion)
    second.write(GET)
    await second.hears('200 OK')
    assert.equal(other.exchanges[0]!.connection.print.ja4Source, 'own')
    one.listener.refreshTls(Buffer.alloc(48, 'other'))
    const third = await dialTls(one.port, { ...options, session })
    assert.equal((third.socket as tls.TLSSocket).isSessionReused(), false, maxVersion)
    // In TLS 1.3 the client is done first.
    await until(() => one.secured.length === 2)
    const told = [one, other].map(({ secured }) =>
      secured.map(({ version, isResumed, protocol }) => [version, isResumed, protocol]),
    )
    const full = [maxVersion, false, 'h1']
    assert.deepEqual(told, [[full, full], [[maxVersion, true, 'h1']]])
    for (const { durationMs } of one.secured) assert.ok(durationMs > 0 && durationMs < 10_000)
    for (const { socket } of [first, second, third]) socket.destroy()
    await one.close()
    await other.close()
  }
})

test('certificates change for new connections, and old ones live on', async () => {
  const names = ['a.example.test']
  const pairs = [testRsa(names), testRsa(names)].map((made) =>
    testPair(made, names, { keyType: 'rsa', signatureScheme: null }),
  )
  const store = new CertificateStore([pairs[0]!], {})
  const front = await startFront({ tls: { certificates: store } })
  const old = await dialTls(front.port, { servername: '' })
  store.replace([pairs[1]!])
  front.listener.refreshTls()
  for (const servername of ['', 'a.example.test']) {
    const fresh = await dialTls(front.port, { servername })
    const seen = (fresh.socket as tls.TLSSocket).getPeerX509Certificate()!
    assert.equal(seen.fingerprint256, new X509Certificate(pairs[1]!.chain).fingerprint256)
    fresh.socket.destroy()
  }
  old.write(GET)
  await old.hears('200 OK')
  old.socket.destroy()
  await front.close()
})

const REFUSED: readonly [title: string, reason: string, code: string, options: tls.ConnectionOptions][] = [
  [
    'an old version',
    'handshake',
    'ERR_SSL_UNSUPPORTED_PROTOCOL',
    { maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' },
  ],
  [
    'no common suite',
    'handshake',
    'ERR_SSL_NO_SHARED_CIPHER',
    { maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' },
  ],
  ['no common group', 'handshake', 'ERR_SSL_NO_SUITABLE_KEY_SHARE', { ecdhCurve: 'X448' }],
  ['no common protocol', 'handshake', 'ERR_SSL_NO_APPLICATION_PROTOCOL', { ALPNProtocols: ['h3'] }],
]

test('a handshake that fails says how, once, and leaves nothing', async () => {
  const front = await startFront()
  for (const [index, [title, reason, code, options]] of REFUSED.entries()) {
    await dialTls(front.port, options).then(
      ({ closed }) => closed,
      () => {},
    )
    await front.failed(index + 1)
    await empty(front)
    assert.deepEqual(
      front.failures.slice(index),
      [{ reason, code, address: '127.0.0.1', isTls: true }],
      title,
    )
  }
  await front.close()
})

test('distinguishes other bytes from half a hello', async () => {
  const hello = await rawHello()
  const odd = Buffer.from(hello)
  odd.writeUInt8(odd[76 + 1]! | 1, 77) // the length of the cipher list, behind a session id of 32 bytes
  type Act = (socket: net.Socket) => void
  const cases: readonly [title: string, bytes: Buffer, act: Act | null, reason: string, code: RegExp][] = [
    ['HTTP', Buffer.from(GET), null, 'not-tls', /^http$/],
    ['noise', Buffer.from([1, 2, 3]), null, 'not-tls', /^other$/],
    ['nothing', Buffer.alloc(0), null, 'hello-timeout', /^silent$/],
    ['half a hello', hello.subarray(0, 99), null, 'hello-timeout', /^cut$/],
    ['leaves at once', Buffer.alloc(0), (socket) => socket.end(), 'gone', /^silent$/],
    ['leaves in mid-hello', hello.subarray(0, 99), (socket) => socket.end(), 'gone', /^cut$/],
    ['resets in mid-hello', hello.subarray(0, 99), (socket) => socket.resetAndDestroy(), 'gone', /^cut$/],
    ['a hello, then silence', hello, null, 'handshake-timeout', /^ERR_TLS_HANDSHAKE_TIMEOUT$/],
    ['a hello, then an end', hello, (socket) => socket.end(), 'handshake', /^(?:closed|ECONNRESET)$/],
    [
      'a hello, then a reset',
      hello,
      (socket) => socket.resetAndDestroy(),
      'handshake',
      /^(?:closed|ECONNRESET|EPIPE)$/,
    ],
    ['a hello, then noise', Buffer.concat([hello, Buffer.alloc(50, 1)]), null, 'handshake', /^ERR_SSL_/],
    ['a hello that cannot be read', odd, null, 'malformed-hello', /^ERR_SSL_/],
    ['another message', Buffer.from('16030100040e000000', 'hex'), null, 'malformed-hello', /^ERR_SSL_/],
  ]
  const limits = { helloTimeoutMs: 80, handshakeTimeoutMs: 120 }
  for (const [title, bytes, act, reason, code] of cases) {
    const front = await startFront(reason.endsWith('-timeout') ? { limits } : {})
    const peer = await dialPlain(front.port)
    peer.write(bytes)
    if (act !== null) setTimeout(() => act(peer.socket), 20)
    await peer.closed
    await front.failed(1)
    await empty(front)
    const [failure, ...more] = front.failures
    assert.deepEqual([failure!.reason, more], [reason, []], title)
    assert.match(failure!.code!, code, title)
    if (title === 'HTTP')
      assert.match(peer.text, /^HTTP\/1.1 400 .*Content-Length: 45\r\n\r\nThis port speaks HTTPS.{22}\n$/s)
    assert.equal(front.exchanges.length, 0)
    await front.close()
  }
})

test('a hello in pieces, or in several records, is a hello', async () => {
  const front = await startFront()
  const cuts = [1, 4, 5, 6, 9, 43, 100, 200]
  for (const cut of cuts) {
    const relay = net.createServer((near) => {
      const far = net.connect({ port: front.port, host: '127.0.0.1', noDelay: true })
      near.once('data', (bytes: Buffer) => {
        for (const piece of inRecords(bytes, cut)) far.write(piece)
        near.pipe(far)
      })
      far.pipe(near)
      // Either may say goodbye to a client that left.
      for (const socket of [near, far]) socket.on('error', () => {})
    })
    await once(relay.listen(0, '127.0.0.1'), 'listening')
    // Records cut anew are still what the handshake hashes: it hashes messages.
    const peer = await dialTls((relay.address() as AddressInfo).port)
    peer.write(GET)
    await peer.hears('200 OK')
    peer.socket.destroy()
    relay.close()
  }
  assert.equal(new Set(front.exchanges.map(({ connection }) => connection.print.stable)).size, 1)
  await front.close()
})

test('a PROXY header from a trusted proxy names the client', async () => {
  const headers = [
    headerV1('TCP4 192.0.2.1 198.51.100.1 4711 443'),
    headerV2({ source: '192.0.2.1', port: 4711 }),
  ]
  for (const proxyProtocol of ['optional', 'required'] as const) {
    const front = await startFront({ options: { proxyProtocol, trusted: LOOPBACK } })
    for (const header of headers) {
      const raw = await dialPlain(front.port)
      raw.write(header)
      const peer = await secureOver(raw.socket)
      peer.write(GET)
      await peer.hears('200 OK')
      const { address, port, peerAddress, isTrusted } = front.exchanges.at(-1)!.connection
      assert.deepEqual([address, port, peerAddress, isTrusted], ['192.0.2.1', 4711, '127.0.0.1', false])
      raw.socket.destroy()
    }
    await front.close()
  }
})

test('who may not send a PROXY header, or has to, is held to it', async () => {
  const header = headerV1('TCP4 192.0.2.1 198.51.100.1 4711 443')
  const cases = [
    ['off', LOOPBACK, header, 'not-tls http'],
    ['optional', NO_ADDRESSES, header, 'not-tls http'],
    ['required', NO_ADDRESSES, header, 'proxy-protocol untrusted'],
    ['required', LOOPBACK, await rawHello(), 'proxy-protocol missing'],
    ['required', LOOPBACK, headerV1('TCP4 a b 1 2'), 'proxy-protocol address'],
    ['optional', LOOPBACK, Buffer.concat([header, header]), 'not-tls http'],
  ] as const
  for (const [proxyProtocol, trusted, bytes, failure] of cases) {
    const front = await startFront({ options: { proxyProtocol, trusted } })
    const peer = await dialPlain(front.port)
    peer.write(bytes)
    await peer.closed
    assert.deepEqual(
      front.failures.map(({ reason, code }) => `${reason} ${code}`),
      [failure],
      `${proxyProtocol} ${failure}`,
    )
    await front.close()
  }
  const front = await startFront({ options: { proxyProtocol: 'optional', trusted: LOOPBACK } })
  const direct = await dialTls(front.port)
  direct.write(GET)
  await direct.hears('200 OK')
  const { address, isTrusted } = front.exchanges[0]!.connection
  assert.deepEqual([address, isTrusted], ['127.0.0.1', true], 'a balancer that asks for itself')
  direct.socket.destroy()
  await front.close()
})

test('2,000 aborted handshakes leave no socket, no timer and no listener, and each is reported once', async () => {
  const hello = await rawHello()
  const front = await startFront()
  const process = globalThis.process
  const resources = () => process.getActiveResourcesInfo().filter((kind) => kind !== 'Immediate').length
  const before = resources()
  const kinds: readonly ((socket: net.Socket) => void)[] = [
    (socket) => socket.resetAndDestroy(),
    (socket) => void socket.write(hello.subarray(0, 100), () => socket.resetAndDestroy()),
    (socket) => void socket.write(hello, () => socket.resetAndDestroy()),
    (socket) => void socket.write(hello, () => socket.end()),
    (socket) => void socket.write(Buffer.concat([hello, Buffer.alloc(20, 7)])),
  ]
  for (let round = 0; round < 40; round++) {
    const peers = Array.from({ length: 50 }, async (_, index) => {
      const { socket, closed } = await dialPlain(front.port)
      kinds[index % kinds.length]!(socket)
      await closed
    })
    await Promise.all(peers)
  }
  await empty(front)
  assert.equal(front.failures.length, 2000)
  assert.deepEqual(front.listener.counts, {
    connections: 0,
    opening: 0,
    handshakes: 0,
    h1: 0,
    h2: 0,
    upgraded: 0,
    streams: 0,
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.ok(resources() <= before, `${resources()} resources, ${before} before`)
  await front.close()
})

test('says why a port cannot be opened', async () => {
  const taken = await startFront({ tls: null })
  const options = {
    tls: null,
    proxyProtocol: 'off',
    trusted: NO_ADDRESSES,
    ja4Hops: NO_ADDRESSES,
    ja4plus: true,
    fastLane: true,
    http2: 'own',
    limits: LIMITS,
  } as const
  const handlers = { request() {}, upgrade() {}, failed() {}, timedOut() {}, secured() {} }
  const targets = [
    [{ host: '127.0.0.1', port: taken.port }, 'LISTEN_PORT_TAKEN', /127\.0\.0\.1 port \d+: another program/],
    [{ host: '192.0.2.1', port: 0 }, 'LISTEN_NO_ADDRESS', /does not have the address/],
  ] as const
  for (const [target, code, message] of targets) {
    const listener = createListener(options, handlers)
    assert.equal(listener.address, null)
    await assert.rejects(listener.listen(target), { code, message })
    await listener.drain(0, 0)
  }
  await taken.close()
})

test('counts say how far connections have come', async () => {
  const front = await startFront({ request: () => {} })
  const silent = await dialPlain(front.port)
  const half = await dialPlain(front.port)
  half.write(await rawHello())
  const http1 = await dialTls(front.port)
  while (front.listener.counts.handshakes !== 1 || front.listener.counts.h1 !== 1)
    await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(front.listener.counts, {
    connections: 3,
    opening: 1,
    handshakes: 1,
    h1: 1,
    h2: 0,
    upgraded: 0,
    streams: 0,
  })
  for (const { socket } of [silent, half, http1]) socket.destroy()
  await front.close()
})

/** The hello of a client that is started with the port of a relay, and of which the front sees one request. */
async function helloOf(front: Front, client: string): Promise<ClientHello> {
  const sent: Buffer[] = []
  const relay = net.createServer((near) => {
    const far = net.connect(front.port, '127.0.0.1')
    near.pipe(far).pipe(near)
    near.on('data', (chunk) => sent.push(chunk)).on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  const [program, ...argv] = client.replaceAll('$PORT', `${(relay.address() as AddressInfo).port}`).split(' ')
  await new Promise((resolve) => {
    execFile(program!, argv, { timeout: 9000 }, resolve).stdin!.end(
      GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
    )
  })
  relay.close()
  const read = new HelloReader().push(Buffer.concat(sent))
  const parsed = read.kind === 'message' ? parseClientHello(read.message) : null
  assert.equal(parsed?.kind, 'client-hello')
  return (parsed as { hello: ClientHello }).hello
}

/** What Node's client sends first. */
async function rawHello(): Promise<Buffer> {
  const server = net.createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const accepted = once(server, 'connection')
  const client = tls.connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
  client.on('error', () => {})
  const [socket] = (await accepted) as [net.Socket]
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  server.close()
  return bytes
}

/** The hello in records of so many bytes. */
function inRecords(bytes: Buffer, size: number): Buffer[] {
  const payload = bytes.subarray(5)
  const pieces: Buffer[] = []
  for (let at = 0; at < payload.length; at += size) {
    const piece = payload.subarray(at, at + size)
    pieces.push(Buffer.concat([bytes.subarray(0, 3), Buffer.of(piece.length >> 8, piece.length), piece]))
  }
  return pieces
}

async function secureOver(socket: net.Socket) {
  const secure = tls.connect({ socket, rejectUnauthorized: false })
  const peer = listenOn(secure)
  await once(secure, 'secureConnect')
  return peer
}

async function empty(front: Front): Promise<void> {
  while (front.listener.counts.connections > 0) await new Promise((resolve) => setImmediate(resolve))
}
