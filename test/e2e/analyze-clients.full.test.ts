import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import http2, { type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { test } from 'tap'
import type { Finding } from '../../src/capture/finding.ts'
import { ja4 } from '../../src/fingerprint/ja4.ts'
import { ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import { ja4x } from '../../src/fingerprint/ja4plus/ja4x.ts'
import {
  type ClientHello,
  type Hello,
  parseClientHello,
  parseDtlsClientHello,
} from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import type { HttpVersion } from '../../src/wire/request-head.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import { CERTIFICATE_DER, IDENTITY } from '../capture/recorded-tls.ts'
import { analyze, captureLoopback } from './network-capture.ts'
import { heard, missing, noCapture, plainEnvironment, run, skipped } from './programs.ts'
import { isOf, JAVA_CLIENT, pathOf, REAL_CLIENTS, type RealClient } from './real-clients.ts'

/**
 * Real clients talk to a server here while tcpdump listens. What `gatehouse analyze` finds in the capture has to be
 * what the server saw by itself: the bytes of each hello, and the headers of each request as Node read them.
 */

/** What the server saw on one connection, named by the client's port. */
interface Seen {
  readonly port: number
  readonly ja4: string
  readonly sni: string | null
  resumed: boolean
  readonly requests: Request[]
}

interface Request {
  readonly http: 'http1' | 'http2'
  readonly method: string
  readonly path: string
  readonly ja4h: string
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-clients-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

test('analyze: what it finds of real clients is what the server saw', { skip: noCapture() }, async (t) => {
  const installed = REAL_CLIENTS.filter(({ program }) => missing(program) === false)
  writeFileSync(join(folder, 'Client.java'), JAVA_CLIENT)
  const server = await startServer()
  const relay = await startDtlsRelay()
  const capturing = await captureLoopback(t, `tcp port ${server.port} or udp port ${relay?.port ?? 0}`)
  await Promise.all([...installed.map((client) => visit(client, server.port)), relay?.greet()])
  server.close()
  await relay?.close()
  const capture = join(folder, 'capture.pcap')
  writeFileSync(capture, await capturing.end())
  const keyLog = join(folder, 'keys.log')
  writeFileSync(keyLog, server.keyLog())

  const opened = await analyze('--keylog', keyLog, capture)
  const closed = await analyze(capture)
  const findingsOf = (findings: readonly Finding[], port: number): readonly Finding[] =>
    findings.filter((found) => found.transport === 'tcp' && found.src_port === port)

  for (const client of REAL_CLIENTS) {
    const { name } = client
    t.test(name, { skip: skipped(client.program) }, async () => {
      const isSeen = ({ requests }: Seen) => requests.some(({ path }) => isOf(name, path))
      const ports = new Set(server.seen.filter(isSeen).map(({ port }) => port))
      assert.ok(ports.size > 0, 'the server saw it')
      for (const port of ports) {
        // Now and then the kernel gives a port to two clients, one after the other.
        const seen = server.seen.filter((each) => each.port === port)
        const findings = findingsOf(opened, port)
        const tls = findings.filter((found) => found.kind === 'tls')
        assert.deepEqual(
          tls.map((found) => [found.ja4, found.sni, found.ja4x]),
          seen.map(({ ja4, sni, resumed }) => [ja4, sni, resumed ? [] : JA4X]),
        )
        for (const found of tls) assert.match(found.ja4s!, /^t1[23]/)
        const http = findings.filter((found) => found.kind === 'http')
        assert.deepEqual(
          http.map((found): Request => {
            return { http: found.http, method: found.method, path: found.path, ja4h: found.ja4h! }
          }),
          seen.flatMap(({ requests }) => requests),
        )
        // Without keys there is the hello still.
        assert.deepEqual(
          findingsOf(closed, port).map((found) => found.kind === 'tls' && found.ja4),
          seen.map(({ ja4 }) => ja4),
        )
      }
    })
  }

  t.test('openssl over DTLS', { skip: skipped('openssl') }, async () => {
    assert.equal(relay!.ja4s().length, 2, 'without a cookie and with it')
    const dtls = opened.filter((found) => found.kind === 'tls' && found.transport === 'dtls')
    assert.deepEqual(
      dtls.map((found) => found.kind === 'tls' && [found.ja4, ...found.ja4_later, found.ja4x]),
      [[...relay!.ja4s(), JA4X]],
    )
  })

  t.test('nothing else', async () => {
    const ports = new Set(server.seen.map(({ port }) => port))
    assert.deepEqual(
      opened.filter((found) => found.transport === 'tcp' && !ports.has(found.src_port)),
      [],
    )
  })
})

const certificate = parseCertificate(CERTIFICATE_DER)
const JA4X = certificate.kind === 'certificate' ? [ja4x(certificate.oids)] : []

interface Server {
  readonly port: number
  readonly seen: readonly Seen[]
  keyLog(): string
  close(): void
}

/** Reads the hello of each connection before it lets TLS have it. */
async function startServer(): Promise<Server> {
  const seen = new Map<number | undefined, Seen>()
  let keyLog = ''
  const tls = createTlsServer({ ...IDENTITY, ALPNProtocols: ['h2', 'http/1.1', 'http/1.0'] })
  tls.on('keylog', (line: Buffer) => (keyLog += line.toString('latin1')))
  tls.on('secureConnection', (socket: TLSSocket) => {
    seen.get(socket.remotePort)!.resumed = socket.isSessionReused()
    const server = socket.alpnProtocol === 'h2' ? http2Server : http1Server
    server.emit('connection', socket)
  })
  const saw = (
    port: number | undefined,
    version: HttpVersion,
    method: string,
    path: string,
    rawHeaders: string[],
  ): unknown =>
    seen.get(port)!.requests.push({
      http: version === '20' ? 'http2' : 'http1',
      method,
      path,
      ja4h: ja4h({ method, target: path, version, rawHeaders }),
    })
  const onStream = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _flags: number,
    rawHeaders: string[],
  ): void => {
    // Told when the body is there, as the capture tells it.
    stream.resume().on('end', () => {
      saw(stream.session?.socket.remotePort, '20', headers[':method']!, headers[':path']!, rawHeaders)
      stream.respond({ ':status': 200 })
      stream.end('ok')
    })
  }
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const { httpVersion, rawHeaders, method, url, socket } = request
    request.resume().on('end', () => {
      const version = httpVersion === '1.0' ? '10' : '11'
      saw(socket.remotePort, version, method!, url!, rawHeaders)
      response.end('ok')
    })
  }
  const http1Server = createServer(onRequest)
  const http2Server = http2.createServer().on('stream', onStream)
  http2Server.on('sessionError', () => undefined)
  tls.on('tlsClientError', () => undefined)

  const sockets = new Set<net.Socket>()
  const front = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    const chunks: Buffer[] = []
    const reader = new HelloReader()
    socket.on('data', function take(chunk) {
      chunks.push(chunk)
      const read = reader.push(chunk)
      if (read.kind === 'need-more') return
      socket.off('data', take)
      socket.pause()
      assert.ok(read.kind === 'message', read.kind)
      const hello = helloIn(parseClientHello(read.message))
      const port = socket.remotePort!
      seen.set(port, { port, ja4: ja4(hello, 'tcp'), sni: hello.serverName, resumed: false, requests: [] })
      socket.unshift(Buffer.concat(chunks))
      tls.emit('connection', socket)
    })
  })
  await once(front.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (front.address() as AddressInfo).port,
    get seen() {
      return [...seen.values()]
    },
    keyLog: () => keyLog,
    close: () => {
      front.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function helloIn(read: Hello): ClientHello {
  assert.ok(read.kind === 'client-hello', read.kind)
  return read.hello
}

interface Relay {
  readonly port: number
  /** Has a client shake hands with the server. */
  greet(): Promise<void>
  ja4s(): string[]
  close(): Promise<void>
}

/** Passes datagrams between `openssl s_client` and `openssl s_server`. */
async function startDtlsRelay(): Promise<Relay | null> {
  if (missing('openssl')) return null
  const pem = join(folder, 'identity.pem')
  writeFileSync(pem, Buffer.concat([IDENTITY.key]))
  const [near, far] = [createSocket('udp4'), createSocket('udp4')]
  for (const socket of [near, far]) await once(socket.bind(0, '127.0.0.1'), 'listening')
  const free = createSocket('udp4')
  await once(free.bind(0, '127.0.0.1'), 'listening')
  const serverPort = free.address().port
  await new Promise<void>((resolve) => free.close(resolve))
  const server = openssl(
    's_server',
    '-dtls1_2',
    '-listen',
    '-accept',
    `127.0.0.1:${serverPort}`,
    '-cert',
    pem,
    '-key',
    pem,
  )
  await heard(server.stdout, 'ACCEPT')
  const hellos: Buffer[] = []
  let clientPort = 0
  near.on('message', (datagram, { port }) => {
    clientPort = port
    if (datagram[0] === 22 && datagram[13] === 1) hellos.push(datagram.subarray(13))
    far.send(datagram, serverPort, '127.0.0.1')
  })
  far.on('message', (datagram) => near.send(datagram, clientPort, '127.0.0.1'))
  return {
    port: near.address().port,
    greet: async () => {
      const client = openssl('s_client', '-dtls1_2', '-connect', `127.0.0.1:${near.address().port}`)
      await heard(client.stdout, 'Verify return code')
      client.stdin.end('Q\n')
      await once(client, 'exit')
    },
    ja4s: () => hellos.map((hello) => ja4(helloIn(parseDtlsClientHello(hello)), 'dtls')),
    close: async () => {
      server.kill()
      await once(server, 'exit')
      near.close()
      far.close()
    },
  }
}

function openssl(...argv: readonly string[]): ChildProcessByStdio<Writable, Readable, null> {
  return spawn('openssl', argv, { stdio: ['pipe', 'pipe', 'ignore'], env: clientEnv() })
}

async function visit(client: RealClient, port: number): Promise<void> {
  const path = pathOf(client.name)
  const argv = client.argv({ url: `https://localhost:${port}${path}`, port, path, folder })
  const input = client.input?.(path)
  await run(client.program, argv, { env: clientEnv(), ...(input !== undefined && { input }) })
}

/** The certificate made for these tests is believed. */
function clientEnv(): NodeJS.ProcessEnv {
  return plainEnvironment(folder, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
}
