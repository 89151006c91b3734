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

/** The address of the management port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** The context of all operations, tools and tasks of the management plane. */
export interface Management {
  readonly store: Store
  readonly log: Log
  readonly apiKeys: ApiKeys
  /** What agents and keys may do. */
  readonly trust: Trust
  readonly agents: AgentIdentities
  readonly rateLimits: RateLimits
  /** `null`: not configured. */
  readonly bootstrapKey: BootstrapKey | null
  readonly failureThrottle: MinuteThrottle
  readonly gnap: Gnap
  readonly oauth: OAuth
  /** The external OpenID provider for sign-in; `null`: none. */
  readonly elsewhere: OpenidProvider | null
  /** Shared, so that only a few passwords are hashed at a time. */
  readonly passwords: PasswordHasher
  /** Call it after database changes that affect verdicts. */
  readonly publisher: Pick<Publisher, 'nudge'>
  /** What a manager knows of remote proxies; `null`: all workers belong to this gateway. */
  readonly fleet: { isLeading(): boolean; readonly view: FleetView } | null
  /** The external URL of the API: `https://gate.example`, without a trailing slash. */
  readonly publicUrl: string
  readonly ownSignature: Pick<OwnSignature, 'headersFor'>
  /** The Snapshot that proxies, `/detect` and the tools judge by; `null` before the first. */
  snapshot(): Snapshot | null
  /** Whether JA4S, JA4H and JA4X are computed. */
  readonly ja4plus: boolean
  readonly version: string
  /** The workers of this gateway. */
  workers(): readonly WorkerStatus[]
  readonly settings: LiveSettings
  /** The policy in force and its origin. */
  readonly policy: PolicyFile | PolicyKeeper
  /** The names that a rule may route to; `null`: remote proxies have their own. */
  readonly upstreams: readonly string[] | null
  /** Encrypts secrets that have to be decrypted later. */
  readonly sealer: Sealer
  /** Whether webhooks may use addresses that are not on the public internet. */
  readonly allowPrivateWebhooks: boolean
  /** Runs queued tasks. Wake it after queueing one. */
  readonly tasks: { wake(): void }
  /** Sends callbacks of tasks. Wake it when there may be one to send. */
  readonly callbacks: { wake(): void }
  /** Sends events to webhooks. Wake it when there may be one to send. */
  readonly deliveries: { wake(): void }
  readonly events: EventLog
  /** Adds events for signatures that enter the database. */
  readonly newSignatures: SignatureNews
  /** New events, for listeners. */
  readonly tail: EventTail
  /** Requests as they arrive, for listeners. */
  readonly requests: RequestFeed
  /** The amount of traffic, for listeners. */
  readonly pulse: TrafficPulse
  /** The open streaming responses. */
  readonly streams: OpenStreams
  /** The newest answers of `/detect`, for feedback on them. */
  readonly detections: RecentDetections
  nowMs(): number
}
