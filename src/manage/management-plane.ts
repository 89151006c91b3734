import type Koa from 'koa'
import { Fault } from '../fault.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Sighting } from '../plane/sighting.ts'
import { Store } from '../store/store.ts'
import { api } from './api/api.ts'
import type { RequestState } from './api/router.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { Ingest } from './ingest.ts'
import { IngestMetrics } from './ingest-metrics.ts'
import type { ListenAddress, Management } from './management.ts'
import { Refusal } from './refusal.ts'
import { type KeeperSettings, SightingKeeper } from './sighting-keeper.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, in which there is no password. */
  readonly storeUrl: string
  readonly storePassword: string | null
  /** `null`: where it listens. */
  readonly publicUrl: string | null
  /** The first key of an administrator. */
  readonly adminKey: string | null
  readonly seen: KeeperSettings
}

/**
 * All that is behind the management port but probes and metrics. It is there before its database is: until that opens,
 * and while it cannot be used, the API says so, and the proxies go on.
 */
export class ManagementPlane {
  readonly #settings: ManagementSettings
  readonly #log: Log
  readonly #stored: (batch: readonly Sighting[]) => void
  readonly #ingestMetrics = new IngestMetrics()
  #store: Store | null = null
  #ingest: Ingest | null = null
  #keeper: SightingKeeper | null = null
  #api: Koa.Middleware<RequestState> | null = null
  #retry: NodeJS.Timeout | null = null
  #isClosed = false

  /** `stored`: is told of every Sighting, once it is in the database. */
  constructor(
    settings: ManagementSettings,
    log: Log,
    stored: (batch: readonly Sighting[]) => void = () => undefined,
  ) {
    this.#settings = settings
    this.#log = log
    this.#stored = stored
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
    } catch (error) {
      if (this.#isClosed) return
      this.#log.error('the database cannot be opened; it is tried again', { error: error as Error })
      this.#retry = setTimeout(() => void this.start(listen), RETRY_MS)
    }
  }

  /** Everything below /v1. */
  get middleware(): Koa.Middleware<RequestState> {
    return (ctx, next) => {
      if (this.#api !== null) return this.#api(ctx, next)
      throw new Refusal('unavailable', 'the database is not open', { headers: { 'Retry-After': '5' } })
    }
  }

  /** Resolves when the database has them; rejects when it cannot take them now. */
  async take(batch: unknown): Promise<void> {
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
    return { store, apiKeys, log: this.#log, publicUrl, nowMs: Date.now }
  }
}

function urlOf({ host, port }: ListenAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const RETRY_MS = 5_000
