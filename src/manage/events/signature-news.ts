import type { SignatureKey } from '../../store/catalogue/catalogue.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { ObservedCounter } from '../intake/sighting-keeper.ts'

/** Adds events for signatures that enter the database. */
export interface SignatureNews {
  /** Call it last in the transaction, which has to hold the lock of Sightings. Pass the result to `added`. */
  add(keys: readonly SignatureKey[], queries: Queries): Promise<readonly NewEvent[]>
  /** Call it after the transaction has committed. */
  added(events: readonly NewEvent[]): void
  /** For fingerprints that were seen often enough to become signatures without an owner. */
  readonly observed: ObservedCounter
}
