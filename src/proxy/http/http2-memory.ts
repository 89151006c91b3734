import type { Http2Stream } from 'node:http2'

/**
 * Node (24.21) counts bytes that wait to be sent against a session's memory, and goes on counting those of a stream that
 * is closed before they were: after some seeking in a film, every request is refused (ENHANCE_YOUR_CALM) for as long as
 * the session lives. This counts what has been lost that way, so that the session can be let go of before.
 */
export class SessionMemory {
  readonly #bytesMax: number
  #bytesLost = 0

  /** `megabytesMax` is the `maxSessionMemory` of the session. */
  constructor(megabytesMax: number) {
    this.#bytesMax = megabytesMax * 1_000_000 * WORN_OUT_SHARE
  }

  /** To be called at the stream's `close`. */
  closed({ writableLength }: Http2Stream): void {
    this.#bytesLost += writableLength
  }

  /** It should have no more streams than it has. */
  get isWornOut(): boolean {
    return this.#bytesLost >= this.#bytesMax
  }
}

/** The rest is for streams under way. */
const WORN_OUT_SHARE = 0.5
