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
 * A stream tells its listeners' exchange from itself, and forgets it when it has closed: Node's map of a session's streams
 * keeps closed ones, until V8 looks at its old generation, and should not keep the request and all that is known of it.
 * Listeners that are the same for all streams need not be made for each of them, and not taken away.
 */
export interface ServedStream extends ServerHttp2Stream {
  [EXCHANGE]?: Http2Exchange | null
}

export const EXCHANGE: unique symbol = Symbol('exchange')

/** One request of HTTP/2 and its answer: a stream. */
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
  /** Bytes of the answer's body still to come; `null` when nobody knows. */
  #due: number | null = null
  #hearsDrain = false
  /** The head of the answer, until it is sent. */
  #head: (string | number)[] | null = null
  #trailersOut: readonly string[] = NONE
  /** Bytes of the answer's body that the stream was given. */
  #written = 0
  /** How many of them the client had taken when somebody last looked, and since when it was so many. */
  #taken = -1
  #takenMs = 0
  /** The client may send its body. */
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

  /** Nothing more is to be done for it, by whoever holds it. */
  get isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'gone'
  }

  get isBodyWhole(): boolean {
    return this.bodyLength === 0 || this.#stream.state.remoteClose === 1
  }

  /** The client cannot send more of its body: it waits for a 100, or as much as is buffered of it is not read. */
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
      // The stream has just been closed, or a header cannot be written, of an answer that may be left out.
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
    // nghttp2 refers to the bytes until the client's window lets them go.
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
    // Not `close`: called from within a callback of the session while bytes wait for the client's window, it has Node
    // (24.21) go round in its sending for ever. What goes out is the same, a reset with INTERNAL_ERROR.
    this.#stream.destroy(new Error('broken off'))
  }

  /** Of the outbox, when whoever answers has paused: a head must not wait for the body of an event stream. */
  send(): void {
    if (this.#state === 'answering') this.#respond(WITH_TRAILERS)
  }

  /** Since when the client has taken nothing of what waits for it; `nowMs` where nothing does. Asked now and then. */
  unreadSince(nowMs: number): number {
    const waiting = this.#stream.writableLength
    const taken = this.#written - waiting
    // An answer that is whole waits for as long as its stream is not closed: its head alone may still be here.
    const isWaiting = waiting > 0 || this.#state === 'ended'
    if (!isWaiting || taken !== this.#taken) {
      this.#taken = taken
      this.#takenMs = nowMs
    }
    return this.#takenMs
  }

  /** The client does not take its answer. */
  giveUp(): void {
    this.lose()
    this.#stream.destroy(new Error('not read'))
  }

  /** The client has gone, or has broken the rest of its request. */
  lose(): void {
    if (this.isOver) return
    this.#state = 'gone'
    const tell = this.onGone
    this.onGone = null
    this.onDrain = null
    tell?.()
  }

  /**
   * Sends the head, unless it has been sent: only when the first bytes are there does it show whether more will follow.
   * Then trailers are announced to Node, whether there will be any or not, also because it would end a stream without
   * them before it resets it (24.21), and what was broken off would look whole.
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

  /** Node asks for them once all of the body has gone out. */
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

  /** The holder's own mistake, or a header that cannot be written: to the client it is an answer cut off. */
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
 * As nghttp2 wants them: in lower case, without what belongs to a connection. `null` for what cannot be written: Node
 * joins names and values with NUL on the way to nghttp2, and looks for none inside.
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

/** The same as an object, for the calls that take no list; repeated names keep their order. */
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
