import type { Socket } from 'node:net'
import * as h2 from '../../wire/h2/frame.ts'
import type { FrameReader } from '../../wire/h2/frame-reader.ts'
import { frameError, readSettings } from '../../wire/h2/frame-rules.ts'
import { HpackDecoder } from '../../wire/h2/hpack-decoder.ts'
import { FrameIntake, type FrameTaker } from '../http/h2/frame-intake.ts'
import { HeaderBlock } from '../http/h2/header-block.ts'
import { FIELDS_MAX, trimmed } from './response-head.ts'
import { HEAD_BYTES_MAX } from './response-reader.ts'

/** What an app says, frame by frame. */
export interface FramesOwner {
  readonly isClosed: boolean
  /** We have not begun this stream (RFC 9113 §5.1). */
  isIdle(stream: number): boolean
  /** The fields of a header block. */
  fields(stream: number, fields: readonly string[], hasEnded: boolean, neverIndexed: readonly string[]): void
  /** Its fields were too many. */
  tooManyFields(stream: number): void
  /** DATA, before its payload is there. `length` includes its padding. */
  beginData(stream: number, length: number): void
  piece(bytes: Uint8Array): void
  endData(hasEnded: boolean): void
  reset(stream: number, code: number): void
  /** Returns the error that it is, or 0. */
  setting(id: number, value: number): number
  /** All settings of a frame were read. */
  settled(): void
  pinging(payload: Uint8Array): void
  /** Our own ping has come back. */
  pinged(): void
  goAway(lastStream: number): void
  windowUpdate(stream: number, bytes: number): void
  /** A frame has come that carries nothing. */
  idleFrame(): void
  /** The app has broken a rule of the connection. */
  fail(code: number): void
}

/** Reads the frames of one app connection straight from the socket. */
export class UpstreamFrames implements FrameTaker {
  hasSettings = false
  readonly #owner: FramesOwner
  readonly #frames: FrameIntake
  readonly #decoder = new HpackDecoder(LIMITS)
  readonly #block = new HeaderBlock()

  constructor(socket: Socket, owner: FramesOwner) {
    this.#owner = owner
    this.#frames = new FrameIntake(socket, this)
  }

  came(chunk: Buffer): void {
    if (!this.isStopped) this.#frames.came(chunk)
  }

  /** The same for bytes that are valid during the call. Returns `false` to stop reading. */
  cameBorrowed(chunk: Buffer): boolean {
    return !this.isStopped && this.#frames.cameBorrowed(chunk)
  }

  close(): void {
    this.#frames.close()
  }

  get isStopped(): boolean {
    return this.#owner.isClosed
  }

  /** Whether the rest of a header block is missing. An app that never sends it fails the next answer. */
  get isInBlock(): boolean {
    return this.#block.stream !== 0
  }

  piece(bytes: Uint8Array): void {
    this.#owner.piece(bytes)
  }

  endData(flags: number): void {
    this.#owner.endData((flags & h2.END_STREAM) !== 0)
  }

  badPadding(): void {
    this.#owner.fail(h2.PROTOCOL_ERROR)
  }

  /** Checks a frame before its payload has come. */
  head(head: FrameReader): void {
    const { type, flags, stream, length } = head
    const owner = this.#owner
    // An app may send a byte per frame.
    this.#frames.count(type !== h2.HEADERS && length < TINY_BYTES ? 1 : 0, length)
    const code = frameError(head)
    if (code !== 0) return owner.fail(code)
    const open = this.#block.stream
    // §6.10: only CONTINUATION follows an open block, and nothing else.
    if (open !== 0 ? type !== h2.CONTINUATION || stream !== open : type === h2.CONTINUATION)
      return owner.fail(h2.PROTOCOL_ERROR)
    // §3.4: SETTINGS come first.
    if (!this.hasSettings && (type !== h2.SETTINGS || flags & h2.ACK)) return owner.fail(h2.PROTOCOL_ERROR)
    if (NEEDS_STREAM.has(type) && owner.isIdle(stream)) return owner.fail(h2.PROTOCOL_ERROR)
    if (type === h2.HEADERS || type === h2.CONTINUATION) {
      if (this.#block.excess(head, HEAD_BYTES_MAX) !== null) owner.fail(h2.ENHANCE_YOUR_CALM)
      return
    }
    if (type !== h2.DATA || (length === 0 && (flags & h2.END_STREAM) === 0)) owner.idleFrame()
    if (type === h2.DATA && !owner.isClosed) owner.beginData(stream, length)
  }

  payload(frame: FrameReader): void {
    const { type, flags, stream, bytes } = frame
    const owner = this.#owner
    const isLast = (flags & h2.END_HEADERS) !== 0
    switch (type) {
      case h2.HEADERS:
        if (!this.#block.begin(stream, flags, bytes, isLast)) return owner.fail(h2.PROTOCOL_ERROR)
        return isLast ? this.#endBlock() : undefined
      case h2.CONTINUATION:
        this.#block.add(bytes)
        return isLast ? this.#endBlock() : undefined
      case h2.RST_STREAM:
        return owner.reset(stream, h2.u32At(bytes, 0))
      case h2.SETTINGS:
        return flags & h2.ACK ? undefined : this.#settings(bytes)
      case h2.PING:
        return flags & h2.ACK ? owner.pinged() : owner.pinging(bytes)
      case h2.GOAWAY:
        return owner.goAway(h2.u31At(bytes, 0))
      case h2.WINDOW_UPDATE:
        return owner.windowUpdate(stream, h2.u31At(bytes, 0))
    }
  }

  /** Also that of a stream which is over, as all blocks share a table. */
  #endBlock(): void {
    const { stream, flags } = this.#block
    const fields: string[] = []
    const decoded = this.#decoder.decode(this.#block.end(), fields)
    if (decoded === 'malformed') return this.#owner.fail(h2.COMPRESSION_ERROR)
    if (decoded === 'too-large') return this.#owner.tooManyFields(stream)
    const { neverIndexed } = this.#decoder
    this.#owner.fields(stream, withoutBlanks(fields), (flags & h2.END_STREAM) !== 0, neverIndexed ?? NONE)
  }

  #settings(payload: Uint8Array): void {
    const code = readSettings(payload, (id, value) => this.#owner.setting(id, value))
    if (code !== 0) return this.#owner.fail(code)
    this.hasSettings = true
    this.#owner.settled()
  }
}

/** A blank at either end of a value, which §8.2.1 forbids, is common in what apps write, and HTTP/1.1 drops it. */
function withoutBlanks(fields: readonly string[]): readonly string[] {
  let clean: string[] | null = null
  for (let i = 1; i < fields.length; i += 2) {
    const value = fields[i]!
    const short = trimmed(value, 0, value.length)
    if (short.length === value.length) continue
    clean ??= [...fields]
    clean[i] = short
  }
  return clean ?? fields
}

/** The table has its size until SETTINGS change it, which ours do not. */
const LIMITS = { tableBytesMax: 4_096, listBytesMax: HEAD_BYTES_MAX, fieldsMax: FIELDS_MAX } as const
const NONE: readonly string[] = []
/** Frames of usual answers are larger. */
const TINY_BYTES = 64
const NEEDS_STREAM: ReadonlySet<number> = new Set([h2.DATA, h2.HEADERS, h2.RST_STREAM, h2.WINDOW_UPDATE])
