import type { Readable } from 'node:stream'
import { noteBuffer } from '../connection/garbage.ts'
import { OUTBOX } from '../http/outbox.ts'
import { PieceGatherer, SMALL_PIECE_BYTES_MAX } from '../http/piece-gatherer.ts'
import type { UpstreamStream } from './upstream-stream.ts'

/** What becomes of a request's body. One call, and none after `stop`. */
export interface RequestBodyEvents {
  /** All of it has been handed on. */
  bodyEnded(): void
  /** It broke off, or is not as long as was announced. */
  bodyBroke(): void
}

/** Carries a request's body upstream, as fast as it is taken there. */
export class RequestBody {
  bytesSent = 0
  readonly #body: Readable
  /** Bytes announced; `null` where nothing was. */
  readonly #length: number | null
  readonly #events: RequestBodyEvents
  #stream: UpstreamStream | null
  /** The turn of the event loop that the last small piece came in. */
  #turn = 0
  #gatherer: PieceGatherer | null = null

  constructor(body: Readable, length: number | null, stream: UpstreamStream, events: RequestBodyEvents) {
    this.#body = body
    this.#length = length
    this.#stream = stream
    this.#events = events
    body.on('end', this.#ended)
    body.on('error', this.#broke)
    body.on('close', this.#broke)
    body.on('data', this.#came)
    // Node says the end of an empty body of HTTP/2 whether or not anybody listens yet.
    if (body.readableEnded) process.nextTick(this.#ended)
  }

  resume(): void {
    if (this.#stream !== null) this.#body.resume()
  }

  /** What is left of it is nobody's: it is read, so that the connection it comes on can go on. */
  stop(): void {
    if (this.#stream === null) return
    this.#leave()
    if (!this.#body.destroyed) this.#body.resume()
  }

  readonly #came = (chunk: Uint8Array): void => {
    if (this.#stream === null) return
    this.bytesSent += chunk.length
    noteBuffer(chunk.length)
    // A byte too many would be taken for the next request.
    if (this.#length !== null && this.bytesSent > this.#length) return this.#broke()
    if (chunk.length > SMALL_PIECE_BYTES_MAX) {
      this.#gatherer?.flush()
      return this.#write(chunk)
    }
    const { turn } = OUTBOX
    if (turn !== this.#turn) {
      this.#turn = turn
      this.#gatherer?.flush()
      return this.#write(chunk)
    }
    this.#gatherer ??= new PieceGatherer(this.#write)
    this.#gatherer.add(chunk)
  }

  readonly #write = (bytes: Uint8Array): void => {
    if (this.#stream?.write(bytes) === false) this.#body.pause()
  }

  readonly #ended = (): void => {
    if (this.#stream === null) return
    if (this.#length !== null && this.bytesSent < this.#length) return this.#broke()
    this.#gatherer?.flush()
    this.#leave()
    this.#events.bodyEnded()
  }

  readonly #broke = (): void => {
    if (this.#stream === null) return
    this.#leave()
    this.#events.bodyBroke()
  }

  #leave(): void {
    this.#stream = null
    this.#gatherer?.drop()
    this.#body.off('data', this.#came)
  }
}
