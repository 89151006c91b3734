import type Koa from 'koa'
import { Fault } from '../fault.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { Store } from '../store/store.ts'
import { api } from './api/api.ts'
import type { RequestState } from './api/router.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { BootstrapKey } from './auth/bootstrap-key.ts'
import { FailureThrottle } from './auth/failure-throttle.ts'
import type { ListenAddress, Management } from './management.ts'
import { Periodic, type PeriodicJob } from './periodic.ts'
import { Refusal } from './refusal.ts'
import { StoreWatch } from './store-watch.ts'

export interface ManagementSettings {
  /** `sqlite:FILE` or `postgres://…`, in which there is no password. */
  readonly storeUrl: string
  readonly storePassword: string | null
  /** `null`: where it listens. */
  readonly publicUrl: string | null
  /** The first key of an administrator. */
  readonly adminKey: string | null
  readonly authFailuresPerMinute: number
  readonly auditRetentionMs: number
}

/**
 * All that is behind the management port but probes and metrics. It is there before its database is: until that opens,
 * and while it cannot be used, the API says so, and the proxies go on.
 */
export class ManagementPlane {
  readonly #settings: ManagementSettings
  readonly #log: Log
  readonly #periodic: Periodic
  #management: Management | null = null
  #watch: StoreWatch | null = null
  #api: Koa.Middleware<RequestState> | null = null
  /** Why the database is not open. */
  #failure: Error | null = null
  #retry: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(settings: ManagementSettings, log: Log) {
    this.#settings = settings
    this.#log = log
    this.#periodic = new Periodic(log)
  }

  /** Resolves when the database is open, or will be tried again later. */
  async start(listen: ListenAddress): Promise<void> {
    const { storeUrl, storePassword, publicUrl } = this.#settings
    try {
      const store = await Store.open(storeUrl, storePassword)
      if (this.#isClosed) return await store.close()
      const management = this.#managementOf(store, publicUrl?.replace(/\/$/, '') ?? urlOf(listen))
      this.#management = management
      this.#api = api(management)
      this.#watch = new StoreWatch(store, this.#log)
      this.#periodic.start([this.#watch.job, ...jobsOf(management, this.#settings)])
    } catch (error) {
      if (this.#isClosed) return
      const failure = error as Error
      if (failure.message !== this.#failure?.message)
        this.#log.error('the database cannot be opened; it is tried again', { error: failure })
      this.#failure = failure
      this.#retry = setTimeout(() => void this.start(listen), RETRY_MS)
    }
  }

  /** Everything below /v1. */
  get middleware(): Koa.Middleware<RequestState> {
    return (ctx, next) => {
      if (this.#api !== null) return this.#api(ctx, next)
      if (this.#failure instanceof Fault) throw this.#failure
      throw new Refusal('unavailable', 'the database is not open', { headers: { 'Retry-After': '5' } })
    }
  }

  addMetrics(metrics: Metrics): void {
    metrics.gauge('store_up', '1 while the database of the management plane can be used.', 'first', () => [
      { labels: {}, value: Number(this.#watch?.isUp ?? false) },
    ])
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#periodic.close()
    if (this.#management === null) return
    const { apiKeys, store, log } = this.#management
    try {
      while ((await apiKeys.writeUsed()) === 'more');
    } catch (error) {
      log.warn('when keys were used could not be written down', { error: error as Error })
    }
    await store.close()
  }

  #managementOf(store: Store, publicUrl: string): Management {
    const { adminKey, authFailuresPerMinute } = this.#settings
    return {
      store,
      apiKeys: new ApiKeys(store.keys),
      bootstrapKey: adminKey === null ? null : new BootstrapKey(adminKey),
      failureThrottle: new FailureThrottle(authFailuresPerMinute),
      log: this.#log,
      publicUrl,
      nowMs: Date.now,
    }
  }
}

/** What is done on the side. */
function jobsOf(
  { apiKeys, store }: Management,
  { auditRetentionMs }: ManagementSettings,
): readonly PeriodicJob[] {
  const more = (rows: number) => (rows < SLICE_ROWS ? 'done' : 'more')
  return [
    {
      name: 'write down when keys were used',
      everyMs: 10_000,
      run: () => apiKeys.writeUsed(),
    },
    {
      name: 'forget old entries of the audit log',
      everyMs: 3_600_000,
      run: async (nowMs) => more(await store.audit.forget(nowMs - auditRetentionMs, SLICE_ROWS)),
    },
    {
      name: 'forget old idempotency keys',
      everyMs: 600_000,
      run: async (nowMs) => more(await store.idempotency.forget(nowMs, SLICE_ROWS)),
    },
  ]
}

function urlOf({ host, port }: ListenAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const RETRY_MS = 5_000
/** Some milliseconds of SQLite. */
const SLICE_ROWS = 500
