import { hostname } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type Status,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { type BusCredentialSettings, type BusCredentials, readBusCredentials } from '../bus-credentials.ts'

/** How to reach NATS. */
export interface BusSettings extends BusCredentialSettings {
  /** `nats://HOST:PORT` or `tls://HOST:PORT`. */
  readonly urls: readonly string[]
  /** Prefix of subjects and streams: several installations may share one NATS. */
  readonly name: string
  /** Delay before the next connection attempt, with jitter. */
  readonly retryMs?: number
}

/** Each role has its own inbox subjects, so that neither can read the other's answers. Proxies of one app have those of it. */
export type BusRole = 'proxy' | `proxy.${string}` | 'manage' | 'sink'

export function roleOf(app: string | null): BusRole {
  return app === null ? 'proxy' : `proxy.${app}`
}

/**
 * One connection to NATS for the life of this process. It connects in the background and reconnects after a
 * failure.
 */
export class JetStreamConnection {
  readonly #settings: BusSettings
  readonly #role: BusRole
  readonly #log: Log
  #credentials: BusCredentials
  /** The credentials of the last successful connection. */
  #proven: BusCredentials | null = null
  #tries = 0
  /** TLS options of the client. The client reads them at each connection attempt. */
  readonly #tls: Record<string, string | undefined> = {}
  readonly #listeners: (() => void)[] = []
  readonly #waiting = new Set<(error: Fault) => void>()
  #client: NatsConnection | null = null
  #isUp = false
  #isClosed = false
  /** Whether the first reconnect with new credentials is in progress. */
  #renewing: 'no' | 'begun' | 'tried' = 'no'
  #failure = ''
  #reconnects = 0

  /** Throws a Fault if a file named in the settings is unusable. */
  constructor(settings: BusSettings, role: BusRole, log: Log) {
    this.#settings = settings
    this.#role = role
    this.#log = log
    this.#credentials = readBusCredentials(settings)
    void this.#connect()
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Number of connections after the first. */
  get reconnects(): number {
    return this.#reconnects
  }

  /** Throws a Fault while disconnected. */
  get client(): NatsConnection {
    if (!this.#isUp || this.#client === null) throw busClosed()
    return this.#client
  }

  /**
   * Resolves with the result of `work`. Rejects if the connection breaks first, because no answer would come.
   */
  async whileUp<Result>(work: Promise<Result>): Promise<Result> {
    const down = Promise.withResolvers<never>()
    this.#waiting.add(down.reject)
    try {
      return await Promise.race([work, down.promise])
    } finally {
      this.#waiting.delete(down.reject)
    }
  }

  /** Calls the listener at each connect, and at once if already connected. */
  onUp(listener: () => void): void {
    this.#listeners.push(listener)
    if (this.#isUp) listener()
  }

  /**
   * Tests credentials with a second connection, then closes it. Rejects with a Fault if NATS rejects them.
   * Does nothing while disconnected: new credentials cannot break anything then.
   */
  async check(credentials: BusCredentials): Promise<void> {
    if (!this.#isUp || isDeepStrictEqual(credentials, this.#credentials)) return
    try {
      const probe = await connectOnce(this.#settings, this.#role, credentials)
      await probe.close()
    } catch (error) {
      if (!this.#isUp) return
      throw new Fault(
        'BUS_REFUSED',
        `NATS does not take the new credentials (${(error as Error).message}): the connection with the old ones stays for as long as it lasts. Compare the files of bus.* with what the server knows; it is tried again`,
        { cause: error },
      )
    }
  }

  /** Reconnects with these credentials. Unacknowledged messages are sent again. */
  use(credentials: BusCredentials): void {
    if (isDeepStrictEqual(credentials, this.#credentials)) return
    this.#credentials = credentials
    if (this.#isUp && this.#client !== null) void this.#renew(this.#client)
  }

  /** Flushes sent messages and rejects everything in progress. */
  async close(): Promise<void> {
    const wasUp = this.#isUp
    this.#isClosed = true
    this.#down(new Error('it is closed'))
    const client = this.#client
    if (client === null) return
    if (wasUp) await Promise.race([client.flush().catch(() => undefined), pause(FLUSH_MS)])
    // A client that is reconnecting takes its time to close.
    await Promise.race([client.close(), pause(FLUSH_MS)])
  }

  async #renew(client: NatsConnection): Promise<void> {
    this.#renewing = 'begun'
    await Promise.race([client.flush().catch(() => undefined), pause(FLUSH_MS)])
    Object.assign(this.#tls, tlsOf(this.#credentials))
    if (!this.#isClosed) await client.reconnect().catch(() => undefined)
  }

  /**
   * The delay before the next attempt. While disconnected, attempts use the credentials in the files. If
   * those differ from the last working ones, the two take turns.
   */
  #nextTry(): number {
    if (this.#renewing === 'begun') {
      this.#renewing = 'tried'
      return 0
    }
    if (this.#renewing === 'tried') {
      this.#renewing = 'no'
      this.#down(new Error('there is no connection with the new credentials'))
    }
    this.#tries++
    try {
      const inFiles = readBusCredentials(this.#settings)
      this.#credentials = this.#proven === null || this.#tries % 2 === 1 ? inFiles : this.#proven
    } catch {
      // Keep the previous credentials.
    }
    Object.assign(this.#tls, tlsOf(this.#credentials))
    return around(this.#settings.retryMs ?? RETRY_MS)
  }

  async #connect(): Promise<void> {
    Object.assign(this.#tls, tlsOf(this.#credentials))
    const options = connectionOptions(this.#settings, this.#role, () => this.#credentials, this.#tls)
    while (!this.#isClosed) {
      try {
        const client = await connect({ ...options, reconnectDelayHandler: () => this.#nextTry() })
        if (this.#isClosed) await client.close()
        else this.#use(client)
        return
      } catch (error) {
        this.#down(error as Error)
        await pause(this.#nextTry())
      }
    }
  }

  #use(client: NatsConnection): void {
    this.#client = client
    void this.#watch(client.status())
    this.#up()
  }

  async #watch(statuses: AsyncIterable<Status>): Promise<void> {
    for await (const status of statuses) {
      if (this.#isClosed) return
      if (status.type === 'reconnect') {
        this.#reconnects++
        this.#up()
      } else if (status.type === 'disconnect') this.#down(new Error('the connection is lost'))
      else if (status.type === 'error') this.#log.warn('NATS has refused something', { error: status.error })
    }
  }

  #up(): void {
    this.#isUp = true
    this.#renewing = 'no'
    this.#proven = this.#credentials
    this.#tries = 0
    this.#failure = ''
    this.#log.info('NATS can be reached', { server: this.#client?.getServer() ?? '' })
    for (const listener of this.#listeners) listener()
  }

  #down(error: Error): void {
    this.#isUp = false
    for (const reject of this.#waiting) reject(busClosed(error))
    if (this.#isClosed || this.#renewing !== 'no' || error.message === this.#failure) return
    this.#failure = error.message
    this.#log.warn('NATS cannot be reached; it is tried again', { error })
  }
}

/** A connection that stays closed once it breaks. */
export async function connectOnce(
  settings: BusSettings,
  role: BusRole,
  credentials: BusCredentials,
): Promise<NatsConnection> {
  const options = connectionOptions(settings, role, () => credentials, tlsOf(credentials))
  return connect({ ...options, reconnect: false, maxReconnectAttempts: 0 })
}

export function busClosed(cause?: unknown): Fault {
  return new Fault('BUS_CLOSED', 'the management plane cannot be reached', { cause })
}

function connectionOptions(
  settings: BusSettings,
  role: BusRole,
  current: () => BusCredentials,
  tls: Readonly<Record<string, string | undefined>>,
): ConnectionOptions {
  const { urls, name } = settings
  const { caFile, certificateFile } = settings.tls
  const isSecure = urls.some((url) => url.startsWith('tls://')) || caFile !== null || certificateFile !== null
  return {
    servers: [...urls],
    name: `${name} ${role} ${hostname()}`,
    maxReconnectAttempts: -1,
    // NATS may learn a changed password a moment later than Gatehouse.
    ignoreAuthErrorAbort: true,
    pingInterval: PING_MS,
    maxPingOut: 2,
    timeout: CONNECT_MS,
    inboxPrefix: `_INBOX.${name}.${role}`,
    authenticator: authenticatorOf(current),
    ...(isSecure ? { tls } : {}),
  }
}

/** Called at each connection. */
function authenticatorOf(current: () => BusCredentials): Authenticator {
  return (nonce) => {
    const { jwt, user, password, token } = current()
    if (jwt !== null) return credsAuthenticator(new TextEncoder().encode(jwt))(nonce)
    if (token !== null) return tokenAuthenticator(token)(nonce)
    return user === null ? undefined : usernamePasswordAuthenticator(user, password ?? undefined)(nonce)
  }
}

function tlsOf({ ca, certificate, key }: BusCredentials): Record<string, string | undefined> {
  return {
    ...(ca === null ? {} : { ca }),
    ...(certificate === null ? {} : { cert: certificate }),
    ...(key === null ? {} : { key }),
  }
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs).unref())
}

/** Jitter: thousands of proxies that lost a server must not reconnect at once. */
function around(delayMs: number): number {
  return delayMs * (0.5 + Math.random())
}

const RETRY_MS = 2_000
const CONNECT_MS = 5_000
const PING_MS = 10_000
const FLUSH_MS = 1_000
