import { brotliDecompressSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import { ja4, ja4Forms } from '../fingerprint/ja4.ts'
import { ja4s, ja4sRaw } from '../fingerprint/ja4plus/ja4s.ts'
import { ja4x, ja4xRaw } from '../fingerprint/ja4plus/ja4x.ts'
import { FingerprintText } from '../fingerprint/text.ts'
import { stableKey } from '../fingerprint/stable-key.ts'
import { CERTIFICATE, parseCertificates, parseCertificates13 } from '../wire/certificate.ts'
import type { Transport } from '../wire/client-hello.ts'
import { CLIENT_HELLO, parseClientHello, parseDtlsClientHello } from '../wire/client-hello.ts'
import { Reader } from '../wire/reader.ts'
import type { ServerHello } from '../wire/server-hello.ts'
import { parseDtlsServerHello, parseServerHello, SERVER_HELLO } from '../wire/server-hello.ts'
import { parseCertificate } from '../wire/x509.ts'
import type { Endpoints, TlsFinding } from './finding.ts'

/**
 * One TLS handshake. Its messages come from records (TCP), CRYPTO frames (QUIC) or fragments (DTLS). It keeps
 * the fingerprints and what decryption needs, never the messages.
 */
export class Handshake {
  readonly transport: Transport
  /**
   * Identifies the connection in a key log. `null` until the ClientHello. A copy, because it outlives the
   * packet.
   */
  clientRandom: Uint8Array | null = null
  /** The effective ServerHello. A HelloRetryRequest is replaced by the ServerHello after it. */
  serverHello: ServerHello | null = null
  readonly #ja4plus: boolean
  #first: Omit<TlsFinding, keyof Endpoints> | null = null
  readonly #later: string[] = []
  #ja4s: string | null = null
  #ja4sRaw: string | null = null
  readonly #ja4sLater: string[] = []
  #retried = false
  readonly #server: Ja4xList = { hashed: [], raw: [] }
  readonly #client: Ja4xList = { hashed: [], raw: [] }

  constructor(transport: Transport, ja4plus: boolean) {
    this.transport = transport
    this.#ja4plus = ja4plus
  }

  /**
   * Takes one whole handshake message with its header (for DTLS 12 bytes, fragments joined). Malformed
   * messages are ignored.
   */
  message(fromClient: boolean, message: Uint8Array, frame: number): void {
    const type = message[0]
    if (type === CLIENT_HELLO && fromClient) this.#clientHello(message, frame)
    else if (type === SERVER_HELLO && !fromClient) this.#serverHello(message)
    else if (type === CERTIFICATE) this.#certificates(fromClient, this.#body(message))
    else if (type === COMPRESSED_CERTIFICATE) this.#compressed(fromClient, this.#body(message))
  }

  /** TLS 1.3 encrypts the certificates and has another format for their message. */
  get isTls13(): boolean {
    const selected = this.serverHello?.selectedVersion ?? null
    return selected !== null && (selected === 0x0304 || selected === 0xfefc || selected >> 8 === 0x7f)
  }

  get sawClientHello(): boolean {
    return this.#first !== null
  }

  get sawCertificates(): boolean {
    return this.#server.hashed.length > 0
  }

  /** The size of the finding so far: a hello may be long. */
  get heldBytes(): number {
    const { ja4_r = '', ja4_o = '', ja4_ro = '', sni = '', alpn = [] } = this.#first ?? {}
    const texts = [
      ja4_r,
      ja4_o,
      ja4_ro,
      sni ?? '',
      this.#ja4sRaw ?? '',
      ...alpn,
      ...this.#server.raw,
      ...this.#client.raw,
    ]
    return texts.reduce((sum, text) => sum + text.length, 0)
  }

  finding(endpoints: Endpoints): TlsFinding | null {
    if (this.#first === null) return null
    const { kind, transport, frame, ...hello } = this.#first
    return {
      kind,
      transport,
      frame,
      ...endpoints,
      ...hello,
      ja4_later: this.#later,
      ja4s: this.#ja4s,
      ja4s_r: this.#ja4sRaw,
      ja4s_later: this.#ja4sLater,
      hello_retry_request: this.#retried,
      ja4x: this.#server.hashed,
      ja4x_r: this.#server.raw,
      ja4x_client: this.#client.hashed,
    }
  }

  #clientHello(message: Uint8Array, frame: number): void {
    const read = this.transport === 'dtls' ? parseDtlsClientHello(message) : parseClientHello(message)
    if (read.kind !== 'client-hello') return
    const hello = read.hello
    if (this.#first !== null) {
      if (this.#later.length < LATER_MAX) this.#later.push(ja4(hello, this.transport))
      return
    }
    const text = new FingerprintText()
    this.clientRandom = new Uint8Array(hello.random)
    this.#first = {
      kind: 'tls',
      transport: this.transport,
      frame,
      sni: hello.serverName,
      alpn: hello.alpn.map((name) => Buffer.from(name).toString('latin1')),
      ...ja4Forms(hello, this.transport, text),
      ja4_stable: stableKey(hello, this.transport, text),
      ...NOT_SEEN,
    }
  }

  /** The first one on the wire gives the fingerprint, even if it is a HelloRetryRequest. */
  #serverHello(message: Uint8Array): void {
    const read = this.transport === 'dtls' ? parseDtlsServerHello(message) : parseServerHello(message)
    if (read.kind !== 'server-hello') return
    const { random, alpn } = read.hello
    // Copied because it outlives the packet. (`slice` of a Buffer does not copy.)
    const hello = { ...read.hello, random: new Uint8Array(random), alpn: alpn && new Uint8Array(alpn) }
    this.serverHello = hello
    if (hello.helloRetryRequest) this.#retried = true
    if (!this.#ja4plus) return
    if (this.#ja4s === null) {
      this.#ja4s = ja4s(hello, this.transport)
      this.#ja4sRaw = ja4sRaw(hello, this.transport)
    } else if (this.#ja4sLater.length < LATER_MAX) {
      this.#ja4sLater.push(ja4s(hello, this.transport))
    }
  }

  /** Only the chain of the first handshake counts. A renegotiation shows the same one again. */
  #certificates(fromClient: boolean, body: Uint8Array): void {
    const into = fromClient ? this.#client : this.#server
    if (!this.#ja4plus || into.hashed.length > 0) return
    const list = this.isTls13 ? parseCertificates13(body) : parseCertificates(body)
    if (list.kind !== 'certificates') return
    for (const der of list.certificates.slice(0, CHAIN_MAX)) {
      const read = parseCertificate(der)
      if (read.kind !== 'certificate') continue
      into.hashed.push(ja4x(read.oids))
      into.raw.push(ja4xRaw(read.oids))
    }
  }

  /** RFC 8879 §4. */
  #compressed(fromClient: boolean, body: Uint8Array): void {
    const r = new Reader(body)
    const algorithm = r.u16()
    const length = r.u24()
    const compressed = r.take(r.u24())
    if (!r.ok || length > CERTIFICATES_BYTES_MAX) return
    const plain = decompress(algorithm, compressed, length)
    if (plain !== null) this.#certificates(fromClient, plain)
  }

  #body(message: Uint8Array): Uint8Array {
    return message.subarray(this.transport === 'dtls' ? 12 : 4)
  }
}

function decompress(algorithm: number, compressed: Uint8Array, length: number): Uint8Array | null {
  const limit = { maxOutputLength: length }
  try {
    if (algorithm === 1) return inflateSync(compressed, limit)
    if (algorithm === 2) return brotliDecompressSync(compressed, limit)
    if (algorithm === 3) return zstdDecompressSync(compressed, limit)
  } catch {
    // Malformed compressed data: no certificates.
  }
  return null
}

interface Ja4xList {
  readonly hashed: string[]
  readonly raw: string[]
}

const NOT_SEEN = {
  ja4_later: [],
  ja4s: null,
  ja4s_r: null,
  ja4s_later: [],
  hello_retry_request: false,
  ja4x: [],
  ja4x_r: [],
  ja4x_client: [],
} as const

const COMPRESSED_CERTIFICATE = 25
/** A limit, because a peer could renegotiate forever. */
const LATER_MAX = 16
const CHAIN_MAX = 32
/** Far more than any chain seen in practice. Also limits decompression. */
export const CERTIFICATES_BYTES_MAX = 256 * 1024
