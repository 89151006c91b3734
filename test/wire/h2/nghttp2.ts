import { type ClientHttp2Session, connect, performServerHandshake, type ServerHttp2Session } from 'node:http2'
import { type Duplex, duplexPair } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { type Frame, frame, framesOf, PREFACE, settings } from '../../proxy/http2-frames.ts'

/** The other side of node:http2 on a connection in memory: it speaks frames. */
class Peer {
  readonly #stream: Duplex
  #bytes: Buffer = Buffer.alloc(0)
  #lost = 0

  constructor(stream: Duplex, prefaceBytes: number) {
    this.#stream = stream
    this.#lost = prefaceBytes
    stream.on('data', (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes])
      const skipped = Math.min(this.#lost, this.#bytes.length)
      this.#bytes = this.#bytes.subarray(skipped)
      this.#lost -= skipped
    })
  }

  write(...frames: readonly Buffer[]): void {
    this.#stream.write(Buffer.concat(frames))
  }

  /** The frames up to the first one that matches, which is waited for. Acknowledges settings. */
  async until(isLast: (each: Frame) => boolean): Promise<Frame[]> {
    const all: Frame[] = []
    while (true) {
      for (const each of framesOf(this.#bytes)) {
        this.#bytes = this.#bytes.subarray(9 + each.payload.length)
        all.push(each)
        if (isSettings(each)) this.write(frame(SETTINGS, ACK, 0))
        if (isLast(each)) return all
      }
      if (this.#stream.destroyed || this.#stream.readableEnded)
        throw new Error('nghttp2 ended the connection')
      await turn()
    }
  }
}

export type Nghttp2Decoded =
  /** The list, or null if it is not a valid request, so that node:http2 did not show it. */
  { readonly kind: 'whole'; readonly list: readonly string[] | null } | { readonly kind: 'malformed' }

/** The HPACK decoder of nghttp2, in a server of node:http2 that gets requests. */
export class Nghttp2Decoder {
  readonly #peer: Peer
  readonly #session: ServerHttp2Session
  #stream = -1
  #list: readonly string[] | null = null

  constructor() {
    const [ours, theirs] = duplexPair()
    this.#session = performServerHandshake(theirs, OPTIONS)
    this.#session.on('error', () => undefined)
    this.#session.on('stream', (stream, _headers, _flags, rawHeaders) => {
      this.#list = rawHeaders
      stream.on('error', () => undefined).close()
    })
    this.#peer = new Peer(ours, 0)
    this.#peer.write(PREFACE, settings())
  }

  async decode(block: Uint8Array): Promise<Nghttp2Decoded> {
    this.#stream += 2
    this.#list = null
    this.#peer.write(...headerFrames(this.#stream, block), PING)
    const last = (await this.#peer.until(isPongOrGoaway)).at(-1)!
    if (last.type === GOAWAY && last.payload.readUInt32BE(4) === COMPRESSION_ERROR)
      return { kind: 'malformed' }
    return { kind: 'whole', list: this.#list }
  }

  close(): void {
    this.#session.destroy()
  }
}

/** The HPACK encoder of nghttp2, and a decoder with a table of any size, in a client of node:http2. */
export class Nghttp2Client {
  readonly #peer: Peer
  readonly #session: ClientHttp2Session

  private constructor(peer: Peer, session: ClientHttp2Session) {
    this.#peer = peer
    this.#session = session
  }

  static async open(): Promise<Nghttp2Client> {
    const [ours, theirs] = duplexPair()
    const peer = new Peer(ours, PREFACE.length)
    const session = connect('http://test', { createConnection: () => theirs, ...OPTIONS })
    session.on('error', () => undefined)
    peer.write(settings())
    await peer.until(isSettings)
    return new Nghttp2Client(peer, session)
  }

  /** The response's list. `answer` is called with the block of the request and encodes the response. */
  async ask(request: readonly string[], answer: (request: Buffer) => Uint8Array): Promise<readonly string[]> {
    const stream = this.#session.request(request, { endStream: true })
    const answered = new Promise<readonly string[]>((resolve, reject) => {
      stream.on('error', reject)
      // Its types do not name the third argument.
      stream.on('response', (...[, , rawHeaders]: readonly unknown[]) =>
        resolve(rawHeaders as readonly string[]),
      )
    })
    const frames = await this.#peer.until(({ type, flags }) => isBlock(type) && (flags & END_HEADERS) !== 0)
    const blocks = frames.filter(({ type }) => isBlock(type))
    const block = Buffer.concat(blocks.map(({ payload }) => payload))
    this.#peer.write(...headerFrames(blocks.at(-1)!.stream, answer(block)))
    return answered
  }

  /** What the next block of nghttp2 is to keep to. */
  async allow(tableBytes: number): Promise<void> {
    this.#peer.write(settings([HEADER_TABLE_SIZE, tableBytes]))
    await this.#peer.until(({ type, flags }) => type === SETTINGS && (flags & ACK) !== 0)
  }

  /** Limits the decoder of nghttp2. */
  async limit(tableBytes: number): Promise<void> {
    const acknowledged = new Promise<void>((resolve) => {
      this.#session.settings({ headerTableSize: tableBytes }, () => resolve())
    })
    await this.#peer.until(isSettings)
    await acknowledged
  }

  close(): void {
    this.#session.destroy()
  }
}

function headerFrames(stream: number, block: Uint8Array): Buffer[] {
  const parts: Uint8Array[] = []
  for (let at = 0; at === 0 || at < block.length; at += FRAME_BYTES_MAX)
    parts.push(block.subarray(at, at + FRAME_BYTES_MAX))
  return parts.map((part, i) => {
    const isLast = i === parts.length - 1
    return frame(
      i === 0 ? HEADERS : CONTINUATION,
      (i === 0 ? END_STREAM : 0) | (isLast ? END_HEADERS : 0),
      stream,
      part,
    )
  })
}

function isBlock(type: number): boolean {
  return type === HEADERS || type === CONTINUATION
}

function isSettings({ type, flags }: Frame): boolean {
  return type === SETTINGS && (flags & ACK) === 0
}

function isPongOrGoaway({ type, flags }: Frame): boolean {
  return type === GOAWAY || (type === PING_TYPE && (flags & ACK) !== 0)
}

const OPTIONS = {
  strictSingleValueFields: false,
  maxHeaderListPairs: 100_000,
  maxSendHeaderBlockLength: 1_000_000,
  maxSessionInvalidFrames: 1_000_000,
  maxSessionRejectedStreams: 1_000_000,
  maxSessionMemory: 1000,
  settings: { maxHeaderListSize: 1_000_000, maxConcurrentStreams: 1_000_000 },
}
const [HEADERS, SETTINGS, PING_TYPE, GOAWAY, CONTINUATION] = [1, 4, 6, 7, 9] as const
const END_STREAM = 1
const ACK = 1
const END_HEADERS = 4
const HEADER_TABLE_SIZE = 1
const COMPRESSION_ERROR = 9
const FRAME_BYTES_MAX = 16_384
const PING = frame(PING_TYPE, 0, 0, Buffer.alloc(8))
