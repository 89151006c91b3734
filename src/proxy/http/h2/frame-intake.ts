import type { Duplex } from 'node:stream'
import { FrameReader, Step } from '../../../wire/h2/frame-reader.ts'
import { Intake, type IntakeReading } from '../intake.ts'
import { startReading, stopReading } from '../socket-reading.ts'

/** What the frames of a connection are for. */
export interface FrameTaker {
  /** Nothing more is read, now or for good. */
  readonly isStopped: boolean
  /** A frame, before its payload has come. */
  head(head: FrameReader): void
  /** The whole payload of a frame other than DATA. */
  payload(frame: FrameReader): void
  /** A part of the data of a DATA frame. */
  piece(bytes: Uint8Array): void
  endData(flags: number): void
  /** The padding of a DATA frame is longer than the frame. */
  badPadding(): void
}

/** Reads the frames of one connection straight from its socket, so many in each event loop turn. */
export class FrameIntake implements IntakeReading {
  readonly #socket: Duplex
  readonly #taker: FrameTaker
  readonly #reader = new FrameReader()
  readonly #intake = new Intake(this)

  constructor(socket: Duplex, taker: FrameTaker) {
    this.#socket = socket
    this.#taker = taker
  }

  came(chunk: Buffer): void {
    this.#reader.push(chunk)
    this.#read()
  }

  /** The same for bytes that are valid during the call. Returns `false` to stop reading. */
  cameBorrowed(chunk: Buffer): boolean {
    this.came(chunk)
    this.#reader.keep()
    return !this.#isStopped
  }

  /** Counts what was read. Stops reading where one turn has brought too much. */
  count(pieces: number, bytes: number): void {
    this.#intake.count(pieces, bytes)
  }

  stop(): void {
    this.#socket.pause()
    stopReading(this.#socket)
  }

  goOn(): void {
    if (this.#isStopped) return
    this.#read()
    if (this.#isStopped) return
    const socket = this.#socket
    // After it is stopped, TLS still delivers the records it has already read, one by one. This read delivers
    // them as `data` in one piece.
    if (socket.readableLength > 0) socket.read(socket.readableLength)
    if (this.#isStopped) return
    startReading(socket)
    socket.resume()
  }

  /** The connection has closed, or is ending. */
  close(): void {
    this.#intake.close()
  }

  get #isStopped(): boolean {
    return this.#taker.isStopped || this.#intake.isStopped
  }

  #read(): void {
    const reader = this.#reader
    const taker = this.#taker
    while (!this.#isStopped) {
      switch (reader.next()) {
        case Step.more:
          return
        case Step.head:
          taker.head(reader)
          break
        case Step.payload:
          taker.payload(reader)
          break
        case Step.piece:
          taker.piece(reader.bytes)
          break
        case Step.dataEnd:
          taker.endData(reader.flags)
          break
        case Step.malformed:
          taker.badPadding()
      }
    }
  }
}
