/** What a line of a key log is the secret of. The names of the time when QUIC had its own are read as these. */
export type SecretLabel = (typeof LABELS)[number]

/**
 * The secrets of TLS connections, as browsers and libraries write them to the file named by SSLKEYLOGFILE and captures
 * carry them in Decryption Secrets Blocks (RFC 9850). Lines that say nothing about traffic are passed over.
 */
export class KeyLog {
  /** By client random. Two generations: when the recent one is full it becomes the older one, and that goes. */
  #recent: Connections = new Map()
  #older: Connections = new Map()
  #partialLine = ''

  /** How many connections it has secrets of. */
  get size(): number {
    return this.#recent.size + this.#older.size
  }

  /** `text` may end within a line: the rest is taken to come with the next call. */
  add(text: string): void {
    let at = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', at)) {
      this.#readLine(this.#partialLine + text.slice(at, end))
      this.#partialLine = ''
      at = end + 1
    }
    // One character too many is kept of a line that is too long, so that it stays too long.
    this.#partialLine = (this.#partialLine + text.slice(at)).slice(0, LINE_CHARS_MAX + 1)
  }

  /** No more is to come: a last line without a line end counts. */
  end(): void {
    this.add('\n')
  }

  /** Whether there is any secret of this connection. */
  knows(clientRandom: Uint8Array): boolean {
    const name = nameOf(clientRandom)
    return this.#recent.has(name) || this.#older.has(name)
  }

  secret(label: SecretLabel, clientRandom: Uint8Array): Uint8Array | null {
    const name = nameOf(clientRandom)
    return this.#recent.get(name)?.get(label) ?? this.#older.get(name)?.get(label) ?? null
  }

  #readLine(line: string): void {
    if (line.length > LINE_CHARS_MAX) return
    const [, label, clientRandom, secret] = LINE.exec(line) ?? []
    if (label === undefined || clientRandom === undefined || secret === undefined) return
    if (isSecretLabel(label))
      this.#put(label, nameOf(Buffer.from(clientRandom, 'hex')), Buffer.from(secret, 'hex'))
  }

  #put(label: SecretLabel, name: string, secret: Uint8Array): void {
    const known = this.#recent.get(name)
    if (known !== undefined) {
      known.set(label, secret)
      return
    }
    if (this.#recent.size === GENERATION_CONNECTIONS_MAX) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(name, new Map([[label, secret]]))
  }
}

/** What names a connection in a key log: the random of this ClientHello message, copied. */
export function clientRandomOf(clientHello: Uint8Array): Uint8Array {
  return new Uint8Array(clientHello.subarray(RANDOM_AT, RANDOM_AT + RANDOM_BYTES))
}

/** A string of its own: a piece cut from the text would keep all the text in memory. */
function nameOf(clientRandom: Uint8Array): string {
  return Buffer.from(clientRandom.buffer, clientRandom.byteOffset, clientRandom.length).toString('latin1')
}

function isSecretLabel(label: string): label is SecretLabel {
  return LABEL_SET.has(label)
}

type Connections = Map<string, Map<SecretLabel, Uint8Array>>

const LABELS = [
  /** TLS 1.2 and before: the master secret. */
  'CLIENT_RANDOM',
  'CLIENT_EARLY_TRAFFIC_SECRET',
  'CLIENT_HANDSHAKE_TRAFFIC_SECRET',
  'SERVER_HANDSHAKE_TRAFFIC_SECRET',
  'CLIENT_TRAFFIC_SECRET_0',
  'SERVER_TRAFFIC_SECRET_0',
] as const
const LABEL_SET: ReadonlySet<string> = new Set(LABELS)

/** Behind the message's header and legacy_version. */
const RANDOM_AT = 6
const RANDOM_BYTES = 32
/** A secret is as long as its hash: SHA-256 or SHA-384; the master secret has 48 bytes. */
const LINE = /^(?:QUIC_)?([A-Z0-9_]+) ([0-9a-fA-F]{64}) ([0-9a-fA-F]{64}|[0-9a-fA-F]{96})\s*$/
/** The longest line that says something has 198 characters. */
const LINE_CHARS_MAX = 256
/** Of a key log that has more, the last 50 000 connections at least; some 2 kB each. */
const GENERATION_CONNECTIONS_MAX = 50_000
