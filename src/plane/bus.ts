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
   * batch that is sent again may arrive twice, which is harmless because Sightings have ids.
   */
  sendSightings(batch: readonly Sighting[]): Promise<void>
  /** Rejects everything in progress. */
  close(): void
}

/** The management plane's end of the bus. */
export interface ManageBus {
  /** Publishes to current and future proxies. A number that does not rise is a bug. */
  publish(document: SnapshotDocument): void
  /**
   * Receives every batch, in the order sent by each proxy. If the listener throws or rejects, the proxy keeps
   * the batch and sends it again. One listener; without one, batches are accepted and dropped.
   */
  onSightings(listener: (batch: readonly Sighting[]) => void | Promise<void>): void
  close(): void
}
