import { ByteQueue } from '../byte-queue.ts'
import { DATA, FRAME_HEADER_BYTES, PADDED, u31At } from './frame.ts'

/** What `next` has found. */
export const Step = {
  /** Everything pushed so far has been read. */
  more: 0,
  /** A frame header: `type`, `flags`, `stream` and `length` are set. Its payload follows. */
  head: 1,
  /** The whole payload of a frame other than DATA, padding included. */
  payload: 2,
  /** A part of a DATA frame's data. */
  piece: 3,
  /** The end of a DATA frame, after its padding. */
  dataEnd: 4,
  /** The padding of a DATA frame is longer than the frame. Reading ends. */
  malformed: 5,
} as const

export type FrameStep = (typeof Step)[keyof typeof Step]

/**
 * Reads frames (RFC 9113 §4.1) from pieces of any size. DATA is passed on as it arrives, without a copy. Of any
 * other frame the whole payload is collected: check `length` at its `head`.
 */
export class FrameReader {
  type = 0
  flags = 0
  stream = 0
  length = 0
  /** The payload or the piece, valid until the next call. A piece stays valid. */
  bytes: Uint8Array = EMPTY
  #chunk: Uint8Array = EMPTY
  #at = 0
  #state: State = IN_HEAD
  /** A frame header that is still incomplete. `null` before the first, which is rare. */
  #head: Uint8Array | null = null
  #headBytes = 0
  /** A payload that is still incomplete. */
  #held: ByteQueue | null = null
  /** Bytes of data, or of padding, still to come. */
  #left = 0
  #padding = 0

  /** Bytes that it keeps itself between calls. */
  get heldBytes(): number {
    return this.#held?.heldBytes ?? 0
  }

  /** Whether a frame has begun and is not complete. */
  get isWithin(): boolean {
    return this.#state !== IN_HEAD || this.#headBytes > 0
  }

  /** Whether pushed bytes are still to be read. */
  get hasMore(): boolean {
    return this.#at < this.#chunk.length
  }

  push(chunk: Uint8Array): void {
    this.#chunk = this.hasMore ? Buffer.concat([this.#chunk.subarray(this.#at), chunk]) : chunk
    this.#at = 0
  }

  /** Call this when reading pauses and the pushed chunk is only valid until now: it copies the unread bytes. */
  keep(): void {
    this.#chunk = this.hasMore ? Uint8Array.prototype.slice.call(this.#chunk, this.#at) : EMPTY
    this.#at = 0
  }

  next(): FrameStep {
    switch (this.#state) {
      case IN_HEAD:
        return this.#readHead()
      case IN_PAYLOAD:
        return this.#readPayload()
      case AT_PAD_LENGTH:
        return this.#readPadLength()
      case IN_DATA:
        return this.#left > 0 ? this.#readPiece() : this.#passPadding()
    }
  }

  #readHead(): FrameStep {
    const chunk = this.#chunk
    if (this.#headBytes === 0 && chunk.length - this.#at >= FRAME_HEADER_BYTES) {
      this.#take(chunk, this.#at)
      this.#at += FRAME_HEADER_BYTES
      return Step.head
    }
    if (this.#at === chunk.length) return this.#wait()
    this.#head ??= new Uint8Array(FRAME_HEADER_BYTES)
    while (this.#headBytes < FRAME_HEADER_BYTES) {
      if (this.#at === chunk.length) return this.#wait()
      this.#head[this.#headBytes++] = chunk[this.#at++]!
    }
    this.#headBytes = 0
    this.#take(this.#head, 0)
    return Step.head
  }

  #take(bytes: Uint8Array, at: number): void {
    this.length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
    this.type = bytes[at + 3]!
    this.flags = bytes[at + 4]!
    this.stream = u31At(bytes, at + 5)
    this.#left = this.length
    this.#padding = 0
    this.#state = this.type !== DATA ? IN_PAYLOAD : this.flags & PADDED ? AT_PAD_LENGTH : IN_DATA
  }

  #readPayload(): FrameStep {
    const chunk = this.#chunk
    const length = Math.min(this.length - (this.#held?.length ?? 0), chunk.length - this.#at)
    const part = chunk.subarray(this.#at, this.#at + length)
    this.#at += length
    if (length === this.length) this.bytes = part
    else {
      this.#held ??= new ByteQueue()
      const held = this.#held
      held.push(part)
      held.keep()
      if (held.length < this.length) return this.#wait()
      this.bytes = held.rest()
      this.#held = null
    }
    this.#state = IN_HEAD
    return Step.payload
  }

  #readPadLength(): FrameStep {
    if (this.length === 0) return Step.malformed
    if (!this.hasMore) return this.#wait()
    this.#padding = this.#chunk[this.#at++]!
    this.#left = this.length - 1 - this.#padding
    if (this.#left < 0) return Step.malformed
    this.#state = IN_DATA
    return this.next()
  }

  #readPiece(): FrameStep {
    const chunk = this.#chunk
    const length = Math.min(this.#left, chunk.length - this.#at)
    if (length === 0) return this.#wait()
    this.bytes = chunk.subarray(this.#at, this.#at + length)
    this.#at += length
    this.#left -= length
    return Step.piece
  }

  #passPadding(): FrameStep {
    const length = Math.min(this.#padding, this.#chunk.length - this.#at)
    this.#at += length
    this.#padding -= length
    if (this.#padding > 0) return this.#wait()
    this.#state = IN_HEAD
    return Step.dataEnd
  }

  /** Releases the chunk, which is read to its end. */
  #wait(): FrameStep {
    this.#chunk = EMPTY
    this.#at = 0
    return Step.more
  }
}

type State = typeof IN_HEAD | typeof IN_PAYLOAD | typeof AT_PAD_LENGTH | typeof IN_DATA

const IN_HEAD = 0
const IN_PAYLOAD = 1
const AT_PAD_LENGTH = 2
const IN_DATA = 3
const EMPTY = Uint8Array.of()
