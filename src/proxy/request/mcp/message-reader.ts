import type { Readable } from 'node:stream'
import { ByteQueue } from '../../../wire/byte-queue.ts'
import { isFoldedName } from '../../../wire/header-name.ts'
import { withMcpHeaders } from '../../../wire/mcp/mcp-headers.ts'
import {
  canBeJson,
  INVALID_REQUEST,
  type McpReading,
  type McpRefusal,
  mcpRefusal,
  NO_MCP_MESSAGE,
  readMcpMessage,
} from '../../../wire/mcp/mcp-message.ts'
import type { Exchange } from '../../connection/exchange.ts'
import { FedBody } from '../../http/fed-body.ts'
import { MessageExchange, PassedBody } from './message-exchange.ts'

/** The result of reading. Called once. `exchange`: has the whole body again. `isGone`: the client disconnected. */
export type MessageRead = (reading: McpReading, exchange: Exchange, isGone: boolean) => void

/**
 * Reads the message for an MCP server in the body of a request, before a rule asks for it. The app gets the same
 * bytes. A body that is not JSON is passed on unread.
 */
export class McpMessageReader {
  readonly bytesMax: number
  /** Bytes of bodies that have not arrived completely. */
  #heldBytes = 0

  /** `bytesMax`: of one message. */
  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  read(exchange: Exchange, done: MessageRead): void {
    const { rawHeaders } = exchange.head
    const finish: MessageRead = (reading, ...others) => done(withMcpHeaders(reading, rawHeaders), ...others)
    if (exchange.bodyLength === 0) return finish(NO_MCP_MESSAGE, exchange, false)
    if (isEncoded(rawHeaders)) return finish(ENCODED, exchange, false)
    const whole = wholeBody(exchange)
    if (whole !== null) return finish(this.#readingOf(whole), exchange, false)
    if (exchange.expectsContinue) exchange.inform(100, [])
    new Reading(this, exchange, finish)
  }

  #readingOf(bytes: Uint8Array): McpReading {
    const isJson = canBeJson(bytes)
    if (isJson === false) return NO_MCP_MESSAGE
    if (bytes.length > this.bytesMax) return this.tooLong()
    return isJson === true ? readMcpMessage(bytes) : NO_MCP_MESSAGE
  }

  tooLong(): McpRefusal {
    return mcpRefusal(INVALID_REQUEST, `the message is longer than ${this.bytesMax} bytes`, null, 413)
  }

  /** `false`: the limit for all messages of the worker is reached. */
  hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > HELD_BYTES_MAX) return false
    this.#heldBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
  }
}

/** The reading of one body. */
class Reading {
  readonly #reader: McpMessageReader
  readonly #exchange: Exchange
  readonly #body: Readable
  readonly #done: MessageRead
  /** Most messages come in one piece and need none. */
  #deadline: NodeJS.Timeout | null = null
  readonly #bytes = new ByteQueue()
  /** Whether it begins like JSON. `null`: not known yet. */
  #isJson: boolean | null = null

  constructor(reader: McpMessageReader, exchange: Exchange, done: MessageRead) {
    this.#reader = reader
    this.#exchange = exchange
    this.#body = exchange.body
    this.#done = done
    exchange.onGone = this.#gone
    this.#body.on('end', this.#ended)
    this.#body.on('error', this.#gone)
    this.#body.on('close', this.#gone)
    this.#body.on('data', this.#came)
  }

  readonly #came = (chunk: Uint8Array): void => {
    if (!this.#reader.hold(chunk.length)) return this.#refuse(NO_ROOM)
    this.#bytes.push(chunk)
    this.#bytes.keep()
    this.#isJson ??= canBeJson(this.#bytes.rest())
    if (this.#isJson === false) return this.#passOn()
    const { bodyLength } = this.#exchange
    const length = Math.max(bodyLength ?? 0, this.#bytes.length)
    if (length > this.#reader.bytesMax) this.#refuse(this.#reader.tooLong())
    else if (bodyLength === null || this.#bytes.length < bodyLength)
      this.#deadline ??= setTimeout(() => this.#refuse(TOO_SLOW), DEADLINE_MS).unref()
  }

  readonly #ended = (): void => {
    this.#stop()
    const bytes = this.#bytes.rest()
    const body = new PassedBody(null)
    const reading = this.#isJson === true ? readMcpMessage(bytes) : NO_MCP_MESSAGE
    this.#done(reading, new MessageExchange(this.#exchange, body), false)
    // Then the reader is there, and the bytes go on with the head in one piece.
    if (bytes.length > 0) body.feed(bytes)
    body.finish()
  }

  /** The client has disconnected, or its body breaks off. */
  readonly #gone = (): void => {
    this.#stop()
    this.#exchange.abort()
    this.#done(NO_MCP_MESSAGE, this.#exchange, true)
  }

  /** No MCP server can read this body. */
  #passOn(): void {
    this.#stop()
    const body = new PassedBody(this.#body)
    body.feed(this.#bytes.rest())
    this.#done(NO_MCP_MESSAGE, new MessageExchange(this.#exchange, body), false)
  }

  #refuse(refusal: McpRefusal): void {
    this.#stop()
    this.#body.resume()
    this.#done(refusal, this.#exchange, false)
  }

  #stop(): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline)
    this.#reader.release(this.#bytes.length)
    this.#exchange.onGone = null
    this.#body.off('end', this.#ended)
    this.#body.off('error', this.#gone)
    this.#body.off('close', this.#gone)
    this.#body.off('data', this.#came)
  }
}

/** Most messages came together with their head. */
function wholeBody({ body, expectsContinue }: Exchange): Uint8Array | null {
  return body instanceof FedBody && !expectsContinue ? body.unread : null
}

/** Whether the body is encoded: what it says is not known, but many servers decode it. */
function isEncoded(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (isFoldedName(rawHeaders[i]!, 'content-encoding') && rawHeaders[i + 1]!.toLowerCase() !== 'identity')
      return true
  return false
}

const ENCODED = mcpRefusal(INVALID_REQUEST, 'send the message without Content-Encoding', null, 415)
const TOO_SLOW = mcpRefusal(INVALID_REQUEST, 'the message did not arrive in time', null, 408)
const NO_ROOM = mcpRefusal(INVALID_REQUEST, 'too many messages are arriving, try again', null, 503)
/** Slow clients must not fill the room of the others. */
const DEADLINE_MS = 30_000
/** In a worker. */
const HELD_BYTES_MAX = 67_108_864
