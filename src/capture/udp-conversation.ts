import { DtlsSession, dtlsOpening } from './dtls-session.ts'
import type { Endpoints, FindingSink } from './finding.ts'
import { Handshake } from './handshake.ts'
import type { KeyLog } from './key-log.ts'
import { QuicSession } from './quic.ts'
import { initialKeys, readLongPacket } from './quic-packet.ts'
import type { Side } from './stream-layer.ts'

/** What two peers say in datagrams: QUIC or DTLS, on any port; one after the other, for nothing like a SYN parts them. */
export class UdpConversation {
  readonly #sink: FindingSink
  readonly #keys: KeyLog
  readonly #endpoints: (client: Side) => Endpoints
  #session: Session | null = null
  /** The random of the ClientHello last told of: sent again it is no news. */
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

  /** What is known of the session is said now. */
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
    // Once there was a connection, what does not begin another is what is left of it.
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

/** An Initial packet: only the first ones of a client are sealed with keys made from the id that stands in them. */
function quicOpening(datagram: Uint8Array): 'client' | 'server' | null {
  const packet = readLongPacket(datagram)
  if (packet?.kind !== 'initial') return null
  return initialKeys(packet.version, packet.destination, true).open(packet) === null ? 'server' : 'client'
}
