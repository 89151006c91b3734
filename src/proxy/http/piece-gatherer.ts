import { ByteQueue } from '../../wire/byte-queue.ts'
import { OUTBOX, type Sender } from './outbox.ts'

/**
 * Joins the small pieces of a body that arrive in one turn of the event loop, so that a peer that sends one byte at a time
 * costs one write a turn instead of one write a byte. The first piece of a turn is not held back, and the others leave when
 * the turn ends: nothing waits for a later turn.
 */
export class PieceGatherer implements Sender {
  readonly #write: (bytes: Uint8Array) => void
  readonly #held = new ByteQueue()
  #isQueued = false

  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write
  }

  /** The bytes are copied. */
  add(piece: Uint8Array): void {
    this.#held.push(piece)
    this.#held.keep()
    if (this.#held.length >= GATHERED_BYTES_MAX) return this.flush()
    if (this.#isQueued) return
    this.#isQueued = true
    OUTBOX.put(this, '')
  }

  /** Writes what is held. Call it before anything else is written, and before the end. */
  flush(): void {
    if (this.#held.length === 0) return
    const bytes = this.#held.rest()
    this.#held.clear()
    this.#write(bytes)
  }

  /** Drops what is held. */
  drop(): void {
    this.#held.clear()
  }

  /** Called by the outbox at the end of the turn. */
  send(): void {
    this.#isQueued = false
    this.flush()
  }
}

/** Larger pieces are written as they are: to copy them would cost more than the write that is saved. */
export const SMALL_PIECE_BYTES_MAX = 2_048
/** As much as one TLS record carries. */
const GATHERED_BYTES_MAX = 16_384
