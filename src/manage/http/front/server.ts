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

/** How the management port deals with connections. */
export interface ServerSettings {
  /** For all of a request, to the last byte of its body. */
  readonly requestTimeoutMs: number
  readonly connectionsMax: number
  /** Certificates come later, see `useCertificate`. */
  readonly hasTls: boolean
  /** Addresses and ranges of the proxies whose X-Forwarded-For, Forwarded and PROXY header are believed. */
  readonly trustedProxies: readonly string[]
  /** Whether these begin a connection with a PROXY header. */
  readonly proxyProtocol: 'off' | 'optional' | 'required'
}

/** What the server reports of connections. */
export interface ServerLinks {
  readonly addresses: ClientAddresses
  refusedProxyHeader(fault: ProxyHeaderFault): void
}

/** A certificate with its chain, and its key, in PEM. */
export interface ManageCertificate {
  readonly chain: string
  readonly key: string
}

export type ManageServer = Server | TlsServer

/** An HTTP/1.1 server with limits, which answers with a problem even to what is no HTTP. */
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
  // Who takes no bytes of an answer would keep it, and the connection, for ever.
  server.timeout = requestTimeout * SILENCE_FACTOR
  server.maxConnections = settings.connectionsMax
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION
  // Node drops the headers above its limit without a word: app.ts refuses a request that has one more than ours.
  server.maxHeadersCount = HEADERS_MAX + 1
  const latest = new WeakMap<Duplex, ServerResponse>()
  const listener: RequestListener = (request, response) => {
    latest.set(request.socket, response)
    answer(request, response)
  }
  server.on('request', listener)
  // Who waits for a 100 gets it when the body is read: who is refused before need not send it.
  server.on('checkContinue', listener)
  server.on('checkExpectation', listener)
  server.on('clientError', (error, socket) => refuse(error, socket, latest.get(socket)))
  const { proxyProtocol: mode } = settings
  if (mode !== 'off') takeProxyHeaders(server, addresses, { mode, timeoutMs: headersTimeout, refused })
  return server
}

/** For connections from now on. */
export function useCertificate(server: ManageServer, { chain, key }: ManageCertificate): void {
  if ('setSecureContext' in server) server.setSecureContext({ ...TLS, cert: chain, key })
}

/**
 * What the parser cannot read is the last on its connection. It is said after the answers to what came before it, unless
 * it is the body of what is being answered.
 */
function refuse(error: NodeJS.ErrnoException, socket: Duplex, latest: ServerResponse | undefined): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  // Those before it are complete, and are answered before it.
  const own = latest?.req.complete === false ? latest : undefined
  if (own === undefined && latest?.closed === false) {
    latest.once('close', () => setImmediate(refuse, error, socket, latest))
    return
  }
  // Half an answer cannot become another one.
  if (own?.headersSent === true) return void socket.destroy()
  socket.write(rawAnswer(refusalFor(error), own?.req.url ?? ''))
  if (socket instanceof Socket) socket.destroySoon()
  else socket.destroy()
}

function refusalFor({ code }: NodeJS.ErrnoException): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('header_too_large', `the header may have ${LIMITS.maxHeaderSize} bytes`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('too_large', 'the chunks have too many extensions')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Refusal('request_timeout', 'the request did not arrive in time')
    default:
      return new Refusal('invalid_request', 'this is no HTTP/1.1 request')
  }
}

/** For who has not become a request, or not a whole one. `url`: what it asks for, as far as that is known. */
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

/** Clients that speak less are older than this program. */
const TLS = { minVersion: 'TLSv1.2' } as const
const HEADERS_TIMEOUT_MS = 5_000
const LIMITS = {
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  // Said by a problem, see app.ts.
  requireHostHeader: false,
}
/** An answer may be silent for longer than a request: some of them come a little at a time. */
const SILENCE_FACTOR = 2
/** Tokens are long, headers are few. */
export const HEADERS_MAX = 100
/** So that load spreads anew. */
const REQUESTS_PER_CONNECTION = 10_000
