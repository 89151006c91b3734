import type Koa from 'koa'
import type { Log } from '../log.ts'
import type { Snapshot, SnapshotDocument } from '../plane/snapshot.ts'
import { SnapshotReader } from '../plane/snapshot-reader.ts'
import { Store } from '../store/store.ts'
import { api } from './api/api.ts'
import type { RequestState } from './api/router.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { RecentDetections } from './detections.ts'
import type { ListenAddress, Management, Publisher } from './management.ts'
import { Refusal } from './refusal.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, in which there is no password. */
  readonly storeUrl: string
  readonly storePassword: string | null
  /** `null`: where it listens. */
  readonly publicUrl: string | null
  /** The first key of an administrator. */
  readonly adminKey: string | null
  readonly ja4plus: boolean
}

/**
 * All that is behind the management port but probes and metrics. It is there before its database is: until that opens,
 * and while it cannot be used, the API says so, and the proxies go on.
 */
export class ManagementPlane {
  readonly #settings: ManagementSettings
  readonly #log: Log
  readonly #publisher: Publisher
  readonly #detections = new RecentDetections()
  #store: Store | null = null
  #api: Koa.Middleware<RequestState> | null = null
  #retry: NodeJS.Timeout | null = null
  #snapshot: Snapshot | null = null
  readonly #snapshots = new SnapshotReader((snapshot) => {
    this.#snapshot = snapshot
  })
  #isClosed = false

  constructor(settings: ManagementSettings, log: Log, publisher: Publisher = NOBODY) {
    this.#settings = settings
    this.#log = log
    this.#publisher = publisher
  }

  /** Resolves when the database is open, or will be tried again later. */
  async start(listen: ListenAddress): Promise<void> {
    const { storeUrl, storePassword, publicUrl } = this.#settings
    try {
      const store = await Store.open(storeUrl, storePassword)
      if (this.#isClosed) return await store.close()
      this.#store = store
      this.#api = api(this.#management(store, publicUrl?.replace(/\/$/, '') ?? urlOf(listen)))
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

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#store?.close()
  }

  #management(store: Store, publicUrl: string): Management {
    const apiKeys = new ApiKeys(store.keys)
    const { ja4plus } = this.#settings
    const snapshot = () => this.#snapshot
    const [publisher, detections] = [this.#publisher, this.#detections]
    const log = this.#log
    return { store, apiKeys, log, publicUrl, ja4plus, snapshot, publisher, detections, nowMs: Date.now }
  }
}

function urlOf({ host, port }: ListenAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Where there are no proxies to bring anything to. */
const NOBODY: Publisher = { nudge: () => undefined }
const RETRY_MS = 5_000
