import { HandshakeReader } from '../wire/record.ts'
import type { CryptoFrame } from './quic-packet.ts'

/** Joins the CRYPTO frames of one encryption level (RFC 9000 §7.5), in whatever order they come, into handshake messages. */
export class CryptoStream {
  readonly #messages: HandshakeReader
  /** Up to here the bytes have been joined. */
  #end = 0
  /** What is still to be joined, by offset. */
  readonly #ahead: CryptoFrame[] = []
  #aheadBytes = 0

  constructor(messageBytesMax: number) {
    this.#messages = new HandshakeReader(messageBytesMax)
  }

  get heldBytes(): number {
    return this.#messages.heldBytes + this.#aheadBytes
  }

  /** The messages that these frames complete, each with its 4-byte header and valid until the next one is asked for. */
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

  /** Over a limit a piece is lost, as if it had not been captured: a retransmission may still bring it. */
  #keep(offset: number, data: Uint8Array): void {
    if (this.#ahead.length === AHEAD_PIECES_MAX || this.#aheadBytes + data.length > AHEAD_BYTES_MAX) return
    let at = this.#ahead.length
    while (at > 0 && this.#ahead[at - 1]!.offset > offset) at--
    const before = this.#ahead[at - 1]
    if (before !== undefined && before.offset + before.data.length >= offset + data.length) return // seen before
    this.#ahead.splice(at, 0, { offset, data: new Uint8Array(data) })
    this.#aheadBytes += data.length
  }
}

/** Chrome cuts a hello into some dozen pieces a datagram and shuffles them; a long chain fills a dozen datagrams. */
const AHEAD_PIECES_MAX = 256
const AHEAD_BYTES_MAX = 65_536
