import type { Socket } from 'node:net'
import { Intake } from './intake.ts'
import { startReading, stopReading } from './socket-reading.ts'

/** What the parser has at the moment. */
export interface ParsedBody {
  /** Bytes still to come of a body with a length: they are one piece, whatever is in them. 0 in all other places. */
  readonly lengthLeft: number
  /** The body has as much as it may hold and is not read: node:http has paused the connection. */
  readonly isFull: boolean
  /** node:http reads on. */
  resumed(): void
}

/**
 * Hands node:http what a connection reads in portions, and no more of them in one turn of the event loop than the chunks in
 * them allow. Node's parser calls back for each chunk and cannot stop in the middle of what it was given: with 64 KiB at a
 * time, and up to 2 MiB in one turn, chunks of one byte would hold the worker for half a second.
 */
export class Http1Portions {
  readonly intake: Intake
  readonly #stream: Socket
  readonly #body: ParsedBody
  readonly #parse: (bytes: Buffer) => void
  /** What has been read and not been parsed. */
  #rest: Buffer | null = null
  #portionBytes = SMALL_PORTION_BYTES

  /** Of a stream that node:http listens to, and nobody else. */
  constructor(stream: Socket, body: ParsedBody) {
    this.#stream = stream
    this.#body = body
    this.intake = new Intake(
      () => this.#stop(),
      () => this.#goOn(),
    )
    const [parse] = stream.listeners('data') as [(bytes: Buffer) => void]
    this.#parse = parse
    stream.off('data', parse).on('data', this.#came).on('resume', this.#resumed).on('close', this.#closed)
  }

  /** node:http has let go of the stream. What has been read and not been parsed is the caller's. */
  leave(): Buffer | null {
    const rest = this.#rest
    this.#closed()
    this.#stream.off('data', this.#came).off('resume', this.#resumed)
    return rest
  }

  readonly #came = (bytes: Buffer): void => {
    this.#rest = this.#rest === null ? bytes : Buffer.concat([this.#rest, bytes])
    this.intake.count(1, bytes.length)
    this.#parsePortions()
  }

  /** Of the stream: by node:http when there is room for more of a body or for the next answer, or by #goOn. */
  readonly #resumed = (): void => {
    if (this.intake.isStopped) return this.#stop()
    this.#body.resumed()
    this.#parsePortions()
    if (!this.#isStopped) startReading(this.#stream)
  }

  readonly #closed = (): void => {
    this.#rest = null
    this.intake.close()
  }

  get #isStopped(): boolean {
    return this.intake.isStopped || this.#stream.isPaused()
  }

  #parsePortions(): void {
    for (let rest = this.#rest; rest !== null && !this.#isStopped; rest = this.#rest) {
      const length = Math.min(rest.length, Math.max(this.#portionBytes, this.#body.lengthLeft))
      this.#rest = length === rest.length ? null : rest.subarray(length)
      const before = this.intake.pieces
      this.#parse.call(this.#stream, length === rest.length ? rest : rest.subarray(0, length))
      const isDense = this.intake.pieces - before > PIECES_OF_LARGE_CHUNKS
      this.#portionBytes = isDense ? SMALL_PORTION_BYTES : PORTION_BYTES
    }
    // It has been paused by node:http. What is buffered meanwhile is limited in bytes only, and TLS records may carry one.
    if (this.#stream.isPaused()) stopReading(this.#stream)
  }

  #stop(): void {
    this.#stream.pause()
    stopReading(this.#stream)
  }

  #goOn(): void {
    const stream = this.#stream
    // To read what has been buffered since has it come as `data`, in one piece, which waits as long as the stream is paused.
    if (stream.readableLength > 0) stream.read(stream.readableLength)
    // A body that is read again makes node:http resume the stream.
    if (!this.#body.isFull) stream.resume()
  }
}

/** Behind large chunks; as many of one byte would be 1,365. */
const PORTION_BYTES = 8_192
/** Behind small chunks: 341 of one byte at most. */
const SMALL_PORTION_BYTES = 2_048
const PIECES_OF_LARGE_CHUNKS = 8
