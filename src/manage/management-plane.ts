import { setTimeout as wait } from 'node:timers/promises'
import type Koa from 'koa'
import type { SnapshotDocument } from '../plane/snapshot.ts'
import { type PaymentAnswer, type PaymentMessage, UNAVAILABLE } from '../payment/claim.ts'
import { SnapshotReader } from '../plane/snapshot-reader.ts'
import type { Pressure } from '../plane/bus.ts'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { Secret } from '../shared/secret.ts'
import { Groundwork, type Site, siteAt } from './compose.ts'
import { Refusal } from './http/refusal.ts'
import type { RequestState } from './http/router.ts'
import type { ManagementLinks, ManagementSettings } from './management-settings.ts'
import { McpEndpoint } from './mcp/endpoint.ts'
import { OpenPlane } from './open-plane.ts'
import type { LiveSettings } from './publish/live-settings.ts'
import { routes } from './routes.ts'
import type { ListenAddress } from '../shared/listen-address.ts'

/**
 * Everything behind the management port except probes and metrics. It exists before the database is open.
 * While the database is unavailable, the API answers with that error and the proxies continue.
 */
export class ManagementPlane {
  readonly #ground: Groundwork
  readonly #snapshots: SnapshotReader
  #served: Served | null = null
  #open: OpenPlane | null = null
  /** Why the database is not open. */
  #failure: Error | null = null
  #retry: NodeJS.Timeout | null = null
  #starting: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(settings: ManagementSettings, log: Log, links: ManagementLinks) {
    const ground = new Groundwork(settings, log, links)
    this.#ground = ground
    this.#snapshots = new SnapshotReader((snapshot) => {
      ground.snapshot = snapshot
    })
    const { live } = ground
    live.onRestored(() => {
      this.#open?.restored()
      links.restored()
    })
    live.onChange('limits.free_per_day', (freePerDay) => this.#open?.useLimits({ freePerDay }))
    live.onChange('limits.standard_per_hour', (standardPerHour) => this.#open?.useLimits({ standardPerHour }))
  }

  /** The settings that can change at runtime. */
  get settings(): LiveSettings {
    return this.#ground.live
  }

  /** Resolves when the database is open, or when a retry is scheduled. */
  start(listen: ListenAddress): Promise<void> {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#starting = this.#start(listen)
    return this.#starting
  }

  async #start(listen: ListenAddress): Promise<void> {
    if (this.#isClosed) return
    this.#served ??= this.#serve(listen)
    let open: OpenPlane | null = null
    try {
      open = await OpenPlane.open(this.#ground, this.#served.site)
      if (this.#isClosed) return await open.close()
      await open.start()
      this.#open = open
      this.#ground.links.opened(open.store)
    } catch (error) {
      this.#open = null
      await open?.close()
      if (this.#isClosed) return
      const failure = error as Error
      if (failure.message !== this.#failure?.message)
        this.#ground.log.error('the database cannot be opened; it is tried again', { error: failure })
      this.#failure = failure
      this.#retry = setTimeout(() => void this.start(listen), RETRY_MS)
    }
  }

  /** Begins to answer: until the database is open, with pages and documents only. */
  #serve(listen: ListenAddress): Served {
    const { settings, links } = this.#ground
    const publicUrl = settings.publicUrl?.replace(/\/$/, '') ?? urlOf(listen, settings.hasTls)
    const site = siteAt(publicUrl, this.#ground)
    const { mcpServer: makeServer } = links
    const place = { publicUrl, origins: settings.corsOrigins }
    const mcp = new McpEndpoint(makeServer === undefined ? place : { ...place, makeServer })
    const open = () => this.#open
    const refuse = () => this.#refuse()
    return { site, mcp, answer: routes({ ...site, settings, links, mcp, open, refuse }) }
  }

  /** Whether the database was opened. It may still be unavailable now. */
  get isOpen(): boolean {
    return this.#open !== null
  }

  /** Whether the database was available at the last check. */
  get isStoreUp(): boolean {
    return this.#open?.watch.isUp ?? false
  }

  /** Whether the API has a Snapshot to judge by. */
  get hasSnapshot(): boolean {
    return this.#ground.snapshot !== null
  }

  /** Call it when the settings contain other encryption keys for secrets in the database. */
  useEncryptionKeys(keys: readonly Secret<string>[]): void {
    this.#ground.sealer.use(keys)
    this.#open?.saySealedBy().catch((error: Error) =>
      this.#ground.log.warn('which key the secrets are encrypted with could not be written down', {
        error,
      }),
    )
  }

  /** Resolves when the API judges by this Snapshot, or cannot use it. */
  use(document: SnapshotDocument): Promise<void> {
    // It decides on no request, so it compiles no policies of apps.
    return this.#snapshots.read({ ...document, appPolicies: [] }).then(
      () => this.#served?.mcp.changed(document),
      (error: Error) => this.#ground.log.error('the API cannot use the newest signatures', { error }),
    )
  }

  /** Never rejects. */
  async pay(message: PaymentMessage): Promise<PaymentAnswer> {
    return (await this.#open?.cashier.pay(message)) ?? UNAVAILABLE
  }

  /** Everything except probes and metrics. */
  get middleware(): Koa.Middleware<RequestState> {
    return (ctx, next) => (this.#served === null ? this.#refuse() : this.#served.answer(ctx, next))
  }

  #refuse(): never {
    if (this.#failure instanceof Fault) throw this.#failure
    throw new Refusal('unavailable', 'the database is not open', { headers: { 'Retry-After': '5' } })
  }

  /** Resolves when the database has stored the batch; rejects if it cannot do so now. See `Ingest.take`. */
  async take(batch: unknown, pressure: Pressure = 'none', counts: readonly unknown[] = []): Promise<void> {
    if (this.#open === null) throw new Fault('STORE_UNAVAILABLE', 'the database is not open')
    await this.#open.ingest.take(batch, pressure, counts)
  }

  addMetrics(metrics: Metrics): void {
    this.#ground.addTo(metrics)
    metrics.gauge('store_up', '1 while the database of the management plane is available.', 'first', () => [
      { labels: {}, value: Number(this.isStoreUp) },
    ])
  }

  /** Resolves when everything is stored, or when the database does not answer in time. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    const inTime = new AbortController()
    const late = wait(CLOSE_MS, false, { signal: inTime.signal }).catch(() => false)
    const isClosed = await Promise.race([
      Promise.all([this.#served?.mcp.close(), this.#letGo()]).then(() => true),
      late,
    ])
    inTime.abort()
    if (!isClosed) this.#ground.log.warn('the database does not answer and is left as it is')
  }

  /** Waits for a start in progress, because nothing else would close what it opens. */
  async #letGo(): Promise<void> {
    await this.#starting
    await this.#open?.close()
  }
}

/** The parts that answer requests as soon as the address is known. */
interface Served {
  readonly site: Site
  readonly mcp: McpEndpoint
  readonly answer: Koa.Middleware<RequestState>
}

function urlOf({ host, port }: ListenAddress, hasTls: boolean): string {
  return `http${hasTls ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const RETRY_MS = 5_000
/** A database that answers needs about 10 ms. This and the drain time must fit before a SIGKILL. */
const CLOSE_MS = 3_000
