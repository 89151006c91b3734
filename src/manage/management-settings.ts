import type { Effective } from '../config/reader.ts'
import type { AsnFile } from '../identity/address/asn-file.ts'
import type { DocumentMetrics } from '../identity/fetch/document-metrics.ts'
import type { Sighting } from '../plane/sighting.ts'
import type { WorkerStatus } from '../plane/worker-status.ts'
import type { Secret } from '../shared/secret.ts'
import type { StoreLogin } from '../store/engine/store-login.ts'
import type { Store } from '../store/store.ts'
import type { TrafficPlace } from '../store/traffic/clickhouse/clickhouse-sightings.ts'
import type { Fleet } from './api/context.ts'
import type { GnapSettings } from './auth/gnap/gnap.ts'
import type { ClientDocuments } from './auth/oauth/client-documents.ts'
import type { OAuthSettings } from './auth/oauth/oauth.ts'
import type { People } from './auth/oauth/people.ts'
import type { OwnSigning } from './auth/own-signature.ts'
import type { OpenidSettings } from './auth/people/openid-provider.ts'
import type { PasswordHasher } from './auth/people/password-hash.ts'
import type { ThreatSettings } from './events/event-sources.ts'
import type { SinkSettings } from './events/sinks/sinks.ts'
import type { RequestSinkSettings } from './export/request-sinks.ts'
import type { DelivererSettings } from './events/webhooks/deliverer.ts'
import type { KeeperSettings } from './intake/sighting-keeper.ts'
import type { MakeServer } from './mcp/asker.ts'
import type { EventRetention } from './periodic-jobs.ts'
import type { AppKeeper } from './publish/app-keeper.ts'
import type { AppPolicies } from './publish/app-policies.ts'
import type { PolicyFile, PolicyKeeper } from './publish/policy-keeper.ts'
import type { PaymentSettings } from './payments/cashier.ts'
import type { Publisher } from './publish/publisher.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, without a password. */
  readonly storeUrl: string
  readonly storeLogin: StoreLogin
  /** Where recorded requests are; `null`: in the database. */
  readonly traffic: TrafficPlace | null
  /** `null`: the address that it listens on. */
  readonly publicUrl: string | null
  /** The first API key of an administrator. */
  readonly adminKey: string | null
  /** Whether the management port speaks TLS. */
  readonly hasTls: boolean
  readonly ja4plus: boolean
  /** Whether to look for crawlers that come from many addresses. */
  readonly findsCampaigns: boolean
  /** Whether the dashboard is served. */
  readonly hasDashboard: boolean
  /** The origins whose pages may use the API. */
  readonly corsOrigins: readonly string[]
  readonly version: string
  readonly authFailuresPerMinute: number
  readonly gnap: GnapSettings
  readonly oauth: OAuthSettings
  /** The external OpenID provider for sign-in; `null`: none. */
  readonly openid: OpenidSettings | null
  readonly auditRetentionMs: number
  /** After their end. */
  readonly taskRetentionMs: number
  /** `null`: only the number of feedback is limited. */
  readonly feedbackRetentionMs: number | null
  readonly events: EventRetention
  /** The destinations of events. */
  readonly sinks: SinkSettings
  /** The destinations of individual requests. */
  readonly requestSinks: RequestSinkSettings
  /** For data that persists outside of the database. */
  readonly dataFolder: string
  /**
   * Keys for secrets in the database: the first encrypts, all decrypt. If empty: the file in the data folder.
   */
  readonly encryptionKeys: readonly Secret<string>[]
  readonly allowPrivateWebhooks: boolean
  readonly deliveries: DelivererSettings & {
    /** For finished deliveries. */
    readonly retentionMs: number
  }
  /** For documents that others publish. */
  readonly allowPrivateFetches: boolean
  /** Whether keys and cards of agents are fetched. */
  readonly fetchesCards: boolean
  /** The names that a rule may route to; `null`: remote proxies have their own. */
  readonly upstreams: readonly string[] | null
  /** How payments are taken, and by which facilitator. */
  readonly payments: PaymentSettings
  /** The id of the app of every request; `null`: its host decides, or the proxies are remote. */
  readonly fixedApp: string | null
  readonly seen: KeeperSettings
  /** PostgreSQL: whether the commit of Sightings waits for the disk. */
  readonly sightingsWaitForDisk: boolean
  readonly threats: ThreatSettings
  /** The keys of hashes of addresses, the present one first. */
  readonly privacyKeys: readonly Secret<string>[]
  /** All settings with the origin of each. */
  readonly configured: readonly Effective[]
}

/** How the management plane notifies the rest of the process, and what it uses from it. */
export interface ManagementLinks {
  readonly publisher: Pick<Publisher, 'nudge'> & Partial<Pick<Publisher, 'useCampaigns'>>
  readonly policy: PolicyFile | PolicyKeeper
  readonly apps: AppKeeper
  readonly appPolicies: AppPolicies
  /** Called when the database is open. */
  opened(store: Store): void
  /** Called when a backup was restored into the database. */
  restored(): void
  /** Polls for changes whose notification was lost. Omit it to disable polling. */
  catchUp?(): Promise<void>
  /** The list of networks in use. Omit it if none is set. */
  networks?(): AsnFile | null
  /** Called with Sightings that were stored. */
  stored(batch: readonly Sighting[]): void
  /** Replaces the people in the database for sign-in; `null`: sign-in is disabled. */
  readonly people?: People | null
  /** Replaces the source of client metadata documents in tests. */
  readonly clientDocuments?: ClientDocuments
  /** Replaces the MCP server in tests. */
  readonly mcpServer?: MakeServer
  /** Metrics of document fetches, if the caller exposes them itself. */
  readonly documentMetrics?: DocumentMetrics
  /** How to sign with our own key; without it, nothing is signed. */
  readonly signing?: OwnSigning
  /** A faster password hasher for tests. */
  readonly passwords?: PasswordHasher
  /** The heartbeats of remote proxies; without it, there are no remote proxies. */
  readonly fleet?: Fleet
  /** The workers of the data plane and their state. */
  workers(): readonly WorkerStatus[]
  /** Another clock, for tests. */
  nowMs?(): number
}
