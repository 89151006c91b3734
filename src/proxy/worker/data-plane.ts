import type { LogLevel } from '../../shared/log.ts'
import type { MetricsReading } from '../../shared/metrics.ts'
import type { UnreadyReason } from '../../plane/readiness.ts'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import type { KeyPair } from '../tls/key-pair.ts'
import type { ListenAddress } from '../../shared/listen-address.ts'

/** The workers, whatever their number and process. */
export interface DataPlane {
  /**
   * Starts the workers and resolves with the addresses they listen on. Rejects with a Fault if an address is
   * unavailable.
   */
  start(state: LiveState): Promise<ListenAddresses>
  /** Applies to later handshakes in every worker. */
  use(state: LiveState): void
  /** Sets the log level of the workers. */
  logAt(level: LogLevel): void
  workers(): readonly WorkerStatus[]
  /** Why the proxy should get no requests now. Empty if it may. */
  unready(): readonly UnreadyReason[]
  /** The metrics of all workers, including those that have exited. */
  read(): Promise<readonly MetricsReading[]>
  /**
   * Stops accepting connections and ends the open ones. Resolves when all are closed, at the latest at the
   * deadline.
   */
  drain(deadlineMs: number): Promise<void>
  /** Kills its processes at once, with all their connections. */
  kill(): void
}

/** What workers use and may change while they run, besides Snapshots. */
export interface LiveState {
  readonly keyPairs: readonly KeyPair[]
  /** 48 bytes. A process that has them can resume every session begun under them. */
  readonly ticketKeys: Buffer
  /**
   * The key that signs the headers for the app, in the form of `signingKeysText`. `null`: no key of its own.
   */
  readonly signingKey: string | null
}

export interface ListenAddresses {
  readonly listen: ListenAddress
  readonly plainListen: ListenAddress | null
}
