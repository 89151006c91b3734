import type { OwnSignature } from './auth/own-signature.ts'
import type { EventLog } from './events/event-log.ts'
import type { EventTail } from './events/event-tail.ts'
import type { OpenStreams } from './http/open-streams.ts'
import type { Log } from '../shared/log.ts'
import type { Snapshot } from '../plane/snapshot.ts'
import type { WorkerStatus } from '../plane/worker-status.ts'
import type { Store } from '../store/store.ts'
import type { RateLimits } from './limits/rate-limits.ts'
import type { ApiKeys } from './auth/api-keys.ts'
import type { AgentIdentities } from './auth/agent-identity.ts'
import type { BootstrapKey } from './auth/bootstrap-key.ts'
import type { MinuteThrottle } from './auth/minute-throttle.ts'
import type { Gnap } from './auth/gnap/gnap.ts'
import type { OAuth } from './auth/oauth/oauth.ts'
import type { Trust } from './auth/trust.ts'
import type { OpenidProvider } from './auth/people/openid-provider.ts'
import type { PasswordHasher } from './auth/people/password-hash.ts'
import type { RecentDetections } from './judging/detections.ts'
import type { FleetView } from './publish/fleet-view.ts'
import type { Publisher } from './publish/publisher.ts'
import type { LiveSettings } from './publish/live-settings.ts'
import type { PolicyFile, PolicyKeeper } from './publish/policy-keeper.ts'
import type { SignatureNews } from './events/signature-news.ts'
import type { RequestFeed } from './intake/request-feed.ts'
import type { Sealer } from './auth/sealer.ts'
import type { TrafficPulse } from './intake/traffic-pulse.ts'

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
  /** What agents and keys may do. */
  readonly trust: Trust
  readonly agents: AgentIdentities
  readonly rateLimits: RateLimits
  /** `null`: there is none in the configuration. */
  readonly bootstrapKey: BootstrapKey | null
  readonly failureThrottle: MinuteThrottle
  readonly gnap: Gnap
  readonly oauth: OAuth
  /** Where else people may say who they are; `null`: nowhere. */
  readonly elsewhere: OpenidProvider | null
  /** One for all, so that few are hashed at once. */
  readonly passwords: PasswordHasher
  /** Told what changes in the database that proxies judge by. */
  readonly publisher: Pick<Publisher, 'nudge'>
  /** What a manager hears of proxies elsewhere; `null`: this gateway has all its workers itself. */
  readonly fleet: { isLeading(): boolean; readonly view: FleetView } | null
  /** How others reach the API: `https://gate.example`, without a slash at the end. */
  readonly publicUrl: string
  readonly ownSignature: Pick<OwnSignature, 'headersFor'>
  /** What proxies judge by, and `/detect` and the tools with them; `null` before the first. */
  snapshot(): Snapshot | null
  /** Whether JA4S, JA4H and JA4X are computed. */
  readonly ja4plus: boolean
  readonly version: string
  /** Those of this gateway. */
  workers(): readonly WorkerStatus[]
  readonly settings: LiveSettings
  /** Which policy is in force, and where it comes from. */
  readonly policy: PolicyFile | PolicyKeeper
  /** The names that a rule may route to; `null`: proxies elsewhere have theirs. */
  readonly upstreams: readonly string[] | null
  /** For secrets that have to be known again. */
  readonly sealer: Sealer
  /** Whether webhooks may lead to addresses that are not on the public internet. */
  readonly allowPrivateWebhooks: boolean
  /** Works on what is queued; told of what is new. */
  readonly tasks: { wake(): void }
  /** Tells of tasks; told where there is somebody to be told. */
  readonly callbacks: { wake(): void }
  /** Tells webhooks of events; told where there is something to be sent. */
  readonly deliveries: { wake(): void }
  readonly events: EventLog
  /** Tells others of those that enter the database. */
  readonly newSignatures: SignatureNews
  /** For who listens to them. */
  readonly tail: EventTail
  /** Requests as they come in, for who listens. */
  readonly requests: RequestFeed
  /** How much traffic there is, for who listens. */
  readonly pulse: TrafficPulse
  /** Answers that take their time. */
  readonly streams: OpenStreams
  /** The newest answers of `/detect`, for who has feedback on them. */
  readonly detections: RecentDetections
  nowMs(): number
}
