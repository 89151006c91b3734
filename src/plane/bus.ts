import type { PaymentAnswer, PaymentMessage } from '../payment/claim.ts'
import type { RequestCounts } from './counts/request-counts.ts'
import type { Sighting } from './sighting.ts'
import type { SnapshotDocument } from './snapshot.ts'

/**
 * A proxy's end of the bus between the planes: Snapshots go to proxies, Sightings to the management plane.
 */
export interface ProxyBus {
  /**
   * Best batch size. One message costs as much as hundreds of Sightings, but a batch is encoded in one
   * blocking step.
   */
  readonly batchMax: number
  /**
   * Calls the listener with the newest Snapshot once there is one, then with each newer one. Numbers only
   * rise; some may be skipped. One listener.
   */
  onSnapshot(listener: (document: SnapshotDocument) => void): void
  /**
   * Resolves when the management plane has the batch. Rejects if it does not have it or may not have it. A
   * batch that is sent again may arrive twice, which is harmless because Sightings and counts have ids.
   */
  sendSightings(batch: readonly Sighting[], counts?: readonly RequestCounts[]): Promise<void>
  /** Resolves with `unavailable` if the management plane does not answer in time. Never rejects. */
  pay(message: PaymentMessage): Promise<PaymentAnswer>
  /** Rejects everything in progress. */
  close(): void
}

/** The management plane's end of the bus. */
export interface ManageBus {
  /** Publishes to current and future proxies. A number that does not rise is a bug. */
  publish(document: SnapshotDocument): void
  /** Receives every batch, in the order sent by each proxy. One listener; without one, batches are dropped. */
  onSightings(listener: SightingListener): void
  /** Answers payments. One listener, which never rejects; without one, they are unavailable. */
  onPayment(listener: PaymentListener): void
  close(): void
}

/** If it throws or rejects, the proxy keeps the batch and sends it again. */
export type SightingListener = (
  batch: readonly Sighting[],
  pressure: Pressure,
  counts: readonly RequestCounts[],
) => void | Promise<void>

/** `undefined`: this process has no ledger. */
export type PaymentListener = (message: PaymentMessage) => Promise<PaymentAnswer> | undefined

/** Longer than the management plane takes with the facilitator. */
export const PAYMENT_ANSWER_MS = 45_000

/** Whether Sightings come faster than the listener takes them. `extreme`: even while it does less with each. */
export type Pressure = 'none' | 'high' | 'extreme'
