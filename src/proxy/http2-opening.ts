import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ByteQueue } from '../wire/byte-queue.ts'
import { HTTP2_PREFACE, type ReadAhead, readAhead } from './hello.ts'

/**
 * How a client opens HTTP/2, in Akamai's form (Shuster and Segal, "Passive Fingerprinting of HTTP/2 Clients", 2017):
 * `SETTINGS|WINDOW_UPDATE|PRIORITY|pseudo-headers`, as in `1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p`.
 *
 * - SETTINGS: identifier and value of each entry of the first SETTINGS frame, in the order sent, GREASE included.
 * - WINDOW_UPDATE: the increment of the first one for the connection; `00` without one.
 * - PRIORITY: `stream:exclusive:depends on:weight` of each PRIORITY frame, weights counted from 1; `0` without one. The
 *   priority that a HEADERS frame may carry is not one of them.
 * - Only what comes before the first HEADERS counts. Their pseudo-headers follow, by their first letters.
 *
 * With more entries than any client sends there is no fingerprint: a shortened one would be somebody else's.
 */
export class Http2Opening {
  /** The first SETTINGS frame has been read: some clients send nothing more before they have seen ours. */
  hasSettings = false
  readonly #settings: string[] = []
  readonly #priorities: string[] = []
  #windowUpdate: number | null = null
  #isExcessive = false
  #at = 0
  #isPrefaceRead = false

  /** `queue` is all that has come. True once the first HEADERS have begun, or nothing more can be learnt. */
  read(queue: ByteQueue): boolean {
    const bytes = queue.rest()
    if (!this.#isPrefaceRead) {
      const length = Math.min(bytes.length, HTTP2_PREFACE.length)
      for (let i = 0; i < length; i++) if (bytes[i] !== HTTP2_PREFACE[i]) return this.#fail()
      if (length < HTTP2_PREFACE.length) return false
      this.#isPrefaceRead = true
      this.#at = length
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    while (bytes.length - this.#at >= FRAME_HEADER_BYTES) {
      const type = bytes[this.#at + 3]!
      if (type === HEADERS) return true
      const length = (view.getUint16(this.#at) << 8) | bytes[this.#at + 2]!
      if (length > FRAME_BYTES_MAX || this.#at > OPENING_BYTES_MAX) return this.#fail()
      const end = this.#at + FRAME_HEADER_BYTES + length
      if (end > bytes.length) return false
      this.#frame(view, type, length)
      this.#at = end
    }
    return false
  }

  /** `rawHeaders` are those of the first request. */
  text(rawHeaders: readonly string[]): string | null {
    if (this.#isExcessive || !this.hasSettings) return null
    const windowUpdate = this.#windowUpdate ?? '00'
    const priorities = this.#priorities.length === 0 ? '0' : this.#priorities.join(',')
    return `${this.#settings.join(';')}|${windowUpdate}|${priorities}|${pseudoHeaderOrder(rawHeaders)}`
  }

  #frame(view: DataView, type: number, length: number): void {
    const stream = view.getUint32(this.#at + 5) & STREAM_MASK
    const isAck = (view.getUint8(this.#at + 4) & ACK) !== 0
    const body = this.#at + FRAME_HEADER_BYTES
    if (type === SETTINGS && !isAck && !this.hasSettings) {
      this.hasSettings = true
      if (length > SETTINGS_MAX * 6) this.#isExcessive = true
      else
        for (let at = body; at + 6 <= body + length; at += 6)
          this.#settings.push(`${view.getUint16(at)}:${view.getUint32(at + 2)}`)
    } else if (type === WINDOW_UPDATE && stream === 0 && length === 4) {
      this.#windowUpdate ??= view.getUint32(body) & STREAM_MASK
    } else if (type === PRIORITY && length === 5) {
      if (this.#priorities.length === PRIORITIES_MAX) this.#isExcessive = true
      else this.#priorities.push(priorityText(stream, view.getUint32(body), view.getUint8(body + 4)))
    }
  }

  #fail(): true {
    this.#isExcessive = true
    return true
  }
}

/**
 * Reads the opening of a session off its socket and puts it back. Waiting for the first HEADERS would be waiting for
 * ever for a client that wants our SETTINGS first: soon after its own, it gets them.
 */
export function readHttp2Opening(
  socket: Socket | TLSSocket,
  timeoutMs: number,
  done: (opening: Http2Opening, end: 'read' | 'silent' | 'cut' | 'gone') => void,
): void {
  const opening = new Http2Opening()
  let patience: NodeJS.Timeout | null = null
  let isSilent = true
  const ahead: ReadAhead = readAhead(
    socket,
    timeoutMs,
    (queue) => {
      isSilent = false
      if (opening.read(queue)) return true
      if (opening.hasSettings) patience ??= setTimeout(() => ahead.stop(), HEADERS_PATIENCE_MS)
      return false
    },
    (end) => {
      if (patience !== null) clearTimeout(patience)
      done(opening, end === 'timeout' ? (isSilent ? 'silent' : 'cut') : end === 'ended' ? 'gone' : 'read')
    },
  )
}

function priorityText(stream: number, dependency: number, weight: number): string {
  return `${stream}:${dependency >>> 31}:${dependency & STREAM_MASK}:${weight + 1}`
}

function pseudoHeaderOrder(rawHeaders: readonly string[]): string {
  const letters: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.charCodeAt(0) === COLON) letters.push(name.charAt(1))
  }
  return letters.join(',')
}

/** Long enough for what was sent together, too short for anyone to notice. */
const HEADERS_PATIENCE_MS = 5
/** nghttp2 takes 32 by default, browsers send up to 7. */
const SETTINGS_MAX = 32
/** Firefox sent 6 of them before it gave priorities up. */
const PRIORITIES_MAX = 32
/** RFC 9113 §4.2: more only after we have allowed it, which we do not. */
const FRAME_BYTES_MAX = 16_384
const OPENING_BYTES_MAX = 32_768
const FRAME_HEADER_BYTES = 9
const HEADERS = 1
const PRIORITY = 2
const SETTINGS = 4
const WINDOW_UPDATE = 8
const ACK = 1
const STREAM_MASK = 0x7fff_ffff
const COLON = 0x3a
