import { ByteQueue } from '../../wire/byte-queue.ts'
import { OUTBOX, type Sender } from './outbox.ts'

/**
 * Joins the small pieces of a body that arrive in one event loop turn, so that a peer that sends single bytes
 * costs one write per turn instead of one per byte. Everything leaves at the end of the turn; nothing waits
 * for a later one.
 */
export class PieceGatherer implements Sender {
  readonly #write: (bytes: Uint8Array) => void
  readonly #held = new ByteQueue()
  #isQueued = false

  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write
  }

  /** Copies the bytes: the buffer of an app's answer is read into again before the turn ends. */
  add(piece: Uint8Array): void {
    this.#held.push(piece)
    this.#held.keep()
    if (this.#held.length >= GATHERED_BYTES_MAX) return this.flush()
    if (this.#isQueued) return
    this.#isQueued = true
    OUTBOX.put(this, '')
  }

  /** Writes the held bytes. Call it before any other write and before the end. */
  flush(): void {
    if (this.#held.length === 0) return
    const bytes = this.#held.rest()
    this.#held.clear()
    this.#write(bytes)
  }

  /** Drops the held bytes. */
  drop(): void {
    this.#held.clear()
  }

  /** Called by the outbox at the end of the turn. */
  send(): void {
    this.#isQueued = false
    this.flush()
  }
}

/** Larger pieces are written directly: copying them would cost more than the write it saves. */
export const SMALL_PIECE_BYTES_MAX = 2_048
/** The size of one TLS record. */
const GATHERED_BYTES_MAX = 16_384
