import { once } from 'node:events'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { Random } from './random.ts'

/** A TLS connection, and what its hello looks like: two that are alike have one JA4, whatever happens around them. */
export interface Connected {
  readonly socket: TLSSocket
  /** The client's. */
  readonly port: number
  readonly connectedMs: number
  readonly helloKind: string
}

/** One that was lost before it came to anything. */
export class ConnectFailed extends Error {
  readonly port: number
  readonly connectedMs: number

  constructor(cause: Error, port: number, connectedMs: number) {
    super(`no connection: ${cause.message}`, { cause })
    this.port = port
    this.connectedMs = connectedMs
  }
}

export class Connector {
  readonly #port: number
  readonly #ca: string
  readonly #serverNames: readonly string[]
  readonly #random: Random
  readonly #sessions = new Map<string, { session: Buffer; atMs: number }>()
  openConnections = 0

  constructor(port: number, ca: string, serverNames: readonly string[], random: Random) {
    this.#port = port
    this.#ca = ca
    this.#serverNames = serverNames
    this.#random = random
  }

  async open(protocol: 'h2' | 'http/1.1'): Promise<Connected> {
    const random = this.#random
    const serverName = random.pick(this.#serverNames)
    const version = random.pick(['TLSv1.2', 'TLSv1.3', 'TLSv1.3'] as const)
    const suites = random.between(1, SUITES.length)
    const ticket = version === 'TLSv1.3' && random.chance(0.4) ? this.#takeSession(serverName) : null
    const socket = this.#connect({
      ALPNProtocols: [protocol],
      servername: serverName,
      maxVersion: version,
      ciphers: [...SUITES_13, ...SUITES.slice(0, suites)].join(':'),
      ...(ticket !== null && { session: ticket }),
    })
    socket.on('session', (session) => {
      if (version === 'TLSv1.3') this.#sessions.set(serverName, { session, atMs: Date.now() })
    })
    const connectedMs = Date.now()
    let port = 0
    socket.once('connect', () => {
      port = socket.localPort ?? 0
    })
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(CONNECT_MS_MAX) })
    } catch (error) {
      socket.destroy()
      throw new ConnectFailed(error as Error, port, connectedMs)
    }
    const isResumed = ticket !== null
    return {
      socket,
      port,
      connectedMs,
      helloKind: [protocol, serverName, version, suites, isResumed].join(' '),
    }
  }

  /** For those that do not want what is behind it. */
  plan(): { readonly port: number; readonly ca: string; readonly serverName: string } {
    return { port: this.#port, ca: this.#ca, serverName: this.#serverNames[0]! }
  }

  #connect(options: ConnectionOptions): TLSSocket {
    this.openConnections++
    const socket = connect({ ...options, host: '127.0.0.1', port: this.#port, ca: this.#ca })
    socket.on('error', () => undefined)
    socket.once('close', () => this.openConnections--)
    return socket
  }

  /** Each is used once, and while it is certainly good. */
  #takeSession(serverName: string): Buffer | null {
    const kept = this.#sessions.get(serverName)
    this.#sessions.delete(serverName)
    return kept !== undefined && Date.now() - kept.atMs < SESSION_MS_MAX ? kept.session : null
  }
}

const SUITES_13 = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256']
const SUITES = [
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ...['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'],
]
const CONNECT_MS_MAX = 30_000
const SESSION_MS_MAX = 60_000
