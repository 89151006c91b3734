import type { LogLevel } from '../../shared/log.ts'
import type { MetricsReading } from '../../shared/metrics.ts'
import type { UnreadyReason } from '../../plane/readiness.ts'
import type { LiveState } from './data-plane.ts'
import type { UnhealthyTarget } from '../upstream/upstream-log.ts'
import type { WorkerSettings } from './worker-settings.ts'

/** Messages from the primary to a worker. */
export type ToWorker =
  | { readonly kind: 'worker:start'; readonly settings: WorkerSettings; readonly state: LiveState }
  | { readonly kind: 'worker:use'; readonly state: LiveState }
  | { readonly kind: 'worker:log-at'; readonly level: LogLevel }
  | { readonly kind: 'worker:read'; readonly number: number }
  | { readonly kind: 'worker:drain'; readonly deadlineMs: number }

/** Messages from a worker to the primary. */
export type FromWorker =
  /** It runs, and waits for its settings. */
  | { readonly kind: 'worker:loaded' }
  | { readonly kind: 'worker:listening' }
  /** It cannot start, and a replacement could not either. */
  | { readonly kind: 'worker:failed'; readonly code: string; readonly message: string }
  /** `snapshot`: the number of its current Snapshot. `dropped`: Sightings it had no room for. */
  | {
      readonly kind: 'worker:alive'
      readonly unready: readonly UnreadyReason[]
      readonly unhealthy: readonly UnhealthyTarget[]
      readonly snapshot: number
      readonly dropped: number
    }
  | { readonly kind: 'worker:reading'; readonly number: number; readonly reading: MetricsReading }
  /** The last message. */
  | { readonly kind: 'worker:bye' }
