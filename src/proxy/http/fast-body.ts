import { Readable } from 'node:stream'

/** A request body in the fast lane: the announced number of bytes, fed from the connection. */
export class FastBody extends Readable {
  #left: number
  readonly #onWanted: () => void

  /** `onWanted` is called when there is room again after `feed` returned `false`. */
  constructor(length: number, onWanted: () => void) {
    super({ highWaterMark: HIGH_WATER_BYTES })
    this.#left = length
    this.#onWanted = onWanted
  }

  get isWhole(): boolean {
    return this.#left === 0
  }

  /** Bytes still to come. */
  get left(): number {
    return this.#left
  }

  /** Takes the next bytes of the body, without a copy. `false`: wait for `onWanted`. */
  feed(bytes: Uint8Array): boolean {
    this.#left -= bytes.length
    // The rest of a body is not read after its request was answered.
    const hasRoom = this.destroyed || this.#give(bytes)
    if (this.#left === 0 && !this.destroyed) this.push(null)
    return hasRoom
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
