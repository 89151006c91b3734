import { Readable } from 'node:stream'
import { ByteQueue } from '../../wire/byte-queue.ts'

/**
 * A request body that is fed from its connection. Small pieces without a reader are joined in a buffer of its own: one
 * byte must not keep the chunk in which it came, nor an object for itself.
 */
export class FedBody extends Readable {
  /** Whether all of it has arrived, read or not. */
  isWhole = false
  readonly #onWanted: () => void
  readonly #joined = new ByteQueue()
  /** What was pushed so far, if it is in one piece and nothing of it was read. */
  #only: Uint8Array | null = null
  #pushes = 0

  /** `onWanted` is called when there is room again after `feed` returned `false`. */
  constructor(onWanted: () => void) {
    super({ highWaterMark: HIGH_WATER_BYTES })
    this.#onWanted = onWanted
  }

  /**
   * The whole body, if it is there in one piece and nothing of it was read. It stays unread. Looking at it costs far less
   * than reading it and passing it on.
   */
  get unread(): Uint8Array | null {
    const isUntouched = this.isWhole && !this.destroyed && this.readableFlowing === null
    return isUntouched && this.#pushes === 1 && this.#only?.length === this.readableLength ? this.#only : null
  }

  /** Takes the next bytes of the body. `false`: wait for `onWanted`. */
  feed(bytes: Uint8Array): boolean {
    // The rest of a body is not read after its request was answered.
    return this.destroyed || this.#give(bytes)
  }

  /** No more bytes will come. */
  finish(): void {
    this.isWhole = true
    if (this.destroyed) return
    this.#release()
    this.push(null)
  }

  /** Every way to read comes here. */
  override read(size?: number): unknown {
    this.#release()
    this.#only = null
    return super.read(size)
  }

  override _read(): void {
    this.#onWanted()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#joined.clear()
    done(error)
  }

  /**
   * A reader that keeps up gets the bytes directly: Node's own path schedules a later task for each piece.
   */
  #give(bytes: Uint8Array): boolean {
    if (this.readableFlowing && this.readableLength === 0 && this.#joined.length === 0) {
      this.emit('data', bytes)
      return true
    }
    if (bytes.length >= LARGE_BYTES && bytes.length * SHARE_MIN >= bytes.buffer.byteLength) {
      this.#release()
      return this.#push(bytes)
    }
    this.#joined.push(bytes)
    this.#joined.keep()
    // Such a reader waits for an event.
    if (this.readableFlowing || this.listenerCount('readable') > 0) this.#release()
    return this.readableLength + this.#joined.length < HIGH_WATER_BYTES
  }

  #release(): void {
    if (this.#joined.length === 0) return
    const bytes = this.#joined.rest()
    this.#joined.clear()
    this.#push(bytes)
  }

  #push(bytes: Uint8Array): boolean {
    this.#only = this.#pushes++ === 0 ? bytes : null
    return this.push(bytes)
  }
}

/** The same as for Node's own sockets. */
const HIGH_WATER_BYTES = 65_536
/** Pieces of at least this size are kept as they are, if they are a fourth of their chunk. */
const LARGE_BYTES = 4_096
const SHARE_MIN = 4
