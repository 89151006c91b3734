import type { Socket } from 'node:net'
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  GOAWAY,
  HEADERS,
  PING,
  RST_STREAM,
  SETTINGS,
  WINDOW_BYTES_DEFAULT,
  WINDOW_UPDATE,
  writeFrameHeader,
  writeU32,
} from '../../../wire/h2/frame.ts'
import { HpackEncoder } from '../../../wire/h2/hpack-encoder.ts'
import { HpackScratch } from '../../../wire/h2/scratch.ts'
import type { Priority } from '../../../wire/h2/priority.ts'
import { OUTBOX, type Sender } from '../outbox.ts'
import { borrow, giveBack } from './send-buffers.ts'

/** A body that takes turns with the others of its connection. */
export interface Sending {
  readonly priority: Priority
  /** Whether it has bytes that its own window lets out. */
  readonly canSend: boolean
  /** Whether bytes of it still wait. */
  readonly isWaiting: boolean
  /** Sends one frame of what waits. */
  sendWaiting(): void
  /** There is room for more of it. */
  drained(): void
}

/**
 * What one connection sends. Frames gather in a buffer and leave at the end of the event loop turn, or when
 * there are many. DATA waits while the other side's window or the socket has no room; other frames do not.
 */
export class Outflow implements Sender {
  /** How much DATA the other side takes on all streams together. */
  window: number = WINDOW_BYTES_DEFAULT
  readonly encoder = new HpackEncoder(SCRATCH)
  /** DATA sent so far. */
  dataBytes = 0
  /** Parts of bodies that were written. */
  parts = 0
  readonly #socket: Socket
  readonly #isTls: boolean
  #buffer: Buffer | null = null
  #length = 0
  #isQueued = false
  #isFull = false
  /** Bodies with waiting bytes, in the order in which they began to wait. */
  readonly #waiting: Sending[] = []
  /** Bodies whose writers were told to stop and wait for `drained`. */
  #held: Sending[] = []

  constructor(socket: Socket, isTls: boolean) {
    this.#socket = socket
    this.#isTls = isTls
  }

  /** Whether DATA can leave now, as far as the connection is concerned. */
  get isOpen(): boolean {
    return !this.#isFull && this.window > 0
  }

  /** Bytes that the other side has not taken yet, except DATA that waits for a window. */
  get unsentBytes(): number {
    return this.#length + this.#socket.writableLength
  }

  settings(pairs: readonly (readonly [id: number, value: number])[]): void {
    let at = this.#begin(pairs.length * 6, SETTINGS_FRAME, 0)
    const buffer = this.#buffer!
    for (const [id, value] of pairs) {
      buffer[at] = id >>> 8
      buffer[at + 1] = id
      at = writeU32(buffer, at + 2, value)
    }
  }

  settingsAck(): void {
    this.#begin(0, SETTINGS_ACK, 0)
  }

  ping(payload: Uint8Array, isAck: boolean): void {
    const at = this.#begin(8, isAck ? PING_ACK : PING_FRAME, 0)
    this.#buffer!.set(payload, at)
  }

  goAway(lastStream: number, code: number): void {
    const at = this.#begin(8, GOAWAY_FRAME, 0)
    writeU32(this.#buffer!, writeU32(this.#buffer!, at, lastStream), code)
  }

  reset(stream: number, code: number): void {
    const at = this.#begin(4, RESET_FRAME, stream)
    writeU32(this.#buffer!, at, code)
  }

  windowUpdate(stream: number, bytes: number): void {
    const at = this.#begin(4, WINDOW_FRAME, stream)
    writeU32(this.#buffer!, at, bytes)
  }

  /** Sends the block that the encoder holds, which was begun with room for a frame header. */
  headers(stream: number, endsStream: boolean): void {
    const block = this.encoder.end()
    const length = block.length - FRAME_HEADER_BYTES
    if (length > FRAME_BYTES_MAX) return this.#longHeaders(block, stream, endsStream)
    const at = this.#reserve(block.length)
    this.#buffer!.set(block, at)
    writeFrameHeader(this.#buffer!, at, length, endsStream ? LAST_HEADERS : WHOLE_HEADERS, stream)
  }

  /** Sends DATA within the windows, which the caller has checked. */
  data(stream: number, bytes: Uint8Array, endsStream: boolean): void {
    this.window -= bytes.length
    this.dataBytes += bytes.length
    let from = 0
    do {
      const length = Math.min(bytes.length - from, FRAME_BYTES_MAX)
      const isLast = endsStream && from + length === bytes.length
      const at = this.#begin(length, isLast ? LAST_DATA : DATA_FRAME, stream)
      copy(bytes, from, length, this.#buffer!, at)
      from += length
    } while (from < bytes.length)
    if (this.#length >= FLUSH_BYTES) this.flush()
  }

  /** Takes turns from now on. */
  wait(sending: Sending): void {
    this.#waiting.push(sending)
  }

  /** The stream has closed: nothing of it waits any more. */
  forget(sending: Sending): void {
    const at = this.#waiting.indexOf(sending)
    if (at !== -1) this.#waiting.splice(at, 1)
    if (this.#held.length > 0) this.#held = this.#held.filter((held) => held !== sending)
  }

  /** `drained` is called once there is room. */
  hold(sending: Sending): void {
    if (!this.#held.includes(sending)) this.#held.push(sending)
  }

  /** Sends what waits, as far as the windows and the socket have room. Call it after a window has grown. */
  pump(): void {
    while (this.isOpen) {
      const at = this.#next()
      if (at === -1) break
      const sending = this.#waiting[at]!
      sending.sendWaiting()
      // It may have left already.
      const now = this.#waiting[at] === sending ? at : this.#waiting.indexOf(sending)
      if (now === -1) continue
      if (!sending.isWaiting) this.#waiting.splice(now, 1)
      else if (sending.priority.isIncremental) this.#waiting.push(...this.#waiting.splice(now, 1))
    }
    this.#tellDrained()
  }

  flush(): void {
    const buffer = this.#buffer
    if (buffer === null) return
    const length = this.#length
    this.#buffer = null
    this.#length = 0
    const socket = this.#socket
    if (!socket.writable) return giveBack(buffer)
    const bytes = buffer.subarray(0, length)
    if (this.#isTls) {
      // TLS encrypts before the write returns, unless another write is pending.
      const isTaken = socket.writableLength === 0
      this.#isFull = !socket.write(isTaken ? bytes : Buffer.from(bytes))
      giveBack(buffer)
    } else {
      this.#isFull = !socket.write(bytes)
      // Usually the kernel has taken all of it.
      if (socket.writableLength === 0) giveBack(buffer)
    }
  }

  /** Called by the outbox. */
  send(): void {
    this.#isQueued = false
    this.flush()
  }

  /** The connection has closed. */
  close(): void {
    if (this.#buffer !== null) giveBack(this.#buffer)
    this.#buffer = null
    this.#length = 0
    this.#waiting.length = 0
    this.#held = []
  }

  /** The socket has room again. */
  drained(): void {
    this.#isFull = false
    this.pump()
  }

  /**
   * Of those that can send: the most urgent, and of these the first (RFC 9218 §10). Incremental ones go to the end of
   * the line after each frame.
   */
  #next(): number {
    let best = -1
    let urgency = 8
    for (let i = 0; i < this.#waiting.length; i++) {
      const sending = this.#waiting[i]!
      if (!sending.canSend || sending.priority.urgency >= urgency) continue
      best = i
      urgency = sending.priority.urgency
    }
    return best
  }

  #tellDrained(): void {
    if (this.#held.length === 0 || this.#isFull) return
    const held = this.#held
    this.#held = []
    for (const sending of held) {
      if (sending.isWaiting || this.#isFull) this.hold(sending)
      else sending.drained()
    }
  }

  #longHeaders(block: Uint8Array, stream: number, endsStream: boolean): void {
    let from = FRAME_HEADER_BYTES
    while (from < block.length) {
      const isFirst = from === FRAME_HEADER_BYTES
      const length = Math.min(block.length - from, FRAME_BYTES_MAX)
      const isLast = from + length === block.length
      const flags = (isLast ? END_HEADERS : 0) | (isFirst && endsStream ? END_STREAM : 0)
      const at = this.#begin(length, { type: isFirst ? HEADERS : CONTINUATION, flags }, stream)
      copy(block, from, length, this.#buffer!, at)
      from += length
    }
  }

  /** Writes a frame header and returns where its payload belongs. */
  #begin(length: number, kind: FrameKind, stream: number): number {
    const at = this.#reserve(FRAME_HEADER_BYTES + length)
    return writeFrameHeader(this.#buffer!, at, length, kind, stream)
  }

  #reserve(bytes: number): number {
    const at = this.#length
    const buffer = this.#buffer
    if (buffer === null) this.#buffer = borrow(bytes)
    else if (at + bytes > buffer.length) {
      this.#buffer = borrow(Math.max(at + bytes, buffer.length * 2))
      this.#buffer.set(buffer.subarray(0, at))
      giveBack(buffer)
    }
    this.#length = at + bytes
    if (!this.#isQueued) {
      this.#isQueued = true
      OUTBOX.put(this, '')
    }
    return at
  }
}

interface FrameKind {
  readonly type: number
  readonly flags: number
}

/** A call of its own for each size: copying a few bytes costs less than a view of them. */
function copy(from: Uint8Array, start: number, length: number, to: Uint8Array, at: number): void {
  if (start === 0 && length === from.length) to.set(from, at)
  else to.set(from.subarray(start, start + length), at)
}

/** A block leaves it as soon as it is encoded. */
const SCRATCH = new HpackScratch()
const SETTINGS_FRAME: FrameKind = { type: SETTINGS, flags: 0 }
const SETTINGS_ACK: FrameKind = { type: SETTINGS, flags: ACK }
const PING_FRAME: FrameKind = { type: PING, flags: 0 }
const PING_ACK: FrameKind = { type: PING, flags: ACK }
const GOAWAY_FRAME: FrameKind = { type: GOAWAY, flags: 0 }
const RESET_FRAME: FrameKind = { type: RST_STREAM, flags: 0 }
const WINDOW_FRAME: FrameKind = { type: WINDOW_UPDATE, flags: 0 }
const WHOLE_HEADERS: FrameKind = { type: HEADERS, flags: END_HEADERS }
const LAST_HEADERS: FrameKind = { type: HEADERS, flags: END_HEADERS | END_STREAM }
const DATA_FRAME: FrameKind = { type: DATA, flags: 0 }
const LAST_DATA: FrameKind = { type: DATA, flags: END_STREAM }
/** Four full TLS records. */
const FLUSH_BYTES = 65_536
