import type { Sighting } from './sighting.ts'
import type { SnapshotDocument } from './snapshot.ts'

/** What a proxy holds of the connection between the planes: Snapshots come down, Sightings go up. */
export interface ProxyBus {
  /** As many are best sent at once: a message costs what hundreds of Sightings do, and all of it is made in one go. */
  readonly batchMax: number
  /**
   * Calls with the newest Snapshot as soon as there is one, then with each newer one; numbers only rise, and some may
   * be left out. One listener.
   */
  onSnapshot(listener: (document: SnapshotDocument) => void): void
  /**
   * Resolves when the management plane has the batch. Rejects when it has not or may not have: sent again, it may
   * arrive twice, which the Sightings' ids make harmless.
   */
  sendSightings(batch: readonly Sighting[]): Promise<void>
  /** Whatever is under way is rejected. */
  close(): void
}

/** What the management plane holds of it. */
export interface ManageBus {
  /** For the proxies there are and those that come later. A number that is not above the last one is a bug. */
  publish(document: SnapshotDocument): void
  /**
   * Every batch, each proxy's in the order sent. A listener that throws or rejects makes the proxy keep the batch and
   * send it again. One listener; without one, batches are taken and forgotten.
   */
  onSightings(listener: (batch: readonly Sighting[]) => void | Promise<void>): void
  close(): void
}
