import net from 'node:net'
import tls from 'node:tls'
import { Fault } from '../../shared/fault.ts'
import type { UpstreamFailure } from './upstream-stream.ts'

/** The address and protocol of an upstream target. */
export interface UpstreamAddress {
  /** As the operator wrote it. Used in logs and metrics. */
  readonly url: string
  readonly protocol: 'h1' | 'h2'
  readonly host: string
  readonly port: number
  /** Instead of host and port. */
  readonly socketPath: string | null
  /** The Host header if the client's is not passed on. */
  readonly authority: string
  readonly tls: UpstreamTls | null
}

export interface UpstreamTls {
  readonly verify: boolean
  /** PEM certificates to trust instead of the system's. */
  readonly ca: string | null
  /** For SNI and the certificate check, if it differs from the host. */
  readonly serverName: string | null
}

/**
 * Parses `http://host:port`, `https://…`, `h2c://…` and `h2://…` (HTTP/2 without and with TLS), `unix:/path`.
 */
export function parseUpstreamUrl(url: string, tlsSettings: UpstreamTls): UpstreamAddress {
  if (url.startsWith(UNIX)) {
    const socketPath = url.slice(UNIX.length)
    if (!socketPath.startsWith('/')) throw invalid(url, 'the path of a socket begins with /')
    return { url, protocol: 'h1', host: '', port: 0, socketPath, authority: 'localhost', tls: null }
  }
  const parts = URL_FORM.exec(url)
  const scheme = SCHEMES.get(parts?.[1]?.toLowerCase() ?? '')
  if (parts === null || scheme === undefined) {
    throw invalid(url, 'it must be http, https, h2c or h2://host:port, or unix:/path')
  }
  const host = parts[2]!
  const port = parts[3] === undefined ? scheme.port : Number(parts[3])
  if (port < 1 || port > 65_535) throw invalid(url, 'a port is 1 to 65535')
  return {
    url,
    protocol: scheme.protocol,
    host: host.startsWith('[') ? host.slice(1, -1) : host,
    port,
    socketPath: null,
    authority: port === scheme.port ? host : `${host}:${port}`,
    tls: scheme.isTls ? tlsSettings : null,
  }
}

/** The read buffer of a socket, which saves a Buffer per read. */
export type OnRead = net.OnReadOpts

/**
 * The read buffer of all connections without TLS: their readers are done with the bytes before the next read.
 * 16 KiB would triple the cost of large bodies.
 */
export const SHARED_BUFFER: Buffer = Buffer.allocUnsafeSlow(256 * 1024)

/** Opens connections to one address. */
export class Dialer {
  readonly address: UpstreamAddress
  readonly #secureContext: tls.SecureContext | null
  /** The TLS session of the last connection, so that the next one need not check the certificate again. */
  #session: Buffer | null = null

  constructor(address: UpstreamAddress) {
    this.address = address
    const ca = address.tls?.ca ?? null
    this.#secureContext = address.tls === null ? null : tls.createSecureContext(ca === null ? {} : { ca })
  }

  /**
   * Calls `connected` once the connection is usable, including TLS. Everything else is an event of the
   * socket.
   */
  dial(onread: OnRead | null, connected: () => void): net.Socket {
    const { host, port, socketPath } = this.address
    const place = socketPath === null ? { host, port, noDelay: true, ...KEEP_ALIVE } : { path: socketPath }
    const options = onread === null ? place : { ...place, onread }
    if (this.#secureContext === null) return net.connect(options, connected)
    return this.#dialTls(options, this.#secureContext, connected)
  }

  #dialTls(
    options: net.NetConnectOpts,
    secureContext: tls.SecureContext,
    connected: () => void,
  ): tls.TLSSocket {
    const { verify, serverName } = this.address.tls!
    const name = serverName ?? this.address.host
    const socket = tls.connect(
      {
        ...options,
        secureContext,
        rejectUnauthorized: verify,
        ALPNProtocols: [this.address.protocol === 'h2' ? 'h2' : 'http/1.1'],
        // An address is not a server name (RFC 6066 §3).
        ...(net.isIP(name) === 0 ? { servername: name } : {}),
        ...(this.#session === null ? {} : { session: this.#session }),
      },
      connected,
    )
    socket.on('session', (session) => {
      this.#session = session
    })
    return socket
  }
}

/** The failure that a socket error means for the waiting request. */
export function failureOf(error: NodeJS.ErrnoException, isConnecting: boolean): UpstreamFailure {
  const code = error.code ?? ''
  if (OVERLOADED.has(code)) return 'overloaded'
  if (!isConnecting) return 'reset'
  if (code === 'ECONNREFUSED') return 'refused'
  if (code === 'ETIMEDOUT') return 'connect-timeout'
  return UNREACHABLE.has(code) ? 'unreachable' : 'tls'
}

function invalid(url: string, why: string): Fault {
  return new Fault('UPSTREAM_INVALID', `upstream "${url}": ${why}`)
}

const UNIX = 'unix:'
/** User, path and query are not allowed: they would have no meaning. */
const URL_FORM = /^([a-z0-9]+):\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?\/?$/i
const SCHEMES: ReadonlyMap<string, { protocol: 'h1' | 'h2'; isTls: boolean; port: number }> = new Map([
  ['http', { protocol: 'h1', isTls: false, port: 80 }],
  ['https', { protocol: 'h1', isTls: true, port: 443 }],
  ['h2c', { protocol: 'h2', isTls: false, port: 80 }],
  ['h2', { protocol: 'h2', isTls: true, port: 443 }],
])

/** Detects an upstream that vanished silently, even below a stream that may stay silent forever. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 60_000 }

/** Failures of the proxy's machine, not of the upstream: no file descriptor, no local port. */
const OVERLOADED: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])
const UNREACHABLE: ReadonlySet<string> = new Set([
  'EACCES',
  'EPERM',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EAI_NODATA',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'EINVAL',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'ENOTSOCK',
  'ECONNABORTED',
  'ECONNRESET',
  'EPIPE',
])
