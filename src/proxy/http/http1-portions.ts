import type { Socket } from 'node:net'
import { Intake } from './intake.ts'
import { startReading, stopReading } from './socket-reading.ts'

/** The parser's current state. */
export interface ParsedBody {
  /** Bytes still to come of a body with a length: they are one piece, whatever their content. Otherwise 0. */
  readonly lengthLeft: number
  /** The body's buffer is full and not read: node:http has paused the connection. */
  readonly isFull: boolean
  /** Called when node:http reads on. */
  resumed(): void
}

/**
 * Passes the bytes of a connection to node:http in portions, limited by the number of chunks per event loop
 * turn. Node's parser calls back for each chunk and cannot stop inside a buffer. It gets 64 KiB at a time and
 * up to 2 MiB per turn, so chunks of one byte would block the worker for half a second.
 */
export class Http1Portions {
  readonly intake: Intake
  readonly #stream: Socket
  readonly #body: ParsedBody
  readonly #parse: (bytes: Buffer) => void
  /** Bytes read but not yet parsed. */
  #rest: Buffer | null = null
  #portionBytes = SMALL_PORTION_BYTES

  /** The stream's only `data` listener must be that of node:http. */
  constructor(stream: Socket, body: ParsedBody) {
    this.#stream = stream
    this.#body = body
    this.intake = new Intake({ stop: () => this.#stop(), goOn: () => this.#goOn() })
    const [parse] = stream.listeners('data') as [(bytes: Buffer) => void]
    this.#parse = parse
    stream.off('data', parse).on('data', this.#came).on('resume', this.#resumed).on('close', this.#closed)
  }

  /** Called after node:http released the stream. Returns the unparsed bytes. */
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

  /**
   * The stream resumes: node:http has room for more of a body or for the next answer, or #goOn resumed it.
   */
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
    // node:http has paused the stream. The buffer then only has a limit in bytes, and TLS records may carry
    // one byte each.
    if (this.#stream.isPaused()) stopReading(this.#stream)
  }

  #stop(): void {
    this.#stream.pause()
    stopReading(this.#stream)
  }

  #goOn(): void {
    const stream = this.#stream
    // This read delivers the buffered bytes as `data` in one piece. It waits while the stream is paused.
    if (stream.readableLength > 0) stream.read(stream.readableLength)
    // If the body is full, reading it makes node:http resume the stream.
    if (!this.#body.isFull) stream.resume()
  }
}

/** The portion after large chunks. It has at most 1,365 chunks of one byte. */
const PORTION_BYTES = 8_192
/** The portion after small chunks: at most 42 chunks of one byte. */
const SMALL_PORTION_BYTES = 256
const PIECES_OF_LARGE_CHUNKS = 8
