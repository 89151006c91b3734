import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../fault.ts'
import type { Log, LogLevel } from '../log.ts'
import { createManageServer } from '../manage/app.ts'
import { FeedOpener } from '../manage/feed-opener.ts'
import { FeedPuller, type FeedSettings } from '../manage/feed-puller.ts'
import { FeedStore, feedFolder } from '../manage/feed-store.ts'
import { ManagementPlane, type ManagementSettings } from '../manage/management-plane.ts'
import { SightingFile, type SightingFileSettings } from '../manage/sighting-file.ts'
import { Metrics, metricsText } from '../metrics.ts'
import { LocalManageBus } from '../plane/local-bus.ts'
import type { SignatureSet } from '../plane/signature-set.ts'
import { makeSnapshot } from '../plane/snapshot.ts'
import type { DataPlane, ListenAddress, ListenAddresses, LiveState } from '../proxy/data-plane.ts'
import type { KeyPairSource } from '../proxy/key-pair.ts'
import { SingleWorker } from '../proxy/single-worker.ts'
import { dropStartGarbage } from '../proxy/garbage.ts'
import type { WorkerSettings } from '../proxy/worker.ts'
import { addProcessMetrics } from '../proxy/worker-metrics.ts'
import { WorkerPool } from '../proxy/worker-pool.ts'
import { FileWatch } from './file-watch.ts'
import { CertificatePart, type OwnSources, PolicyPart, SignaturesPart, TicketKeyPart } from './live-parts.ts'
import { addReloadMetrics, Reloader } from './reload.ts'
import { SignatureCompiler } from './signature-compiler.ts'

export interface GatewaySettings {
  readonly version: string
  readonly worker: WorkerSettings
  /** Processes for the data plane; `null` serves from this one. */
  readonly workers: number | null
  /** None: the development certificate. */
  readonly certificates: readonly KeyPairSource[]
  readonly ticketKeyFile: string | null
  readonly policyFile: string | null
  /** `null`: they are counted and forgotten. */
  readonly sightings: SightingFileSettings | null
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  readonly dataFolder: string
  readonly manageListen: ListenAddress
  /** `null`: the data plane alone, and of the management plane only probes and metrics. */
  readonly management: ManagementSettings | null
  readonly logLevel: LogLevel
}

/**
 * Everything that runs: the data plane, wherever its workers are, the management plane's listener, and what changes
 * while they run (certificates, ticket keys, policy), which is loaded here once and handed to every worker.
 */
export class Gateway {
  readonly settings: GatewaySettings
  readonly #log: Log
  readonly #bus = new LocalManageBus()
  readonly #metrics = new Metrics()
  readonly #dataPlane: DataPlane
  readonly #manage: Server
  readonly #management: ManagementPlane | null
  readonly #certificates: CertificatePart
  readonly #ticketKeys: TicketKeyPart
  readonly #policy: PolicyPart
  readonly #sightingFile: SightingFile | null
  readonly #signatures: SignaturesPart
  readonly #compiler: SignatureCompiler
  readonly #feeds: FeedPuller
  readonly #feedOpener = new FeedOpener()
  #reloaders: readonly Reloader<unknown>[] = []
  #live: LiveState = { keyPairs: [], ticketKeys: Buffer.alloc(0) }
  #snapshots = 0
  #policyInUse: unknown = null
  #signatureSet: SignatureSet | null = null
  #sightings = 0
  #watch: FileWatch | null = null
  #rotation: NodeJS.Timeout | null = null
  #addresses: ListenAddresses | null = null
  #state: 'starting' | 'serving' | 'draining' = 'starting'

  /** Resolves when connections are taken. Rejects with a Fault that says what to do, and leaves nothing behind. */
  static async start(settings: GatewaySettings, log: Log): Promise<Gateway> {
    const gateway = new Gateway(settings, log)
    try {
      await gateway.#start()
      return gateway
    } catch (error) {
      await gateway.stop(0, 0)
      throw error
    }
  }

  private constructor(settings: GatewaySettings, log: Log) {
    this.settings = settings
    this.#log = log
    const { certificates, dataFolder, ticketKeyFile, policyFile, worker, workers } = settings
    this.#certificates = new CertificatePart(certificates, dataFolder, log, (keyPairs) =>
      this.#use({ keyPairs }),
    )
    this.#ticketKeys = new TicketKeyPart(ticketKeyFile, (ticketKeys) => this.#use({ ticketKeys }))
    const upstreams = worker.upstreams.map(({ name }) => name)
    this.#policy = new PolicyPart(policyFile, upstreams, (policy) => {
      this.#policyInUse = policy
      this.#publish()
    })
    this.#compiler = new SignatureCompiler(join(dataFolder, 'snapshots'))
    const store = new FeedStore(feedFolder(dataFolder), settings.feeds, log, this.#feedOpener)
    this.#signatures = new SignaturesPart(settings.signatures, store, this.#compiler, (set) => {
      this.#signatureSet = set
      this.#publish()
    })
    this.#feeds = new FeedPuller(settings.feeds, store, log, () => this.#look())
    this.#dataPlane =
      workers === null
        ? new SingleWorker(worker, this.#bus, log)
        : new WorkerPool(workers, worker, this.#bus, log)
    this.#sightingFile = settings.sightings === null ? null : new SightingFile(settings.sightings, log)
    this.#bus.onSightings((batch) => {
      this.#sightings += batch.length
      this.#sightingFile?.append(batch)
    })
    this.#management = settings.management === null ? null : new ManagementPlane(settings.management, log)
    this.#manage = createManageServer({
      ...(this.#management === null ? {} : { api: this.#management.middleware }),
      unready: () => this.#unready(),
      metrics: async () => metricsText([await this.#metrics.read(), ...(await this.#dataPlane.read())]),
      failed: (error) => log.error('the management plane failed at a request', { error }),
    })
    this.#addMetrics()
  }

  get addresses(): ListenAddresses {
    return this.#addresses ?? this.settings.worker
  }

  get manageAddress(): ListenAddress {
    const { address: host, port } = this.#manage.address() as AddressInfo
    return { host, port }
  }

  get certificates(): CertificatePart {
    return this.#certificates
  }

  /** Loads all files anew, changed or not, fetches feeds, and makes new keys for session tickets; never rejects. */
  async reload(): Promise<void> {
    void this.#feeds.pull() // takes as long as their servers do
    await Promise.all(this.#reloaders.map((reloader) => reloader.check(true)))
  }

  /**
   * Says first that no more should come, and goes on serving for `graceMs`, in which others hear of it; then lets go of
   * what is open, for `drainMs` at most.
   */
  async stop(graceMs: number, drainMs: number): Promise<void> {
    this.#state = 'draining'
    this.#watch?.close()
    this.#feeds.close()
    this.#feedOpener.close()
    this.#compiler.close()
    if (this.#rotation !== null) clearInterval(this.#rotation)
    if (graceMs > 0) await wait(graceMs)
    await this.#dataPlane.drain(drainMs)
    this.#bus.close()
    await this.#sightingFile?.close()
    this.#manage.close()
    this.#manage.closeAllConnections()
    await this.#management?.close()
  }

  /** For who cannot wait: what is open is cut off. */
  kill(): void {
    this.#dataPlane.kill()
  }

  async #start(): Promise<void> {
    // First of all, so that a probe is answered while the rest takes its time.
    await listen(this.#manage, this.settings.manageListen)
    void this.#management?.start(this.manageAddress) // nobody's request waits for a database
    const [certificates, ticketKeys, policy, signatures] = await Promise.all([
      Reloader.load(this.#certificates, this.#log),
      Reloader.load(this.#ticketKeys, this.#log),
      Reloader.load(this.#policy, this.#log),
      Reloader.load(this.#signatures, this.#log),
    ])
    this.#reloaders = [certificates, ticketKeys, policy, signatures].map(({ reloader }) => reloader)
    this.#live = { keyPairs: certificates.value, ticketKeys: ticketKeys.value }
    this.#policyInUse = policy.value
    this.#signatureSet = signatures.value
    this.#publish()
    if (this.settings.workers !== null) dropStartGarbage() // what serves in this process does it itself
    this.#feedOpener.leave()
    this.#addresses = await this.#dataPlane.start(this.#live)
    const files = await Promise.all(this.#reloaders.map((reloader) => reloader.files()))
    this.#watch = new FileWatch(files.flat(), () => this.#look())
    this.#look() // for what has changed since it was loaded
    this.#feeds.start()
    if (this.#ticketKeys.isRandom)
      this.#rotation = setInterval(() => ticketKeys.reloader.check(true), TICKET_KEY_LIFE_MS).unref()
    this.#state = 'serving'
  }

  #look(): void {
    for (const reloader of this.#reloaders) void reloader.check(false)
  }

  #use(changed: Partial<LiveState>): void {
    this.#live = { ...this.#live, ...changed }
    this.#dataPlane.use(this.#live)
  }

  #publish(): void {
    this.#bus.publish(makeSnapshot(++this.#snapshots, this.#policyInUse, Date.now(), this.#signatureSet))
  }

  #unready(): readonly string[] {
    return this.#state === 'serving' ? this.#dataPlane.unready() : [this.#state]
  }

  #addMetrics(): void {
    const metrics = this.#metrics
    const { version } = this.settings
    metrics.gauge('build_info', 'Which program this is.', 'first', () => [
      { labels: { version, node: process.versions.node }, value: 1 },
    ])
    metrics.gauge('certificate_not_after_timestamp_seconds', 'When each certificate expires.', 'first', () =>
      this.#certificates.inUse.map(({ name, keyType, notAfterMs }) => {
        return { labels: { certificate: name, key_type: keyType }, value: notAfterMs / 1000 }
      }),
    )
    metrics.counter('sightings_received_total', 'Sightings that reached the management plane.', () => [
      { labels: {}, value: this.#sightings },
    ])
    this.#management?.addMetrics(metrics)
    if (this.#sightingFile !== null) addSightingFileMetrics(metrics, this.#sightingFile)
    if (this.settings.feeds.length > 0) this.#feeds.addMetrics(metrics)
    addReloadMetrics(metrics, () => this.#reloaders.map(({ status }) => status))
    if (this.#dataPlane instanceof WorkerPool) this.#addPoolMetrics(this.#dataPlane)
  }

  #addPoolMetrics(pool: WorkerPool): void {
    addProcessMetrics(this.#metrics)
    this.#metrics.gauge('workers_listening', 'Workers that take connections.', 'sum', () => [
      { labels: {}, value: pool.counts.listening },
    ])
    this.#metrics.counter('worker_restarts_total', 'Workers that died and were replaced.', () => [
      { labels: {}, value: pool.counts.restarts },
    ])
  }
}

function addSightingFileMetrics(metrics: Metrics, { counts }: SightingFile): void {
  metrics.counter('sightings_written_total', 'Sightings written to sightings.file.', () => [
    { labels: {}, value: counts.written },
  ])
  metrics.counter('sightings_unwritten_total', 'Sightings that could not be written to it.', () => [
    { labels: {}, value: counts.dropped },
  ])
}

async function listen(server: Server, address: ListenAddress): Promise<void> {
  try {
    server.listen({ ...address })
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const place = `${address.host} port ${address.port}`
    const why = code === 'EADDRINUSE' ? 'another program listens there' : (error as Error).message
    throw new Fault(
      'LISTEN_FAILED',
      `the management plane cannot listen on ${place}: ${why}; give it another with --manage`,
    )
  }
}

/** A stolen key opens the sessions of so long; a session that outlives it costs one full handshake. */
const TICKET_KEY_LIFE_MS = 86_400_000
