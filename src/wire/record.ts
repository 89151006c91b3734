import { ByteQueue } from './byte-queue.ts'
import { CLIENT_HELLO, HELLO_BYTES_MAX } from './client-hello.ts'

export interface TlsRecord {
  readonly type: number
  readonly version: number
  /** The 5 bytes before `fragment`, as sent. AEAD cipher suites authenticate them. */
  readonly header: Uint8Array
  readonly fragment: Uint8Array
}

export type RecordFault =
  /** The first byte is not a record type, or the version is not TLS. */
  | 'not-tls'
  /** A record of another type where the handshake must begin. */
  | 'not-handshake'
  /** An empty handshake record, which RFC 8446 §5.1 forbids. */
  | 'empty-record'
  /** Longer than TLS allows. */
  | 'record-too-long'

/** Splits a byte stream that arrives in pieces into TLS records (RFC 8446 §5.1). */
export class RecordReader {
  /** Once set, it stays: the rest of the stream is unreadable. */
  fault: RecordFault | null = null
  readonly #queue = new ByteQueue()

  push(chunk: Uint8Array): void {
    this.#queue.push(chunk)
  }

  /** The next whole record, valid until the next `push`. `null` if more bytes are needed or after a fault. */
  next(): TlsRecord | null {
    const queue = this.#queue
    if (this.fault === null && queue.length > 0) this.fault = recordFault(queue)
    if (this.fault !== null || queue.length < RECORD_HEADER_BYTES) return this.#wait()
    const length = queue.u16At(3)
    if (queue.length < RECORD_HEADER_BYTES + length) return this.#wait()
    const header = queue.take(RECORD_HEADER_BYTES)
    return { type: header[0]!, version: (header[1]! << 8) | header[2]!, header, fragment: queue.take(length) }
  }

  get heldBytes(): number {
    return this.#queue.heldBytes
  }

  /** The bytes not yet returned. */
  rest(): Uint8Array {
    return this.#queue.rest()
  }

  #wait(): null {
    this.#queue.keep()
    return null
  }
}

/** A fault is reported at the first byte that shows it, before the record is complete. */
function recordFault(queue: ByteQueue): RecordFault | null {
  const type = queue.byteAt(0)
  if (type < CHANGE_CIPHER_SPEC || type > HEARTBEAT) return 'not-tls'
  if (queue.length > 1 && queue.byteAt(1) !== 3) return 'not-tls'
  if (queue.length < RECORD_HEADER_BYTES) return null
  const length = queue.u16At(3)
  if (length > RECORD_BYTES_MAX) return 'record-too-long'
  if (length === 0 && type === HANDSHAKE) return 'empty-record'
  return null
}

/** Joins the payloads of handshake records into messages, wherever they are split. */
export class HandshakeReader {
  /**
   * Whether a message longer than `bytesMax` was announced. That message and everything after it are lost.
   */
  overflow = false
  readonly #queue = new ByteQueue()
  readonly #bytesMax: number

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  push(fragment: Uint8Array): void {
    if (!this.overflow) this.#queue.push(fragment)
  }

  get heldBytes(): number {
    return this.#queue.heldBytes
  }

  /**
   * The next whole message with its 4-byte header, valid until the next `push`. `null` if no message is complete yet.
   */
  next(): Uint8Array | null {
    const queue = this.#queue
    if (queue.length >= HANDSHAKE_HEADER_BYTES) {
      const length = queue.u24At(1)
      if (length > this.#bytesMax) {
        this.overflow = true
        queue.clear()
        return null
      }
      if (queue.length >= HANDSHAKE_HEADER_BYTES + length) return queue.take(HANDSHAKE_HEADER_BYTES + length)
    }
    queue.keep()
    return null
  }

  /** The type of the message that is being joined. `null` before its first byte. */
  get type(): number | null {
    return this.#queue.length > 0 ? this.#queue.byteAt(0) : null
  }
}

export type HelloRead =
  | { readonly kind: 'need-more' }
  /** The whole handshake message with its header, for `parseClientHello`. */
  | { readonly kind: 'message'; readonly message: Uint8Array }
  | { readonly kind: 'fault'; readonly fault: RecordFault | 'wrong-type' | 'too-long' }

/** Reads the hello at the start of a stream from the bytes as they arrive. */
export class HelloReader {
  readonly #type: number
  readonly #records = new RecordReader()
  readonly #messages = new HandshakeReader(HELLO_BYTES_MAX)

  constructor(type: number = CLIENT_HELLO) {
    this.#type = type
  }

  push(chunk: Uint8Array): HelloRead {
    this.#records.push(chunk)
    for (let record = this.#records.next(); record !== null; record = this.#records.next()) {
      if (record.type !== HANDSHAKE) return { kind: 'fault', fault: 'not-handshake' }
      this.#messages.push(record.fragment)
      if (this.#messages.type !== this.#type) return { kind: 'fault', fault: 'wrong-type' }
      const message = this.#messages.next()
      if (message !== null) return { kind: 'message', message }
      if (this.#messages.overflow) return { kind: 'fault', fault: 'too-long' }
    }
    return this.#records.fault === null ? NEED_MORE : { kind: 'fault', fault: this.#records.fault }
  }
}

const NEED_MORE: HelloRead = { kind: 'need-more' }

export const CHANGE_CIPHER_SPEC = 20
export const ALERT = 21
export const HANDSHAKE = 22
export const APPLICATION_DATA = 23
const HEARTBEAT = 24
export const RECORD_HEADER_BYTES = 5
const HANDSHAKE_HEADER_BYTES = 4
/** RFC 5246 §6.2.3: 2^14 bytes and the most that encryption may add. */
const RECORD_BYTES_MAX = 16_384 + 2048
