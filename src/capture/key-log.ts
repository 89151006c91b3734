/** The labels of a key log line. The old labels with a QUIC_ prefix are read as these. */
export type SecretLabel = (typeof LABELS)[number]

/**
 * The secrets of TLS connections, as browsers and libraries write them to the file named by SSLKEYLOGFILE and
 * captures carry them in Decryption Secrets Blocks (RFC 9850). Lines with other labels are ignored.
 */
export class KeyLog {
  /** By client random, in two generations: when the recent one is full, it replaces the older one. */
  #recent: Connections = new Map()
  #older: Connections = new Map()
  #partialLine = ''

  /** The number of connections with secrets. */
  get size(): number {
    return this.#recent.size + this.#older.size
  }

  /** `text` may end inside a line; the next call continues it. */
  add(text: string): void {
    let at = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', at)) {
      this.#readLine(this.#partialLine + text.slice(at, end))
      this.#partialLine = ''
      at = end + 1
    }
    // Keeps one character more than the maximum, so that an overlong line stays overlong.
    this.#partialLine = (this.#partialLine + text.slice(at)).slice(0, LINE_CHARS_MAX + 1)
  }

  /** Ends the log: the last line needs no line end. */
  end(): void {
    this.add('\n')
  }

  /** Whether the log has any secret of this connection. */
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

/** The random of a ClientHello message, which identifies the connection in a key log. A copy. */
export function clientRandomOf(clientHello: Uint8Array): Uint8Array {
  return new Uint8Array(clientHello.subarray(RANDOM_AT, RANDOM_AT + RANDOM_BYTES))
}

/** Makes an independent string: a slice of the text would keep the whole text in memory. */
function nameOf(clientRandom: Uint8Array): string {
  return Buffer.from(clientRandom.buffer, clientRandom.byteOffset, clientRandom.length).toString('latin1')
}

function isSecretLabel(label: string): label is SecretLabel {
  return LABEL_SET.has(label)
}

type Connections = Map<string, Map<SecretLabel, Uint8Array>>

const LABELS = [
  /** The master secret, up to TLS 1.2. */
  'CLIENT_RANDOM',
  'CLIENT_EARLY_TRAFFIC_SECRET',
  'CLIENT_HANDSHAKE_TRAFFIC_SECRET',
  'SERVER_HANDSHAKE_TRAFFIC_SECRET',
  'CLIENT_TRAFFIC_SECRET_0',
  'SERVER_TRAFFIC_SECRET_0',
] as const
const LABEL_SET: ReadonlySet<string> = new Set(LABELS)

/** After the message header and legacy_version. */
const RANDOM_AT = 6
const RANDOM_BYTES = 32
/** A secret is as long as its hash, SHA-256 or SHA-384. The master secret has 48 bytes. */
const LINE = /^(?:QUIC_)?([A-Z0-9_]+) ([0-9a-fA-F]{64}) ([0-9a-fA-F]{64}|[0-9a-fA-F]{96})\s*$/
/** The longest valid line has 198 characters. */
const LINE_CHARS_MAX = 256
/** From a larger key log, at least the last 50 000 connections are kept, at some 2 kB each. */
const GENERATION_CONNECTIONS_MAX = 50_000
