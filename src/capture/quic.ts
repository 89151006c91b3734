import { CLIENT_HELLO, HELLO_BYTES_MAX } from '../wire/client-hello.ts'
import { CryptoStream } from './crypto-stream.ts'
import type { Handshake } from './handshake.ts'
import { CERTIFICATES_BYTES_MAX } from './handshake.ts'
import type { KeyLog } from './key-log.ts'
import { clientRandomOf } from './key-log.ts'
import type { LongPacket, QuicVersion } from './quic-packet.ts'
import { initialKeys, PacketKeys, readCryptoFrames, readLongPacket } from './quic-packet.ts'
import type { Suite } from './tls-cipher.ts'
import { suiteOf } from './tls-cipher.ts'

/** Whether a UDP payload begins like a client's first Initial packet, in a supported version. */
export function looksLikeQuicInitial(datagram: Uint8Array): boolean {
  const packet = readLongPacket(datagram)
  // RFC 9000 §7.2: the client chooses an id of at least 8 bytes.
  return packet?.kind === 'initial' && packet.destination.length >= 8
}

/**
 * The handshake of one QUIC connection: the hellos from the Initial packets, which everyone can decrypt, and
 * the Handshake packets if the key log has their secrets. Packets after the handshake are not read.
 */
export class QuicSession {
  readonly #keyLog: KeyLog
  readonly #handshake: Handshake
  readonly #client = newSide(true)
  readonly #server = newSide(false)
  /** Latest first. */
  #attempts: Attempt[] = []
  /** The random of the latest ClientHello. */
  #clientRandom: Uint8Array | null = null
  /** Whether both hellos are known, and with them the keys of Handshake packets. */
  #agreed = false
  #held: HeldPacket[] = []
  #heldBytes = 0
  /** The number of datagrams and of decryption attempts. */
  #efforts = 0

  constructor(keys: KeyLog, handshake: Handshake) {
    this.#keyLog = keys
    this.#handshake = handshake
  }

  /** Whether there is nothing more to learn, so that the rest of the connection can be skipped. */
  get done(): boolean {
    return this.#efforts >= EFFORTS_MAX || (this.#agreed && this.#client.finished && this.#server.finished)
  }

  get heldBytes(): number {
    const attempts = this.#attempts.map(({ client, server }) => client.heldBytes + server.heldBytes)
    const streams = this.#client.stream.heldBytes + this.#server.stream.heldBytes
    return attempts.reduce((sum, bytes) => sum + bytes, this.#heldBytes + streams)
  }

  /** Takes the next datagram, which came in `frame` of the capture. */
  push(fromClient: boolean, datagram: Uint8Array, frame: number): void {
    if (this.done) return
    this.#efforts++
    this.#packets(fromClient ? this.#client : this.#server, datagram, frame)
    this.#retryHeld()
  }

  #packets(side: Side, datagram: Uint8Array, frame: number): void {
    let rest = datagram
    for (let packet = readLongPacket(rest); packet !== null && !this.done; packet = readLongPacket(rest)) {
      rest = rest.subarray(packet.bytes.length)
      // Early data contains no handshake. The effect of a Retry shows in the client's next Initial.
      if (packet.kind === 'initial') this.#initial(side, packet, frame)
      else if (packet.kind === 'handshake') this.#protected(side, packet, frame)
    }
  }

  #initial(side: Side, packet: LongPacket, frame: number): void {
    const opened = this.#openKnown(side, packet) ?? (side.fromClient ? this.#openNew(packet) : null)
    if (opened !== null) {
      const { attempt, frames } = opened
      const stream = side.fromClient ? attempt.client : attempt.server
      for (const message of stream.join(readCryptoFrames(frames))) {
        if (!side.fromClient || this.#isNews(attempt, message))
          this.#handshake.message(side.fromClient, message, frame)
      }
      this.#agree()
    } else if (this.#attempts.length === 0 && !side.fromClient) this.#hold(side, packet, frame)
  }

  #openKnown(side: Side, packet: LongPacket): Opened | null {
    for (const attempt of this.#attempts) {
      const frames = this.#open(attempt.keys(packet.version, side.fromClient), packet)
      if (frames !== null) return { attempt, frames }
    }
    return null
  }

  /**
   * The first Initial, or the first after a Retry or Version Negotiation: its keys derive from its own id.
   */
  #openNew(packet: LongPacket): Opened | null {
    const attempt = new Attempt(new Uint8Array(packet.destination))
    const frames = this.#open(attempt.keys(packet.version, true), packet)
    if (frames === null) return null
    this.#attempts = [attempt, ...this.#attempts.slice(0, ATTEMPTS_MAX - 1)]
    return { attempt, frames }
  }

  /**
   * After a Retry the same hello comes again (RFC 9000 §17.2.5.3) and is not news. A second hello within an
   * attempt is a different one, though with the same random: it answers a HelloRetryRequest.
   */
  #isNews(attempt: Attempt, message: Uint8Array): boolean {
    if (message[0] !== CLIENT_HELLO) return true
    const random = clientRandomOf(message)
    const known = this.#clientRandom !== null && Buffer.compare(this.#clientRandom, random) === 0
    const first = !attempt.greeted
    attempt.greeted = true
    this.#clientRandom = random
    return !(first && known)
  }

  /** Once both hellos are known, in either order, looks up the handshake secrets. */
  #agree(): void {
    const hello = this.#handshake.serverHello
    const clientRandom = this.#clientRandom
    if (this.#agreed || hello === null || hello.helloRetryRequest || clientRandom === null) return
    this.#agreed = true
    const suite = suiteOf(hello.cipher)
    for (const side of [this.#client, this.#server]) {
      const label = side.fromClient ? 'CLIENT_HANDSHAKE_TRAFFIC_SECRET' : 'SERVER_HANDSHAKE_TRAFFIC_SECRET'
      const secret = this.#keyLog.secret(label, clientRandom)
      if (suite === null || secret === null) side.finished = true
      else side.secret = { suite, secret }
    }
  }

  #protected(side: Side, packet: LongPacket, frame: number): void {
    if (!this.#agreed && this.#mayHaveSecrets()) return this.#hold(side, packet, frame)
    if (side.secret === null || side.finished) return
    const keys = side.keys ?? new PacketKeys(packet.version, side.secret.suite, side.secret.secret)
    const frames = this.#open(keys, packet)
    if (frames === null) return
    side.keys = keys
    for (const message of side.stream.join(readCryptoFrames(frames))) {
      this.#handshake.message(side.fromClient, message, frame)
      if (message[0] === FINISHED) side.finished = true
    }
  }

  #open(keys: PacketKeys, packet: LongPacket): Uint8Array | null {
    this.#efforts++
    return keys.open(packet)
  }

  #mayHaveSecrets(): boolean {
    return this.#clientRandom === null ? this.#keyLog.size > 0 : this.#keyLog.knows(this.#clientRandom)
  }

  /** Captures reorder datagrams: a packet that cannot be decrypted yet waits for the missing hello. */
  #hold(side: Side, packet: LongPacket, frame: number): void {
    const bytes = packet.bytes.length + HELD_PACKET_BYTES
    if (this.#heldBytes + bytes > HELD_BYTES_MAX) return
    this.#heldBytes += bytes
    this.#held.push({ side, bytes: new Uint8Array(packet.bytes), frame })
  }

  /** Repeats while the number of waiting packets falls: one may contain the hello that another needs. */
  #retryHeld(): void {
    let before: number
    do {
      const held = this.#held
      before = held.length
      this.#held = []
      this.#heldBytes = 0
      for (const { side, bytes, frame } of held) this.#packets(side, bytes, frame)
    } while (this.#held.length < before)
  }
}

/** What a client begins with one chosen Destination Connection ID. */
class Attempt {
  readonly client = new CryptoStream(HELLO_BYTES_MAX)
  readonly server = new CryptoStream(HELLO_BYTES_MAX)
  /** Whether the first ClientHello of this attempt was read. */
  greeted = false
  readonly #destination: Uint8Array
  readonly #clientKeys = new Map<QuicVersion, PacketKeys>()
  readonly #serverKeys = new Map<QuicVersion, PacketKeys>()

  constructor(destination: Uint8Array) {
    this.#destination = destination
  }

  /** A server may answer in another version, with keys from the same id (RFC 9369 §4.1). */
  keys(version: QuicVersion, fromClient: boolean): PacketKeys {
    const known = fromClient ? this.#clientKeys : this.#serverKeys
    let keys = known.get(version)
    if (keys === undefined) {
      keys = initialKeys(version, this.#destination, fromClient)
      known.set(version, keys)
    }
    return keys
  }
}

function newSide(fromClient: boolean): Side {
  return {
    fromClient,
    secret: null,
    keys: null,
    stream: new CryptoStream(CERTIFICATES_BYTES_MAX),
    finished: false,
  }
}

/** One direction at the Handshake level. */
interface Side {
  readonly fromClient: boolean
  secret: { readonly suite: Suite; readonly secret: Uint8Array } | null
  /** Set at the first decrypted packet, whose version they need. */
  keys: PacketKeys | null
  readonly stream: CryptoStream
  /** Whether everything was read, or nothing more can be. */
  finished: boolean
}

interface Opened {
  readonly attempt: Attempt
  readonly frames: Uint8Array
}

interface HeldPacket {
  readonly side: Side
  readonly bytes: Uint8Array
  readonly frame: number
}

const FINISHED = 20
/** One, and one more each after Version Negotiation and Retry. */
const ATTEMPTS_MAX = 3
/** Enough for a server's flight with a long chain. */
const HELD_BYTES_MAX = 65_536
/** The overhead of keeping a packet, besides its bytes. */
const HELD_PACKET_BYTES = 200
/** A handshake takes about ten datagrams of two packets. There may be retransmissions and early data. */
const EFFORTS_MAX = 1000
