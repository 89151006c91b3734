import { Readable } from 'node:stream'
import {
  DISCARDED_BYTES_MAX,
  framedHeaders,
  JOINED_BYTES_MAX,
  latin1,
  TAKEN_BYTES_MIN,
} from './answer-framing.ts'
import { answerHead, interimHead } from './answer-head.ts'
import type { ClientConnection } from '../connection/connection.ts'
import { cutOff } from '../connection/cut-off.ts'
import type { Exchange } from '../connection/exchange.ts'
import { fieldLines } from '../connection/field-syntax.ts'
import { OUTBOX, type Sender } from './outbox.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { FastBody } from './fast-body.ts'
import type { RequestFacts } from '../connection/request-check.ts'

/** What an exchange needs from its connection. */
export interface FastTurn {
  /** The connection takes no further requests: the answer must announce it. */
  readonly isLast: boolean
  /** The keep-alive timeout announced in answers. 0: not announced. */
  readonly keptS: number
  /** The whole answer has been passed to the socket. */
  answered(ending: Ending): void
}

/** What happens to the connection after the answer. `closes-softly` if the client may still be sending. */
export type Ending = 'stays' | 'closes' | 'closes-softly'

/** One fast-lane request and its answer, which is written straight to the socket. */
export class FastExchange implements Exchange, Sender {
  readonly connection: ClientConnection
  readonly head: ReceivedHead
  readonly authority: string | null
  readonly bodyLength: number
  readonly expectsContinue = false
  readonly acceptsTrailers: boolean
  readonly trailers = NO_TRAILERS
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null
  readonly #body: FastBody | null
  readonly #turn: FastTurn
  #state: State = 'open'
  /** Bytes of the answer's body still to come. `null` if unknown. */
  #due: number | null = null
  /** Text that waits for the end of this event loop turn: the head, possibly with what follows. */
  #unsent = ''
  #isChunked = false
  /** Whether it is in the outbox. */
  #isQueued = false
  #ending: Ending = 'stays'

  constructor(
    connection: ClientConnection,
    head: ReceivedHead,
    facts: RequestFacts,
    body: FastBody | null,
    turn: FastTurn,
  ) {
    this.connection = connection
    this.head = head
    this.authority = facts.authority
    this.bodyLength = facts.bodyLength ?? 0
    this.acceptsTrailers = facts.acceptsTrailers
    this.#body = body
    this.#turn = turn
  }

  get body(): Readable {
    return this.#body ?? Readable.from([])
  }

  get answered(): boolean {
    return this.#state !== 'open'
  }

  get isBodyWhole(): boolean {
    return this.#body === null || this.#body.isWhole
  }

  inform(status: number, headers: readonly string[]): void {
    if (this.#state !== 'open' || status === 100) return
    const text = interimHead(status, headers)
    if (text !== null) this.connection.stream.write(text, 'latin1')
  }

  answer(
    status: number,
    headers: readonly string[],
    bodyLength: number | null,
    reason: string | null = null,
  ): void {
    if (this.#state !== 'open') return
    this.#state = 'answering'
    this.#due = bodyLength
    this.#isChunked = bodyLength === null
    if (this.#turn.isLast) this.#ending = 'closes'
    if (!this.isBodyWhole && this.bodyLength > DISCARDED_BYTES_MAX) this.#ending = 'closes-softly'
    const framing = {
      isChunked: this.#isChunked,
      keptS: this.#ending === 'stays' ? this.#turn.keptS : null,
    }
    const text = answerHead(status, reason, framedHeaders(this.head, status, headers, bodyLength), framing)
    if (text === null) return this.#breakOff()
    this.#unsent = text
    if (bodyLength === 0) this.#finish('')
    else this.#queue()
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
    const isLast = this.#due === 0
    if (chunk.length <= JOINED_BYTES_MAX) {
      const text = this.#isChunked ? `${chunk.length.toString(16)}\r\n${latin1(chunk)}\r\n` : latin1(chunk)
      if (isLast) {
        this.#finish(text)
        return true
      }
      return this.#say(text)
    }
    const hasRoom = this.#sayBytes(chunk)
    if (isLast) this.#finish('')
    return hasRoom
  }

  end(trailers: readonly string[]): void {
    if (this.#state !== 'answering') return
    if (this.#due !== null && this.#due > 0) return this.#breakOff()
    this.#finish(this.#isChunked ? `0\r\n${fieldLines(trailers)}\r\n` : '')
  }

  abort(): void {
    if (this.#isOver) return
    this.#state = 'gone'
    cutOff(this.connection.stream)
  }

  /** The client has disconnected, or the rest of its request is invalid. */
  lose(): void {
    if (this.#isOver) return
    this.#state = 'gone'
    this.#body?.destroy()
    const tell = this.onGone
    this.onGone = null
    this.onDrain = null
    tell?.()
  }

  /**
   * Called by the outbox: writes everything ready so far. If the body has paused, that is at least the head.
   */
  send(): void {
    this.#isQueued = false
    if (this.#state === 'gone') return
    if (this.#unsent !== '') this.#say('')
    if (this.#state === 'ended') this.#turn.answered(this.#ending)
  }

  get #isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'gone'
  }

  #say(text: string): boolean {
    const all = this.#unsent + text
    this.#unsent = ''
    return this.connection.stream.write(all, 'latin1')
  }

  #sayBytes(chunk: Uint8Array): boolean {
    const { stream, isTls } = this.connection
    const isTaken = chunk.length >= TAKEN_BYTES_MIN && isTls && stream.writableLength === 0
    const before = this.#isChunked ? `${this.#unsent}${chunk.length.toString(16)}\r\n` : this.#unsent
    this.#unsent = ''
    stream.cork()
    if (before !== '') stream.write(before, 'latin1')
    let hasRoom = stream.write(isTaken ? chunk : Buffer.from(chunk))
    if (this.#isChunked) hasRoom = stream.write('\r\n', 'latin1')
    stream.uncork()
    return hasRoom
  }

  #finish(last: string): void {
    this.#state = 'ended'
    this.onGone = null
    this.onDrain = null
    this.#unsent += last
    this.#queue()
  }

  #queue(): void {
    if (this.#isQueued) return
    this.#isQueued = true
    OUTBOX.put(this, '')
  }

  /** A mistake of the holder, or an invalid header. The client sees a truncated answer. */
  #breakOff(): void {
    const tell = this.onGone
    this.onGone = null
    this.abort()
    tell?.()
  }
}

type State = 'open' | 'answering' | 'ended' | 'gone'

const NO_TRAILERS: readonly string[] = []
