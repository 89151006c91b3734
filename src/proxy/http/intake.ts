import { OUTBOX } from './outbox.ts'

/** How the reading of a connection stops and goes on. */
export interface IntakeReading {
  stop(): void
  goOn(): void
}

/**
 * Counts what one connection delivers in one event loop turn. At a limit it stops reading (`stop`) and
 * resumes (`goOn`) in a later turn. Of several connections with too many pieces only one resumes per
 * millisecond, so that any number of them delays the others only by the pieces of one.
 */
export class Intake {
  readonly #reading: IntakeReading
  #turn = 0
  #pieces = 0
  #bytes = 0
  #isStopped = false

  constructor(reading: IntakeReading) {
    this.#reading = reading
  }

  /** Pieces counted in this turn. */
  get pieces(): number {
    return this.#pieces
  }

  /** Whether it waits for its turn. Nothing may be read from the connection meanwhile. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  count(pieces: number, bytes: number): void {
    const { turn } = OUTBOX
    if (turn !== this.#turn) {
      this.#turn = turn
      this.#pieces = 0
      this.#bytes = 0
    }
    this.#pieces += pieces
    this.#bytes += bytes
    if (this.#isStopped) return
    const hasManyPieces = this.#pieces >= PIECES_PER_TURN_MAX
    if (!hasManyPieces && this.#bytes < BYTES_PER_TURN_MAX) return
    this.#isStopped = true
    this.#reading.stop()
    LINE.join(this, hasManyPieces)
  }

  /**
   * Stops reading again: node:http2 resumes when it has written something, such as a WINDOW_UPDATE, which
   * happens before this call.
   */
  stopAgain(): void {
    this.#reading.stop()
  }

  /** Resumes in a later turn. */
  go(): void {
    this.#isStopped = false
    this.#turn = 0
    this.#pieces = 0
    this.#reading.goOn()
  }

  /** The connection has closed. */
  close(): void {
    LINE.leave(this)
  }
}

/** The connections of a worker that have stopped reading, in the order in which they resume. */
class IntakeLine {
  readonly #manyPieces = new Set<Intake>()
  readonly #manyBytes = new Set<Intake>()
  #isResumingPieces = false
  #isResumingBytes = false

  join(intake: Intake, hasManyPieces: boolean): void {
    if (hasManyPieces) {
      this.#manyPieces.add(intake)
      if (this.#isResumingPieces) return
      this.#isResumingPieces = true
      setImmediate(this.#resumePieces)
    } else {
      this.#manyBytes.add(intake)
      if (this.#isResumingBytes) return
      this.#isResumingBytes = true
      // An immediate set by an immediate runs after the next poll phase, so other connections are served in
      // between.
      setImmediate(this.#resumeBytes)
    }
  }

  leave(intake: Intake): void {
    this.#manyPieces.delete(intake)
    this.#manyBytes.delete(intake)
  }

  readonly #resumeBytes = (): void => {
    this.#isResumingBytes = false
    for (const intake of [...this.#manyBytes]) this.#goOn(intake)
  }

  readonly #resumePieces = (): void => {
    const [first] = this.#manyPieces
    if (first !== undefined) this.#goOn(first)
    for (const intake of this.#manyPieces) intake.stopAgain()
    const { size } = this.#manyPieces
    this.#isResumingPieces = size > 0
    // A single connection may use the time that the others leave. Several would leave them none.
    if (size === 1) setImmediate(this.#resumePieces)
    else if (size > 1) setTimeout(this.#resumePieces, REST_MS)
  }

  #goOn(intake: Intake): void {
    this.leave(intake)
    intake.go()
  }
}

/** The event loop serves the others meanwhile. */
const REST_MS = 1
const LINE = new IntakeLine()

/** 128 chunks of one byte take half a millisecond. Pieces of a useful size never reach this limit. */
export const PIECES_PER_TURN_MAX = 128
/** An upload of 1 MiB takes two turns. */
export const BYTES_PER_TURN_MAX = 524_288
