import { randomUUID } from 'node:crypto'
import type { RequestListener, Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { problemBody } from '../problem.ts'
import type { ClientAddresses } from './client-address.ts'
import { type ProxyHeaderFault, takeProxyHeaders } from './proxy-header.ts'
import { STABILITY_HEADER, stabilityOf } from './stability.ts'
import { Refusal } from '../refusal.ts'
import { createServer, STATUS_CODES } from '../../../shared/node-http.ts'

/** How the management port handles connections. */
export interface ServerSettings {
  /** Time limit for a whole request, to the last byte of its body. */
  readonly requestTimeoutMs: number
  readonly connectionsMax: number
  /** Certificates are set later, see `useCertificate`. */
  readonly hasTls: boolean
  /** Addresses and ranges of the proxies whose X-Forwarded-For, Forwarded and PROXY headers are trusted. */
  readonly trustedProxies: readonly string[]
  /** Whether trusted proxies begin a connection with a PROXY header. */
  readonly proxyProtocol: 'off' | 'optional' | 'required'
}

/** What the server reports about connections. */
interface ServerLinks {
  readonly addresses: ClientAddresses
  refusedProxyHeader(fault: ProxyHeaderFault): void
}

/** A certificate chain and its key, in PEM. */
interface ManageCertificate {
  readonly chain: string
  readonly key: string
}

export type ManageServer = Server | TlsServer

/** An HTTP/1.1 server with limits. It answers with a problem even if the request is not valid HTTP. */
export function createFrontServer(
  settings: ServerSettings,
  { addresses, refusedProxyHeader: refused }: ServerLinks,
  answer: RequestListener,
): ManageServer {
  const { requestTimeoutMs: requestTimeout } = settings
  const headersTimeout = Math.min(HEADERS_TIMEOUT_MS, requestTimeout)
  const limits = { ...LIMITS, requestTimeout, headersTimeout }
  const server = settings.hasTls
    ? createTlsServer({ ...limits, ...TLS, ALPNProtocols: ['http/1.1'] })
    : createServer(limits)
  // Without this, a client that reads no bytes of an answer would keep the answer and the connection for
  // ever.
  server.timeout = requestTimeout * SILENCE_FACTOR
  server.maxConnections = settings.connectionsMax
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION
  // Node silently drops headers above its limit. It keeps one more than our limit, so that app.ts can refuse
  // the request.
  server.maxHeadersCount = HEADERS_MAX + 1
  const latest = new WeakMap<Duplex, ServerResponse>()
  const listener: RequestListener = (request, response) => {
    latest.set(request.socket, response)
    answer(request, response)
  }
  server.on('request', listener)
  // A client that waits for 100 gets it when the body is read. A client that is refused earlier need not send
  // its body.
  server.on('checkContinue', listener)
  server.on('checkExpectation', listener)
  server.on('clientError', (error, socket) => refuse(error, socket, latest.get(socket)))
  const { proxyProtocol: mode } = settings
  if (mode !== 'off') takeProxyHeaders(server, addresses, { mode, timeoutMs: headersTimeout, refused })
  return server
}

/** Applies to new connections. */
export function useCertificate(server: ManageServer, { chain, key }: ManageCertificate): void {
  if ('setSecureContext' in server) server.setSecureContext({ ...TLS, cert: chain, key })
}

/**
 * Answers a request that the parser cannot read, the last one on its connection. The problem is sent after
 * the answers to earlier requests, unless the error is in the body of the request that is being answered.
 */
function refuse(error: NodeJS.ErrnoException, socket: Duplex, latest: ServerResponse | undefined): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  // Earlier requests are complete, and are answered first.
  const own = latest?.req.complete === false ? latest : undefined
  if (own === undefined && latest?.closed === false) {
    latest.once('close', () => setImmediate(refuse, error, socket, latest))
    return
  }
  // An answer that has begun cannot become a different one.
  if (own?.headersSent === true) return void socket.destroy()
  socket.write(rawAnswer(refusalFor(error), own?.req.url ?? ''))
  if (socket instanceof Socket) socket.destroySoon()
  else socket.destroy()
}

function refusalFor({ code }: NodeJS.ErrnoException): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('header_too_large', `the header is larger than ${LIMITS.maxHeaderSize} bytes`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('too_large', 'the chunks have too many extensions')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Refusal('request_timeout', 'the request did not arrive in time')
    default:
      return new Refusal('invalid_request', 'this is not a valid HTTP/1.1 request')
  }
}

/** For a request that is invalid or incomplete. `url`: the request target, as far as it is known. */
function rawAnswer(refusal: Refusal, url: string): string {
  const stability = stabilityOf(url)
  const requestId = randomUUID()
  const body = JSON.stringify(problemBody(refusal, null, requestId))
  return [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
    ...(stability === null ? [] : [`${STABILITY_HEADER}: ${stability}`]),
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** Clients without TLS 1.2 are older than this program. */
const TLS = { minVersion: 'TLSv1.2' } as const
const HEADERS_TIMEOUT_MS = 5_000
const LIMITS = {
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  // app.ts answers with a problem if the header is missing.
  requireHostHeader: false,
}
/** An answer may be silent for longer than a request: some answers arrive a little at a time. */
const SILENCE_FACTOR = 2
/** Few headers are needed. A token may be long, but it is one header. */
export const HEADERS_MAX = 100
/** A client then connects again, so that load spreads anew. */
const REQUESTS_PER_CONNECTION = 10_000
