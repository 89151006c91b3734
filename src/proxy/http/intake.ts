import { OUTBOX } from './outbox.ts'

/**
 * Counts what one connection hands over in one turn of the event loop. At a limit it stops reading (`stop`), and goes on
 * (`goOn`) in the next turn. Of the connections with too many pieces only one goes on in each turn, so that any number of
 * them delays the others by the pieces of one.
 */
export class Intake {
  readonly #stop: () => void
  readonly #goOn: () => void
  #turn = 0
  #pieces = 0
  #bytes = 0
  #isStopped = false

  constructor(stop: () => void, goOn: () => void) {
    this.#stop = stop
    this.#goOn = goOn
  }

  /** Pieces counted in this turn. */
  get pieces(): number {
    return this.#pieces
  }

  /** It waits for its turn: nothing is to be taken from the connection. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Counts what has come. */
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
    this.#stop()
    LINE.join(this, hasManyPieces)
  }

  /** node:http2 reads on once it has written something, a WINDOW_UPDATE for example, which it does before this is called. */
  stopAgain(): void {
    this.#stop()
  }

  /** Called in a later turn. */
  go(): void {
    this.#isStopped = false
    this.#turn = 0
    this.#pieces = 0
    this.#goOn()
  }

  /** The connection has closed. */
  close(): void {
    LINE.leave(this)
  }
}

/** The connections of a worker that have stopped reading, in the order in which they go on. */
class IntakeLine {
  readonly #manyPieces = new Set<Intake>()
  readonly #manyBytes = new Set<Intake>()
  #isExpected = false

  join(intake: Intake, hasManyPieces: boolean): void {
    if (hasManyPieces) this.#manyPieces.add(intake)
    else this.#manyBytes.add(intake)
    this.#expect()
  }

  leave(intake: Intake): void {
    this.#manyPieces.delete(intake)
    this.#manyBytes.delete(intake)
  }

  #expect(): void {
    if (this.#isExpected) return
    this.#isExpected = true
    // What an immediate sets as another immediate runs after the next poll phase: others are served in between.
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#isExpected = false
    for (const intake of [...this.#manyBytes]) this.#goOn(intake)
    const [first] = this.#manyPieces
    if (first !== undefined) this.#goOn(first)
    for (const intake of this.#manyPieces) intake.stopAgain()
    if (this.#manyPieces.size > 0) this.#expect()
  }

  #goOn(intake: Intake): void {
    this.leave(intake)
    intake.go()
  }
}

const LINE = new IntakeLine()

/** 128 chunks of one byte take half a millisecond; what is sent in pieces of a useful size never comes near it. */
export const PIECES_PER_TURN_MAX = 128
/** An upload of 1 MiB takes two turns. */
export const BYTES_PER_TURN_MAX = 524_288
