import { AccountErasure } from './erasure/account-erasure.ts'
import { AgentsSeenStore } from './catalogue/agents-seen.ts'
import { AppRollupStore } from './traffic/app-rollups.ts'
import { AppStore } from './work/apps.ts'
import { AuditStore } from './people/audit.ts'
import { CaseStore } from './events/cases.ts'
import { CampaignStore } from './traffic/campaigns.ts'
import { CatalogueStore } from './catalogue/catalogue.ts'
import { CatalogueFacts } from './catalogue/catalogue-facts.ts'
import { CatalogueLists } from './catalogue/catalogue-lists.ts'
import { CatalogueLookup } from './catalogue/catalogue-lookup.ts'
import { CatalogueMerge } from './catalogue/catalogue-merge.ts'
import type { Database, Queries } from './engine/database.ts'
import { ClickHouseSightings, type TrafficPlace } from './traffic/clickhouse/clickhouse-sightings.ts'
import { DeliveryStore } from './events/deliveries.ts'
import { DeliveryLog } from './events/delivery-log.ts'
import { DetectionStore } from './traffic/detections.ts'
import { EventStormStore } from './events/event-storms.ts'
import { EventPositionStore } from './events/event-positions.ts'
import { EventStore } from './events/events.ts'
import { FeedbackStore } from './catalogue/feedback.ts'
import { FingerprintsSeenStore } from './catalogue/fingerprints-seen.ts'
import { GnapGrantStore } from './people/gnap-grants.ts'
import { GnapTokenStore } from './people/gnap-tokens.ts'
import { IdempotencyStore } from './work/idempotency.ts'
import { KeyStore } from './people/keys.ts'
import { migrate } from './engine/migrations.ts'
import { OAuthClientStore } from './people/oauth-clients.ts'
import { OAuthDenialStore } from './people/oauth-denials.ts'
import { OAuthKeyStore } from './people/oauth-keys.ts'
import { OAuthRecordStore } from './people/oauth-records.ts'
import { ObservedStore } from './catalogue/observed.ts'
import { openDatabase } from './engine/open-database.ts'
import { PasskeyStore } from './people/passkeys.ts'
import { PaymentStore } from './work/payments.ts'
import { PolicyStore } from './work/policies.ts'
import { RateLimitStore } from './traffic/rate-limits.ts'
import { RecordErasure } from './erasure/record-erasure.ts'
import { ReplayStore } from './people/replays.ts'
import { RollupStore } from './traffic/rollups.ts'
import { SealedValueStore } from './engine/sealed-values.ts'
import { SettingStore } from './work/settings.ts'
import { SqliteSpace } from './engine/sqlite-space.ts'
import { SightingStore } from './traffic/sightings.ts'
import type { StoreLogin } from './engine/store-login.ts'
import { SubmissionStore } from './catalogue/submissions.ts'
import { TaskCallbackStore } from './work/task-callbacks.ts'
import { TaskStore } from './work/tasks.ts'
import { ThreatWindowStore } from './traffic/threat-windows.ts'
import { TrafficStore } from './traffic/traffic.ts'
import { TrialStore } from './catalogue/trials.ts'
import { TrustStore } from './people/trust.ts'
import { UserStore } from './people/users.ts'
import { WebhookHealthStore } from './events/webhook-health.ts'
import { WebhookStore } from './events/webhooks.ts'

/**
 * The database as the management plane uses it. Each member has the queries of its own tables. If the
 * environment causes a failure, it is a Fault whose code starts with `STORE_`.
 */
export class Store {
  readonly accountErasure: AccountErasure
  readonly agentsSeen: AgentsSeenStore
  readonly appRollups: AppRollupStore
  readonly apps: AppStore
  readonly audit: AuditStore
  readonly campaigns: CampaignStore
  readonly cases: CaseStore
  readonly catalogue: CatalogueStore
  readonly deliveries: DeliveryStore
  readonly deliveryLog: DeliveryLog
  readonly detections: DetectionStore
  readonly eventPositions: EventPositionStore
  readonly events: EventStore
  readonly eventStorms: EventStormStore
  readonly feedback: FeedbackStore
  readonly catalogueFacts: CatalogueFacts
  readonly catalogueLists: CatalogueLists
  readonly catalogueLookup: CatalogueLookup
  readonly catalogueMerge: CatalogueMerge
  readonly fingerprintsSeen: FingerprintsSeenStore
  readonly gnapGrants: GnapGrantStore
  readonly gnapTokens: GnapTokenStore
  readonly idempotency: IdempotencyStore
  readonly keys: KeyStore
  readonly oauthClients: OAuthClientStore
  readonly oauthDenials: OAuthDenialStore
  readonly oauthKeys: OAuthKeyStore
  readonly oauthRecords: OAuthRecordStore
  readonly passkeys: PasskeyStore
  readonly payments: PaymentStore
  readonly policies: PolicyStore
  readonly rateLimits: RateLimitStore
  readonly observed: ObservedStore
  readonly recordErasure: RecordErasure
  readonly replays: ReplayStore
  readonly rollups: RollupStore
  readonly sealedValues: SealedValueStore
  readonly settings: SettingStore
  readonly sightings: SightingStore
  /** `null`: PostgreSQL reuses its space by itself. */
  readonly space: SqliteSpace | null
  readonly submissions: SubmissionStore
  readonly taskCallbacks: TaskCallbackStore
  readonly tasks: TaskStore
  readonly threatWindows: ThreatWindowStore
  readonly traffic: TrafficStore
  readonly trials: TrialStore
  readonly trust: TrustStore
  readonly users: UserStore
  readonly webhookHealth: WebhookHealthStore
  readonly webhooks: WebhookStore
  readonly #database: Database

  /** Opens `sqlite:FILE` or `postgres://…` and applies missing migrations. `traffic`: where requests are, if not there. */
  static async open(
    url: string,
    login: StoreLogin | null = null,
    traffic: TrafficPlace | null = null,
  ): Promise<Store> {
    return new Store(await openDatabase(url, login, migrate), traffic)
  }

  private constructor(database: Database, traffic: TrafficPlace | null) {
    const { db, kind } = database
    this.#database = database
    this.accountErasure = new AccountErasure(db)
    this.agentsSeen = new AgentsSeenStore(db)
    this.appRollups = new AppRollupStore(db)
    this.apps = new AppStore(db, kind)
    this.audit = new AuditStore(db, kind)
    this.campaigns = new CampaignStore(db)
    this.cases = new CaseStore(db)
    this.catalogue = new CatalogueStore(db, kind)
    this.deliveries = new DeliveryStore(db, kind)
    this.deliveryLog = new DeliveryLog(db)
    this.detections = new DetectionStore(db)
    this.eventPositions = new EventPositionStore(db)
    this.events = new EventStore(db, kind)
    this.eventStorms = new EventStormStore(db)
    this.feedback = new FeedbackStore(db)
    this.catalogueFacts = new CatalogueFacts(db)
    this.catalogueLists = new CatalogueLists(db)
    this.catalogueLookup = new CatalogueLookup(db)
    this.catalogueMerge = new CatalogueMerge(db, kind)
    this.fingerprintsSeen = new FingerprintsSeenStore(db)
    this.gnapGrants = new GnapGrantStore(db, kind)
    this.gnapTokens = new GnapTokenStore(db)
    this.idempotency = new IdempotencyStore(db)
    this.keys = new KeyStore(db, kind)
    this.oauthClients = new OAuthClientStore(db, kind)
    this.oauthDenials = new OAuthDenialStore(db)
    this.oauthKeys = new OAuthKeyStore(db)
    this.oauthRecords = new OAuthRecordStore(db)
    this.passkeys = new PasskeyStore(db)
    this.payments = new PaymentStore(db)
    this.policies = new PolicyStore(db)
    this.rateLimits = new RateLimitStore(db)
    this.observed = new ObservedStore(db)
    this.recordErasure = new RecordErasure(db)
    this.replays = new ReplayStore(db)
    this.rollups = new RollupStore(db)
    this.sealedValues = new SealedValueStore(db)
    this.settings = new SettingStore(db)
    this.space = kind === 'sqlite' ? new SqliteSpace(db) : null
    this.sightings =
      traffic === null ? new SightingStore(db, kind) : new ClickHouseSightings(db, kind, traffic)
    this.submissions = new SubmissionStore(db)
    this.taskCallbacks = new TaskCallbackStore(db, kind)
    this.tasks = new TaskStore(db, kind)
    this.threatWindows = new ThreatWindowStore(db)
    this.traffic = new TrafficStore(db)
    this.trials = new TrialStore(db, kind)
    this.trust = new TrustStore(db, kind)
    this.users = new UserStore(db, kind)
    this.webhookHealth = new WebhookHealthStore(db, kind)
    this.webhooks = new WebhookStore(db, kind)
  }

  get kind(): Database['kind'] {
    return this.#database.kind
  }

  /**
   * Runs `work` in one transaction. `work` must wait only for queries, because all other writers wait for it.
   */
  transaction<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#database.db.transaction().execute(work)
  }

  /** Throws a Fault if the database is unavailable. */
  async isThere(): Promise<void> {
    await this.settings.get('')
  }

  async close(): Promise<void> {
    await this.sightings.close()
    await this.#database.close()
  }
}
