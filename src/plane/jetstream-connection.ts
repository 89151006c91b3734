import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type Status,
} from '@nats-io/transport-node'
import { Fault } from '../fault.ts'
import type { Log } from '../log.ts'

/** How NATS is reached. */
export interface BusSettings {
  /** `nats://HOST:PORT` or `tls://HOST:PORT`. */
  readonly urls: readonly string[]
  /** What subjects and streams begin with: installations may share a NATS. */
  readonly name: string
  /** With a JWT and its seed; read anew at each connection. */
  readonly credentialsFile: string | null
  readonly user: string | null
  readonly password: string | null
  readonly token: string | null
  readonly tls: {
    readonly caFile: string | null
    readonly certificateFile: string | null
    readonly keyFile: string | null
  }
  /** How long after a connection has failed the next is tried, a little more or less. */
  readonly retryMs?: number
}

/** Each has subjects for answers of its own: what one may do need not let it listen to what the other is told. */
export type BusRole = 'proxy' | 'manage'

/** One connection to NATS, for as long as this process lives: it is made in the background, and made anew where it breaks. */
export class JetStreamConnection {
  readonly #log: Log
  readonly #listeners: (() => void)[] = []
  readonly #waiting = new Set<(error: Fault) => void>()
  #client: NatsConnection | null = null
  #isUp = false
  #isClosed = false
  #failure = ''
  #reconnects = 0

  /** Throws a Fault where a file that the settings name cannot be used. */
  constructor(settings: BusSettings, role: BusRole, log: Log) {
    this.#log = log
    void this.#connect(connectionOptions(settings, role), settings.retryMs ?? RETRY_MS)
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Connections made after the first. */
  get reconnects(): number {
    return this.#reconnects
  }

  /** Throws a Fault while there is no connection. */
  get client(): NatsConnection {
    if (!this.#isUp || this.#client === null) throw busClosed()
    return this.#client
  }

  /** What `work` gives; rejects when the connection breaks meanwhile: nobody would answer any more. */
  async whileUp<Result>(work: Promise<Result>): Promise<Result> {
    const down = Promise.withResolvers<never>()
    this.#waiting.add(down.reject)
    try {
      return await Promise.race([work, down.promise])
    } finally {
      this.#waiting.delete(down.reject)
    }
  }

  /** Calls each time when there is a connection, also if there is one already. */
  onUp(listener: () => void): void {
    this.#listeners.push(listener)
    if (this.#isUp) listener()
  }

  /** What was sent leaves; what is under way is rejected. */
  async close(): Promise<void> {
    const wasUp = this.#isUp
    this.#isClosed = true
    this.#down(new Error('it is closed'))
    const client = this.#client
    if (client === null) return
    if (wasUp) await Promise.race([client.flush().catch(() => undefined), pause(FLUSH_MS)])
    // One that is being made anew takes its time to notice.
    await Promise.race([client.close(), pause(FLUSH_MS)])
  }

  async #connect(options: ConnectionOptions, retryMs: number): Promise<void> {
    while (!this.#isClosed) {
      try {
        const client = await connect({ ...options, reconnectDelayHandler: () => around(retryMs) })
        if (this.#isClosed) await client.close()
        else this.#use(client)
        return
      } catch (error) {
        this.#down(error as Error)
        await pause(around(retryMs))
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
    this.#failure = ''
    this.#log.info('NATS can be reached', { server: this.#client?.getServer() ?? '' })
    for (const listener of this.#listeners) listener()
  }

  #down(error: Error): void {
    this.#isUp = false
    for (const reject of this.#waiting) reject(busClosed(error))
    if (this.#isClosed || error.message === this.#failure) return
    this.#failure = error.message
    this.#log.warn('NATS cannot be reached; it is tried again', { error })
  }
}

export function busClosed(cause?: unknown): Fault {
  return new Fault('BUS_CLOSED', 'the management plane cannot be reached', { cause })
}

function connectionOptions(settings: BusSettings, role: BusRole): ConnectionOptions {
  const { urls, credentialsFile, user, password, token, tls } = settings
  const { caFile, certificateFile, keyFile } = tls
  const isSecure = urls.some((url) => url.startsWith('tls://')) || caFile !== null || certificateFile !== null
  if (credentialsFile !== null) textOf(credentialsFile)
  return {
    servers: [...urls],
    name: `${settings.name} ${role} ${hostname()}`,
    maxReconnectAttempts: -1,
    // A password that was changed here may be known there a moment later.
    ignoreAuthErrorAbort: true,
    pingInterval: PING_MS,
    maxPingOut: 2,
    timeout: CONNECT_MS,
    inboxPrefix: `_INBOX.${settings.name}.${role}`,
    ...(credentialsFile === null
      ? {}
      : { authenticator: credsAuthenticator(() => new Uint8Array(readFileSync(credentialsFile))) }),
    ...(user === null ? {} : { user }),
    ...(password === null ? {} : { pass: password }),
    ...(token === null ? {} : { token }),
    ...(isSecure
      ? {
          tls: {
            ...(caFile === null ? {} : { ca: textOf(caFile) }),
            ...(certificateFile === null ? {} : { cert: textOf(certificateFile) }),
            ...(keyFile === null ? {} : { key: textOf(keyFile) }),
          },
        }
      : {}),
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
  }
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs).unref())
}

/** Thousands that have lost the same server do not come back at once. */
function around(delayMs: number): number {
  return delayMs * (0.5 + Math.random())
}

const RETRY_MS = 2_000
const CONNECT_MS = 5_000
const PING_MS = 10_000
const FLUSH_MS = 1_000
