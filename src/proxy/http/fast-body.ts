import { Readable } from 'node:stream'

/** The body of a request in the fast lane: as many bytes as were announced, taken from what the connection reads. */
export class FastBody extends Readable {
  #left: number
  readonly #onWanted: () => void

  /** `onWanted`: there is room again after `feed` said to wait. */
  constructor(length: number, onWanted: () => void) {
    super({ highWaterMark: HIGH_WATER_BYTES })
    this.#left = length
    this.#onWanted = onWanted
  }

  get isWhole(): boolean {
    return this.#left === 0
  }

  /** Bytes that are still to come. */
  get left(): number {
    return this.#left
  }

  /** What belongs to it of these bytes, which stay as they are. `false` asks to wait. */
  feed(bytes: Uint8Array): boolean {
    this.#left -= bytes.length
    // Nobody reads what is left of a request that has been answered.
    const hasRoom = this.destroyed || this.#give(bytes)
    if (this.#left === 0 && !this.destroyed) this.push(null)
    return hasRoom
  }

  override _read(): void {
    this.#onWanted()
  }

  /** To whoever reads as it comes without Node's ado, a task for later among it, which is the same for each piece. */
  #give(bytes: Uint8Array): boolean {
    if (!this.readableFlowing || this.readableLength > 0) return this.push(bytes)
    this.emit('data', bytes)
    return true
  }
}

/** As much as Node's own sockets hold. */
const HIGH_WATER_BYTES = 65_536
