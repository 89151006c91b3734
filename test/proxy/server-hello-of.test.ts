import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import { test } from 'tap'
import { ja4s } from '../../src/fingerprint/ja4plus/ja4s.ts'
import { ClientConnection } from '../../src/proxy/connection/connection.ts'
import { readOpening } from '../../src/proxy/connection/hello.ts'
import { CIPHER_LIST, serverHelloOf } from '../../src/proxy/tls/server-hello-of.ts'
import { TlsServer } from '../../src/proxy/tls/tls-server.ts'
import { parseClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import { parseServerHello, SERVER_HELLO, type ServerHello } from '../../src/wire/server-hello.ts'
import { skipped } from '../e2e/programs.ts'
import { identities } from './front.ts'
import { testRsa } from './test-certificates.ts'

/** What a client was answered: as it stood on the wire, and as it was derived. */
interface Answered {
  readonly sent: ServerHello
  readonly derived: string | null
  readonly isResumed: boolean
  readonly protocol: string
}

const LANES = 4
const SCRATCH = mkdtempSync(join(tmpdir(), 'gatehouse-ja4s-'))

const OPENSSL: readonly string[] = [
  ...[
    '-servername a.example.test',
    '-servername b.example.test -alpn h2',
    '-noservername -alpn http/1.1,h2',
  ].flatMap((name) => [`-tls1_2 ${name}`, `-tls1_3 ${name}`]),
  ...[
    ...[
      '-no_ticket',
      '-status',
      '-legacy_renegotiation -alpn h2',
      '-maxfraglen 1024',
      '-curves P-256 -alpn h2',
    ],
    ...['-curves P-521', '-cipher ECDHE-ECDSA-AES256-GCM-SHA384', '-cipher ECDHE-RSA-CHACHA20-POLY1305'],
    ...['-cipher ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256', '-no_etm -alpn h2'],
    ...['-cipher ECDHE-RSA-AES128-GCM-SHA256', `-cert ${SCRATCH}/client.pem -alpn h2`],
  ].map((more) => `-tls1_2 ${more}`),
  ...[
    ...['-no_ticket', '-status', '-maxfraglen 1024', `-cert ${SCRATCH}/client.pem`, '-allow_no_dhe_kex'],
    ...['-ciphersuites TLS_AES_256_GCM_SHA384', '-curves P-384', '-curves P-521', '-curves X448:X25519'],
    ...['-ciphersuites TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256', '-curves X448:P-521'],
    ...['-curves ffdhe2048:P-384', '-curves brainpoolP256r1:X25519', '-curves P-521:X25519'],
  ].map((more) => `-tls1_3 ${more}`),
]

const NODE: readonly tls.ConnectionOptions[] = [
  {},
  { maxVersion: 'TLSv1.2' },
  { maxVersion: 'TLSv1.2', ALPNProtocols: ['h2'] },
  { ALPNProtocols: ['h2', 'http/1.1'] },
  ...[
    ...['X25519MLKEM768', 'X25519MLKEM768:X25519', 'X25519:X25519MLKEM768', 'SecP256r1MLKEM768:X25519'],
    ...[
      'P-384:X25519',
      'P-521:P-384',
      'P-521:X448',
      'ffdhe2048:P-256',
      'X448:P-256',
      'P-256:X25519MLKEM768',
      'P-384',
    ],
  ].map((ecdhCurve) => ({ ecdhCurve })),
]

const CURL = [
  '--http1.1',
  '--http2',
  '--tls-max 1.2',
  '--no-alpn',
  '--http2 --curves X25519',
  '--http2 --curves P-521:X25519',
]

test('the JA4S that is derived is that of the bytes sent: TLS 1.2 and 1.3, begun and resumed, retried or not', {
  skip: skipped('openssl', 'curl'),
}, async (t) => {
  writeFileSync(join(SCRATCH, 'client.pem'), Object.values(testRsa(['client.example.test'])).join(''))
  const server = await startServer()
  const seen = new Set<string>()
  const check = (client: string, { sent, derived, isResumed, protocol }: Answered): void => {
    assert.equal(derived, ja4s(sent, 'tcp'), `${client}: ${sent.extensions.map((type) => type.toString(16))}`)
    seen.add(`${protocol}${isResumed ? ' resumed' : ''}${sent.helloRetryRequest ? ' retried' : ''}`)
  }
  await inParallel(OPENSSL, async (options, index) => {
    const session = join(SCRATCH, `${index}.session`)
    for (const kept of [`-sess_out ${session}`, `-sess_in ${session}`]) {
      const client = `openssl s_client ${options} ${kept} -ign_eof -connect 127.0.0.1:$PORT`
      check(client, await server.answer((port) => run(client, port)))
    }
  })
  await inParallel(CURL, async (options) => {
    const client = `curl -skm 5 ${options} --resolve a.example.test:$PORT:127.0.0.1 https://a.example.test:$PORT/`
    check(client, await server.answer((port) => run(client, port)))
  })
  for (const options of NODE) {
    let session: Buffer | undefined
    for (const _ of ['begun', 'resumed']) {
      const keep = (ticket: Buffer) => (session = ticket)
      check(
        `node ${JSON.stringify(options)}`,
        await server.answer((port) => connect(port, { ...options, session }, keep)),
      )
    }
  }
  const kinds = [
    'TLSv1.2',
    'TLSv1.2 resumed',
    'TLSv1.3',
    'TLSv1.3 resumed',
    'TLSv1.3 resumed retried',
    'TLSv1.3 retried',
  ]
  assert.deepEqual([...seen].sort(), kinds)
  t.comment(`${server.count()} handshakes`)
  server.close()
  rmSync(SCRATCH, { recursive: true })
})

test('every suite that may be agreed on has its number', async () => {
  const suites = CIPHER_LIST.split(':')
  const hello = Buffer.from('010000290303'.concat('00'.repeat(32), '00', '0002c02f', '0100'), 'hex')
  const parsed = parseClientHello(hello)
  assert.equal(parsed.kind, 'client-hello')
  if (parsed.kind !== 'client-hello') return
  const known = tls.getCiphers().map((name) => name.toUpperCase())
  for (const suite of suites) {
    assert.ok(known.includes(suite), `${suite} is known to this OpenSSL`)
    const cipher = suite.startsWith('TLS_')
      ? suite
      : `TLS_${suite
          .replace(/^(ECDHE-(?:ECDSA|RSA))-/, '$1-WITH-')
          .replace(/AES(\d+)/, 'AES-$1')
          .replaceAll('-', '_')}`
    const standard = cipher.endsWith('POLY1305') ? `${cipher}_SHA256` : cipher
    const negotiated = { protocol: 'TLSv1.2', alpn: null, isResumed: false } as const
    assert.notEqual(serverHelloOf(hello, parsed.hello, { ...negotiated, cipher: standard }), null, standard)
  }
  const other = {
    protocol: 'TLSv1.2',
    cipher: 'TLS_RSA_WITH_AES_128_CBC_SHA',
    alpn: null,
    isResumed: false,
  } as const
  assert.equal(serverHelloOf(hello, parsed.hello, other), null)
})

interface TestServer {
  /** What one client is answered, of which many may be under way. */
  answer(client: (port: number) => Promise<unknown>): Promise<Answered>
  count(): number
  close(): void
}

async function startServer(): Promise<TestServer> {
  const secured = new Map<number, (derived: Omit<Answered, 'sent'>) => void>()
  const options = {
    certificates: await identities(),
    ticketKeys: Buffer.alloc(48, 3),
    minVersion: 'TLSv1.2',
    requestClientCertificate: true,
    clientCa: null,
    handshakeTimeoutMs: 5000,
    ja4plus: true,
  } as const
  const server = new TlsServer(options, {
    secured(connection, socket) {
      const told = {
        derived: connection.print.ja4s,
        isResumed: socket.isSessionReused(),
        protocol: socket.getProtocol()!,
      }
      secured.get(connection.port)!(told)
      socket.once('data', () => socket.end('bye\n'))
    },
    failed: ({ port }, reason, code) =>
      secured.get(port)!({ derived: `${reason} ${code}`, isResumed: false, protocol: '' }),
  })
  let count = 0
  const front = net.createServer({ pauseOnConnect: true }, (raw) => {
    const connection = new ClientConnection(++count, raw, true, '127.0.0.1')
    readOpening(
      raw,
      { isTls: true, timeoutMs: 5000, bytesMax: 65_536, proxyHeader: 'none' },
      () => true,
      (opening) => {
        assert.equal(opening.kind, 'tls')
        if (opening.kind === 'tls')
          server.accept({ connection, message: opening.message, hello: opening.hello })
      },
    )
  })
  const port = await listening(front)
  return {
    count: () => count,
    close: () => front.close(),
    async answer(client) {
      const bytes: Buffer[] = []
      const told = Promise.withResolvers<Omit<Answered, 'sent'>>()
      const relay = net.createServer((near) => {
        const far = net.connect(port, '127.0.0.1', () =>
          secured.set((far.address() as AddressInfo).port, told.resolve),
        )
        near
          .pipe(far)
          .on('data', (chunk) => bytes.push(chunk))
          .pipe(near)
        near.on('error', () => far.destroy())
        far.on('error', () => near.destroy())
      })
      await client(await listening(relay))
      relay.close()
      const late = setTimeout(() => told.reject(new Error('the server has not seen it')), 3000)
      const answered = await told.promise
      clearTimeout(late)
      return { ...answered, sent: firstServerHello(Buffer.concat(bytes)) }
    },
  }
}

function firstServerHello(bytes: Buffer): ServerHello {
  const read = new HelloReader(SERVER_HELLO).push(bytes)
  assert.equal(read.kind, 'message')
  const parsed = read.kind === 'message' ? parseServerHello(read.message) : null
  assert.equal(parsed?.kind, 'server-hello')
  return (parsed as { hello: ServerHello }).hello
}

async function listening(server: net.Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

function run(command: string, port: number): Promise<void> {
  const [program, ...argv] = command.replaceAll('$PORT', `${port}`).split(/\s+/)
  return new Promise((resolve) => {
    const child = execFile(program!, argv, { timeout: 9000 }, () => resolve())
    child.stdin!.on('error', () => {}).end('hello\n')
  })
}

function connect(
  port: number,
  options: tls.ConnectionOptions,
  keep: (ticket: Buffer) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const host = { port, host: '127.0.0.1', servername: 'a.example.test', rejectUnauthorized: false }
    tls
      .connect({ ...host, ...options })
      .on('session', keep)
      .on('error', () => {})
      .on('close', resolve)
      .resume()
      .write('hello')
  })
}

async function inParallel<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const queue = [...items.entries()]
  const lanes = Array.from({ length: LANES }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next[1], next[0])
  })
  await Promise.all(lanes)
}
