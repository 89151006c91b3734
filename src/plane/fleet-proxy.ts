import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Heartbeat } from './heartbeat.ts'
import { JetStreamProxyBus } from './jetstream-bus.ts'
import type { BusSettings } from './jetstream-connection.ts'
import type { Sighting } from './sighting.ts'
import { SightingSpool } from './sighting-spool.ts'
import type { SnapshotDocument } from './snapshot.ts'
import type { WorkerStatus } from './worker-status.ts'

export interface FleetProxySettings {
  readonly bus: BusSettings
  readonly dataFolder: string
  /** `null`: nothing waits on disk. */
  readonly spoolBytesMax: number | null
  readonly version: string
  /** SHA-256 of the settings, in hexadecimal. */
  readonly configHash: string
  readonly heartbeatMs?: number
}

/**
 * What makes a proxy one of a fleet: Snapshots come from managers elsewhere, Sightings go there, and every few seconds it
 * says how it is. While nobody can be reached it serves by what it has.
 */
export class FleetProxy {
  readonly #settings: FleetProxySettings
  readonly #workers: () => readonly WorkerStatus[]
  readonly #log: Log
  readonly #id: string
  readonly #bus: JetStreamProxyBus
  readonly #spool: SightingSpool | null
  readonly #startedAtMs = Date.now()
  #source: Heartbeat['source'] = 'builtin'
  #beat: NodeJS.Timeout | null = null
  #draining: Promise<void> | null = null
  #isSpooling = false
  #isClosed = false

  /** Rejects with a Fault where a file of the settings cannot be used. */
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
    const folder = join(settings.dataFolder, 'fleet')
    this.#bus = new JetStreamProxyBus(settings.bus, id, { folder }, log)
  }

  get isConnected(): boolean {
    return this.#bus.connection.isUp
  }

  /** Takes what was in use last into use again; `false`: there is none. */
  async restore(): Promise<boolean> {
    const isRestored = await this.#bus.restore()
    if (isRestored) this.#source = 'disk'
    return isRestored
  }

  /** From now on `use` gets each Snapshot, and managers are told how this one is. */
  start(use: (document: SnapshotDocument) => void): void {
    let isFirst = this.#source === 'disk'
    this.#bus.onSnapshot((document) => {
      if (!isFirst) this.#source = 'bus'
      isFirst = false
      use(document)
      // Workers have it in a moment, and who waits for it hears of it.
      setTimeout(() => this.#sayHow(false), SETTLED_MS).unref()
    })
    const { heartbeatMs = HEARTBEAT_MS } = this.#settings
    this.#beat = setInterval(() => this.#sayHow(false), heartbeatMs).unref()
    this.#bus.connection.onUp(() => {
      this.#sayHow(false)
      this.#drain()
    })
  }

  /** Resolves when they are on their way, or on disk; rejects where the workers have to keep them. */
  async take(batch: readonly Sighting[]): Promise<void> {
    const spool = this.#spool
    if (spool === null) return this.#bus.sendSightings(batch)
    if (spool.isEmpty && !this.#isSpooling) {
      try {
        return await this.#bus.sendSightings(batch)
      } catch {
        this.#isSpooling = true
      }
    }
    await spool.append(batch)
    this.#drain()
  }

  /** Says good-bye; what is on disk waits for the next start. */
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
    metrics.gauge('bus_up', '1 while NATS can be reached.', 'first', () => [
      { labels: {}, value: Number(connection.isUp) },
    ])
    metrics.counter('bus_reconnects_total', 'Connections to NATS made after the first.', () => [
      { labels: {}, value: connection.reconnects },
    ])
    metrics.gauge(
      'snapshot_refused',
      '1 while a newer Snapshot is no good for this version.',
      'first',
      () => [{ labels: {}, value: Number(this.#bus.followed.refused !== null) }],
    )
    const spool = this.#spool
    if (spool === null) return
    metrics.gauge('spool_bytes', 'What was seen and waits on disk.', 'first', () => [
      { labels: {}, value: spool.bytes },
    ])
    metrics.counter(
      'spool_sightings_total',
      'Sightings that had to wait on disk, by what came of them.',
      () => [
        { labels: { outcome: 'written' }, value: spool.counts.written },
        { labels: { outcome: 'sent' }, value: spool.counts.sent },
      ],
    )
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
      source: this.#source,
      refused,
      workers,
      sightings: { waiting: Math.max(0, waiting), dropped: sum(workers.map(({ dropped }) => dropped)) },
      isLast,
    })
  }

  #drain(): void {
    const spool = this.#spool
    if (spool === null || this.#isClosed || !this.#bus.connection.isUp || this.#draining !== null) return
    // Not all of a fleet at once.
    const pause = new Promise((resolve) => setTimeout(resolve, Math.random() * SPREAD_MS).unref())
    this.#draining = pause
      .then(() => spool.drain((batch) => this.#bus.sendSightings(batch)))
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

/** One that stays for as long as the data folder does; where that cannot be written, for as long as this process. */
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0)
}

const ID = /^[0-9a-f]{16}$/
const NONE = { number: 0, hash: '', madeAtMs: 0 }
const HEARTBEAT_MS = 10_000
const SETTLED_MS = 300
const SPREAD_MS = 2_000
