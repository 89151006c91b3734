import { once } from 'node:events'
import net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import tls from 'node:tls'
import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import type { Frame } from '../proxy/http2-frames.ts'

/** A client of HTTP/2 that sends whatever bytes it is told to, and takes apart what it hears. */
export interface Http2Peer {
  readonly socket: net.Socket
  /** Everything that was received, unless it was told to forget; DATA only in short. */
  readonly frames: readonly Frame[]
  /** The code of the first GOAWAY; `null` without one. */
  readonly goaway: number | null
  readonly isClosed: boolean
  write(...bytes: readonly Uint8Array[]): void
  /** Until what was written has left, or the connection is gone. */
  sent(): Promise<void>
  /** Until it is so, or the connection is gone, whichever is first; fails when neither comes in `PATIENCE_MS`. */
  until(isSo: (frames: readonly Frame[]) => boolean): Promise<void>
  /** Until what was sent has been read: by a PING, which is answered behind all before it. False once it is gone. */
  isRead(): Promise<boolean>
  /** Until the connection is gone. */
  gone(): Promise<void>
  /** The code that a stream was reset with; `null` where it was not. */
  resetOf(stream: number): number | null
  /** The status that a stream was answered with; `null` where it was not. Not that of an interim answer. */
  statusOf(stream: number): number | null
  /** The heads and trailers that came for a stream, each a list of name, value, … */
  headsOf(stream: number): readonly (readonly string[])[]
  /** The DATA of a stream, without padding. */
  bodyOf(stream: number): Buffer
  /** The answer has come to its end. */
  isAnswered(stream: number): boolean
}

/** `closes`: its side when the other one does. */
export async function dialHttp2(port: number, { isTls = true, closes = true } = {}): Promise<Http2Peer> {
  const to = { port, host: '127.0.0.1', allowHalfOpen: !closes }
  const socket = isTls
    ? tls.connect({ ...to, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
    : net.connect(to)
  const peer = new Peer(socket)
  await once(socket, isTls ? 'secureConnect' : 'connect')
  return peer
}

class Peer implements Http2Peer {
  readonly socket: net.Socket
  readonly frames: Frame[] = []
  isClosed = false
  #rest: Buffer = Buffer.alloc(0)
  #pings = 0
  readonly #decoder = new HpackDecoder(DECODER_LIMITS)
  readonly #heads: { readonly stream: number; readonly fields: readonly string[] }[] = []
  #block: Buffer[] = []

  constructor(socket: net.Socket) {
    this.socket = socket
    socket.on('error', () => undefined)
    socket.on('close', () => (this.isClosed = true))
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  get goaway(): number | null {
    const frame = this.frames.find(({ type }) => type === GOAWAY)
    return frame === undefined ? null : frame.payload.readUInt32BE(4)
  }

  write(...bytes: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(bytes))
  }

  async sent(): Promise<void> {
    if (this.socket.writableLength === 0 || this.isClosed) return void (await setImmediate())
    const { promise, resolve } = Promise.withResolvers<void>()
    this.socket.once('drain', resolve).once('close', resolve)
    if (this.socket.writableNeedDrain) await promise
    this.socket.off('drain', resolve).off('close', resolve)
    await setImmediate()
  }

  async until(isSo: (frames: readonly Frame[]) => boolean): Promise<void> {
    const endMs = Date.now() + PATIENCE_MS
    while (!isSo(this.frames) && !this.isClosed) {
      const leftMs = endMs - Date.now()
      if (leftMs <= 0) throw new Error(`waited in vain, after ${this.#heard()}`)
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, leftMs)
      this.socket.once('data', resolve).once('close', resolve)
      await promise
      clearTimeout(timer)
      this.socket.off('data', resolve).off('close', resolve)
    }
  }

  async isRead(): Promise<boolean> {
    const payload = Buffer.alloc(8)
    payload.writeUInt32BE(++this.#pings, 4)
    this.write(Buffer.from([0, 0, 8, PING, 0, 0, 0, 0, 0]), payload)
    const isAnswer = (frame: Frame) =>
      frame.type === PING && frame.flags === 1 && frame.payload.equals(payload)
    await this.until((frames) => frames.some(isAnswer))
    return this.frames.some(isAnswer)
  }

  gone(): Promise<void> {
    return this.until(() => false)
  }

  resetOf(stream: number): number | null {
    const frame = this.frames.find((frame) => frame.type === RST_STREAM && frame.stream === stream)
    return frame === undefined ? null : frame.payload.readUInt32BE(0)
  }

  statusOf(stream: number): number | null {
    for (const [name, status] of this.headsOf(stream))
      if (name === ':status' && !status!.startsWith('1')) return Number(status)
    return null
  }

  headsOf(stream: number): readonly (readonly string[])[] {
    return this.#heads.filter((head) => head.stream === stream).map(({ fields }) => fields)
  }

  bodyOf(stream: number): Buffer {
    const frames = this.frames.filter((frame) => frame.type === DATA && frame.stream === stream)
    return Buffer.concat(frames.map(({ payload }) => payload))
  }

  isAnswered(stream: number): boolean {
    return this.frames.some(
      (frame) =>
        frame.stream === stream && (frame.type === DATA || frame.type === HEADERS) && (frame.flags & 1) === 1,
    )
  }

  #take(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    for (; at + 9 <= bytes.length; ) {
      const end = at + 9 + bytes.readUIntBE(at, 3)
      if (end > bytes.length) break
      const payload = Buffer.from(bytes.subarray(at + 9, end))
      const stream = bytes.readUInt32BE(at + 5)
      const frame = { type: bytes[at + 3]!, flags: bytes[at + 4]!, stream, payload }
      this.frames.push(frame)
      if (frame.type === HEADERS || frame.type === CONTINUATION) this.#takeBlock(frame)
      at = end
    }
    this.#rest = Buffer.from(bytes.subarray(at))
  }

  /** We send no padding and no priority. */
  #takeBlock({ stream, flags, payload }: Frame): void {
    this.#block.push(payload)
    if ((flags & END_HEADERS) === 0) return
    const fields: string[] = []
    const decoded = this.#decoder.decode(Buffer.concat(this.#block), fields)
    if (decoded !== 'whole') throw new Error(`a header block that is ${decoded}`)
    this.#block = []
    this.#heads.push({ stream, fields })
  }

  #heard(): string {
    return this.frames
      .slice(-20)
      .map(
        ({ type, flags, stream, payload }) =>
          `${type}/${flags} of ${stream}: ${payload.toString('hex', 0, 20)}`,
      )
      .join(', ')
  }
}

export const [DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8,
] as const
export const CONTINUATION = 9
/** RFC 9113 §7. */
export const [NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR] = [0, 1, 2, 3] as const
export const [STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL] = [5, 6, 7, 8] as const
export const [COMPRESSION_ERROR, ENHANCE_YOUR_CALM] = [9, 11] as const
const END_HEADERS = 4
/** What we send is not limited here. */
const DECODER_LIMITS = { tableBytesMax: 0xffff_ffff, listBytesMax: 1e9, fieldsMax: 1e6 }
/** Nothing takes so long: beyond it, it hangs. */
const PATIENCE_MS = 15_000
