import { HandshakeReader } from '../wire/record.ts'
import type { CryptoFrame } from './quic-packet.ts'

/** Joins the CRYPTO frames of one encryption level (RFC 9000 §7.5), in any order, into handshake messages. */
export class CryptoStream {
  readonly #messages: HandshakeReader
  /** Everything before this offset has been joined. */
  #end = 0
  /** Frames after a hole, by offset. */
  readonly #ahead: CryptoFrame[] = []
  #aheadBytes = 0

  constructor(messageBytesMax: number) {
    this.#messages = new HandshakeReader(messageBytesMax)
  }

  get heldBytes(): number {
    return this.#messages.heldBytes + this.#aheadBytes
  }

  /**
   * The messages that these frames complete, each with its 4-byte header and valid until the next iteration.
   */
  *join(frames: readonly CryptoFrame[]): Generator<Uint8Array, void> {
    for (const { offset, data } of frames) this.#push(offset, data)
    for (let message = this.#messages.next(); message !== null; message = this.#messages.next()) yield message
  }

  #push(offset: number, data: Uint8Array): void {
    if (offset > this.#end) return this.#keep(offset, data)
    this.#append(offset, data)
    let piece = this.#ahead[0]
    while (piece !== undefined && piece.offset <= this.#end) {
      this.#ahead.shift()
      this.#aheadBytes -= piece.data.length
      this.#append(piece.offset, piece.data)
      piece = this.#ahead[0]
    }
  }

  #append(offset: number, data: Uint8Array): void {
    const fresh = data.subarray(this.#end - offset)
    if (fresh.length === 0) return
    this.#messages.push(fresh)
    this.#end += fresh.length
  }

  /**
   * Over a limit the frame is dropped, as if it had not been captured. A retransmission may still bring it.
   */
  #keep(offset: number, data: Uint8Array): void {
    if (this.#ahead.length === AHEAD_PIECES_MAX || this.#aheadBytes + data.length > AHEAD_BYTES_MAX) return
    let at = this.#ahead.length
    while (at > 0 && this.#ahead[at - 1]!.offset > offset) at--
    const before = this.#ahead[at - 1]
    if (before !== undefined && before.offset + before.data.length >= offset + data.length) return // duplicate
    this.#ahead.splice(at, 0, { offset, data: new Uint8Array(data) })
    this.#aheadBytes += data.length
  }
}

/**
 * Chrome splits a hello into about a dozen pieces per datagram and shuffles them. A long chain fills a dozen
 * datagrams.
 */
const AHEAD_PIECES_MAX = 256
const AHEAD_BYTES_MAX = 65_536
