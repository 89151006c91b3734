import type Koa from 'koa'
import { Fault } from '../fault.ts'
import type { Log } from '../log.ts'
import type { Snapshot, SnapshotDocument } from '../plane/snapshot.ts'
import { SnapshotReader } from '../plane/snapshot-reader.ts'
import type { Metrics } from '../metrics.ts'
import type { Sighting } from '../plane/sighting.ts'
import { Store } from '../store/store.ts'
import { api } from './api/api.ts'
import type { RequestState } from './api/router.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { RecentDetections } from './detections.ts'
import { Ingest } from './ingest.ts'
import { IngestMetrics } from './ingest-metrics.ts'
import type { ListenAddress, Management } from './management.ts'
import type { Publisher } from './publisher.ts'
import { Refusal } from './refusal.ts'
import { type KeeperSettings, SightingKeeper } from './sighting-keeper.ts'
import { trialCounter } from './submissions/trial-counter.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, in which there is no password. */
  readonly storeUrl: string
  readonly storePassword: string | null
  /** `null`: where it listens. */
  readonly publicUrl: string | null
  /** The first key of an administrator. */
  readonly adminKey: string | null
  readonly ja4plus: boolean
  /** Submissions that nothing speaks against are accepted without an administrator. */
  readonly autoAccept: boolean
  readonly seen: KeeperSettings
}

/** What it tells the rest of the process. */
export interface ManagementLinks {
  readonly publisher: Pick<Publisher, 'nudge'>
  /** The database is open. */
  opened(store: Store): void
  /** These are in the database. */
  stored(batch: readonly Sighting[]): void
}

/**
 * All that is behind the management port but probes and metrics. It is there before its database is: until that opens,
 * and while it cannot be used, the API says so, and the proxies go on.
 */
export class ManagementPlane {
  readonly #settings: ManagementSettings
  readonly #links: ManagementLinks
  readonly #log: Log
  readonly #ingestMetrics = new IngestMetrics()
  readonly #detections = new RecentDetections()
  #store: Store | null = null
  #ingest: Ingest | null = null
  #keeper: SightingKeeper | null = null
  #api: Koa.Middleware<RequestState> | null = null
  #retry: NodeJS.Timeout | null = null
  #snapshot: Snapshot | null = null
  readonly #snapshots = new SnapshotReader((snapshot) => {
    this.#snapshot = snapshot
  })
  #isClosed = false

  constructor(settings: ManagementSettings, log: Log, links: ManagementLinks) {
    this.#settings = settings
    this.#links = links
    this.#log = log
  }

  /** Resolves when the database is open, or will be tried again later. */
  async start(listen: ListenAddress): Promise<void> {
    const { storeUrl, storePassword, publicUrl } = this.#settings
    try {
      const store = await Store.open(storeUrl, storePassword)
      if (this.#isClosed) return await store.close()
      this.#store = store
      this.#listenTo(store)
      this.#api = api(this.#management(store, publicUrl?.replace(/\/$/, '') ?? urlOf(listen)))
      this.#links.opened(store)
    } catch (error) {
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

  /** Everything below /v1. */
  get middleware(): Koa.Middleware<RequestState> {
    return (ctx, next) => {
      if (this.#api !== null) return this.#api(ctx, next)
      throw new Refusal('unavailable', 'the database is not open', { headers: { 'Retry-After': '5' } })
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
    await Promise.all([this.#ingest?.close(), this.#keeper?.close()])
    await this.#store?.close()
  }

  #listenTo(store: Store): void {
    const { seen } = this.#settings
    const metrics = this.#ingestMetrics
    const keeper = new SightingKeeper(store, seen, [], metrics, this.#log)
    const ingest = new Ingest(
      store,
      {
        retention: seen.rollups,
        counters: [trialCounter(store)],
        stored: (batch, unnamed) => {
          this.#links.stored(batch)
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
    const { ja4plus, autoAccept } = this.#settings
    const { publisher } = this.#links
    const snapshot = () => this.#snapshot
    const [log, detections] = [this.#log, this.#detections]
    return {
      store,
      apiKeys,
      publisher,
      detections,
      log,
      publicUrl,
      ja4plus,
      autoAccept,
      snapshot,
      nowMs: Date.now,
    }
  }
}

function urlOf({ host, port }: ListenAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const RETRY_MS = 5_000
