import { CLIENT_HELLO } from '../wire/client-hello.ts'
import { Reader } from '../wire/reader.ts'
import type { TlsRecord } from '../wire/record.ts'
import {
  APPLICATION_DATA,
  CHANGE_CIPHER_SPEC,
  HANDSHAKE,
  HandshakeReader,
  RecordReader,
} from '../wire/record.ts'
import { SERVER_HELLO } from '../wire/server-hello.ts'
import type { Handshake } from './handshake.ts'
import { CERTIFICATES_BYTES_MAX } from './handshake.ts'
import type { KeyLog, SecretLabel } from './key-log.ts'
import { clientRandomOf } from './key-log.ts'
import type { Plaintext } from './tls-cipher.ts'
import { suiteOf, Tls12Keys, Tls13Keys } from './tls-cipher.ts'

/**
 * One TLS connection over TCP, both directions in capture order. Handshake messages go to `handshake`. With
 * secrets from the key log this includes the encrypted ones, and application data goes to `onData`. The bytes
 * given to `onData` are valid during the call.
 */
export class TlsSession {
  readonly #keyLog: KeyLog
  readonly #handshake: Handshake
  readonly #onData: (fromClient: boolean, bytes: Uint8Array, frame: number) => void
  readonly #client = newSide(true)
  readonly #server = newSide(false)
  /** The random of the latest ClientHello. A renegotiation has its own. */
  #clientRandom: Uint8Array | null = null
  /** Whether the key log contains this connection. */
  #keyed = false
  /**
   * Whether the server has sent what reading needs: version and cipher, in TLS 1.3 also whether it accepts
   * early data.
   */
  #agreed = false

  constructor(
    keys: KeyLog,
    handshake: Handshake,
    onData: (fromClient: boolean, bytes: Uint8Array, frame: number) => void,
  ) {
    this.#keyLog = keys
    this.#handshake = handshake
    this.#onData = onData
  }

  /** Whether there is nothing more to learn, so that the rest of the connection can be skipped. */
  get done(): boolean {
    return this.#client.closed && this.#server.closed
  }

  get heldBytes(): number {
    return sideBytes(this.#client) + sideBytes(this.#server)
  }

  /** Takes the next bytes of one direction, which came in `frame` of the capture. */
  push(fromClient: boolean, bytes: Uint8Array, frame: number): void {
    const side = fromClient ? this.#client : this.#server
    if (side.closed) return
    side.records.push(bytes)
    for (let record = side.records.next(); record !== null && !side.closed; record = side.records.next()) {
      if (this.#mustWait(side, record)) this.#hold(side, record, frame)
      else this.#record(side, record, frame)
    }
    if (side.records.fault !== null) this.#close(side)
    this.#releaseHeld()
  }

  /**
   * Bytes of this direction are missing from the capture. The start of the next record is then uncertain, and
   * the number of lost records, which decryption needs, is unknown. So reading this direction ends here.
   */
  gap(fromClient: boolean): void {
    this.#close(fromClient ? this.#client : this.#server)
    this.#releaseHeld()
  }

  /**
   * Captures mix up the order of the two directions. Early data is also sent before the server names the
   * cipher or asks for another hello. A record that needs the other side waits for it.
   */
  #mustWait(side: Side, record: TlsRecord): boolean {
    if (!side.fromClient) return this.#clientRandom === null
    if (this.#clientRandom === null || this.#agreed) return false
    // A handshake record is plain unless a ChangeCipherSpec came before. The hello that answers a
    // HelloRetryRequest is plain even then. The HelloRetryRequest itself may be missing, because many
    // captures contain only one direction.
    if (record.type === HANDSHAKE) return side.held.length > 0 && !isClientHello(record)
    return true
  }

  #hold(side: Side, record: TlsRecord, frame: number): void {
    side.heldBytes += record.fragment.length + HELD_RECORD_BYTES
    if (side.heldBytes > HELD_BYTES_MAX) return this.#closeBoth()
    // Application data that cannot be decrypted is only counted.
    if (record.type === APPLICATION_DATA && this.#clientRandom !== null && !this.#keyed) return
    const header = new Uint8Array(record.header)
    const fragment = new Uint8Array(record.fragment)
    side.held.push({ record: { ...record, header, fragment }, frame })
  }

  #releaseHeld(): void {
    for (const side of [this.#server, this.#client]) {
      let held = side.held[0]
      while (held !== undefined && !this.#mustWait(side, held.record)) {
        side.held.shift()
        side.heldBytes -= held.record.fragment.length + HELD_RECORD_BYTES
        this.#record(side, held.record, held.frame)
        held = side.held[0]
      }
    }
  }

  #record(side: Side, record: TlsRecord, frame: number): void {
    const { keys } = side
    if (keys === null) return this.#content(side, record.type, record.fragment, frame)
    // RFC 8446 §5 and §D.4: a record of any other outer type is plain, such as an alert or a ChangeCipherSpec
    // without meaning.
    if (this.#handshake.isTls13 && record.type !== APPLICATION_DATA) return
    const plaintext = this.#open(side, keys, record)
    if (plaintext !== null) this.#content(side, plaintext.type, plaintext.content, frame)
  }

  /**
   * Early data ends at the first record that the handshake keys open. Early data that the server rejected is
   * skipped (RFC 8446 §4.2.10).
   */
  #open(side: Side, keys: RecordKeys, record: TlsRecord): Plaintext | null {
    const plaintext = keys.open(record)
    if (plaintext !== null) {
      side.earlyKeys = null
      side.skippableBytes = 0
      return plaintext
    }
    const early = side.earlyKeys?.open(record) ?? null
    if (early !== null) return early
    side.skippableBytes -= record.fragment.length
    if (side.skippableBytes < 0) this.#close(side)
    return null
  }

  #content(side: Side, type: number, content: Uint8Array, frame: number): void {
    if (type === HANDSHAKE) this.#joinMessages(side, content, frame)
    else if (type === CHANGE_CIPHER_SPEC) this.#changeCipherSpec(side)
    else if (type === APPLICATION_DATA && side.keys !== null) this.#onData(side.fromClient, content, frame)
  }

  #joinMessages(side: Side, content: Uint8Array, frame: number): void {
    side.messages.push(content)
    for (let message = side.messages.next(); message !== null; message = side.messages.next()) {
      this.#message(side, message, frame)
      if (side.closed) return
    }
    if (side.messages.overflow) this.#close(side)
  }

  #message(side: Side, message: Uint8Array, frame: number): void {
    this.#handshake.message(side.fromClient, message, frame)
    const type = message[0]
    if (type === CLIENT_HELLO && side.fromClient) this.#clientHello(message)
    else if (type === SERVER_HELLO && !side.fromClient) this.#serverHello()
    else if (side.keys instanceof Tls13Keys) {
      if (type === ENCRYPTED_EXTENSIONS) this.#encryptedExtensions(message)
      else if (type === FINISHED) this.#changeKeys13(side, APPLICATION_LABELS)
      else if (type === KEY_UPDATE) side.keys = side.keys.next()
    } else if (this.#clientRandom === null) this.#closeBoth() // not the beginning of a connection
  }

  #clientHello(message: Uint8Array): void {
    if (!this.#handshake.sawClientHello) return this.#closeBoth()
    this.#clientRandom = clientRandomOf(message)
    this.#keyed = this.#keyLog.knows(this.#clientRandom)
  }

  #serverHello(): void {
    const hello = this.#handshake.serverHello
    if (hello === null) return this.#closeBoth()
    if (this.#agreed || hello.helloRetryRequest) return
    if (!this.#handshake.isTls13) {
      this.#agreed = true // ChangeCipherSpec activates the keys
      return
    }
    this.#client.skippableBytes = EARLY_SKIPPED_BYTES_MAX
    this.#changeKeys13(this.#client, HANDSHAKE_LABELS)
    this.#changeKeys13(this.#server, HANDSHAKE_LABELS)
  }

  #encryptedExtensions(message: Uint8Array): void {
    this.#agreed = true
    if (acceptsEarlyData(message)) this.#client.earlyKeys = this.#keys13('CLIENT_EARLY_TRAFFIC_SECRET')
  }

  #changeKeys13(side: Side, labels: SideLabels): void {
    side.keys = this.#keys13(side.fromClient ? labels.client : labels.server)
    if (side.keys === null) this.#close(side)
  }

  #keys13(label: SecretLabel): Tls13Keys | null {
    const suite = suiteOf(this.#handshake.serverHello?.cipher ?? 0)
    const secret = this.#clientRandom === null ? null : this.#keyLog.secret(label, this.#clientRandom)
    return suite?.isTls13 && secret !== null ? new Tls13Keys(suite, secret) : null
  }

  /**
   * Up to TLS 1.2, all later records use the latest keys. Before the hellos and in TLS 1.3 the message has no
   * effect.
   */
  #changeCipherSpec(side: Side): void {
    if (!this.#agreed || this.#handshake.isTls13) return
    side.keys = this.#keys12(side)
    if (side.keys === null) this.#close(side)
  }

  #keys12(side: Side): Tls12Keys | null {
    const hello = this.#handshake.serverHello
    const clientRandom = this.#clientRandom
    if (hello === null || clientRandom === null || hello.legacyVersion !== TLS_1_2) return null
    const suite = suiteOf(hello.cipher)
    const secret = this.#keyLog.secret('CLIENT_RANDOM', clientRandom)
    if (suite === null || suite.isTls13 || secret === null) return null
    return new Tls12Keys(suite, secret, clientRandom, hello.random, side.fromClient)
  }

  /** Without the start of the client's direction the server's is unreadable too. */
  #close(side: Side): void {
    if (side === this.#client && this.#clientRandom === null) return this.#closeBoth()
    side.closed = true
    side.held = []
    // The server's answer about early data will not come, so it counts as rejected.
    if (side === this.#server && this.#client.keys !== null) this.#agreed = true
  }

  #closeBoth(): void {
    for (const side of [this.#client, this.#server]) {
      side.closed = true
      side.held = []
    }
  }
}

/** Exactly one whole ClientHello. Encrypted bytes look like one once in 2^32. */
function isClientHello({ fragment }: TlsRecord): boolean {
  const r = new Reader(fragment)
  return r.u8() === CLIENT_HELLO && r.u24() === r.left && r.ok
}

/** RFC 8446 §4.3.1: the message is a single list of extensions. */
function acceptsEarlyData(encryptedExtensions: Uint8Array): boolean {
  const r = new Reader(encryptedExtensions, 4)
  const list = r.sub(r.u16())
  while (list.left > 0) {
    if (list.u16() === EXT_EARLY_DATA) return list.ok
    list.skip(list.u16())
  }
  return false
}

function sideBytes({ records, messages, heldBytes }: Side): number {
  return records.heldBytes + messages.heldBytes + heldBytes
}

function newSide(fromClient: boolean): Side {
  return {
    fromClient,
    records: new RecordReader(),
    messages: new HandshakeReader(CERTIFICATES_BYTES_MAX),
    keys: null,
    earlyKeys: null,
    skippableBytes: 0,
    held: [],
    heldBytes: 0,
    closed: false,
  }
}

/** The state of one direction. */
interface Side {
  readonly fromClient: boolean
  readonly records: RecordReader
  readonly messages: HandshakeReader
  /** `null` while records are not encrypted. */
  keys: RecordKeys | null
  earlyKeys: Tls13Keys | null
  /** The number of bytes that may still be skipped because no key matches. */
  skippableBytes: number
  held: HeldRecord[]
  heldBytes: number
  closed: boolean
}

type RecordKeys = Tls12Keys | Tls13Keys

interface HeldRecord {
  readonly record: TlsRecord
  readonly frame: number
}

interface SideLabels {
  readonly client: SecretLabel
  readonly server: SecretLabel
}

const HANDSHAKE_LABELS: SideLabels = {
  client: 'CLIENT_HANDSHAKE_TRAFFIC_SECRET',
  server: 'SERVER_HANDSHAKE_TRAFFIC_SECRET',
}
const APPLICATION_LABELS: SideLabels = {
  client: 'CLIENT_TRAFFIC_SECRET_0',
  server: 'SERVER_TRAFFIC_SECRET_0',
}

const ENCRYPTED_EXTENSIONS = 8
const FINISHED = 20
const KEY_UPDATE = 24
const EXT_EARLY_DATA = 42
const TLS_1_2 = 0x0303
/**
 * For one direction: a server's flight with a long chain, or the early data that servers allow (16 kB by
 * default).
 */
const HELD_BYTES_MAX = 65_536
/** The overhead of keeping a record, besides its bytes. */
const HELD_RECORD_BYTES = 200
/** Servers skip no more early data than they would accept, 16 kB by default. */
const EARLY_SKIPPED_BYTES_MAX = 65_536
