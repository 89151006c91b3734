import {
  constants,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  type ServerStreamResponseOptions,
} from 'node:http2'
import type { Readable } from 'node:stream'
import type { ClientConnection } from '../connection/connection.ts'
import type { Exchange } from '../connection/exchange.ts'
import { isFieldValue } from '../connection/field-syntax.ts'
import { OUTBOX, type Sender } from './outbox.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { RequestFacts } from '../connection/request-check.ts'

/**
 * A stream holds its exchange in this property and drops it when it closes. Node's map of a session's streams
 * keeps closed streams until V8 collects its old generation, and they must not keep the request alive. With
 * this property, all streams share the same listeners, which need not be created or removed.
 */
export interface ServedStream extends ServerHttp2Stream {
  [EXCHANGE]?: Http2Exchange | null
}

export const EXCHANGE: unique symbol = Symbol('exchange')

/** One HTTP/2 request and its answer, on one stream. */
export class Http2Exchange implements Exchange, Sender {
  readonly connection: ClientConnection
  readonly head: ReceivedHead
  readonly authority: string | null
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers = true
  readonly body: Readable
  trailers: readonly string[] = NONE
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null
  readonly #stream: ServedStream
  #state: State = 'open'
  /** Bytes of the answer's body still to come. `null` if unknown. */
  #due: number | null = null
  #hearsDrain = false
  /** The head of the answer until it is sent. */
  #head: (string | number)[] | null = null
  #trailersOut: readonly string[] = NONE
  /** Bytes of the answer's body written to the stream. */
  #written = 0
  /** How many of them the client had taken at the last check, and since when that number is unchanged. */
  #taken = -1
  #takenMs = 0
  /** Whether the client may send its body. */
  #isAwaited: boolean

  constructor(connection: ClientConnection, head: ReceivedHead, facts: RequestFacts, stream: ServedStream) {
    this.connection = connection
    this.head = head
    this.authority = facts.authority
    this.bodyLength = facts.bodyLength
    this.expectsContinue = facts.expectsContinue
    this.#isAwaited = !facts.expectsContinue
    this.body = stream
    this.#stream = stream
    stream[EXCHANGE] = this
  }

  get answered(): boolean {
    return this.#state !== 'open'
  }

  /** Whether the exchange has ended and the holder has nothing left to do. */
  get isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'gone'
  }

  get isBodyWhole(): boolean {
    return this.bodyLength === 0 || this.#stream.state.remoteClose === 1
  }

  /** The client cannot send more of its body: it waits for a 100, or the body's buffer is full. */
  get isHeldBack(): boolean {
    return !this.#isAwaited || this.#stream.readableLength >= this.#stream.readableHighWaterMark
  }

  inform(status: number, headers: readonly string[]): void {
    if (this.#state !== 'open' || status === 101) return
    if (status === 100) this.#isAwaited = true
    const fields = fieldsOf(headers)
    if (fields === null) return
    try {
      this.#stream.additionalHeaders({ ':status': status, ...fields })
    } catch {
      // The stream was just closed, or a header is invalid. An interim answer may be omitted.
    }
  }

  answer(status: number, headers: readonly string[], bodyLength: number | null): void {
    if (this.#state !== 'open') return
    this.#state = 'answering'
    this.#due = bodyLength
    this.#head = responseList(status, headers)
    if (this.#head === null) return this.#breakOff()
    if (bodyLength !== 0) OUTBOX.put(this, '')
    else if (this.#respond(WITHOUT_BODY)) this.#finished()
  }

  write(chunk: Uint8Array): boolean {
    if (this.#state !== 'answering' || chunk.length === 0) return true
    if (this.#due !== null) {
      this.#due -= chunk.length
      if (this.#due < 0) {
        this.#breakOff()
        return true
      }
    }
    const isWhole = this.#due === 0
    if (!this.#respond(isWhole ? WITH_BODY : WITH_TRAILERS)) return true
    this.#written += chunk.length
    // A copy: nghttp2 refers to the bytes until the client's window lets them out.
    const bytes = Buffer.from(chunk)
    if (isWhole) {
      this.#finished()
      this.#stream.end(bytes)
      return true
    }
    const hasRoom = this.#stream.write(bytes)
    if (!hasRoom && !this.#hearsDrain) {
      this.#hearsDrain = true
      this.#stream.on('drain', drained)
    }
    return hasRoom
  }

  end(trailers: readonly string[]): void {
    if (this.#state !== 'answering') return
    if (this.#due !== null && this.#due > 0) return this.#breakOff()
    this.#trailersOut = trailers
    if (!this.#respond(trailers.length === 0 ? WITHOUT_BODY : WITH_TRAILERS)) return
    this.#finished()
    this.#stream.end()
  }

  abort(): void {
    if (this.isOver) return
    this.#state = 'gone'
    // Not `close`: if called in a callback of the session while bytes wait for the client's window, Node
    // (24.21) loops forever in its sending code. On the wire both are the same, a reset with INTERNAL_ERROR.
    this.#stream.destroy(new Error('broken off'))
  }

  /** Called by the outbox if the body has paused: the head of an event stream must not wait. */
  send(): void {
    if (this.#state === 'answering') this.#respond(WITH_TRAILERS)
  }

  /** Since when the client has taken none of the waiting bytes. `nowMs` if none wait. Called periodically. */
  unreadSince(nowMs: number): number {
    const waiting = this.#stream.writableLength
    const taken = this.#written - waiting
    // A complete answer counts as waiting until its stream closes, because its head may not have been sent
    // yet.
    const isWaiting = waiting > 0 || this.#state === 'ended'
    if (!isWaiting || taken !== this.#taken) {
      this.#taken = taken
      this.#takenMs = nowMs
    }
    return this.#takenMs
  }

  /** Ends an answer that the client does not read. */
  giveUp(): void {
    this.lose()
    this.#stream.destroy(new Error('not read'))
  }

  /** The client has disconnected, or the rest of its request is invalid. */
  lose(): void {
    if (this.isOver) return
    this.#state = 'gone'
    const tell = this.onGone
    this.onGone = null
    this.onDrain = null
    tell?.()
  }

  /**
   * Sends the head unless it was sent. It waits for the first bytes, which show whether more will follow. If
   * so, trailers are announced to Node even if there will be none: without them Node (24.21) would end the
   * stream before a reset, and a truncated answer would look complete.
   */
  #respond(options: ServerStreamResponseOptions): boolean {
    const head = this.#head
    if (head === null) return true
    this.#head = null
    if (options.waitForTrailers === true) this.#stream.on('wantTrailers', wantsTrailers)
    try {
      this.#stream.respond(head as unknown as OutgoingHttpHeaders, options)
      return true
    } catch {
      this.#breakOff()
      return false
    }
  }

  /** Node calls this after the whole body has been sent. */
  sendTrailers(): void {
    const fields = fieldsOf(this.#trailersOut) ?? {}
    try {
      this.#stream.sendTrailers(fields)
    } catch {
      this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    }
  }

  #finished(): void {
    this.#state = 'ended'
    this.onGone = null
    this.onDrain = null
  }

  /** A mistake of the holder, or an invalid header. The client sees a truncated answer. */
  #breakOff(): void {
    const tell = this.onGone
    this.onGone = null
    this.abort()
    tell?.()
  }
}

function drained(this: ServedStream): void {
  this[EXCHANGE]?.onDrain?.()
}

function wantsTrailers(this: ServedStream): void {
  this[EXCHANGE]?.sendTrailers()
}

/**
 * The headers as nghttp2 expects them: in lower case, without connection-specific fields. `null` if a value
 * is invalid: Node joins names and values with NUL for nghttp2 and does not check for NULs inside.
 */
function responseList(status: number, headers: readonly string[]): (string | number)[] | null {
  const list: (string | number)[] = [':status', status]
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    const value = headers[i + 1]!
    if (CONNECTION_FIELDS.has(name) || (status === 204 && name === 'content-length')) continue // RFC 9110 §8.6
    if (!isFieldValue(value)) return null
    list.push(name, value)
  }
  return list
}

/** The same as an object, for calls that do not take a list. Repeated names keep their order. */
function fieldsOf(headers: readonly string[]): OutgoingHttpHeaders | null {
  const fields: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    const value = headers[i + 1]!
    if (CONNECTION_FIELDS.has(name) || name.startsWith(':')) continue
    if (!isFieldValue(value)) return null
    const before = fields[name]
    fields[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  return fields
}

type State = 'open' | 'answering' | 'ended' | 'gone'

/** RFC 9113 §8.2.2. */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])
const NONE: readonly string[] = []
const WITHOUT_BODY: ServerStreamResponseOptions = { endStream: true }
const WITH_BODY: ServerStreamResponseOptions = { endStream: false }
const WITH_TRAILERS: ServerStreamResponseOptions = { waitForTrailers: true }
