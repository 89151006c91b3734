import type { Log } from '../log.ts'
import type { Snapshot } from '../plane/snapshot.ts'
import type { Store } from '../store/store.ts'
import type { ApiKeys } from './auth/api-keys.ts'
import type { RecentDetections } from './detections.ts'
import type { Publisher } from './publisher.ts'

/** Where the management port is. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** All that operations, tools and tasks may use: the management plane's one context. */
export interface Management {
  readonly store: Store
  readonly log: Log
  readonly apiKeys: ApiKeys
  /** Told what changes in the database that proxies judge by. */
  readonly publisher: Pick<Publisher, 'nudge'>
  /** How others reach the API: `https://gate.example`, without a slash at the end. */
  readonly publicUrl: string
  /** What proxies judge by, and `/detect` and the tools with them; `null` before the first. */
  snapshot(): Snapshot | null
  /** Whether JA4S, JA4H and JA4X are computed. */
  readonly ja4plus: boolean
  /** Submissions that nothing speaks against are accepted without an administrator. */
  readonly autoAccept: boolean
  /** The newest answers of `/detect`, for who has feedback on them. */
  readonly detections: RecentDetections
  nowMs(): number
}
