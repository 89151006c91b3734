import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import type { ClientTimeout } from '../../src/proxy/connection/client-timeouts.ts'
import type { ConnectionFailure, SecuredConnection } from '../../src/proxy/connection/connection.ts'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import type { RequestHandlers } from '../../src/proxy/request/handler.ts'
import type { Upgrade } from '../../src/proxy/connection/upgrade.ts'
import {
  createListener,
  type Listener,
  type ListenerLimits,
  type ListenerOptions,
} from '../../src/proxy/worker/listener.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import { CertificateStore } from '../../src/proxy/tls/certificates.ts'
import type { TlsOptions } from '../../src/proxy/tls/tls-server.ts'
import { testCa, testLeaf, testPair, testRsa } from './test-certificates.ts'

/** `TEST_HTTP2=node` runs the tests with node:http2. */
export const HTTP2_SERVER = process.env['TEST_HTTP2'] === 'node' ? 'node' : 'own'

/** A listener with everything it was told, and clients that say byte for byte what they are told to. */
export interface Front {
  readonly listener: Listener
  readonly port: number
  readonly failures: readonly ConnectionFailure[]
  /** The deadlines of clients that have passed. */
  readonly timeouts: readonly ClientTimeout[]
  /** What handshakes have come to. */
  readonly secured: readonly SecuredConnection[]
  readonly exchanges: readonly Exchange[]
  readonly upgrades: readonly Upgrade[]
  /** Until this many have been reported. */
  failed(count?: number): Promise<void>
  close(): Promise<void>
}

export interface FrontPlan {
  readonly tls?: Partial<TlsOptions> | null
  readonly limits?: Partial<ListenerLimits>
  readonly options?: Partial<Omit<ListenerOptions, 'tls' | 'limits'>>
  request?(exchange: Exchange): void
  upgrade?(upgrade: Upgrade): void
}

export async function startFront(plan: FrontPlan = {}): Promise<Front> {
  const failures: ConnectionFailure[] = []
  const timeouts: ClientTimeout[] = []
  const secured: SecuredConnection[] = []
  const exchanges: Exchange[] = []
  const upgrades: Upgrade[] = []
  let onFailure = () => {}
  const handlers: RequestHandlers = {
    request(exchange) {
      exchanges.push(exchange)
      ;(plan.request ?? echo)(exchange)
    },
    upgrade(upgrade) {
      upgrades.push(upgrade)
      if (plan.upgrade === undefined) upgrade.stream.destroy()
      else plan.upgrade(upgrade)
    },
    failed(failure) {
      failures.push(failure)
      onFailure()
    },
    timedOut: (timeout) => void timeouts.push(timeout),
    secured: (connection) => void secured.push(connection),
  }
  const options: ListenerOptions = {
    proxyProtocol: 'off',
    trusted: NO_ADDRESSES,
    ja4Hops: NO_ADDRESSES,
    ja4plus: true,
    fastLane: true,
    http2: HTTP2_SERVER,
    ...plan.options,
    tls: plan.tls === null ? null : { ...(await plainTls()), ...plan.tls },
    limits: { ...LIMITS, ...plan.limits },
  }
  const listener = createListener(options, handlers)
  await listener.listen({ host: '127.0.0.1', port: 0 })
  return {
    listener,
    port: listener.address!.port,
    failures,
    timeouts,
    secured,
    exchanges,
    upgrades,
    async failed(count = 1) {
      while (failures.length < count) await new Promise<void>((resolve) => (onFailure = resolve))
    },
    close: () => listener.drain(0, 0),
  }
}

/** Answers 200 with the request's body, or with the request line if it has no body. */
export function echo(exchange: Exchange): void {
  if (exchange.bodyLength === 0)
    return answerText(exchange, `${exchange.head.method} ${exchange.head.target}`)
  const chunks: Buffer[] = []
  exchange.body.on('data', (chunk: Buffer) => chunks.push(chunk))
  exchange.body.on('end', () => answerText(exchange, Buffer.concat(chunks).toString('latin1')))
}

export function answerText(exchange: Exchange, text: string, status = 200): void {
  const bytes = Buffer.from(text, 'latin1')
  exchange.answer(
    status,
    ['Content-Type', 'text/plain', 'Content-Length', String(bytes.length)],
    bytes.length,
  )
  if (bytes.length > 0) exchange.write(bytes)
  exchange.end([])
}

/** A client that keeps what it hears. */
export interface Peer {
  readonly socket: net.Socket
  readonly text: string
  readonly bytes: Buffer
  readonly byteCount: number
  /** The socket is gone, and with which error. */
  readonly closed: Promise<string | null>
  write(bytes: string | Uint8Array): void
  /** What was heard until now: who is asked a hundred thousand times would else read all of it each time. */
  forget(): void
  /** Until it has heard this; fails when the socket closes without. */
  hears(wanted: RegExp | string | (() => boolean)): Promise<string>
}

export async function dialPlain(port: number): Promise<Peer> {
  const socket = net.connect({ port, host: '127.0.0.1' })
  const peer = listenOn(socket)
  await once(socket, 'connect')
  return peer
}

export async function dialTls(port: number, options: tls.ConnectionOptions = {}): Promise<Peer> {
  const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  const peer = listenOn(socket)
  await once(socket, 'secureConnect')
  return peer
}

export function listenOn(socket: net.Socket): Peer {
  const chunks: Buffer[] = []
  let byteCount = 0
  let error: string | null = null
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    byteCount += chunk.length
  })
  socket.on('error', (thrown: NodeJS.ErrnoException) => (error = thrown.code ?? thrown.message))
  const closed = new Promise<string | null>((resolve) => socket.on('close', () => resolve(error)))
  return {
    socket,
    closed,
    get bytes() {
      return Buffer.concat(chunks)
    },
    get byteCount() {
      return byteCount
    },
    get text() {
      return this.bytes.toString('latin1')
    },
    write: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    forget() {
      chunks.length = 0
      byteCount = 0
    },
    async hears(wanted) {
      const isHeard = () => {
        if (typeof wanted === 'function') return wanted()
        return typeof wanted === 'string' ? this.text.includes(wanted) : wanted.test(this.text)
      }
      while (!isHeard()) {
        if (socket.destroyed)
          throw new Error(`closed (${error}) before ${wanted}, after ${this.text.slice(-500)}`)
        const { promise, resolve } = Promise.withResolvers<void>()
        socket.once('data', resolve).once('close', resolve)
        await promise
        socket.off('data', resolve).off('close', resolve)
      }
      return this.text
    },
  }
}

async function plainTls(): Promise<TlsOptions> {
  return {
    certificates: await identities(),
    ticketKeys: Buffer.alloc(48, 7),
    minVersion: 'TLSv1.2',
    requestClientCertificate: false,
    clientCa: null,
  }
}

/** ECDSA and RSA for a.example.test, RSA for b.example.test; without a name it is the first two. */
export function identities(): Promise<CertificateStore> {
  IDENTITIES ??= makeIdentities()
  return IDENTITIES
}

async function makeIdentities(): Promise<CertificateStore> {
  const ca = await testCa()
  const both = ['a.example.test']
  return new CertificateStore(
    [
      testPair(await testLeaf(ca, both), both),
      testPair(testRsa(both), both, { keyType: 'rsa', signatureScheme: null }),
      testPair(testRsa(['b.example.test']), ['b.example.test'], { keyType: 'rsa', signatureScheme: null }),
    ],
    {},
  )
}

let IDENTITIES: Promise<CertificateStore> | null = null

export const NO_ADDRESSES = AddressSet.parse([])!
export const LOOPBACK = AddressSet.parse(['127.0.0.0/8'])!

export const LIMITS: ListenerLimits = {
  helloBytesMax: 65_536,
  helloTimeoutMs: 5000,
  handshakeTimeoutMs: 10_000,
  headerBytesMax: 65_536,
  headerCountMax: 200,
  headerTimeoutMs: 10_000,
  requestLineBytesMax: 16_384,
  bodyIdleTimeoutMs: 60_000,
  answerUnreadTimeoutMs: 120_000,
  keepAliveTimeoutMs: 75_000,
  requestsPerConnectionMax: 10_000,
  connectionsMax: 10_000,
  connectionsPerAddressMax: 1000,
  streamsPerConnectionMax: 128,
  h2ResetBurst: 200,
  h2ResetRate: 33,
  h2SessionMemoryBytes: 16_777_216,
}
