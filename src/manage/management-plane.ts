import type Koa from 'koa'
import type { Log } from '../log.ts'
import type { Snapshot, SnapshotDocument } from '../plane/snapshot.ts'
import { SnapshotReader } from '../plane/snapshot-reader.ts'
import { Store } from '../store/store.ts'
import { api } from './api/api.ts'
import { TASK_TYPES } from './api/operations.ts'
import type { RequestState } from './api/router.ts'
import { ApiKeys } from './auth/api-keys.ts'
import type { ListenAddress, Management } from './management.ts'
import { Refusal } from './refusal.ts'
import { TaskRunner } from './task-runner.ts'

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
  #store: Store | null = null
  #tasks: TaskRunner | null = null
  #api: Koa.Middleware<RequestState> | null = null
  #retry: NodeJS.Timeout | null = null
  #snapshot: Snapshot | null = null
  readonly #snapshots = new SnapshotReader((snapshot) => {
    this.#snapshot = snapshot
  })
  #isClosed = false

  constructor(settings: ManagementSettings, log: Log) {
    this.#settings = settings
    this.#log = log
  }

  /** Resolves when the database is open, or will be tried again later. */
  async start(listen: ListenAddress): Promise<void> {
    const { storeUrl, storePassword, publicUrl } = this.#settings
    try {
      const store = await Store.open(storeUrl, storePassword)
      if (this.#isClosed) return await store.close()
      this.#store = store
      const management = this.#management(store, publicUrl?.replace(/\/$/, '') ?? urlOf(listen))
      this.#tasks = new TaskRunner(TASK_TYPES, management)
      await this.#tasks.start()
      this.#api = api(management)
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
    await this.#tasks?.close()
    await this.#store?.close()
  }

  #management(store: Store, publicUrl: string): Management {
    const apiKeys = new ApiKeys(store.keys)
    const { ja4plus } = this.#settings
    const snapshot = () => this.#snapshot
    const tasks = { wake: () => this.#tasks?.wake() }
    return { store, apiKeys, log: this.#log, publicUrl, ja4plus, tasks, snapshot, nowMs: Date.now }
  }
}

function urlOf({ host, port }: ListenAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const RETRY_MS = 5_000
