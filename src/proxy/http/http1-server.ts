import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { createServer } from '../../shared/node-http.ts'
import type { ClientConnection } from '../connection/connection.ts'
import {
  type Before,
  Http1Connection,
  type Http1Handlers,
  type Http1Limits,
  type Http1Owner,
} from './http1-connection.ts'

/** HTTP/1 on accepted sockets. node:http parses strictly; this class decides what it leaves open. */
export class Http1Server implements Http1Owner {
  isDraining = false
  readonly limits: Http1Limits
  readonly handlers: Http1Handlers
  readonly #server: Server
  readonly #states = new WeakMap<Duplex, Http1Connection>()

  constructor(limits: Http1Limits, handlers: Http1Handlers) {
    this.limits = limits
    this.handlers = handlers
    const server = createServer({
      insecureHTTPParser: false,
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headerTimeoutMs,
      requestTimeout: 0, // no limit for a body that keeps moving
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.max(CHECK_MS_MIN, Math.min(CHECK_MS_MAX, limits.headerTimeoutMs / 4)),
      requireHostHeader: false, // checked here, so that failures are counted
      optimizeEmptyRequests: true,
      shouldUpgradeCallback: (request) => this.#stateOf(request.socket)?.considerUpgrade(request) ?? false,
    })
    server.maxHeadersCount = 0 // Node would drop headers above its limit; the proxy rejects the request
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.#stateOf(request.socket)?.request(request, response)
    server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest)
    server.on('upgrade', (request, socket, head) => this.#stateOf(socket)?.upgrade(request, head))
    server.on('connect', (_, socket) => this.#stateOf(socket)?.connect())
    server.on('clientError', (error, socket) => this.#stateOf(socket)?.error(error))
    server.on('timeout', (socket) => this.#stateOf(socket)?.timeOut())
    // The server does not listen, but without this event Node does not check for late heads and idle
    // connections.
    server.emit('listening')
    this.#server = server
  }

  accept(connection: ClientConnection, before: Before): void {
    connection.stage = 'h1'
    const state = new Http1Connection(connection, this, before)
    this.#states.set(connection.stream, state)
    connection.stream.once('close', () => state.close())
    this.#server.emit('connection', connection.stream)
    state.read()
  }

  /** No connection takes another request. Idle ones end now. */
  drain(): void {
    this.isDraining = true
    this.#server.closeIdleConnections()
  }

  /** Stops the timers. The callback ignores the error that the server was not listening. */
  close(): void {
    this.#server.close(() => {})
  }

  #stateOf(socket: Duplex): Http1Connection | undefined {
    return this.#states.get(socket)
  }
}

/** How often Node checks for late heads. It walks a list and needs no timer per connection. */
const CHECK_MS_MIN = 20
const CHECK_MS_MAX = 1000
