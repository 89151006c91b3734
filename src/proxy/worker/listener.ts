import { createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Fault } from '../../shared/fault.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import { ClientConnection, type FailureReason } from '../connection/connection.ts'
import { FastLane } from '../http/fast-lane.ts'
import { type Opening, readOpening } from '../connection/hello.ts'
import type { RequestHandlers } from '../request/handler.ts'
import type { Http1Limits } from '../http/http1-connection.ts'
import { Http1Server } from '../http/http1-server.ts'
import { OwnHttp2Server } from '../http/h2/server.ts'
import { readHttp2Opening } from '../http/http2-opening.ts'
import { type Http2Limits, Http2Server } from '../http/http2-server.ts'
import { type AddressSet, clientNetwork, normalAddress } from '../../wire/ip-address.ts'
import type { ProxySource } from '../../wire/proxy-protocol.ts'
import type { Tap } from '../connection/tap.ts'
import { UnreadAnswers } from '../http/unread-answers.ts'
import { type TlsOptions, TlsServer } from '../tls/tls-server.ts'
import type { ListenAddress } from '../../shared/listen-address.ts'

export interface ListenerOptions {
  /** `null`: plain text. Everything else is the same. */
  readonly tls: TlsOptions | null
  readonly proxyProtocol: 'off' | 'optional' | 'required'
  /** The proxies whose PROXY header, X-Forwarded-For and similar headers are believed. */
  readonly trusted: AddressSet
  /** The hops whose JA4 header is used. */
  readonly ja4Hops: AddressSet
  /** Whether JA4S and JA4X are computed. */
  readonly ja4plus: boolean
  /** Whether common HTTP/1.1 requests bypass node:http. */
  readonly fastLane: boolean
  /** Who reads and writes HTTP/2: our own code, or node:http2. */
  readonly http2: 'own' | 'node'
  readonly limits: ListenerLimits
}

export interface ListenerLimits extends Http1Limits, Http2Limits {
  readonly helloBytesMax: number
  readonly helloTimeoutMs: number
  readonly handshakeTimeoutMs: number
  readonly connectionsMax: number
  readonly connectionsPerAddressMax: number
}

export interface ListenerCounts {
  /** All open connections, in any stage. */
  readonly connections: number
  readonly opening: number
  readonly handshakes: number
  readonly h1: number
  readonly h2: number
  readonly upgraded: number
  /** Current HTTP/2 requests. */
  readonly streams: number
}

/** Where to listen: an address, a file system path, or a descriptor or handle opened elsewhere. */
export type ListenTarget = ListenOptions | { readonly fd: number }

export interface Listener {
  listen(target: ListenTarget): Promise<void>
  /** `null` unless it listens on an address. */
  readonly address: ListenAddress | null
  readonly counts: ListenerCounts
  /** Reloads the certificates, and sets the ticket keys if given. */
  refreshTls(ticketKeys?: Buffer): void
  /**
   * Stops accepting, lets every current request finish and gives upgraded connections `upgradeGraceMs`.
   * Destroys the rest after `deadlineMs`. Resolves when no connection is left.
   */
  drain(deadlineMs: number, upgradeGraceMs: number): Promise<void>
}

/** Creates a listener, which accepts connections and passes their requests to the handlers. */
export function createListener(
  options: ListenerOptions,
  handlers: RequestHandlers,
  tap: Tap | null = null,
): Listener {
  return new ClientListener(options, tap === null ? handlers : tapped(handlers, tap), tap)
}

function tapped(handlers: RequestHandlers, tap: Tap): RequestHandlers {
  return {
    request: (exchange) => {
      tap.request(exchange.connection, exchange.head, exchange.bodyLength)
      handlers.request(exchange)
    },
    upgrade: (upgrade) => {
      tap.request(upgrade.connection, upgrade.requestHead, 0)
      handlers.upgrade(upgrade)
    },
    failed: (failure) => handlers.failed(failure),
    timedOut: (timeout) => handlers.timedOut(timeout),
    secured: (connection) => handlers.secured(connection),
  }
}

class ClientListener implements Listener {
  readonly #options: ListenerOptions
  readonly #handlers: RequestHandlers
  readonly #tap: Tap | null
  readonly #server: Server
  readonly #tls: TlsServer | null
  readonly #http1: Http1Server
  /** `null`: all HTTP/1 requests take the robust lane. */
  readonly #fastLane: FastLane | null
  readonly #http2: Http2Server
  /** `null`: HTTP/2 is served with node:http2. */
  readonly #ownHttp2: OwnHttp2Server | null
  readonly #open = new Set<ClientConnection>()
  readonly #openByAddress = new Map<string, number>()
  readonly #unread: UnreadAnswers
  /** The local port of all its connections. Asking for it per connection would cost a system call. */
  #port = 0
  #drained: Promise<void> | null = null
  #onEmpty: (() => void) | null = null

  constructor(options: ListenerOptions, handlers: RequestHandlers, tap: Tap | null) {
    this.#options = options
    this.#handlers = handlers
    this.#tap = tap
    const { limits, ja4plus, tls } = options
    const failed = (connection: ClientConnection, reason: FailureReason, code: string) =>
      this.#fail(connection, reason, code)
    const request = handlers.request.bind(handlers)
    const timedOut = handlers.timedOut.bind(handlers)
    const requestHandlers = { request, upgrade: handlers.upgrade.bind(handlers), failed, timedOut }
    this.#http1 = new Http1Server(limits, requestHandlers)
    this.#fastLane = options.fastLane ? new FastLane(limits, requestHandlers, this.#http1) : null
    this.#http2 = new Http2Server(limits, requestHandlers)
    this.#ownHttp2 =
      options.http2 === 'node'
        ? null
        : new OwnHttp2Server(limits, requestHandlers, (connection, said) => tap?.http2(connection, said))
    const { handshakeTimeoutMs } = limits
    const secured = (connection: ClientConnection, socket: TLSSocket, durationMs: number) =>
      this.#secured(connection, socket, durationMs)
    this.#tls =
      tls === null ? null : new TlsServer({ ...tls, handshakeTimeoutMs, ja4plus }, { secured, failed })
    this.#unread = new UnreadAnswers(this.#open, limits.answerUnreadTimeoutMs, () =>
      timedOut('answer_unread_timeout'),
    )
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (raw) => this.#accept(raw))
  }

  get address(): ListenAddress | null {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') return null
    return { host: address.address, port: address.port }
  }

  get counts(): ListenerCounts {
    const stages = { opening: 0, handshake: 0, h1: 0, h2: 0, upgraded: 0 }
    for (const { stage } of this.#open) stages[stage]++
    const { opening, handshake: handshakes, h1, h2, upgraded } = stages
    const streams = this.#http2.streamCount + (this.#ownHttp2?.streamCount ?? 0)
    return { connections: this.#open.size, opening, handshakes, h1, h2, upgraded, streams }
  }

  listen(target: ListenTarget): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const refused = (error: NodeJS.ErrnoException) => reject(listenFault(target, error))
    this.#server.once('error', refused)
    this.#server.listen({ backlog: BACKLOG, ...target }, () => {
      this.#server.off('error', refused)
      // For example, out of file descriptors: this connection is lost, and the next one may be accepted.
      this.#server.on('error', () => {})
      this.#port = this.address?.port ?? 0
      resolve()
    })
    return promise
  }

  refreshTls(ticketKeys?: Buffer): void {
    this.#tls?.refresh(ticketKeys ?? null)
  }

  drain(deadlineMs: number, upgradeGraceMs: number): Promise<void> {
    this.#drained ??= this.#drain(deadlineMs, upgradeGraceMs)
    return this.#drained
  }

  #accept(raw: Socket): void {
    raw.on('error', ignore) // `close` follows and is handled
    const peerAddress = normalAddress(raw.remoteAddress ?? '') ?? raw.remoteAddress ?? ''
    const { tls } = this.#options
    const connection = new ClientConnection(nextId++, raw, tls !== null, peerAddress, this.#port)
    const { limits, proxyProtocol, trusted } = this.#options
    if (this.#open.size >= limits.connectionsMax)
      return this.#drop(connection, 'too-many-connections', 'total')
    this.#open.add(connection)
    raw.on('close', () => this.#closed(connection))
    const isTold = proxyProtocol !== 'off' && trusted.has(peerAddress)
    if (proxyProtocol === 'required' && !isTold) return this.#drop(connection, 'proxy-protocol', 'untrusted')
    if (!isTold && !this.#admit(connection)) return
    const proxyHeader = !isTold ? 'none' : proxyProtocol === 'required' ? 'required' : 'optional'
    const { isTls } = connection
    readOpening(
      raw,
      {
        isTls,
        timeoutMs: isTls ? limits.helloTimeoutMs : limits.headerTimeoutMs,
        bytesMax: limits.helloBytesMax,
        proxyHeader,
      },
      (source) => this.#proxied(connection, source),
      (opening) => this.#opened(connection, opening),
    )
  }

  /** Whether the connection may continue under its current address. */
  #admit(connection: ClientConnection): boolean {
    const { limits, trusted, ja4Hops } = this.#options
    const { address } = connection
    connection.isTrusted = trusted.has(address)
    connection.isJa4Hop = ja4Hops.has(address)
    // A proxy has many clients' connections, so the limit per address does not apply.
    if (connection.isTrusted) return true
    const key = clientNetwork(address)
    const count = this.#openByAddress.get(key) ?? 0
    if (count >= limits.connectionsPerAddressMax) {
      this.#drop(connection, 'too-many-connections', 'address')
      return false
    }
    this.#openByAddress.set(key, count + 1)
    connection.countedAs = key
    return true
  }

  #proxied(connection: ClientConnection, source: ProxySource | null): boolean {
    if (source !== null) {
      connection.address = source.address
      connection.port = source.port
    }
    return this.#admit(connection)
  }

  #opened(connection: ClientConnection, opening: Opening): void {
    if (opening.kind === 'failed') {
      const { reason, code } = opening
      this.#fail(connection, reason, code)
      if (reason === 'not-tls' && code === 'http') connection.raw.end(SPEAK_TLS)
      return this.#discard(connection)
    }
    // The optional PROXY header was absent: the peer is the client itself.
    if (connection.countedAs === null && !connection.isTrusted && !this.#admit(connection)) return
    if (opening.kind === 'tls') {
      const { records, message, hello } = opening
      this.#tap?.opened(connection, records)
      this.#tls!.accept({ connection, message, hello })
    } else if (opening.isHttp2) this.#startHttp2(connection)
    else this.#startHttp1(connection)
  }

  #secured(connection: ClientConnection, socket: TLSSocket, durationMs: number): void {
    this.#tap?.secured(connection, socket)
    const protocol = socket.alpnProtocol === 'h2' ? 'h2' : 'h1'
    const [version, isResumed] = [socket.getProtocol() ?? '', socket.isSessionReused()]
    this.#handlers.secured({ version, isResumed, protocol, durationMs })
    if (protocol === 'h2') this.#startHttp2(connection)
    else this.#startHttp1(connection)
  }

  #startHttp1(connection: ClientConnection): void {
    if (this.#fastLane === null) this.#http1.accept(connection, FIRST)
    else this.#fastLane.accept(connection)
  }

  #startHttp2(connection: ClientConnection): void {
    if (this.#ownHttp2 !== null) return this.#ownHttp2.accept(connection)
    connection.stage = 'h2'
    readHttp2Opening(connection.stream, this.#options.limits.headerTimeoutMs, (opening, end) => {
      if (end !== 'gone') this.#tap?.http2(connection, opening.said)
      if (end === 'read') return this.#http2.accept(connection, opening)
      if (end !== 'gone') this.#fail(connection, 'header-timeout', end)
      connection.stream.destroy()
    })
  }

  #drop(connection: ClientConnection, reason: FailureReason, code: string): void {
    this.#fail(connection, reason, code)
    connection.raw.destroy()
  }

  /** Lets a short error message leave before the close. */
  #discard({ raw }: ClientConnection): void {
    if (raw.writableLength > 0) raw.destroySoon()
    else raw.destroy()
  }

  #fail(connection: ClientConnection, reason: FailureReason, code: string): void {
    const { address, isTls, protocol } = connection
    // On an HTTP/2 connection one request may fail and the next succeed.
    const isRequest = protocol === 'h2' && reason === 'bad-request'
    if (connection.hasFailed && !isRequest) return
    connection.hasFailed ||= !isRequest
    this.#handlers.failed({ reason, code, address, isTls })
    const timeout = code === 'body-timeout' ? 'body_idle_timeout' : TIMEOUTS[reason]
    if (timeout !== undefined) this.#handlers.timedOut(timeout)
  }

  #closed(connection: ClientConnection): void {
    this.#open.delete(connection)
    this.#tls?.closed(connection)
    this.#tap?.closed(connection)
    const key = connection.countedAs
    if (key !== null) {
      const count = this.#openByAddress.get(key)! - 1
      if (count === 0) this.#openByAddress.delete(key)
      else this.#openByAddress.set(key, count)
    }
    if (this.#open.size === 0) this.#onEmpty?.()
  }

  async #drain(deadlineMs: number, upgradeGraceMs: number): Promise<void> {
    this.#server.close(() => {}) // the only possible error is that it was not listening
    for (const connection of this.#open)
      if (connection.stage === 'opening') this.#drop(connection, 'draining', 'cut')
    this.#http1.drain()
    this.#fastLane?.drain()
    this.#http2.drain()
    this.#ownHttp2?.drain()
    const endUpgrades = () => {
      this.#destroy('upgraded')
      this.#ownHttp2?.endTunnels()
    }
    const graceTimer = setTimeout(endUpgrades, Math.min(upgradeGraceMs, deadlineMs))
    const deadlineTimer = setTimeout(() => this.#destroy(null), deadlineMs)
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    if (this.#open.size > 0) await empty
    clearTimeout(graceTimer)
    clearTimeout(deadlineTimer)
    this.#unread.stop()
    this.#http1.close()
  }

  #destroy(stage: 'upgraded' | null): void {
    for (const connection of this.#open) {
      if (stage === null || connection.stage === stage) connection.raw.destroy()
    }
  }
}

function listenFault(target: ListenTarget, error: NodeJS.ErrnoException): Fault {
  const place =
    'port' in target ? `${target.host ?? 'any address'} port ${target.port}` : JSON.stringify(target)
  const said = LISTEN_FAULTS[error.code ?? '']
  const [code, why] = said ?? ['LISTEN_FAILED', error.message]
  return new Fault(code, `cannot listen on ${place}: ${why}`, { cause: error })
}

const TIMEOUTS: Readonly<Partial<Record<FailureReason, ClientTimeout>>> = {
  'hello-timeout': 'hello_timeout',
  'handshake-timeout': 'handshake_timeout',
  'header-timeout': 'header_timeout',
}

const LISTEN_FAULTS: Readonly<Record<string, readonly [code: string, why: string]>> = {
  EADDRINUSE: ['LISTEN_PORT_TAKEN', 'another program listens there'],
  EACCES: ['LISTEN_DENIED', 'ports below 1024 need a privilege (CAP_NET_BIND_SERVICE)'],
  EADDRNOTAVAIL: ['LISTEN_NO_ADDRESS', 'this machine does not have the address'],
  ENOTFOUND: ['LISTEN_NO_ADDRESS', 'the name has no address'],
}

function ignore(): void {}

/** The history of a connection without requests. */
const FIRST = { requests: 0, isBehind: false }
/** Connections that wait to be accepted. The kernel has a limit of its own. */
const BACKLOG = 4096
const SPEAK_TLS =
  'HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 45\r\n\r\n' +
  'This port speaks HTTPS: use an https:// URL.\n'
/** Unique within the process, across listeners. */
let nextId = 1
