import { Reader } from '../wire/reader.ts'
import { CHANGE_CIPHER_SPEC, HANDSHAKE } from '../wire/record.ts'
import type { Handshake } from './handshake.ts'
import { Pieces } from './pieces.ts'

/** One DTLS association over UDP. Encrypted records are not read. */
export class DtlsSession {
  readonly #handshake: Handshake
  readonly #client = new MessageJoiner()
  readonly #server = new MessageJoiner()
  /** Whether this side has begun to encrypt. */
  #clientHidden = false
  #serverHidden = false

  constructor(handshake: Handshake) {
    this.#handshake = handshake
  }

  /** Whether there is nothing more to learn. */
  get done(): boolean {
    return this.#clientHidden && this.#serverHidden
  }

  get heldBytes(): number {
    return this.#client.heldBytes + this.#server.heldBytes
  }

  push(fromClient: boolean, datagram: Uint8Array, frame: number): void {
    const r = new Reader(datagram)
    while (r.left > 0) {
      const type = r.u8()
      // RFC 9147 §4: the unified header of an encrypted DTLS 1.3 record.
      if (type >> 5 === 1) return this.#hidden(fromClient)
      // RFC 7983: STUN and media may share the ports.
      if (type < CHANGE_CIPHER_SPEC || !DTLS_VERSIONS.has(r.u16())) return
      if (r.u16() > 0) return this.#hidden(fromClient) // epoch
      r.skip(6) // sequence_number
      const fragment = r.take(r.u16())
      if (!r.ok) return
      if (type === CHANGE_CIPHER_SPEC) this.#hidden(fromClient)
      else if (type === HANDSHAKE) this.#messages(fromClient, fragment, frame)
    }
  }

  #hidden(fromClient: boolean): void {
    if (fromClient) this.#clientHidden = true
    else this.#serverHidden = true
  }

  /** RFC 6347 §4.2.2: a record holds one or more fragments, each with the header of its whole message. */
  #messages(fromClient: boolean, record: Uint8Array, frame: number): void {
    const joiner = fromClient ? this.#client : this.#server
    const r = new Reader(record)
    while (r.left > 0) {
      const type = r.u8()
      const length = r.u24()
      const sequence = r.u16()
      const offset = r.u24()
      const fragment = r.take(r.u24())
      if (!r.ok) return
      const message = joiner.add({ type, length, sequence, offset, fragment })
      if (message !== null) this.#handshake.message(fromClient, message, frame)
    }
  }
}

/** Which side sent this DTLS record, if it begins a handshake. */
export function dtlsOpening(datagram: Uint8Array): 'client' | 'server' | null {
  if (datagram.length < 25 || datagram[0] !== HANDSHAKE) return null
  const version = (datagram[1]! << 8) | datagram[2]!
  if (!DTLS_VERSIONS.has(version) || datagram[3] !== 0 || datagram[4] !== 0) return null
  const type = datagram[13]!
  return type === 1 ? 'client' : type === 2 || type === 3 ? 'server' : null
}

interface Fragment {
  readonly type: number
  readonly length: number
  readonly sequence: number
  readonly offset: number
  readonly fragment: Uint8Array
}

/** Joins fragments that may arrive in any order, repeated, or split differently when retransmitted. */
class MessageJoiner {
  readonly #open = new Map<number, { readonly length: number; readonly pieces: Pieces }>()
  /** The total length of the open messages. */
  #openBytes = 0
  /** The sequence numbers of messages already returned. A retransmission is ignored. */
  readonly #given = new Set<number>()

  get heldBytes(): number {
    return this.#openBytes
  }

  /** The whole message with its header, as if it had not been fragmented. `null` while parts are missing. */
  add({ type, length, sequence, offset, fragment }: Fragment): Uint8Array | null {
    if (this.#given.has(sequence) || offset + fragment.length > length) return null
    let message = this.#open.get(sequence)
    if (message === undefined) {
      if (this.#given.size >= MESSAGES_MAX || this.#open.size >= OPEN_MESSAGES_MAX) return null
      if (this.#openBytes + length > OPEN_BYTES_MAX) return null
      this.#openBytes += length
      message = { length, pieces: new Pieces() }
      this.#open.set(sequence, message)
    }
    message.pieces.add(offset, fragment)
    const body = message.length === length ? message.pieces.join(length) : null
    if (body === null) return null
    this.#open.delete(sequence)
    this.#openBytes -= length
    this.#given.add(sequence)
    return Buffer.concat([
      Buffer.of(type, ...u24(length), sequence >> 8, sequence & 255, 0, 0, 0, ...u24(length)),
      body,
    ])
  }
}

function u24(value: number): [number, number, number] {
  return [value >> 16, (value >> 8) & 255, value & 255]
}

/** A handshake has about a dozen messages. Nothing is encrypted before its end. */
const MESSAGES_MAX = 64
const OPEN_MESSAGES_MAX = 8
/** For one side: a long certificate chain and the messages around it. */
const OPEN_BYTES_MAX = 128 * 1024
/** DTLS 1.0, 1.2 and 1.3 (which normally writes 1.2), and the version OpenSSL sent before the RFC. */
const DTLS_VERSIONS: ReadonlySet<number> = new Set([0xfeff, 0xfefd, 0xfefc, 0x0100])
