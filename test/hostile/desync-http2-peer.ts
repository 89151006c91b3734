import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import type { Peer } from '../proxy/front.ts'
import { type Frame, framesOf, PREFACE, settings } from '../proxy/http2-frames.ts'
import { type Door, type Gate, inTime } from './desync-gate.ts'

/** What a stream has come to; `null`: nothing yet. */
export interface StreamEnd {
  readonly status: number | null
  readonly body: string
  readonly end: 'whole' | 'reset' | 'gone'
}

/** A client of HTTP/2 that says what it is told to, frame by frame. */
export class Http2Peer {
  readonly #peer: Peer

  /** What is still to go out with the first frames. */
  #opening = Buffer.concat([PREFACE, settings()])

  /** `isLate`: its first frames are not read before nghttp2 reads them. Else they come with the preface. */
  static async open(gate: Gate, door: Door, isLate = false): Promise<Http2Peer> {
    const peer = await gate.dial(door, 'h2')
    const opened = new Http2Peer(peer)
    if (!isLate) return opened
    opened.write(Buffer.alloc(0))
    await peer.hears(() => framesOf(peer.bytes).some(({ type }) => type === SETTINGS))
    return opened
  }

  constructor(peer: Peer) {
    this.#peer = peer
  }

  write(bytes: Buffer): void {
    this.#peer.write(Buffer.concat([this.#opening, bytes]))
    this.#opening = Buffer.alloc(0)
  }

  /** Until the stream has ended in one way or another. */
  async endOf(stream: number): Promise<StreamEnd> {
    const { socket } = this.#peer
    for (;;) {
      const end = endIn(framesOf(this.#peer.bytes), stream, socket.destroyed)
      if (end !== null) return end
      const { promise, resolve } = Promise.withResolvers<void>()
      socket.once('data', resolve).once('close', resolve)
      await inTime(promise, () => `stream ${stream}`)
      socket.off('data', resolve).off('close', resolve)
    }
  }

  close(): void {
    this.#peer.socket.destroy()
  }
}

/** Header blocks are read in their order, as each changes what the next one means. */
function endIn(frames: readonly Frame[], wanted: number, isClosed: boolean): StreamEnd | null {
  const decoder = new HpackDecoder()
  let status: number | null = null
  let body = ''
  for (const { type, flags, stream, payload } of frames) {
    const fields: string[] = []
    if (type === HEADERS) decoder.decode(payload, fields)
    if (type === GOAWAY && payload.readUInt32BE(4) !== 0) return { status, body, end: 'gone' }
    if (stream !== wanted) continue
    if (fields[0] === ':status') status = Number(fields[1])
    if (type === DATA) body += payload.toString('latin1')
    if (type === RST_STREAM) return { status, body, end: 'reset' }
    if ((type === HEADERS || type === DATA) && (flags & END_STREAM) !== 0)
      return { status, body, end: 'whole' }
  }
  return isClosed ? { status, body, end: 'gone' } : null
}

const [DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY] = [0, 1, 3, 4, 7]
const END_STREAM = 1
