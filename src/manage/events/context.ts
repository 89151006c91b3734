import type { Snapshot } from '../../plane/snapshot.ts'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import type { OwnSignature } from '../auth/own-signature.ts'
import type { Sealer } from '../auth/sealer.ts'
import type { EventLog } from './event-log.ts'

/** The parts of the management plane that events and their deliveries need. */
export interface EventsContext {
  readonly store: Store
  readonly log: Log
  readonly events: EventLog
  /** Encrypts secrets that have to be decrypted later. */
  readonly sealer: Sealer
  readonly ownSignature: Pick<OwnSignature, 'headersFor'>
  /** Whether webhooks may use addresses that are not on the public internet. */
  readonly allowPrivateWebhooks: boolean
  /** Sends events to webhooks. Wake it when there may be one to send. */
  readonly deliveries: { wake(): void }
  /** The Snapshot in force; `null` before the first. */
  snapshot(): Snapshot | null
  nowMs(): number
}
