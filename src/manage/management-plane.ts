import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type Koa from 'koa'
import { versionSaid } from '../classify/known/version-said.ts'
import type { Effective } from '../config/reader.ts'
import { Fault } from '../shared/fault.ts'
import { DIRECTORY } from '../classify/known/signer-id.ts'
import { DocumentMetrics } from '../identity/fetch/document-metrics.ts'
import type { Log } from '../shared/log.ts'
import type { Snapshot, SnapshotDocument } from '../plane/snapshot.ts'
import { SnapshotReader } from '../plane/snapshot-reader.ts'
import type { WorkerStatus } from '../plane/worker-status.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { Sighting } from '../plane/sighting.ts'
import type { Secret } from '../shared/secret.ts'
import { SEALED_BY } from '../store/work/settings.ts'
import { Store } from '../store/store.ts'
import type { StoreLogin } from '../store/engine/store-login.ts'
import type { TaskRecord } from '../store/work/tasks.ts'
import { a2aEndpoints, isOfA2A } from './a2a/endpoints.ts'
import { api } from './api/api.ts'
import { TASK_TYPES } from './api/operations.ts'
import { shownTask } from './api/tasks.ts'
import { documents } from './pages/documents.ts'
import type { RequestContext, RequestState } from './http/router.ts'
import { AgentClients } from './auth/agent-clients.ts'
import { AgentIdentities } from './auth/agent-identity.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { BootstrapKey } from './auth/bootstrap-key.ts'
import { MinuteThrottle } from './auth/minute-throttle.ts'
import { gnapDocuments, gnapEndpoints } from './auth/gnap/endpoints.ts'
import { ASKING_PER_MINUTE, type GnapSettings } from './auth/gnap/gnap.ts'
import { GnapTokens } from './auth/gnap/gnap-tokens.ts'
import { sayError, unavailable } from './auth/oauth/answer.ts'
import type { ClientDocuments } from './auth/oauth/client-documents.ts'
import { oauthDocuments } from './auth/oauth/discovery.ts'
import { oauthEndpoints } from './auth/oauth/endpoints.ts'
import { OAuth, type OAuthSettings } from './auth/oauth/oauth.ts'
import type { People } from './auth/oauth/people.ts'
import { OpenidProvider, type OpenidSettings } from './auth/people/openid-provider.ts'
import { PeoplePages } from './auth/people/people-pages.ts'
import { PasswordHasher } from './auth/people/password-hash.ts'
import { Trust } from './auth/trust.ts'
import { dashboard } from './pages/dashboard.ts'
import { RecentDetections } from './judging/detections.ts'
import { EventLog } from './events/event-log.ts'
import { EventMetrics } from './events/event-metrics.ts'
import { EventSources, type ThreatSettings } from './events/event-sources.ts'
import { EventTail } from './events/event-tail.ts'
import { Ingest } from './intake/ingest.ts'
import { IngestMetrics } from './intake/ingest-metrics.ts'
import { LiveSettings } from './publish/live-settings.ts'
import { mcpDocuments } from './mcp/discovery.ts'
import { McpEndpoint } from './mcp/endpoint.ts'
import { MCP_PATH } from './mcp/offer.ts'
import type { MakeServer } from './mcp/asker.ts'
import type { ListenAddress, Management } from './management.ts'
import { NewSignatures } from './events/new-signatures.ts'
import { OpenStreams } from './http/open-streams.ts'
import { RateLimits } from './limits/rate-limits.ts'
import { Periodic, type PeriodicJob } from './jobs/periodic.ts'
import { type EventRetention, periodicJobs } from './periodic-jobs.ts'
import type { Publisher } from './publish/publisher.ts'
import type { PolicyFile, PolicyKeeper } from './publish/policy-keeper.ts'
import { Refusal } from './http/refusal.ts'
import { RequestFeed } from './intake/request-feed.ts'
import { Sealer } from './auth/sealer.ts'
import { Sinks, type SinkSettings } from './events/sinks/sinks.ts'
import { type KeeperSettings, SightingKeeper } from './intake/sighting-keeper.ts'
import { type CallbackMessage, TaskCallbacks } from './jobs/task-callbacks.ts'
import { TaskRunner } from './jobs/task-runner.ts'
import { taskWebhook } from './jobs/task-webhook.ts'
import { trialCounter } from './judging/submissions/trial-counter.ts'
import { deliveryJobs } from './events/webhooks/delivery-jobs.ts'
import { Deliverer, type DelivererSettings } from './events/webhooks/deliverer.ts'
import { DeliveryMetrics } from './events/webhooks/delivery-metrics.ts'
import { sayDirectory } from './pages/own-directory-page.ts'
import { OwnSignature, type OwnSigning } from './auth/own-signature.ts'
import { StoreWatch } from './store-watch.ts'
import { TrafficPulse } from './intake/traffic-pulse.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, without a password. */
  readonly storeUrl: string
  readonly storeLogin: StoreLogin
  /** `null`: the address that it listens on. */
  readonly publicUrl: string | null
  /** The first API key of an administrator. */
  readonly adminKey: string | null
  /** Whether the management port speaks TLS. */
  readonly hasTls: boolean
  readonly ja4plus: boolean
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
  readonly events: EventRetention
  /** The destinations of events. */
  readonly sinks: SinkSettings
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
  /** The names that a rule may route to; `null`: remote proxies have their own. */
  readonly upstreams: readonly string[] | null
  readonly seen: KeeperSettings
  readonly threats: ThreatSettings
  /** All settings with the origin of each. */
  readonly configured: readonly Effective[]
}

/** How the management plane notifies the rest of the process, and what it uses from it. */
export interface ManagementLinks {
  readonly publisher: Pick<Publisher, 'nudge'>
  readonly policy: PolicyFile | PolicyKeeper
  /** Called when the database is open. */
  opened(store: Store): void
  /** Called when a backup was restored into the database. */
  restored(): void
  /** Polls for changes whose notification was lost. Omit it to disable polling. */
  catchUp?(): Promise<void>
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
  readonly fleet?: Management['fleet']
  /** The workers of the data plane and their state. */
  workers(): readonly WorkerStatus[]
  /** Another clock, for tests. */
  nowMs?(): number
}

/**
 * Everything behind the management port except probes and metrics. It exists before the database is open.
 * While the database is unavailable, the API answers with that error and the proxies continue.
 */
export class ManagementPlane {
  readonly #settings: ManagementSettings
  readonly #links: ManagementLinks
  readonly #log: Log
  /** The settings that can change at runtime. */
  readonly settings: LiveSettings
  #documents: ReturnType<typeof documents> | null = null
  readonly #dashboard: ReturnType<typeof dashboard> | null
  #oauthDocuments: ReturnType<typeof oauthDocuments> | null = null
  #gnapDocuments: ReturnType<typeof gnapDocuments> | null = null
  #mcpDocuments: ReturnType<typeof mcpDocuments> | null = null
  #mcp: McpEndpoint | null = null
  #ownSignature: OwnSignature | null = null
  readonly #gnap = gnapEndpoints(() => (this.#api === null ? null : this.#management))
  readonly #a2a = a2aEndpoints(
    () => (this.#api === null ? null : this.#management),
    () => this.#links.people !== null,
  )
  #oauth: Koa.Middleware<RequestState> | null = null
  readonly #isLeading: () => boolean
  readonly #periodic: Periodic
  readonly #sealer: Sealer
  #management: Management | null = null
  readonly #ingestMetrics = new IngestMetrics()
  readonly #deliveryMetrics = new DeliveryMetrics()
  readonly #eventMetrics = new EventMetrics()
  readonly #documentMetrics: DocumentMetrics
  #ingest: Ingest | null = null
  #keeper: SightingKeeper | null = null
  #tasks: TaskRunner | null = null
  #callbacks: TaskCallbacks | null = null
  #deliverer: Deliverer | null = null
  #watch: StoreWatch | null = null
  readonly #sinks: Sinks
  readonly #pulse = new TrafficPulse()
  #api: Koa.Middleware<RequestState> | null = null
  /** Why the database is not open. */
  #failure: Error | null = null
  #retry: NodeJS.Timeout | null = null
  #snapshot: Snapshot | null = null
  readonly #snapshots = new SnapshotReader((snapshot) => {
    this.#snapshot = snapshot
  })
  #beat: NodeJS.Timeout | null = null
  #starting: Promise<void> | null = null
  #isClosed = false

  constructor(settings: ManagementSettings, log: Log, links: ManagementLinks) {
    this.#settings = settings
    this.#links = links
    this.#log = log
    this.#documentMetrics = links.documentMetrics ?? new DocumentMetrics()
    this.#dashboard = settings.hasDashboard ? dashboard() : null
    this.#isLeading = () => links.fleet?.isLeading() ?? true
    this.#periodic = new Periodic(log, this.#isLeading)
    this.#sealer = new Sealer(settings.encryptionKeys, join(settings.dataFolder, 'store.key'))
    this.#sinks = new Sinks(settings.sinks)
    this.settings = new LiveSettings(settings.configured, log)
    this.settings.onRestored(() => {
      this.#management?.oauth.forget()
      this.#management?.tail.restored()
      this.#sinks.restored()
      this.#links.restored()
    })
    this.settings.onChange('limits.free_per_day', (freePerDay) =>
      this.#management?.rateLimits.use({ freePerDay }),
    )
    this.settings.onChange('limits.standard_per_hour', (standardPerHour) =>
      this.#management?.rateLimits.use({ standardPerHour }),
    )
  }

  /** Resolves when the database is open, or when a retry is scheduled. */
  start(listen: ListenAddress): Promise<void> {
    this.#starting = this.#start(listen)
    return this.#starting
  }

  async #start(listen: ListenAddress): Promise<void> {
    if (this.#isClosed) return
    const { storeUrl, storeLogin, publicUrl, hasTls } = this.#settings
    const url = publicUrl?.replace(/\/$/, '') ?? urlOf(listen, hasTls)
    this.#documents = documents(url)
    this.#gnapDocuments = gnapDocuments(url)
    this.#ownSignature = new OwnSignature(
      this.#links.signing ?? SIGNS_NOTHING,
      url,
      this.#links.nowMs ?? Date.now,
    )
    this.#mcpDocuments = mcpDocuments(url, this.#settings.version)
    this.#mcp ??= new McpEndpoint({
      ...{ publicUrl: url, origins: this.#settings.corsOrigins },
      ...(this.#links.mcpServer === undefined ? {} : { makeServer: this.#links.mcpServer }),
    })
    this.#oauthDocuments = oauthDocuments(url, {
      hasPeople: this.#links.people !== null,
      hasRegistration: this.#settings.oauth.registration !== 'off' && this.#links.people !== null,
    })
    let store: Store | null = null
    try {
      store = await Store.open(storeUrl, storeLogin)
      if (this.#isClosed) return await store.close()
      const management = await this.#managementOf(store, url)
      this.#management = management
      await this.#follow(store)
      await this.#sayForeign(store)
      this.#tasks = new TaskRunner(TASK_TYPES, management)
      await this.#tasks.start()
      await this.#sinks.start(management)
      this.#api = api(management)
      this.#oauth = oauthEndpoints(management)
      this.#watch = new StoreWatch(store, this.#log)
      const { auditRetentionMs, deliveries, events, threats } = this.#settings
      const sources = new EventSources(management, threats, this.#eventMetrics)
      this.#periodic.start([
        ...[this.#watch.job, this.#catchingUp, ...sources.jobs],
        ...periodicJobs(management, auditRetentionMs, events),
        ...deliveryJobs(management, deliveries.retentionMs, this.#deliveryMetrics),
      ])
      this.#listenTo(store, sources)
      this.#callbacks = new TaskCallbacks(management, {
        message: pushMessageOf,
        signed: (task, by) => taskWebhook(task, shownTask(task), by, management.nowMs()),
      })
      this.#callbacks.start()
      this.#deliverer = new Deliverer(management, this.#settings.deliveries, this.#deliveryMetrics)
      this.#deliverer.start()
      this.#links.opened(store)
    } catch (error) {
      await store?.close()
      this.#management = null
      if (this.#beat !== null) clearInterval(this.#beat)
      if (this.#isClosed) return
      const failure = error as Error
      if (failure.message !== this.#failure?.message)
        this.#log.error('the database cannot be opened; it is tried again', { error: failure })
      this.#failure = failure
      this.#retry = setTimeout(() => void this.start(listen), RETRY_MS)
    }
  }

  /** Whether the database was opened. It may still be unavailable now. */
  get isOpen(): boolean {
    return this.#api !== null
  }

  /** Whether the database was available at the last check. */
  get isStoreUp(): boolean {
    return this.#watch?.isUp ?? false
  }

  /** Whether the API has a Snapshot to judge by. */
  get hasSnapshot(): boolean {
    return this.#snapshot !== null
  }

  get #catchingUp(): PeriodicJob {
    return {
      name: 'look for what nobody was told of',
      everyMs: CATCH_UP_MS,
      isOnce: true,
      run: async () => {
        await this.#links.catchUp?.()
        return 'done'
      },
    }
  }

  /** Call it when the settings contain other encryption keys for secrets in the database. */
  useEncryptionKeys(keys: readonly Secret<string>[]): void {
    this.#sealer.use(keys)
    const store = this.#management?.store
    if (store === undefined) return
    this.#saySealedBy(store).catch((error: Error) =>
      this.#log.warn('which key the secrets are encrypted with could not be written down', { error }),
    )
  }

  /** Resolves when the API judges by this Snapshot, or cannot use it. */
  use(document: SnapshotDocument): Promise<void> {
    return this.#snapshots.read(document).then(
      () => this.#mcp?.changed(document.policy),
      (error: Error) => this.#log.error('the API cannot use the newest signatures', { error }),
    )
  }

  /** Everything except probes and metrics. */
  get middleware(): Koa.Middleware<RequestState> {
    return (ctx, next) => {
      // Uses the URL as sent. Koa's own `path` throws on invalid URLs and accepts some other input as paths.
      if (OF_THE_API.test(ctx.req.url!)) return this.#answerApi(ctx, next)
      if (this.#documents?.(ctx) === true || this.#oauthDocuments?.(ctx) === true) return
      if (this.#dashboard?.(ctx) === true) return
      if (this.#gnapDocuments?.(ctx) === true || this.#mcpDocuments?.(ctx) === true) return
      const url = ctx.req.url!
      if (isAt(url, DIRECTORY) && this.#ownSignature !== null)
        return sayDirectory(ctx, this.#ownSignature, (this.#links.nowMs ?? Date.now)())
      if (this.#mcp !== null && isAt(url, MCP_PATH))
        return this.#mcp.answer(ctx, this.#api === null ? null : this.#management)
      if (url.startsWith('/oauth/') || OF_PEOPLE.test(url))
        return this.#oauth === null ? sayError(ctx, unavailable()) : this.#oauth(ctx, next)
      if (url.startsWith('/gnap/')) return this.#gnap(ctx, next)
      return isOfA2A(url) ? this.#a2a(ctx, next) : next()
    }
  }

  #answerApi(ctx: RequestContext, next: Koa.Next): unknown {
    if (this.#documents?.(ctx) === true) return
    if (this.#api !== null) return this.#api(ctx, next)
    if (this.#failure instanceof Fault) throw this.#failure
    throw new Refusal('unavailable', 'the database is not open', { headers: { 'Retry-After': '5' } })
  }

  /** Resolves when the database has stored the batch; rejects if it cannot do so now. */
  async take(batch: unknown): Promise<void> {
    if (this.#ingest === null) throw new Fault('STORE_UNAVAILABLE', 'the database is not open')
    await this.#ingest.take(batch)
  }

  addMetrics(metrics: Metrics): void {
    this.#ingestMetrics.addTo(metrics)
    this.#deliveryMetrics.addTo(metrics)
    this.#eventMetrics.addTo(metrics)
    this.#sinks.metrics.addTo(metrics)
    metrics.gauge('store_up', '1 while the database of the management plane can be used.', 'first', () => [
      { labels: {}, value: Number(this.isStoreUp) },
    ])
  }

  /** Resolves when everything is stored, or when the database does not answer in time. */
  async close(): Promise<void> {
    this.#isClosed = true
    const mcp = this.#mcp?.close()
    if (this.#retry !== null) clearTimeout(this.#retry)
    if (this.#beat !== null) clearInterval(this.#beat)
    const inTime = new AbortController()
    const late = wait(CLOSE_MS, false, { signal: inTime.signal }).catch(() => false)
    const isClosed = await Promise.race([Promise.all([mcp, this.#letGo()]).then(() => true), late])
    inTime.abort()
    if (!isClosed) this.#log.warn('the database does not answer and is left as it is')
  }

  /** Waits for a start in progress, because nothing else would close what it opens. */
  async #letGo(): Promise<void> {
    await this.#starting
    const parts = [
      ...[this.#periodic, this.#ingest, this.#keeper],
      ...[this.#tasks, this.#callbacks, this.#deliverer, this.#sinks, this.#pulse],
    ]
    await Promise.all(parts.map((part) => part?.close()))
    if (this.#management === null) return
    const { agents, elsewhere, tail, apiKeys, rateLimits, store, log } = this.#management
    tail.close()
    agents.close()
    elsewhere?.close()
    await rateLimits
      .write()
      .catch((error: Error) => log.warn('counts of requests could not be written down', { error }))
    try {
      while ((await apiKeys.writeUsed()) === 'more');
    } catch (error) {
      log.warn('when keys were used could not be written down', { error: error as Error })
    }
    await store.close()
  }

  /** Applies the changes of other processes on the same database at each beat. */
  async #follow(store: Store): Promise<void> {
    const policy = this.#links.policy.kind === 'file' ? null : this.#links.policy
    await Promise.all([this.settings.open(store), policy?.open(store)])
    if (this.#isClosed) return
    this.#beat = setInterval(() => {
      void this.settings.follow()
      void policy?.follow()
    }, BEAT_MS)
  }

  /**
   * Reports a missing key at the start and when the keys change, instead of when a secret is first needed.
   */
  async #saySealedBy(store: Store): Promise<void> {
    const keys = this.#sealer.givenKeyIds
    if (keys.length === 0) return
    const nowMs = (this.#links.nowMs ?? Date.now)()
    const before = (await store.settings.get(SEALED_BY))?.value ?? null
    if (before !== keys[0]) await store.settings.put(SEALED_BY, keys[0], null, nowMs)
    if (before !== null && !keys.includes(String(before)))
      this.#log.error(
        `the secrets in the database were last encrypted with the key ${before}, which is not in store.encryption_keys (${keys.join(', ')}), and cannot be read: add it there as a further key`,
      )
  }

  /** Warns about settings that processes on one database must share. No later check finds them in time. */
  async #sayForeign(store: Store): Promise<void> {
    await this.#saySealedBy(store)
    const { fleet, signing } = this.#links
    if (fleet === undefined) return
    if (this.#settings.publicUrl === null)
      this.#log.warn('manage.public_url is missing: tokens and links name the address of this process alone')
    if (signing?.webhooks && signing.keyFile === null)
      this.#log.warn(
        'signing.key_file is missing: each manager signs with a key of its own, which the others do not show',
      )
  }

  #listenTo(store: Store, sources: EventSources): void {
    const { seen } = this.#settings
    const metrics = this.#ingestMetrics
    const keeper = new SightingKeeper(store, seen, [sources.observed], metrics, this.#log, this.#isLeading)
    const ingest = new Ingest(
      store,
      {
        retention: seen.rollups,
        counters: [trialCounter(store), sources.counter],
        stored: (batch, unnamed) => {
          this.#links.stored(batch)
          keeper.noticed(unnamed)
          sources.stored()
          this.#pulse.add(batch)
        },
        versionOf: ({ agent, userAgent }) => {
          const index = this.#snapshot?.knowledge?.userAgents
          return agent === null || userAgent === null || index === undefined
            ? null
            : versionSaid(index, agent, userAgent)
        },
        nowMs: Date.now,
      },
      metrics,
      this.#log,
    )
    if (store.kind !== 'sqlite') this.#pulse.share(store.traffic)
    keeper.start()
    this.#keeper = keeper
    this.#ingest = ingest
  }

  async #managementOf(store: Store, publicUrl: string): Promise<Management> {
    const { adminKey, authFailuresPerMinute, ja4plus } = this.#settings
    const { gnap, upstreams, allowPrivateWebhooks } = this.#settings
    const allowPrivate = this.#settings.allowPrivateFetches
    const nowMs = this.#links.nowMs ?? Date.now
    // Only one process opens a SQLite file.
    const isAlone = store.kind === 'sqlite'
    const trust = new Trust(store.trust, nowMs)
    const rateLimits = {
      freePerDay: this.settings.value('limits.free_per_day'),
      standardPerHour: this.settings.value('limits.standard_per_hour'),
    }
    const sealer = this.#sealer
    const { oauth: settings, openid } = this.#settings
    const passwords = this.#links.passwords ?? new PasswordHasher()
    const elsewhere = openid === null ? null : new OpenidProvider(openid, nowMs, this.#documentMetrics)
    const own = { store, sealer, log: this.#log, passwords, publicUrl, elsewhere, nowMs }
    const people = this.#links.people === undefined ? new PeoplePages(own) : this.#links.people
    const agents = new AgentIdentities(trust, { allowPrivate, nowMs, metrics: this.#documentMetrics })
    const documents = this.#links.clientDocuments ?? new AgentClients(agents, store, people, nowMs)
    const events = new EventLog(store, nowMs, () => this.#snapshot?.knowledge?.names ?? null)
    const { eventsPerMinute } = this.#settings.threats
    const telling = { store, log: events, metrics: this.#eventMetrics, eventsPerMinute, nowMs }
    return {
      store,
      oauth: new OAuth({
        ...{ publicUrl, store, sealer, log: this.#log, people, documents, settings, nowMs },
        hasDashboard: this.#settings.hasDashboard,
      }),
      rateLimits: await RateLimits.open(store, rateLimits, this.#log),
      ja4plus,
      snapshot: () => this.#snapshot,
      apiKeys: new ApiKeys(store.keys),
      trust,
      agents,
      elsewhere,
      publisher: this.#links.publisher,
      fleet: this.#links.fleet ?? null,
      policy: this.#links.policy,
      sealer,
      settings: this.settings,
      ...{ upstreams, allowPrivateWebhooks, workers: this.#links.workers },
      version: this.#settings.version,
      bootstrapKey: adminKey === null ? null : new BootstrapKey(adminKey),
      passwords,
      failureThrottle: new MinuteThrottle(authFailuresPerMinute),
      gnap: {
        settings: gnap,
        tokens: new GnapTokens(store.gnapTokens, trust, people),
        asking: new MinuteThrottle(ASKING_PER_MINUTE),
      },
      log: this.#log,
      publicUrl,
      ownSignature: this.#ownSignature!,
      detections: new RecentDetections(isAlone ? null : store.detections, nowMs),
      newSignatures: new NewSignatures(telling),
      ...{ events, tail: new EventTail(store, events), pulse: this.#pulse },
      requests: new RequestFeed(store.sightings),
      streams: new OpenStreams(),
      tasks: { wake: () => this.#tasks?.wake() },
      callbacks: { wake: () => this.#callbacks?.wake() },
      deliveries: { wake: () => this.#deliverer?.wake() },
      nowMs,
    }
  }
}

/** Loads the A2A format only when a message has to be sent. */
async function pushMessageOf(task: TaskRecord): Promise<CallbackMessage> {
  return (await import('./a2a/push-message.ts')).pushMessage(task)
}

function isAt(url: string, path: string): boolean {
  return url === path || url.startsWith(`${path}?`)
}

function urlOf({ host, port }: ListenAddress, hasTls: boolean): string {
  return `http${hasTls ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const SIGNS_NOTHING: OwnSigning = { agent: null, webhooks: false, keys: () => null }
const OF_PEOPLE = /^\/account(?:[/?]|$)/
const OF_THE_API = /^\/v[12](?:[/?]|$)/
const BEAT_MS = 1_000
const RETRY_MS = 5_000
const CATCH_UP_MS = 5_000
/** A database that answers needs about 10 ms. This and the drain time must fit before a SIGKILL. */
const CLOSE_MS = 3_000
