import type Koa from 'koa'
import { join } from 'node:path'
import type { Effective } from '../config-reader.ts'
import { Fault } from '../fault.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Sighting } from '../plane/sighting.ts'
import type { Snapshot, SnapshotDocument } from '../plane/snapshot.ts'
import { SnapshotReader } from '../plane/snapshot-reader.ts'
import type { WorkerStatus } from '../plane/worker-status.ts'
import type { Secret } from '../secret.ts'
import { Store } from '../store/store.ts'
import { api } from './api/api.ts'
import { documents } from './api/documents.ts'
import type { RequestState } from './api/router.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { Ingest } from './ingest.ts'
import { IngestMetrics } from './ingest-metrics.ts'
import { LiveSettings } from './live-settings.ts'
import type { ListenAddress, Management } from './management.ts'
import type { PolicyFile, PolicyKeeper } from './policy-keeper.ts'
import { RateLimits } from './rate-limits.ts'
import { Refusal } from './refusal.ts'
import { Sealer } from './sealer.ts'
import { type KeeperSettings, SightingKeeper } from './sighting-keeper.ts'
import { Sweeper } from './sweeper.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, in which there is no password. */
  readonly storeUrl: string
  readonly storePassword: string | null
  /** `null`: where it listens. */
  readonly publicUrl: string | null
  /** The first key of an administrator. */
  readonly adminKey: string | null
  /** Whether the port it listens on speaks TLS. */
  readonly hasTls: boolean
  readonly ja4plus: boolean
  readonly version: string
  /** For what lasts and is not in the database. */
  readonly dataFolder: string
  /** With what secrets in the database are encrypted; `null`: with a key in the data folder. */
  readonly encryptionKey: Secret<string> | null
  readonly allowPrivateWebhooks: boolean
  /** The names that a rule may route to. */
  readonly upstreams: readonly string[]
  readonly seen: KeeperSettings
  /** All settings, and who has said each. */
  readonly configured: readonly Effective[]
}

/**
 * All that is behind the management port but probes and metrics. It is there before its database is: until that opens,
 * and while it cannot be used, the API says so, and the proxies go on.
 */
export class ManagementPlane {
  readonly #settings: ManagementSettings
  readonly #log: Log
  /** What may change while it runs. */
  readonly settings: LiveSettings
  readonly #policy: PolicyFile | PolicyKeeper
  readonly #workers: () => readonly WorkerStatus[]
  readonly #stored: (batch: readonly Sighting[]) => void
  readonly #ingestMetrics = new IngestMetrics()
  #store: Store | null = null
  #ingest: Ingest | null = null
  #keeper: SightingKeeper | null = null
  #rateLimits: RateLimits | null = null
  #sweeper: Sweeper | null = null
  #documents: Koa.Middleware<RequestState> | null = null
  #api: Koa.Middleware<RequestState> | null = null
  #retry: NodeJS.Timeout | null = null
  #snapshot: Snapshot | null = null
  readonly #snapshots = new SnapshotReader((snapshot) => {
    this.#snapshot = snapshot
  })
  #beat: NodeJS.Timeout | null = null
  #isClosed = false

  /** `stored`: is told of every Sighting, once it is in the database. */
  constructor(
    settings: ManagementSettings,
    log: Log,
    policy: PolicyFile | PolicyKeeper,
    stored: (batch: readonly Sighting[]) => void = () => undefined,
    workers: () => readonly WorkerStatus[] = () => [],
  ) {
    this.#settings = settings
    this.#log = log
    this.settings = new LiveSettings(settings.configured, log)
    this.settings.onChange('limits.free_per_day', (freePerDay) => this.#rateLimits?.use({ freePerDay }))
    this.settings.onChange('limits.standard_per_hour', (standardPerHour) =>
      this.#rateLimits?.use({ standardPerHour }),
    )
    this.#policy = policy
    this.#stored = stored
    this.#workers = workers
  }

  /** Resolves when the database is open, or will be tried again later. */
  async start(listen: ListenAddress): Promise<void> {
    if (this.#isClosed) return
    const { storeUrl, storePassword, publicUrl, hasTls } = this.#settings
    const url = publicUrl?.replace(/\/$/, '') ?? urlOf(listen, hasTls)
    this.#documents = documents(url)
    try {
      const store = await Store.open(storeUrl, storePassword)
      if (this.#isClosed) return await store.close()
      this.#store = store
      const rateLimits = {
        freePerDay: this.settings.value('limits.free_per_day'),
        standardPerHour: this.settings.value('limits.standard_per_hour'),
      }
      this.#rateLimits = await RateLimits.open(store, rateLimits, this.#log)
      this.#sweeper = new Sweeper(store, this.#log)
      await this.#follow(store)
      this.#listenTo(store)
      this.#api = api(this.#management(store, url), this.#rateLimits)
    } catch (error) {
      await this.#store?.close()
      this.#store = null
      if (this.#isClosed) return
      this.#log.error('the database cannot be opened; it is tried again', { error: error as Error })
      this.#retry = setTimeout(() => void this.start(listen), RETRY_MS)
    }
  }

  /** Resolves when the API judges by it, too, or cannot. */
  use(document: SnapshotDocument): Promise<void> {
    return this.#snapshots.read(document).catch((error: Error) => {
      this.#log.error('the API cannot use the newest signatures', { error })
    })
  }

  /** Everything but probes and metrics. */
  get middleware(): Koa.Middleware<RequestState> {
    return async (ctx, next) => {
      const answer = async () => {
        // As sent: Koa's own `path` throws on what is no URL, and reads some other things as paths.
        if (!/^\/v1(?:[/?]|$)/.test(ctx.url)) return next()
        if (this.#api !== null) return this.#api(ctx, next)
        throw new Refusal('unavailable', 'the database is not open', { headers: { 'Retry-After': '5' } })
      }
      return this.#documents === null ? answer() : this.#documents(ctx, answer)
    }
  }

  /** Resolves when the database has them; rejects when it cannot take them now. */
  async take(batch: readonly unknown[]): Promise<void> {
    if (this.#ingest === null) throw new Fault('STORE_UNAVAILABLE', 'the database is not open')
    await this.#ingest.take(batch)
  }

  addMetrics(metrics: Metrics): void {
    this.#ingestMetrics.addTo(metrics)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    if (this.#beat !== null) clearInterval(this.#beat)
    this.#sweeper?.close()
    await Promise.all([this.#ingest?.close(), this.#keeper?.close(), this.#rateLimits?.close()])
    await this.#store?.close()
  }

  /** What other processes on the same database change is in force here on the next beat. */
  async #follow(store: Store): Promise<void> {
    const policy = this.#policy.kind === 'file' ? null : this.#policy
    await Promise.all([this.settings.open(store), policy?.open(store)])
    if (this.#isClosed) return
    this.#beat = setInterval(() => {
      void this.settings.follow()
      void policy?.follow()
    }, BEAT_MS)
  }

  #listenTo(store: Store): void {
    const { seen } = this.#settings
    const metrics = this.#ingestMetrics
    const keeper = new SightingKeeper(store, seen, [], metrics, this.#log)
    const ingest = new Ingest(
      store,
      {
        retention: seen.rollups,
        counters: [],
        stored: (batch, unnamed) => {
          this.#stored(batch)
          keeper.noticed(unnamed)
        },
        nowMs: Date.now,
      },
      metrics,
      this.#log,
    )
    keeper.start()
    this.#keeper = keeper
    this.#ingest = ingest
  }

  #management(store: Store, publicUrl: string): Management {
    const apiKeys = new ApiKeys(store.keys)
    const { ja4plus, upstreams, allowPrivateWebhooks, encryptionKey, dataFolder } = this.#settings
    const sealer = new Sealer(encryptionKey, join(dataFolder, 'store.key'))
    const policy = this.#policy
    const snapshot = () => this.#snapshot
    return {
      ...{ store, apiKeys, log: this.#log, publicUrl, ja4plus, snapshot, nowMs: Date.now },
      ...{ version: this.#settings.version, workers: this.#workers },
      ...{ policy, upstreams, sealer, allowPrivateWebhooks, settings: this.settings },
    }
  }
}

function urlOf({ host, port }: ListenAddress, hasTls: boolean): string {
  return `http${hasTls ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const RETRY_MS = 5_000
const BEAT_MS = 1_000
