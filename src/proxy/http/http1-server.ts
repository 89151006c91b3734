import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, Readable } from 'node:stream'
import { hasOddNames } from '../../wire/header-name.ts'
import type { HttpVersion } from '../../wire/request-head.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ClientConnection, FailureReason } from '../connection/connection.ts'
import type { Exchange } from '../connection/exchange.ts'
import { Http1Exchange, type Http1Turn } from './exchange-h1.ts'
import { closeSoftly, lastWords } from '../connection/farewell.ts'
import {
  type BadRequest,
  checkHttp1,
  METHOD_CASE,
  type RequestFacts,
  type RequestLimits,
} from '../connection/request-check.ts'
import { Http1Portions, type ParsedBody } from './http1-portions.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import { createServer } from '../../shared/node-http.ts'
import { isMiscasedMethod, METHOD_LENGTH_MAX } from '../../wire/methods.ts'

export interface Http1Limits extends RequestLimits {
  readonly headerTimeoutMs: number
  readonly bodyIdleTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly requestsPerConnectionMax: number
}

/** A request to become another protocol, which leaves HTTP here: whoever takes it owns the socket. */
export interface Upgrade {
  readonly connection: ClientConnection
  readonly request: IncomingMessage
  readonly requestHead: ReceivedHead
  readonly authority: string | null
  readonly socket: Socket
  /** What the client sent behind its request. */
  readonly head: Buffer
}

/** What a connection has done elsewhere. */
export interface Before {
  readonly requests: number
  /** The next request has come before the answer to the last one. */
  readonly isBehind: boolean
}

export interface Http1Handlers {
  request(exchange: Exchange): void
  upgrade(upgrade: Upgrade): void
  failed(connection: ClientConnection, reason: FailureReason, code: string): void
  timedOut(timeout: ClientTimeout): void
}

/** HTTP/1 on sockets that are handed over: node:http parses strictly, and what it leaves open is decided here. */
export class Http1Server {
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
      requestTimeout: 0, // a body may take as long as it moves
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.max(CHECK_MS_MIN, Math.min(CHECK_MS_MAX, limits.headerTimeoutMs / 4)),
      requireHostHeader: false, // seen to here, so that it is accounted for
      optimizeEmptyRequests: true,
      shouldUpgradeCallback: (request) => this.#stateOf(request.socket)?.considerUpgrade(request) ?? false,
    })
    server.maxHeadersCount = 0 // Node drops what is over its limit and goes on; we refuse
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      this.#stateOf(request.socket)?.request(request, response)
    server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest)
    server.on('upgrade', (request, socket, head) => this.#stateOf(socket)?.upgrade(request, head))
    server.on('connect', (_, socket) => this.#stateOf(socket)?.connect())
    server.on('clientError', (error, socket) => this.#stateOf(socket)?.error(error))
    server.on('timeout', (socket) => this.#stateOf(socket)?.timeOut())
    // Nothing listens, but without this nothing looks for late heads and idle connections either.
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

  /** No connection takes another request; those that wait for one end now. */
  drain(): void {
    this.isDraining = true
    this.#server.closeIdleConnections()
  }

  /** Ends the timers. The server was never listening, which is all its error says. */
  close(): void {
    this.#server.close(() => {})
  }

  #stateOf(socket: Duplex): Http1Connection | undefined {
    return this.#states.get(socket)
  }
}

/**
 * One connection: its requests have their turns one after another, also when a client sends them without waiting, so
 * that whoever has the turn is the only one to write.
 */
class Http1Connection implements Http1Turn, ParsedBody {
  readonly #connection: ClientConnection
  readonly #server: Http1Server
  #portions: Http1Portions | null = null
  #current: Http1Exchange | null = null
  readonly #waiting: Http1Exchange[] = []
  /** The request that was read last. */
  #read: IncomingMessage | null = null
  /** Bytes still to come of its body; `null` without a length. */
  #lengthLeft: number | null = 0
  #requests: number
  #isBehind: boolean
  /** No further request is taken. */
  #isClosing = false
  #ignored = 0
  #isUpgradeDeclined = false
  /** What is said once those before it have their answers: the requests behind them cannot be read. */
  #lastWords: string | null = null

  constructor(connection: ClientConnection, server: Http1Server, { requests, isBehind }: Before) {
    this.#connection = connection
    this.#server = server
    this.#requests = requests
    this.#isBehind = isBehind
  }

  get isLast(): boolean {
    if (this.#waiting.length > 0 || this.#lastWords !== null) return false
    this.#isClosing ||= this.#server.isDraining
    return this.#isClosing
  }

  closeSoftly(): void {
    // Its answer says that it is the last: what has been read behind it is nobody's (RFC 9112 §9.6).
    this.#waiting.length = 0
    this.#lastWords = null
    this.#endAfterAnswer()
  }

  #endAfterAnswer(): void {
    this.#isClosing = true
    // Called by node:http once the answer is out. To close at once would be to reset, and a reset overtakes the answer.
    this.#connection.stream.destroySoon = () => closeSoftly(this.#connection.stream)
  }

  /** From now on, what comes is parsed. */
  read(): void {
    this.#portions = new Http1Portions(this.#connection.stream, this)
  }

  get lengthLeft(): number {
    return this.#lengthLeft ?? 0
  }

  get isFull(): boolean {
    const request = this.#read
    return request !== null && request.readableLength >= request.readableHighWaterMark
  }

  /** The client has been held back until now. */
  resumed(): void {
    if (this.#read?.complete === false) this.#expectBody()
  }

  #expectBody(): void {
    const { bodyIdleTimeoutMs } = this.#server.limits
    if (bodyIdleTimeoutMs > 0) this.#connection.stream.setTimeout(bodyIdleTimeoutMs)
  }

  /** A request has been answered, and a part of its body is still to come. */
  get #awaitsRest(): boolean {
    return this.#current === null && this.#read?.complete === false
  }

  request(request: IncomingMessage, response: ServerResponse): void {
    this.#countPieces(request)
    if (this.#isClosing) return this.#ignore()
    const facts = this.#check(request)
    if (facts.isGood) this.#lengthLeft = facts.bodyLength
    else return this.breakDown(facts.status, 'bad-request', facts.code)
    this.#isClosing = ++this.#requests >= this.#server.limits.requestsPerConnectionMax
    this.#isBehind = false
    const head = headOf(request, facts)
    const exchange = new Http1Exchange(this.#connection, head, facts, request, response, this)
    response.on('finish', () => this.#over(exchange))
    if (this.#isUpgradeDeclined) this.#endAfterAnswer()
    if (this.#current === null) this.#begin(exchange)
    else if (this.#waiting.length < PIPELINED_MAX) this.#waiting.push(exchange)
    else this.breakDown(null, 'bad-request', 'pipelined')
  }

  /**
   * Whether a request may leave HTTP. One that may not is served as if it had not asked, as RFC 9110 §7.8 allows, and is
   * the last one: Node (24.21) loses what came with it, and the next answer would be taken for another request's.
   */
  considerUpgrade(request: IncomingMessage): boolean {
    const isAlone = this.#current === null && !this.#isBehind
    if (!this.#isClosing && isAlone && !this.#server.isDraining && mayUpgrade(request)) return true
    this.#isUpgradeDeclined = true
    return false
  }

  upgrade(request: IncomingMessage, head: Buffer): void {
    this.#isClosing = true
    const connection = this.#connection
    const facts = this.#check(request)
    if (!facts.isGood) return this.breakDown(facts.status, 'bad-request', facts.code)
    connection.stage = 'upgraded'
    const socket = connection.stream
    socket.setTimeout(0)
    const { authority } = facts
    const requestHead = headOf(request, facts)
    const rest = this.#portions!.leave()
    const came = rest === null ? head : Buffer.concat([head, rest])
    this.#server.handlers.upgrade({ connection, request, requestHead, authority, socket, head: came })
  }

  /** Nobody is connected through here. Node has let go of the socket, which the answer before may wait to have room in. */
  connect(): void {
    this.#portions!.leave()
    this.#connection.stream.on('drain', () => this.#current?.onDrain?.())
    this.breakDown(501, 'bad-request', 'connect')
  }

  /** What the parser and the socket say when they cannot go on. */
  error(error: ParserError): void {
    const code = error.code ?? 'ERROR'
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      const isSilent = this.#requests === 0 && this.#connection.stream.bytesRead === 0
      this.breakDown(isSilent ? null : 408, 'header-timeout', isSilent ? 'silent' : 'cut')
    } else if (code === 'HPE_CLOSED_CONNECTION') {
      this.#isClosing = true // more after its own `Connection: close`, which nobody answers
    } else if (code === 'HPE_INVALID_METHOD' && isAtMiscasedMethod(error)) {
      this.breakDown(400, 'bad-request', METHOD_CASE)
    } else if (code.startsWith('HPE_')) this.breakDown(PARSER_STATUS[code] ?? 400, 'bad-request', code)
    else this.#connection.stream.destroy()
  }

  /** Nothing has come or gone for as long as was allowed: between requests, or within a body. */
  timeOut(): void {
    const exchange = this.#current
    const { stream } = this.#connection
    if (exchange === null) {
      if (this.#awaitsRest) this.#server.handlers.failed(this.#connection, 'bad-request', 'body-timeout')
      else this.#server.handlers.timedOut('keep_alive_timeout')
      stream.destroy()
    } else if (exchange.isBodyWhole || exchange.answered) return
    else if (exchange.isHeldBack) stream.setTimeout(this.#server.limits.bodyIdleTimeoutMs)
    else this.breakDown(408, 'bad-request', 'body-timeout')
  }

  /**
   * The connection cannot go on: accounts for it, lets those have their answers whose requests are whole, says why where
   * an answer can still be understood, and ends. Without a status it just ends.
   */
  breakDown(status: number | null, reason: FailureReason, code: string): void {
    if (this.#connection.hasFailed) return
    this.#isClosing = true
    this.#server.handlers.failed(this.#connection, reason, code)
    const current = this.#current
    const words = status === null ? null : lastWords(status)
    if (words === null) this.#connection.stream.destroy()
    else if (current === null) this.#say(words)
    else if (current.isBodyWhole) {
      // The rest of a body that has broken off will not come.
      if (this.#waiting.at(-1)?.isBodyWhole === false) this.#waiting.pop()
      this.#lastWords = words
    } else if (current.answered) this.#connection.stream.destroy()
    else {
      current.lose()
      this.#say(words)
    }
  }

  close(): void {
    this.#isClosing = true
    this.#current?.lose()
    this.#current = null
    this.#waiting.length = 0 // nobody has been told of these
  }

  /** By the pieces that node:http hands to its body. */
  #countPieces(request: IncomingMessage): void {
    this.#read = request
    this.#lengthLeft = 0
    request.push = (piece: Buffer | null, encoding) => {
      if (piece !== null) {
        this.#portions!.intake.count(1, 0)
        if (this.#lengthLeft !== null) this.#lengthLeft -= piece.length
      } else if (this.#current === null) {
        // It has been answered before.
        this.#connection.stream.setTimeout(this.#server.limits.keepAliveTimeoutMs)
      }
      return Readable.prototype.push.call(request, piece, encoding)
    }
  }

  #check(request: IncomingMessage): RequestFacts | BadRequest {
    const { method, url, rawHeaders } = request
    return checkHttp1(method!, url!, versionOf(request), rawHeaders, this.#server.limits)
  }

  /** A client may not have heard yet that the connection is closing, but node:http keeps all that it sends. */
  #ignore(): void {
    if (++this.#ignored > PIPELINED_MAX) this.#connection.stream.destroy()
  }

  #begin(exchange: Http1Exchange): void {
    this.#current = exchange
    if (exchange.bodyLength !== 0) this.#expectBody()
    this.#server.handlers.request(exchange)
  }

  #over(exchange: Http1Exchange): void {
    if (this.#current !== exchange) return
    this.#current = null
    if (this.#read?.complete === true) this.#read = null
    // In place of the deadline for the next request, which node:http has just set.
    if (this.#awaitsRest) this.#expectBody()
    const next = this.#waiting.shift()
    if (next !== undefined) this.#begin(next)
    else if (this.#lastWords !== null) this.#say(this.#lastWords)
    else if (this.#server.isDraining) this.#endUnsaid()
  }

  /** The answer did not say in time that it is the last: a client may have sent more, which would have none. */
  #endUnsaid(): void {
    this.#isClosing = true
    const { stream } = this.#connection
    if (stream.writable) closeSoftly(stream)
  }

  #say(words: string): void {
    const { stream } = this.#connection
    if (!stream.writable) return void stream.destroy()
    stream.write(words)
    closeSoftly(stream)
  }
}

/** What node:http adds to an error of its parser. */
interface ParserError extends Error {
  readonly code?: string
  /** The piece that the parser was given last, and how much of it was good. */
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/**
 * The parser takes methods in upper case only, and stops within any other one. A request may begin anywhere in the piece.
 * A method that is cut off by the end of the piece is unknown.
 */
function isAtMiscasedMethod({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  const end = rawPacket?.indexOf(' ', bytesParsed) ?? -1
  if (end === -1) return false
  const first = Math.max(0, end - METHOD_LENGTH_MAX)
  for (let from = bytesParsed; from >= first; from--)
    if (isMiscasedMethod(rawPacket!.toString('latin1', from, end))) return true
  return false
}

/** A GET without a body (what came behind it is the other protocol's), for something else than another HTTP. */
function mayUpgrade({ method, headers, httpVersionMinor }: IncomingMessage): boolean {
  if (method !== 'GET' || httpVersionMinor !== 1) return false
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return false
  const wanted = headers.upgrade?.toLowerCase() ?? ''
  return wanted !== '' && !wanted.split(',').some((name) => NO_UPGRADE.test(name))
}

function headOf(request: IncomingMessage, facts: RequestFacts): ReceivedHead {
  const version = versionOf(request) ?? '11'
  const { method, rawHeaders } = request
  return { method: method!, target: facts.target, version, rawHeaders, hasOddNames: hasOddNames(rawHeaders) }
}

function versionOf({ httpVersionMajor, httpVersionMinor }: IncomingMessage): HttpVersion | null {
  if (httpVersionMajor !== 1) return null
  return httpVersionMinor === 1 ? '11' : httpVersionMinor === 0 ? '10' : null
}

/** More requests than this at once, behind one that is being answered, come from nobody who wants the answers. */
const PIPELINED_MAX = 64
/** Late heads are looked for this often: a list that libuv keeps is walked, without a timer for each. */
const CHECK_MS_MIN = 20
const CHECK_MS_MAX = 1000
/** Another HTTP than this one, or TLS inside HTTP: either would carry requests past us unseen. */
const NO_UPGRADE = /^\s*(?:h2c?|http|tls)(?:\/.*)?\s*$/i
const PARSER_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_INVALID_METHOD: 501,
  HPE_INVALID_VERSION: 505,
}
