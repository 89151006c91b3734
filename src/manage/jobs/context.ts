import type { Log } from '../../shared/log.ts'
import type { Snapshot } from '../../plane/snapshot.ts'
import type { Store } from '../../store/store.ts'
import type { OwnSignature } from '../auth/own-signature.ts'
import type { Sealer } from '../auth/sealer.ts'

/** The parts of the management plane that tasks and their callbacks need. */
export interface JobsContext {
  readonly store: Store
  readonly log: Log
  /** Encrypts secrets that have to be decrypted later. */
  readonly sealer: Sealer
  readonly ownSignature: Pick<OwnSignature, 'headersFor'>
  /** Whether callbacks may use addresses that are not on the public internet. */
  readonly allowPrivateWebhooks: boolean
  /** Sends callbacks of tasks. Wake it when there may be one to send. */
  readonly callbacks: { wake(): void }
  /** The Snapshot that tools judge by; `null` before the first. */
  snapshot(): Snapshot | null
  nowMs(): number
}
