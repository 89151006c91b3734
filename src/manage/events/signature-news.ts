import type { SignatureKey } from '../../store/catalogue/catalogue.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { ObservedCounter } from '../intake/sighting-keeper.ts'

/** Tells others of signatures that enter the database. */
export interface SignatureNews {
  /** The last of the transaction that makes them, which holds the lock of Sightings; `added` follows with the answer. */
  add(keys: readonly SignatureKey[], queries: Queries): Promise<readonly NewEvent[]>
  /** The transaction has committed. */
  added(events: readonly NewEvent[]): void
  /** Of fingerprints that were seen so often that they are signatures, of nobody. */
  readonly observed: ObservedCounter
}
