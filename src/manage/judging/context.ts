import type { Snapshot } from '../../plane/snapshot.ts'
import type { CatalogueKey } from '../../store/catalogue/catalogue.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { Store } from '../../store/store.ts'
import type { AfterCommit } from '../intake/ingest.ts'
import type { RecentDetections } from './detections.ts'

/** The parts of the management plane that judging needs. */
export interface JudgingContext {
  readonly store: Store
  /** The newest answers of `/detect`, for feedback on them. */
  readonly detections: RecentDetections
  readonly newSignatures: SignatureNews
  /** Nudge it after database changes that affect verdicts. */
  readonly publisher: { nudge(): void }
  readonly settings: { value(name: 'submissions.auto_accept'): boolean }
  /** Whether JA4S, JA4H and JA4X are computed. */
  readonly ja4plus: boolean
  /** The Snapshot that proxies, `/detect` and the tools judge by; `null` before the first. */
  snapshot(): Snapshot | null
  nowMs(): number
}

/** Adds events for signatures that enter the database. */
export interface SignatureNews {
  /**
   * Call it last in the transaction, which has to hold the lock of Sightings. Call what it returns after the
   * commit.
   */
  add(keys: readonly CatalogueKey[], queries: Queries): Promise<AfterCommit>
}
