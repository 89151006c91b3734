import type { Readable } from 'node:stream'
import { noteBuffer } from '../connection/garbage.ts'
import { OUTBOX } from '../http/outbox.ts'
import { PieceGatherer, SMALL_PIECE_BYTES_MAX } from '../http/piece-gatherer.ts'
import type { UpstreamStream } from './upstream-stream.ts'

/** The result of a request body. One call, and none after `stop`. */
export interface RequestBodyEvents {
  /** The whole body has been passed on. */
  bodyEnded(): void
  /** The body was cut off, or its length differs from the announced one. */
  bodyBroke(): void
}

/** Carries a request body to the upstream, as fast as the upstream takes it. */
export class RequestBody {
  bytesSent = 0
  readonly #body: Readable
  /** The announced length in bytes. `null` if unknown. */
  readonly #length: number | null
  readonly #events: RequestBodyEvents
  #stream: UpstreamStream | null
  /** A single small piece behind a large one is the part of a frame that a TLS record cut off. */
  #followsLarge = false
  /** The event loop turn of the last small piece. */
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
    // Node emits the end of an empty HTTP/2 body whether or not there is a listener yet.
    if (body.readableEnded) process.nextTick(this.#ended)
  }

  resume(): void {
    if (this.#stream !== null) this.#body.resume()
  }

  /** Reads and drops the rest of the body, so that its connection can go on. */
  stop(): void {
    if (this.#stream === null) return
    this.#leave()
    if (!this.#body.destroyed) this.#body.resume()
  }

  readonly #came = (chunk: Uint8Array): void => {
    if (this.#stream === null) return
    this.bytesSent += chunk.length
    noteBuffer(chunk.length)
    // An extra byte would be taken for the next request.
    if (this.#length !== null && this.bytesSent > this.#length) return this.#broke()
    const isLarge = chunk.length > SMALL_PIECE_BYTES_MAX
    const isBetweenLarge = this.#followsLarge
    this.#followsLarge = isLarge
    if (isLarge) {
      this.#gatherer?.flush()
      return this.#write(chunk)
    }
    if (isBetweenLarge) return this.#write(chunk)
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
