import type { AppTables } from './tables/apps.ts'
import type { AuditTables } from './tables/audit.ts'
import type { CatalogueTables } from './tables/catalogue.ts'
import type { DeliveryTables } from './tables/deliveries.ts'
import type { CaseTables } from './tables/cases.ts'
import type { EventTables } from './tables/events.ts'
import type { GnapTables } from './tables/gnap.ts'
import type { IdempotencyTables } from './tables/idempotency.ts'
import type { KeyTables } from './tables/keys.ts'
import type { OAuthTables } from './tables/oauth.ts'
import type { PaymentTables } from './tables/payments.ts'
import type { PolicyTables } from './tables/policies.ts'
import type { SettingTables } from './tables/settings.ts'
import type { SightingTables } from './tables/sightings.ts'
import type { SubmissionTables } from './tables/submissions.ts'
import type { TaskTables } from './tables/tasks.ts'
import type { ThreatTables } from './tables/threats.ts'
import type { TrustTables } from './tables/trust.ts'
import type { UserTables } from './tables/users.ts'
import type { WebhookTables } from './tables/webhooks.ts'

/**
 * All tables. Both databases have the same columns: times are whole milliseconds since 1970, booleans are 0
 * or 1, structured values are JSON text, and names are in snake_case.
 */
export interface Tables
  extends AppTables,
    AuditTables,
    CatalogueTables,
    DeliveryTables,
    CaseTables,
    EventTables,
    GnapTables,
    IdempotencyTables,
    KeyTables,
    ManagerTables,
    OAuthTables,
    PaymentTables,
    PolicyTables,
    RateLimitTables,
    ReplayTables,
    SettingTables,
    SightingTables,
    SubmissionTables,
    TaskTables,
    ThreatTables,
    TrustTables,
    UserTables,
    WebhookTables {}

interface ManagerTables {
  detections: DetectionTable
  traffic: TrafficTable
}

/** Answers of `/detect`, for feedback that arrives at another process. Bounded: the oldest are deleted. */
interface DetectionTable {
  /** The id of the request. */
  id: string
  at_ms: number
  /** JSON: the verdict. */
  document: string
}

/** The requests of each process in its last second. Bounded: one row for each process of the last hour. */
interface TrafficTable {
  process: string
  at_ms: number
  /** JSON: sums. */
  document: string
}

interface RateLimitTables {
  rate_limits: RateLimitTable
}

interface RateLimitTable {
  /** The plan and the principal. */
  key: string
  /** Requests in the window. */
  points: number
  ends_at_ms: number
}

interface ReplayTables {
  replays: ReplayTable
}

/** A proof that was used and must not be used again. */
interface ReplayTable {
  /** A digest. */
  id: string
  expires_at_ms: number
}
