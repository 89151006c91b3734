import type { Http2Stream } from 'node:http2'

/**
 * Works around a leak in Node (24.21), which counts bytes that wait to be sent against a session's memory and
 * never subtracts those of a stream that closed early. After some seeking in a film every request is rejected
 * (ENHANCE_YOUR_CALM) for the life of the session. This class counts the lost bytes, so that the session can
 * be closed before.
 */
export class SessionMemory {
  readonly #bytesMax: number
  #bytesLost = 0

  /** `megabytesMax` is the `maxSessionMemory` of the session. */
  constructor(megabytesMax: number) {
    this.#bytesMax = megabytesMax * 1_000_000 * WORN_OUT_SHARE
  }

  /** Must be called at the stream's `close`. */
  closed({ writableLength }: Http2Stream): void {
    this.#bytesLost += writableLength
  }

  /** Whether the session should take no more streams. */
  get isWornOut(): boolean {
    return this.#bytesLost >= this.#bytesMax
  }
}

/** The rest is for current streams. */
const WORN_OUT_SHARE = 0.5
