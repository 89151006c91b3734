import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { hasOddNames } from '../../wire/header-name.ts'
import { isMiscasedMethod, METHOD_LENGTH_MAX } from '../../wire/methods.ts'
import type { HttpVersion } from '../../wire/request-head.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ClientConnection, FailureReason } from '../connection/connection.ts'
import type { Exchange } from '../connection/exchange.ts'
import { closeSoftly, lastWords } from '../connection/farewell.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import {
  type BadRequest,
  checkHttp1,
  METHOD_CASE,
  type RequestFacts,
  type RequestLimits,
} from '../connection/request-check.ts'
import type { Upgrade } from '../connection/upgrade.ts'
import { Http1Exchange, type Http1Turn } from './exchange-h1.ts'
import { Http1Portions, type ParsedBody } from './http1-portions.ts'
import { Http1Upgrade } from './http1-upgrade.ts'

export interface Http1Limits extends RequestLimits {
  readonly headerTimeoutMs: number
  readonly bodyIdleTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly requestsPerConnectionMax: number
}

/** The history of a connection that another lane served before. */
export interface Before {
  readonly requests: number
  /** The next request arrived before the answer to the last one. */
  readonly isBehind: boolean
}

export interface Http1Handlers {
  request(exchange: Exchange): void
  upgrade(upgrade: Upgrade): void
  failed(connection: ClientConnection, reason: FailureReason, code: string): void
  timedOut(timeout: ClientTimeout): void
}

/** The server of a connection. */
export interface Http1Owner {
  /** No connection takes another request. */
  readonly isDraining: boolean
  readonly limits: Http1Limits
  readonly handlers: Http1Handlers
}

/**
 * One connection. It serves its requests one after another, also if the client pipelines them, so that only
 * the current exchange writes.
 */
export class Http1Connection implements Http1Turn, ParsedBody {
  readonly #connection: ClientConnection
  readonly #server: Http1Owner
  #portions: Http1Portions | null = null
  #current: Http1Exchange | null = null
  readonly #waiting: Http1Exchange[] = []
  /** The last request read. */
  #read: IncomingMessage | null = null
  /** Bytes still to come of its body. `null` without a length. */
  #lengthLeft: number | null = 0
  #requests: number
  #isBehind: boolean
  /** No further request is taken. */
  #isClosing = false
  #ignored = 0
  #isUpgradeDeclined = false
  /** An error answer that waits for the answers before it. Later requests cannot be parsed. */
  #lastWords: string | null = null

  constructor(connection: ClientConnection, server: Http1Owner, { requests, isBehind }: Before) {
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
    // The answer says that it is the last, so requests read after it are dropped (RFC 9112 §9.6).
    this.#waiting.length = 0
    this.#lastWords = null
    this.#endAfterAnswer()
  }

  #endAfterAnswer(): void {
    this.#isClosing = true
    // node:http calls this after the answer. Closing at once would send a reset, and a reset overtakes the
    // answer.
    this.#connection.stream.destroySoon = () => closeSoftly(this.#connection.stream)
  }

  /** Starts parsing the incoming bytes. */
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

  /** The client was held back until now. */
  resumed(): void {
    if (this.#read?.complete === false) this.#expectBody()
  }

  #expectBody(): void {
    const { bodyIdleTimeoutMs } = this.#server.limits
    if (bodyIdleTimeoutMs > 0) this.#connection.stream.setTimeout(bodyIdleTimeoutMs)
  }

  /** The request was answered, and a part of its body is still to come. */
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
    const exchange = new Http1Exchange(this.#connection, head, facts, { request, response }, this)
    response.on('finish', () => this.#over(exchange))
    if (this.#isUpgradeDeclined) this.#endAfterAnswer()
    if (this.#current === null) this.#begin(exchange)
    else if (this.#waiting.length < PIPELINED_MAX) this.#waiting.push(exchange)
    else this.breakDown(null, 'bad-request', 'pipelined')
  }

  /**
   * Whether a request may switch protocols. If not, it is served as if it had not asked (RFC 9110 §7.8) and
   * is the last one: Node (24.21) loses the bytes that came with it, and the next answer would be taken for
   * another request's.
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
    connection.stream.setTimeout(0)
    const rest = this.#portions!.leave()
    const first = rest === null ? head : Buffer.concat([head, rest])
    const { upgrade = '' } = request.headers
    this.#server.handlers.upgrade(
      new Http1Upgrade(connection, headOf(request, facts), facts.authority, upgrade, first),
    )
  }

  /**
   * The proxy does not support CONNECT. Node has released the socket, and the previous answer may still wait
   * for its drain.
   */
  connect(): void {
    this.#portions!.leave()
    this.#connection.stream.on('drain', () => this.#current?.onDrain?.())
    this.breakDown(501, 'bad-request', 'connect')
  }

  /** Handles errors of the parser and the socket. */
  error(error: ParserError): void {
    const code = error.code ?? 'ERROR'
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      const isSilent = this.#requests === 0 && this.#connection.stream.bytesRead === 0
      this.breakDown(isSilent ? null : 408, 'header-timeout', isSilent ? 'silent' : 'cut')
    } else if (code === 'HPE_CLOSED_CONNECTION') {
      this.#isClosing = true // more data after `Connection: close`, which is not answered
    } else if (code === 'HPE_INVALID_METHOD' && isAtMiscasedMethod(error)) {
      this.breakDown(400, 'bad-request', METHOD_CASE)
    } else if (code.startsWith('HPE_')) this.breakDown(PARSER_STATUS[code] ?? 400, 'bad-request', code)
    else this.#connection.stream.destroy()
  }

  /** Called after a timeout without traffic: between requests or within a body. */
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
   * The connection cannot go on. Counts the failure, lets requests that are complete get their answers, sends
   * an error answer if the client can still parse one, and closes. Without a status it just closes.
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
      // The rest of a truncated body will not come.
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
    this.#waiting.length = 0 // the handlers do not know these yet
  }

  /** Counts the pieces that node:http pushes to the body. */
  #countPieces(request: IncomingMessage): void {
    this.#read = request
    this.#lengthLeft = 0
    request.push = (piece: Buffer | null, encoding) => {
      if (piece !== null) {
        this.#portions!.intake.count(1, 0)
        if (this.#lengthLeft !== null) this.#lengthLeft -= piece.length
      } else if (this.#current === null) {
        // The request was answered before its body ended.
        this.#connection.stream.setTimeout(this.#server.limits.keepAliveTimeoutMs)
      }
      return Readable.prototype.push.call(request, piece, encoding)
    }
  }

  #check(request: IncomingMessage): RequestFacts | BadRequest {
    const { method, url, rawHeaders } = request
    return checkHttp1(method!, url!, versionOf(request), rawHeaders, this.#server.limits)
  }

  /**
   * The client may not know yet that the connection is closing. node:http keeps every request it sends
   * meanwhile.
   */
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
    // Replaces the deadline for the next request, which node:http has just set.
    if (this.#awaitsRest) this.#expectBody()
    const next = this.#waiting.shift()
    if (next !== undefined) this.#begin(next)
    else if (this.#lastWords !== null) this.#say(this.#lastWords)
    else if (this.#server.isDraining) this.#endUnsaid()
  }

  /**
   * The answer did not announce that it is the last, so the client may have sent more requests, which get no
   * answer.
   */
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

/** The properties that node:http adds to parser errors. */
interface ParserError extends Error {
  readonly code?: string
  /** The last buffer given to the parser, and the number of bytes it accepted. */
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/**
 * The parser accepts only upper case methods and stops inside any other. A request may begin anywhere in the
 * buffer. A method cut off by the end of the buffer counts as unknown.
 */
function isAtMiscasedMethod({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  const end = rawPacket?.indexOf(' ', bytesParsed) ?? -1
  if (end === -1) return false
  const first = Math.max(0, end - METHOD_LENGTH_MAX)
  for (let from = bytesParsed; from >= first; from--)
    if (isMiscasedMethod(rawPacket!.toString('latin1', from, end))) return true
  return false
}

/**
 * Only a GET without a body may switch (what follows it belongs to the other protocol), and not to another
 * HTTP.
 */
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

/** A client that pipelines more requests than this does not want the answers. */
const PIPELINED_MAX = 64
/** Other HTTP versions, or TLS inside HTTP: both would carry requests past the proxy unseen. */
const NO_UPGRADE = /^\s*(?:h2c?|http|tls)(?:\/.*)?\s*$/i
const PARSER_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_INVALID_METHOD: 501,
  HPE_INVALID_VERSION: 505,
}
