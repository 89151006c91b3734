import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ByteQueue } from '../../wire/byte-queue.ts'
import { blockFragment, countFields, END_HEADERS } from '../../wire/field-block.ts'
import {
  type Http2Priority,
  type Http2Said,
  type Http2Setting,
  http2Fingerprint,
  pageWeight,
  PRIORITIES_MAX,
  SETTINGS_MAX,
} from '../../fingerprint/http2.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'
import { type ReadAhead, readAhead } from '../connection/hello.ts'
import { HTTP2_PREFACE } from '../../wire/http2-preface.ts'
import { mayBegin } from '../../wire/opening-bytes.ts'

/**
 * Parses what a client sends before its first request, for `http2Fingerprint`. It also counts the fields of
 * that request: nghttp2 silently drops malformed ones, and only here are the bytes available.
 */
export class Http2Opening {
  /** The first SETTINGS frame has been read. Some clients send nothing more before they get our SETTINGS. */
  hasSettings = false
  readonly #settings: Http2Setting[] = []
  readonly #priorities: Http2Priority[] = []
  #windowUpdate: number | null = null
  #headersWeight: number | null = null
  #isExcessive = false
  /** `null`: it was not complete. */
  #first: { readonly stream: number; readonly fieldCount: number } | null = null
  #at = 0
  #isPrefaceRead = false

  /**
   * `queue` has all bytes so far. Returns true once the first HEADERS are complete or nothing more can be
   * learnt.
   */
  read(queue: ByteQueue): boolean {
    const bytes = queue.rest()
    if (!this.#isPrefaceRead) {
      if (!mayBegin(bytes, HTTP2_PREFACE)) return this.#fail()
      if (bytes.length < HTTP2_PREFACE.length) return false
      this.#isPrefaceRead = true
      this.#at = HTTP2_PREFACE.length
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    while (bytes.length - this.#at >= FRAME_HEADER_BYTES) {
      const type = bytes[this.#at + 3]!
      if (type === HEADERS) return !this.hasSettings || this.#readFirst(bytes, view)
      // RFC 9113 §3.4: nghttp2 must reject this at once.
      if (type !== SETTINGS && !this.hasSettings) return this.#fail()
      const length = lengthAt(view, this.#at)
      if (length > FRAME_BYTES_MAX || this.#at > OPENING_BYTES_MAX) return this.#fail()
      const end = this.#at + FRAME_HEADER_BYTES + length
      if (end > bytes.length) return false
      this.#frame(view, type, length)
      this.#at = end
    }
    return false
  }

  /** `null` if it is unknown. */
  get said(): Http2Said | null {
    if (this.#isExcessive || !this.hasSettings) return null
    return {
      settings: this.#settings,
      windowUpdate: this.#windowUpdate,
      priorities: this.#priorities,
      headersWeight: this.#headersWeight,
    }
  }

  /** Whether nghttp2 dropped a field of this request, which now has `fieldCount` fields. */
  lacksField(stream: number, fieldCount: number): boolean {
    return this.#first !== null && this.#first.stream === stream && this.#first.fieldCount > fieldCount
  }

  /** `rawHeaders` belong to the first request. */
  print(rawHeaders: readonly string[]): Pick<ConnectionPrint, 'http2' | 'pageWeight'> {
    const { said } = this
    return said === null
      ? { http2: null, pageWeight: null }
      : { http2: http2Fingerprint(said, rawHeaders), pageWeight: pageWeight(said, rawHeaders) }
  }

  /** Returns true once the first header block is complete or invalid. nghttp2 rejects an invalid one. */
  #readFirst(bytes: Uint8Array, view: DataView): boolean {
    const fragments: Uint8Array[] = []
    for (let at = this.#at; at + FRAME_HEADER_BYTES <= bytes.length; ) {
      const [type, flags, length] = [bytes[at + 3]!, bytes[at + 4]!, lengthAt(view, at)]
      const isFirst = at === this.#at
      if (!isFirst && type !== CONTINUATION) return true
      const end = at + FRAME_HEADER_BYTES + length
      if (length > FRAME_BYTES_MAX || end - this.#at > BLOCK_BYTES_MAX) return true
      if (end > bytes.length) return false
      const payload = bytes.subarray(at + FRAME_HEADER_BYTES, end)
      if (isFirst) this.#headersWeight = weightIn(payload, flags)
      const fragment = isFirst ? blockFragment(payload, flags) : payload
      if (fragment === null) return true
      fragments.push(fragment)
      if (flags & END_HEADERS) {
        const fieldCount = countFields(fragments.length === 1 ? fragment : Buffer.concat(fragments))
        const stream = view.getUint32(this.#at + 5) & STREAM_MASK
        if (fieldCount !== null) this.#first = { stream, fieldCount }
        return true
      }
      at = end
    }
    return false
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
          this.#settings.push({ id: view.getUint16(at), value: view.getUint32(at + 2) })
    } else if (type === WINDOW_UPDATE && stream === 0 && length === 4) {
      this.#windowUpdate ??= view.getUint32(body) & STREAM_MASK
    } else if (type === PRIORITY && length === 5) {
      if (this.#priorities.length === PRIORITIES_MAX) this.#isExcessive = true
      else this.#priorities.push(priority(stream, view.getUint32(body), view.getUint8(body + 4)))
    }
  }

  #fail(): true {
    this.#isExcessive = true
    return true
  }
}

/**
 * Reads the opening of a session from its socket and puts it back. It cannot always wait for the first
 * HEADERS, because some clients wait for our SETTINGS first. So it gives up shortly after the client's
 * SETTINGS.
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

function lengthAt(view: DataView, at: number): number {
  return (view.getUint16(at) << 8) | view.getUint8(at + 2)
}

/** RFC 9113 §6.2: the priority follows the length of the padding. */
function weightIn(payload: Uint8Array, flags: number): number {
  if ((flags & HAS_PRIORITY) === 0) return 0
  const at = flags & PADDED ? 5 : 4
  return payload.length > at ? payload[at]! + 1 : 0
}

function priority(stream: number, dependency: number, weight: number): Http2Priority {
  const isExclusive = dependency >>> 31 === 1
  return { stream, isExclusive, dependsOn: dependency & STREAM_MASK, weight: weight + 1 }
}

/** Long enough for frames sent together, too short to be noticed. */
const HEADERS_PATIENCE_MS = 5
/** RFC 9113 §4.2: larger frames need our permission, which is not given. */
const FRAME_BYTES_MAX = 16_384
const OPENING_BYTES_MAX = 32_768
/** For the first request, including its frame headers. */
const BLOCK_BYTES_MAX = 65_536
const FRAME_HEADER_BYTES = 9
const HEADERS = 1
const PRIORITY = 2
const SETTINGS = 4
const WINDOW_UPDATE = 8
const CONTINUATION = 9
const ACK = 1
const PADDED = 8
const HAS_PRIORITY = 0x20
const STREAM_MASK = 0x7fff_ffff
