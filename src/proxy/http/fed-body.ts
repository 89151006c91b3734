import { Readable } from 'node:stream'

/** A request body that is fed from its connection. */
export class FedBody extends Readable {
  /** Whether all of it has arrived, read or not. */
  isWhole = false
  readonly #onWanted: () => void

  /** `onWanted` is called when there is room again after `feed` returned `false`. */
  constructor(onWanted: () => void) {
    super({ highWaterMark: HIGH_WATER_BYTES })
    this.#onWanted = onWanted
  }

  /** Takes the next bytes of the body, without a copy. `false`: wait for `onWanted`. */
  feed(bytes: Uint8Array): boolean {
    // The rest of a body is not read after its request was answered.
    return this.destroyed || this.#give(bytes)
  }

  /** No more bytes will come. */
  finish(): void {
    this.isWhole = true
    if (!this.destroyed) this.push(null)
  }

  override _read(): void {
    this.#onWanted()
  }

  /**
   * A reader that keeps up gets the bytes directly: Node's own path schedules a later task for each piece.
   */
  #give(bytes: Uint8Array): boolean {
    if (!this.readableFlowing || this.readableLength > 0) return this.push(bytes)
    this.emit('data', bytes)
    return true
  }
}

/** The same as for Node's own sockets. */
const HIGH_WATER_BYTES = 65_536
