import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../shared/log.ts'
import type { Metrics } from '../shared/metrics.ts'
import { JetStreamProxyBus } from './jetstream/jetstream-bus.ts'
import type { BusSettings, JetStreamConnection } from './jetstream/jetstream-connection.ts'
import type { PaymentAnswer, PaymentMessage } from '../payment/claim.ts'
import type { RequestCounts } from './counts/request-counts.ts'
import type { Sighting } from './sighting.ts'
import { SightingSpool } from './sighting-spool.ts'
import type { UnreadyReason } from './readiness.ts'
import type { SnapshotDocument } from './snapshot.ts'
import { readSnapshotFile } from './snapshot-file.ts'
import type { WorkerStatus } from './worker-status.ts'

export interface FleetProxySettings {
  readonly bus: BusSettings
  readonly dataFolder: string
  /** The app of every request of this proxy; `null`: by host. */
  readonly app?: string | null
  /** `null`: Sightings are not spooled to disk. */
  readonly spoolBytesMax: number | null
  readonly version: string
  /** SHA-256 of the settings, in hexadecimal. */
  readonly configHash: string
  readonly heartbeatMs?: number
  /** A Snapshot for the first start; `null`: none. */
  readonly bootstrapFile?: string | null
}

/**
 * Makes a proxy part of a fleet: it receives Snapshots from remote managers, sends Sightings to them, and
 * sends a heartbeat every few seconds. While no manager is reachable, it serves with the Snapshot it has.
 */
export class FleetProxy {
  readonly #settings: FleetProxySettings
  readonly #workers: () => readonly WorkerStatus[]
  readonly #log: Log
  readonly #id: string
  readonly #bus: JetStreamProxyBus
  readonly #spool: SightingSpool | null
  readonly #startedAtMs = Date.now()
  #source: SnapshotOrigin = 'none'
  readonly #first = Promise.withResolvers<void>()
  /** Why `bus.bootstrap_file` is not in use; `null`: it is in use or not configured. */
  #bootstrapFailure: string | null = null
  #beat: NodeJS.Timeout | null = null
  #draining: Promise<void> | null = null
  #isSpooling = false
  #isClosed = false

  /** Rejects with a Fault if a file named in the settings is unusable. */
  static async open(
    settings: FleetProxySettings,
    workers: () => readonly WorkerStatus[],
    log: Log,
  ): Promise<FleetProxy> {
    const { dataFolder, spoolBytesMax } = settings
    const id = await idIn(dataFolder, log)
    const spool =
      spoolBytesMax === null ? null : await SightingSpool.open(join(dataFolder, 'spool'), spoolBytesMax)
    return new FleetProxy(settings, workers, id, spool, log)
  }

  private constructor(
    settings: FleetProxySettings,
    workers: () => readonly WorkerStatus[],
    id: string,
    spool: SightingSpool | null,
    log: Log,
  ) {
    this.#settings = settings
    this.#workers = workers
    this.#log = log
    this.#id = id
    this.#spool = spool
    const folder = join(settings.dataFolder, FLEET_FOLDER)
    this.#bus = new JetStreamProxyBus(settings.bus, id, { folder, app: settings.app ?? null }, log)
  }

  get connection(): JetStreamConnection {
    return this.#bus.connection
  }

  get isConnected(): boolean {
    return this.#bus.connection.isUp
  }

  /** Uses the newer of the copy on disk and the bootstrap file; `false`: there is neither. */
  async restore(): Promise<boolean> {
    if (await this.#bus.restore()) this.#source = 'disk'
    const { bootstrapFile = null } = this.#settings
    if (bootstrapFile !== null) await this.#bootstrap(bootstrapFile)
    return this.#source !== 'none'
  }

  /** Serves with the bundled signatures until the fleet has a Snapshot. */
  useBuiltin(): void {
    this.#source = 'builtin'
  }

  /** Resolves when there is a Snapshot to serve with. */
  get hasFirst(): Promise<void> {
    return this.#source === 'none' ? this.#first.promise : Promise.resolve()
  }

  /** Why there is no Snapshot to serve with yet, and what to do; `null`: there is one. */
  get waitsFor(): UnreadyReason | null {
    if (this.#source !== 'none') return null
    const { urls } = this.#settings.bus
    const { refused } = this.#bus.followed
    const why = this.isConnected
      ? refused === null
        ? 'no manager has published one on this bus; start "gatehouse manage" with the same bus.name'
        : `Snapshot ${refused.number} cannot be used: ${refused.why}`
      : `NATS is unreachable at ${urls.map(withoutUser).join(', ')}; check bus.url, or give the proxy a bus.bootstrap_file`
    const bootstrap = this.#bootstrapFailure === null ? '' : `. bus.bootstrap_file: ${this.#bootstrapFailure}`
    return { code: 'first_snapshot', detail: `waits for the first Snapshot of its fleet: ${why}${bootstrap}` }
  }

  /** From now on `use` gets each Snapshot, and managers get heartbeats. */
  start(use: (document: SnapshotDocument) => void): void {
    // The listener is called at once with the restored Snapshot.
    let isRestored = this.#source === 'disk' || this.#source === 'bootstrap'
    this.#bus.onSnapshot((document) => {
      if (!isRestored) this.#source = 'bus'
      isRestored = false
      use(document)
      this.#first.resolve()
      // Wait until the workers have it, then report it: someone may be waiting for the rollout.
      setTimeout(() => this.#sayHow(false), SETTLED_MS).unref()
    })
    const { heartbeatMs = HEARTBEAT_MS } = this.#settings
    this.#beat = setInterval(() => this.#sayHow(false), heartbeatMs).unref()
    this.#bus.connection.onUp(() => {
      this.#sayHow(false)
      this.#drain()
    })
  }

  /** Resolves when the batch is sent or on disk. Rejects if the workers must keep it. */
  async take(batch: readonly Sighting[], counts: readonly RequestCounts[]): Promise<void> {
    const spool = this.#spool
    if (spool === null) return this.#bus.sendSightings(batch, counts)
    if (spool.isEmpty && !this.#isSpooling) {
      try {
        return await this.#bus.sendSightings(batch, counts)
      } catch {
        this.#isSpooling = true
      }
    }
    await spool.append(batch, counts)
    this.#drain()
  }

  pay(message: PaymentMessage): Promise<PaymentAnswer> {
    return this.#bus.pay(message)
  }

  /** Sends a last heartbeat. Sightings on disk wait for the next start. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#beat !== null) clearInterval(this.#beat)
    this.#sayHow(true)
    await this.#bus.closed()
    await this.#draining
    await this.#spool?.close()
  }

  addMetrics(metrics: Metrics): void {
    const { connection } = this.#bus
    metrics.gauge('bus_up', '1 while NATS is reachable.', 'first', () => [
      { labels: {}, value: Number(connection.isUp) },
    ])
    metrics.counter('bus_reconnects_total', 'Reconnections to NATS.', () => [
      { labels: {}, value: connection.reconnects },
    ])
    metrics.gauge('snapshot_refused', '1 while this version cannot use a newer Snapshot.', 'first', () => [
      { labels: {}, value: Number(this.#bus.followed.refused !== null) },
    ])
    const help = '1 for the origin of the Snapshot in use; none: the proxy waits for its first one.'
    metrics.gauge('snapshot_source', help, 'first', () =>
      SNAPSHOT_ORIGINS.map((source) => ({ labels: { source }, value: Number(source === this.#source) })),
    )
    const spool = this.#spool
    if (spool === null) return
    metrics.gauge('spool_bytes', 'The size of the Sightings that wait on disk.', 'first', () => [
      { labels: {}, value: spool.bytes },
    ])
    metrics.counter('spool_sightings_total', 'Sightings that waited on disk, by outcome.', () => [
      { labels: { outcome: 'written' }, value: spool.counts.written },
      { labels: { outcome: 'sent' }, value: spool.counts.sent },
    ])
  }

  async #bootstrap(path: string): Promise<void> {
    try {
      const file = await readSnapshotFile(path)
      const { number } = file.document
      if (await this.#bus.bootstrap(file)) {
        this.#source = 'bootstrap'
        this.#log.info('the Snapshot of bus.bootstrap_file is in use', { path, number })
      } else this.#log.info('bus.bootstrap_file is ignored: a newer Snapshot is on disk', { path, number })
    } catch (error) {
      this.#bootstrapFailure = (error as Error).message
      this.#log.error('bus.bootstrap_file cannot be used', { path, error: error as Error })
    }
  }

  #sayHow(isLast: boolean): void {
    const { version, configHash, heartbeatMs = HEARTBEAT_MS } = this.#settings
    const { inUse, refused } = this.#bus.followed
    const { number, hash, madeAtMs } = inUse ?? NONE
    const workers = this.#workers()
    const waiting = this.#spool === null ? 0 : this.#spool.counts.written - this.#spool.counts.sent
    this.#bus.sendHeartbeat({
      id: this.#id,
      host: hostname(),
      version,
      configHash,
      startedAtMs: this.#startedAtMs,
      everyMs: heartbeatMs,
      snapshot: inUse === null ? null : { number, hash, madeAtMs },
      // Managers of earlier versions know only these three values.
      source: this.#source === 'bootstrap' ? 'disk' : this.#source === 'none' ? 'builtin' : this.#source,
      refused,
      workers,
      sightings: { waiting: Math.max(0, waiting), dropped: sum(workers.map(({ dropped }) => dropped)) },
      isLast,
    })
  }

  #drain(): void {
    const spool = this.#spool
    if (spool === null || this.#isClosed || !this.#bus.connection.isUp || this.#draining !== null) return
    // Jitter: the proxies of a fleet must not start at the same time.
    const pause = new Promise((resolve) => setTimeout(resolve, Math.random() * SPREAD_MS).unref())
    this.#draining = pause
      .then(() => spool.drain((batch, counts) => this.#bus.sendSightings(batch, counts)))
      .then(
        () => {
          this.#isSpooling = false
        },
        (error: Error) => {
          if (this.#bus.connection.isUp && !this.#isClosed)
            this.#log.warn('Sightings on disk cannot be sent; they stay there', { error })
        },
      )
      .finally(() => {
        this.#draining = null
      })
  }
}

/**
 * The proxy's id. It is stored in the data folder; if that is not writable, the id lasts as long as the
 * process.
 */
async function idIn(folder: string, log: Log): Promise<string> {
  const file = join(folder, 'proxy.id')
  try {
    const known = (await readFile(file, 'utf8')).trim()
    if (ID.test(known)) return known
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn('the id of this proxy cannot be read', { error: error as Error })
  }
  const id = randomBytes(8).toString('hex')
  try {
    await mkdir(folder, { recursive: true })
    await writeFile(file, `${id}\n`)
  } catch (error) {
    log.warn('the id of this proxy cannot be kept', { error: error as Error })
  }
  return id
}

/** Removes user name and password. */
export function withoutUser(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0)
}

/** Where the Snapshot in use comes from; `none`: not received yet. */
type SnapshotOrigin = (typeof SNAPSHOT_ORIGINS)[number]

const SNAPSHOT_ORIGINS = ['none', 'builtin', 'disk', 'bootstrap', 'bus'] as const
/** The folder for the fleet's newest Snapshot, in the data folder. */
export const FLEET_FOLDER = 'fleet'
const ID = /^[0-9a-f]{16}$/
const NONE = { number: 0, hash: '', madeAtMs: 0 }
const HEARTBEAT_MS = 10_000
const SETTLED_MS = 300
const SPREAD_MS = 2_000
