import { constants } from 'node:crypto'
import type { Duplex } from 'node:stream'
import {
  createServer,
  type SecureContext,
  type SecureContextOptions,
  type Server,
  type TLSSocket,
} from 'node:tls'
import { helloTraits } from '../../fingerprint/hello-traits.ts'
import { ja4, unresumedJa4 } from '../../fingerprint/ja4.ts'
import { ja4s } from '../../fingerprint/ja4plus/ja4s.ts'
import { type Ja4x, ja4x } from '../../fingerprint/ja4plus/ja4x.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'
import { FingerprintText } from '../../fingerprint/text.ts'
import { stableKey } from '../../fingerprint/stable-key.ts'
import type { ClientHello } from '../../wire/client-hello.ts'
import { parseCertificate } from '../../wire/x509.ts'
import type { ClientConnection, FailureReason } from '../connection/connection.ts'
import { CIPHER_LIST, GROUP_LIST, serverHelloOf } from './server-hello-of.ts'

export interface TlsOptions {
  readonly certificates: Certificates
  /** 48 bytes, the same in all workers, so that any worker can resume a session. */
  readonly ticketKeys: Buffer
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly requestClientCertificate: boolean
  /**
   * PEM: the CAs whose certificates are requested from clients. Client certificates are reported, not
   * verified.
   */
  readonly clientCa: string | null
}

/** Holds the certificates. Its answers may change at any time. */
export interface Certificates {
  /** For clients that do not name a host. Read again by `refresh`. */
  readonly default: SecureContextOptions
  contextFor(serverName: string | null, hello: ClientHello | null): SecureContext
}

export interface TlsServerOptions extends TlsOptions {
  readonly handshakeTimeoutMs: number
  readonly ja4plus: boolean
}

export interface TlsHandlers {
  /** `durationMs` counts from the complete hello. */
  secured(connection: ClientConnection, socket: TLSSocket, durationMs: number): void
  failed(connection: ClientConnection, reason: FailureReason, code: string): void
}

/** A handshake whose hello has been read. */
export interface StartedHandshake {
  readonly connection: ClientConnection
  /** `null` if the hello cannot be parsed. */
  readonly message: Uint8Array | null
  readonly hello: ClientHello | null
}

interface Underway {
  readonly connection: ClientConnection
  readonly begunMs: number
  readonly handshake: StartedHandshake
}

/**
 * TLS on sockets whose hello has been read and put back. Its server never listens; a plain TLSSocket would
 * miss half of the errors.
 */
export class TlsServer {
  readonly #server: Server
  readonly #handlers: TlsHandlers
  /** The unfinished handshakes by raw socket. */
  readonly #underway = new Map<Duplex, Underway>()
  /** The working memory of fingerprints. */
  readonly #text = new FingerprintText()
  #options: TlsServerOptions

  constructor(options: TlsServerOptions, handlers: TlsHandlers) {
    this.#options = options
    this.#handlers = handlers
    const chooseContext = this.#chooseContext.bind(this)
    this.#server = createServer({
      ...this.#contextOptions(),
      ALPNProtocols: ['h2', 'http/1.1', 'http/1.0'],
      SNICallback(this: unknown, name, done) {
        chooseContext(this as TLSSocket, name, done)
      },
      requestCert: options.requestClientCertificate,
      rejectUnauthorized: false,
      handshakeTimeout: options.handshakeTimeoutMs,
    })
    this.#server.on('secureConnection', (socket) => this.#secured(socket))
    this.#server.on('tlsClientError', (error, socket) => this.#failed(error, socket))
  }

  accept(handshake: StartedHandshake): void {
    const { connection } = handshake
    const { raw } = connection
    connection.stage = 'handshake'
    this.#underway.set(raw, { connection, begunMs: performance.now(), handshake })
    this.#server.emit('connection', raw)
  }

  /**
   * The connection has closed. If the peer disconnects during the handshake, Node may report it without a socket that
   * names its raw one.
   */
  closed({ raw }: ClientConnection): void {
    const underway = this.#ended(raw)
    if (underway === null) return
    const cause: (Error & { code?: string }) | null = raw.errored
    this.#report(underway, cause?.code ?? 'closed')
  }

  /** Applies to later handshakes. */
  refresh(ticketKeys: Buffer | null): void {
    if (ticketKeys !== null) this.#options = { ...this.#options, ticketKeys }
    this.#server.setSecureContext(this.#contextOptions())
  }

  #contextOptions() {
    const { certificates, ticketKeys, minVersion, clientCa } = this.#options
    return {
      ...certificates.default,
      ticketKeys,
      minVersion,
      maxVersion: 'TLSv1.3',
      ciphers: CIPHER_LIST,
      ecdhCurve: GROUP_LIST,
      honorCipherOrder: true,
      // Otherwise a TLS 1.2 client could renegotiate and cost us a handshake for each of its records.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_PRIORITIZE_CHACHA,
      sessionIdContext: SESSION_ID_CONTEXT,
      ...(clientCa !== null && { ca: clientCa }),
    } as const
  }

  #chooseContext(
    socket: TLSSocket,
    name: string,
    done: (error: Error | null, context?: SecureContext) => void,
  ): void {
    try {
      const hello = this.#underway.get(rawOf(socket))?.handshake.hello ?? null
      done(null, this.#options.certificates.contextFor(name, hello))
    } catch (error) {
      done(error as Error)
    }
  }

  #secured(socket: TLSSocket): void {
    const { connection, begunMs, handshake } = this.#ended(rawOf(socket))!
    socket.on('error', destroyThis) // TLS reports the error but leaves the socket open
    connection.stream = socket
    connection.serverName = handshake.hello?.serverName ?? null
    connection.print = printOf(handshake, socket, this.#options, this.#text)
    this.#handlers.secured(connection, socket, performance.now() - begunMs)
  }

  #failed(error: Error & { code?: string }, socket: TLSSocket): void {
    socket.destroy()
    const underway = this.#ended(rawOf(socket))
    if (underway !== null) this.#report(underway, error.code ?? 'ERROR')
  }

  /** `null`: it has ended before. */
  #ended(raw: Duplex): Underway | null {
    const underway = this.#underway.get(raw) ?? null
    this.#underway.delete(raw)
    return underway
  }

  #report({ connection, handshake }: Underway, code: string): void {
    const isLate = code === 'ERR_TLS_HANDSHAKE_TIMEOUT'
    const isMalformed = handshake.hello === null
    const reason = isLate ? 'handshake-timeout' : isMalformed ? 'malformed-hello' : 'handshake'
    this.#handlers.failed(connection, reason, code)
  }
}

function destroyThis(this: TLSSocket): void {
  this.destroy()
}

/** The socket below. Node (24.21) has it in an undocumented field: `test/proxy/tls-server.test.ts` would show its loss. */
function rawOf(socket: TLSSocket): Duplex {
  return (socket as unknown as { readonly _parent: Duplex })._parent
}

/** Computed once per connection, after the handshake, so that unfinished handshakes cost nothing. */
function printOf(
  { message, hello }: StartedHandshake,
  socket: TLSSocket,
  options: TlsServerOptions,
  text: FingerprintText,
): ConnectionPrint {
  const certificate =
    options.ja4plus && options.requestClientCertificate ? socket.getPeerX509Certificate() : undefined
  if (hello === null || message === null) {
    const noHello = 'malformed'
    return {
      ja4: null,
      unresumed: null,
      stable: null,
      traits: null,
      ja4s: null,
      ja4x: ja4xOf(certificate?.raw),
      http2: null,
      pageWeight: null,
      noHello,
      ja4Source: null,
    }
  }
  return {
    ja4: ja4(hello, 'tcp', text),
    unresumed: unresumedJa4(hello, 'tcp', text),
    stable: stableKey(hello, 'tcp', text),
    traits: helloTraits(hello),
    ja4s: options.ja4plus ? ownJa4s(message, hello, socket, text) : null,
    ja4x: ja4xOf(certificate?.raw),
    http2: null,
    pageWeight: null,
    noHello: null,
    ja4Source: 'own',
  }
}

function ownJa4s(
  message: Uint8Array,
  hello: ClientHello,
  socket: TLSSocket,
  text: FingerprintText,
): ConnectionPrint['ja4s'] {
  const answered = serverHelloOf(message, hello, {
    protocol: socket.getProtocol() === 'TLSv1.3' ? 'TLSv1.3' : 'TLSv1.2',
    cipher: socket.getCipher().standardName,
    alpn: socket.alpnProtocol || null,
    isResumed: socket.isSessionReused(),
  })
  return answered === null ? null : ja4s(answered, 'tcp', text)
}

function ja4xOf(der: Uint8Array | undefined): Ja4x | null {
  if (der === undefined) return null
  const read = parseCertificate(der)
  return read.kind === 'certificate' ? ja4x(read.oids) : null
}

/** Prevents sessions of another server with the same ticket keys from being resumed. */
const SESSION_ID_CONTEXT = 'gatehouse'
