import { DtlsSession, dtlsOpening } from './dtls-session.ts'
import type { Endpoints, FindingSink } from './finding.ts'
import { Handshake } from './handshake.ts'
import type { KeyLog } from './key-log.ts'
import { QuicSession } from './quic.ts'
import { initialKeys, readLongPacket } from './quic-packet.ts'
import type { Side } from './stream-layer.ts'

/**
 * Datagrams between two peers: QUIC or DTLS on any port. Sessions follow one another, because nothing like a
 * SYN separates them.
 */
export class UdpConversation {
  readonly #sink: FindingSink
  readonly #keys: KeyLog
  readonly #endpoints: (client: Side) => Endpoints
  #session: Session | null = null
  /** The random of the last reported ClientHello. A retransmission is not reported again. */
  #told: Uint8Array | null = null

  constructor(sink: FindingSink, keys: KeyLog, endpoints: (client: Side) => Endpoints) {
    this.#sink = sink
    this.#keys = keys
    this.#endpoints = endpoints
  }

  get heldBytes(): number {
    return this.#session === null ? 0 : this.#session.reader.heldBytes + this.#session.handshake.heldBytes
  }

  datagram(side: Side, bytes: Uint8Array, frame: number): void {
    this.#session ??= this.#begin(side, bytes)
    if (this.#session === null) return
    const { client, reader } = this.#session
    reader.push(side === client, bytes, frame)
    if (reader.done) this.end()
  }

  /** Reports what is known of the session. */
  end(): void {
    const session = this.#session
    this.#session = null
    const random = session?.handshake.clientRandom ?? null
    if (session === null || random === null) return
    if (this.#told !== null && Buffer.compare(this.#told, random) === 0) return
    this.#told = random
    const finding = session.handshake.finding(this.#endpoints(session.client))
    if (finding !== null) this.#sink.found(finding)
  }

  #begin(side: Side, bytes: Uint8Array): Session | null {
    const other = side === 0 ? 1 : 0
    const dtls = dtlsOpening(bytes)
    if (dtls !== null) {
      const handshake = new Handshake('dtls', this.#sink.ja4plus)
      return { client: dtls === 'client' ? side : other, handshake, reader: new DtlsSession(handshake) }
    }
    const quic = quicOpening(bytes)
    // After a connection, a packet that does not begin a new one belongs to the old one.
    if (quic === null || (quic === 'server' && this.#told !== null)) return null
    const handshake = new Handshake('quic', this.#sink.ja4plus)
    return {
      client: quic === 'client' ? side : other,
      handshake,
      reader: new QuicSession(this.#keys, handshake),
    }
  }
}

interface Session {
  readonly client: Side
  readonly handshake: Handshake
  readonly reader: DtlsSession | QuicSession
}

/**
 * Which side sent this Initial packet. Only a client's first ones are sealed with keys from the id in the
 * packet itself.
 */
function quicOpening(datagram: Uint8Array): 'client' | 'server' | null {
  const packet = readLongPacket(datagram)
  if (packet?.kind !== 'initial') return null
  return initialKeys(packet.version, packet.destination, true).open(packet) === null ? 'server' : 'client'
}
