import type { LogLevel } from '../../shared/log.ts'
import type { MetricsReading } from '../../shared/metrics.ts'
import type { UnreadyReason } from '../../plane/readiness.ts'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import type { KeyPair } from '../tls/key-pair.ts'

/** The workers, however many there are and wherever they run. */
export interface DataPlane {
  /** Where connections are taken from now on. Rejects with a Fault when one of them cannot be had. */
  start(state: LiveState): Promise<ListenAddresses>
  /** From the next handshake on, in every worker. */
  use(state: LiveState): void
  /** The least important that workers log, from now on. */
  logAt(level: LogLevel): void
  workers(): readonly WorkerStatus[]
  /** Why it should get no requests now; none when it may. */
  unready(): readonly UnreadyReason[]
  /** What has been counted, also by workers that are gone. */
  read(): Promise<readonly MetricsReading[]>
  /** Takes no more connections, and lets go of those there are; resolves when all is over, at the deadline at last. */
  drain(deadlineMs: number): Promise<void>
  /** Ends processes of its own at once, with all they have. */
  kill(): void
}

/** What workers use that may change while they run, besides Snapshots. */
export interface LiveState {
  readonly keyPairs: readonly KeyPair[]
  /** 48 bytes: whoever has them can continue every session that is not older. */
  readonly ticketKeys: Buffer
  /** With which the app is told what it is told, as `signingKeysText` has it; `null`: with none of our own. */
  readonly signingKey: string | null
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export interface ListenAddresses {
  readonly listen: ListenAddress
  readonly plainListen: ListenAddress | null
}
