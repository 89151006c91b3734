import { DATA, type Http2Peer, SETTINGS, WINDOW_UPDATE } from '../../hostile/http2-peer.ts'
import { frame, PREFACE, settings } from '../http2-frames.ts'

/** Sends bodies as fast as the windows of the server allow, and no faster (RFC 9113 §6.9). */
export class Uploader {
  readonly #peer: Http2Peer
  readonly #used = new Map<number, number>()
  #usedTotal = 0

  private constructor(peer: Http2Peer) {
    this.#peer = peer
  }

  /** Opens the connection. The server's SETTINGS hold once they are acknowledged. */
  static async open(peer: Http2Peer): Promise<Uploader> {
    peer.write(PREFACE, settings())
    await peer.until((frames) => frames.some(({ type, flags }) => type === SETTINGS && flags === 0))
    peer.write(frame(SETTINGS, ACK, 0))
    return new Uploader(peer)
  }

  /** How much may be sent on a stream now. */
  room(stream: number): number {
    const onStream = this.#initial() + this.#granted(stream) - (this.#used.get(stream) ?? 0)
    return Math.min(onStream, INITIAL_WINDOW + this.#granted(0) - this.#usedTotal)
  }

  /** Each frame carries `padding` bytes beside its own. Ends early if the stream is reset, unless it is deaf to that. */
  async send(
    stream: number,
    bytes: number,
    { hasEnded = true, padding = 0, isDeaf = false } = {},
  ): Promise<void> {
    const isReset = () => !isDeaf && this.#peer.resetOf(stream) !== null
    const overhead = padding === 0 ? 0 : padding + 1
    for (let left = bytes; left > 0; ) {
      await this.#peer.until(() => this.room(stream) > overhead || isReset())
      if (isReset() || this.#peer.isClosed) return
      const size = Math.min(left, this.room(stream) - overhead, FRAME_BYTES_MAX - overhead)
      left -= size
      const payload = Buffer.alloc(size + overhead, 'x')
      if (overhead > 0) payload[0] = padding
      this.#peer.write(
        frame(DATA, (hasEnded && left === 0 ? 1 : 0) | (overhead > 0 ? 8 : 0), stream, payload),
      )
      this.#used.set(stream, (this.#used.get(stream) ?? 0) + payload.length)
      this.#usedTotal += payload.length
    }
  }

  #granted(stream: number): number {
    let total = 0
    for (const frame of this.#peer.frames)
      if (frame.type === WINDOW_UPDATE && frame.stream === stream) total += frame.payload.readUInt32BE(0)
    return total
  }

  /** The server's first SETTINGS say it. */
  #initial(): number {
    const said = this.#peer.frames.find(({ type, flags }) => type === SETTINGS && flags === 0)
    if (said === undefined) return INITIAL_WINDOW
    for (let at = 0; at < said.payload.length; at += 6)
      if (said.payload.readUInt16BE(at) === INITIAL_WINDOW_SIZE) return said.payload.readUInt32BE(at + 2)
    return INITIAL_WINDOW
  }
}

const ACK = 1
const INITIAL_WINDOW = 65_535
const INITIAL_WINDOW_SIZE = 4
const FRAME_BYTES_MAX = 16_384
