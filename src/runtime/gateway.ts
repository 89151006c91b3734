import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '../shared/log.ts'
import type { ManagementPlane } from '../manage/management-plane.ts'
import type { PolicyInForce } from '../manage/publish/policy-keeper.ts'
import { SightingFile } from '../manage/intake/sighting-file.ts'
import { Metrics, metricsText, textCode } from '../shared/metrics.ts'
import { type SigningKeys, signingKeysText } from '../identity/keys/signing-key.ts'
import type { SightingListener } from '../plane/bus.ts'
import type { FleetProxy } from '../plane/fleet-proxy.ts'
import { LocalManageBus } from '../plane/local-bus.ts'
import { reasonsOfState, type UnreadyReason } from '../plane/readiness.ts'
import { snapshotOfApp } from '../plane/snapshot.ts'
import type { WorkerStatus } from '../plane/worker-status.ts'
import type { DataPlane, ListenAddresses, LiveState } from '../proxy/worker/data-plane.ts'
import { InvestigationDesk } from '../proxy/request/investigation-line.ts'
import { SingleWorker } from '../proxy/worker/single-worker.ts'
import { endStart } from '../proxy/connection/garbage.ts'
import { WorkerPool } from '../proxy/worker/worker-pool.ts'
import { AgentProofs } from './gateway/agent-proofs.ts'
import { type EncryptionKeyPart, encryptionKeyPart, loadCredentials } from './credential-parts.ts'
import { FileWatch } from './file-watch.ts'
import { CertificatePart, SigningKeyPart, TICKET_KEY_LIFE_MS, TicketKeyPart } from './live-parts.ts'
import {
  addCertificateMetrics,
  addPoolMetrics,
  addReceivedMetrics,
  addSightingFileMetrics,
} from './gateway/gateway-metrics.ts'
import { FleetSnapshots } from './gateway/fleet-snapshots.ts'
import type { GatewaySettings } from './gateway/gateway-settings.ts'
import type { ManagePort } from './manage-port.ts'
import { addBuildInfo, managementCode, type ManagementCode, portCode } from './management-code.ts'
import {
  addReadinessMetrics,
  CATALOGUE_FILLING,
  holdOf,
  SteadyReasons,
  untilFirstSnapshot,
} from './readiness.ts'
import { addReloadMetrics, Reloader } from './reload.ts'
import { SnapshotMaker } from './snapshot-maker.ts'

/**
 * Everything that runs: the data plane with its workers, and the management plane's listener. Loads the parts
 * that change at run time (certificates, ticket keys, policy) once and passes them to every worker.
 */
export class Gateway {
  readonly settings: GatewaySettings
  readonly #log: Log
  readonly #bus = new LocalManageBus()
  readonly #metrics = new Metrics()
  readonly #dataPlane: DataPlane
  #port: ManagePort | null = null
  readonly #operations: readonly string[]
  readonly #management: ManagementPlane | null
  readonly #certificates: CertificatePart
  readonly #ticketKeys: TicketKeyPart
  /** `null`: nothing is signed with our own key. */
  readonly #signingKey: SigningKeyPart | null
  readonly #encryptionKeys: EncryptionKeyPart | null
  readonly #maker: SnapshotMaker
  readonly #sightingFile: SightingFile | null
  readonly #proofs: AgentProofs
  readonly #snapshots: FleetSnapshots
  /** `null`: this process makes its Snapshots itself. */
  #fleet: FleetProxy | null = null
  #managementStarted: Promise<void> = Promise.resolve()
  /** Already serves clients, but the API's catalogue is still being filled. */
  #isFilling = false
  readonly #steady: SteadyReasons
  #reloaders: readonly Reloader<unknown>[] = []
  #live: LiveState = { keyPairs: [], ticketKeys: Buffer.alloc(0), signingKey: null }
  #signingKeys: SigningKeys | null = null
  #sightings = 0
  #watch: FileWatch | null = null
  #rotation: NodeJS.Timeout | null = null
  #addresses: ListenAddresses | null = null
  #state: 'starting' | 'serving' | 'draining' = 'starting'

  /** Resolves when connections are accepted. Rejects with a Fault that says what to do, after cleaning up. */
  static async start(settings: GatewaySettings, log: Log): Promise<Gateway> {
    const code = settings.management === null ? null : await managementCode()
    const gateway = new Gateway(settings, code, log)
    try {
      await gateway.#start()
      return gateway
    } catch (error) {
      await gateway.stop(0, 0)
      throw error
    }
  }

  private constructor(settings: GatewaySettings, code: ManagementCode | null, log: Log) {
    this.settings = settings
    this.#log = log
    this.#operations = code?.OPERATION_IDS ?? []
    const { certificates, dataFolder, ticketKeyFile, worker, workers } = settings
    this.#certificates = new CertificatePart('certificates', certificates, dataFolder, log, (keyPairs) =>
      this.#use({ keyPairs }),
    )
    this.#ticketKeys = new TicketKeyPart(ticketKeyFile, (ticketKeys) => this.#use({ ticketKeys }))
    const { identity, management, signing } = settings
    this.#signingKey =
      signing.webhooks || signing.upstream
        ? new SigningKeyPart(signing.keyFile, dataFolder, (keys) => this.#useSigning(keys))
        : null
    this.#encryptionKeys = encryptionKeyPart(management?.encryptionKeys ?? [], (keys) =>
      this.#management?.useEncryptionKeys(keys),
    )
    const { rangesRefreshMs, allowPrivate } = identity
    const upstreams = worker.upstreams.map(({ name }) => name)
    this.#maker = new SnapshotMaker(
      { ...settings, ...worker, rangesRefreshMs, allowPrivate, upstreams, store: management },
      code,
      {
        publish: (document) => {
          this.#bus.publish(snapshotOfApp(document, worker.app))
          void this.#management?.use(document)
        },
        isLeading: () => settings.fleet === null,
      },
      log,
    )
    this.#snapshots = new FleetSnapshots({ ...settings, ...worker, upstreams }, this.#bus)
    this.#proofs = new AgentProofs(settings, log)
    const desk = new InvestigationDesk(this.#proofs.investigations)
    this.#dataPlane =
      workers === null
        ? new SingleWorker(worker, this.#bus, log, desk)
        : new WorkerPool(workers, worker, { bus: this.#bus, log, desk })
    this.#steady = new SteadyReasons(() => this.#dataPlane.unready(), holdOf(worker.upstreams))
    this.#sightingFile = settings.sightings === null ? null : new SightingFile(settings.sightings, log)
    this.#management =
      settings.management === null || code === null
        ? null
        : new code.ManagementPlane(settings.management, log, {
            publisher: this.#maker,
            policy: this.#maker.policy,
            apps: this.#maker.apps,
            appPolicies: this.#maker.appPolicies,
            opened: (opened) => void this.#maker.opened(opened),
            restored: () => this.#maker.nudge(),
            catchUp: () => this.#maker.catchUp(),
            stored: (batch) => this.#sightingFile?.append(batch),
            workers: () => this.#dataPlane.workers(),
            networks: () => this.#proofs.networks,
            documentMetrics: this.#proofs.documentMetrics,
            signing: { ...signing, keys: () => this.#signingKeys },
          })
    this.#bus.onSightings(this.#take)
    this.#bus.onPayment((message) => (this.#management ?? this.#fleet)?.pay(message))
    this.#management?.settings.onChange('manage.access_log', (isLogged) => {
      if (this.#port !== null) this.#port.traffic.isLogged = isLogged
    })
    this.#management?.settings.onChange('log.level', (level) => {
      log.setLevel(level)
      this.#dataPlane.logAt(level)
    })
    this.#addMetrics()
  }

  get addresses(): ListenAddresses {
    return this.#addresses ?? this.settings.worker
  }

  get manageAddress(): ManagePort['address'] {
    return this.#port?.address ?? this.settings.port.listen
  }

  get certificates(): CertificatePart {
    return this.#certificates
  }

  get policyInForce(): PolicyInForce {
    return this.#maker.policy.inForce()
  }

  /** Reloads all files, changed or not, fetches feeds and makes new session ticket keys. Never rejects. */
  async reload(): Promise<void> {
    await Promise.all([...this.#reloaders.map((reloader) => reloader.check(true)), this.#maker.reload()])
  }

  /**
   * Reports unready first and goes on serving for `graceMs`, so that load balancers notice. Then drains open
   * connections for at most `drainMs`.
   */
  async stop(graceMs: number, drainMs: number): Promise<void> {
    this.#state = 'draining'
    this.#watch?.close()
    this.#steady.close()
    this.#maker.close()
    if (this.#rotation !== null) clearInterval(this.#rotation)
    if (graceMs > 0) await wait(graceMs)
    await this.#dataPlane.drain(drainMs)
    this.#proofs.investigations.close()
    await this.#fleet?.close()
    this.#bus.close()
    this.#port?.close()
    // Before the connections are closed, so that a client that we cut off does not count as one that left.
    const managementClosed = this.#management?.close()
    this.#port?.closeConnections()
    await managementClosed
    await this.#sightingFile?.close() // the last stored sightings are still being written
  }

  /** Cuts off all open connections at once. */
  kill(): void {
    this.#dataPlane.kill()
  }

  async #start(): Promise<void> {
    const { management, fleet } = this.settings
    // With managers or a management plane, the port opens first, so that probes are answered during startup.
    // Otherwise the data plane starts before the management port.
    const isFirst = management !== null || fleet !== null
    const early = isFirst ? await this.#openPort() : []
    const signingKey = this.#signingKey === null ? null : await Reloader.load(this.#signingKey, this.#log)
    if (signingKey !== null) this.#useSigning(signingKey.value)
    const encryptionKeys =
      this.#encryptionKeys === null ? null : await Reloader.load(this.#encryptionKeys, this.#log)
    if (encryptionKeys !== null) this.#management?.useEncryptionKeys(encryptionKeys.value)
    const startOfManagement = this.#startManagement()
    const asnFile = await this.#proofs.load(this.#log)
    const [certificates, ticketKeys] = await Promise.all([
      Reloader.load(this.#certificates, this.#log),
      Reloader.load(this.#ticketKeys, this.#log),
      this.#startKnowledge(),
      startOfManagement,
    ])
    const loaded = [certificates, ticketKeys, signingKey, asnFile, encryptionKeys].filter(
      (each) => each !== null,
    )
    this.#reloaders = [...loaded.map(({ reloader }) => reloader), ...early, ...this.#maker.reloaders]
    const bus =
      fleet === null || this.#fleet === null
        ? null
        : { settings: fleet.bus, connection: this.#fleet.connection }
    const ofCredentials = await loadCredentials(bus, management, this.#log)
    this.#reloaders = [...this.#reloaders, ...this.#snapshots.reloaders, ...ofCredentials]
    this.#live = { ...this.#live, keyPairs: certificates.value, ticketKeys: ticketKeys.value }
    if (this.#fleet === null) this.#maker.begin()
    else {
      this.#fleet.start((document) => this.#snapshots.take(document))
      await untilFirstSnapshot(this.#fleet, this.#log)
    }
    const isApart = this.settings.workers !== null
    if (isApart) endStart({ servesTraffic: false })
    this.#addresses = await this.#dataPlane.start(this.#live)
    if (!isFirst) {
      await wait(FIRST_SERVED_MS)
      this.#reloaders = [...this.#reloaders, ...(await this.#openPort())]
    }
    // After the start, because this work would delay the first clients as long as it takes.
    if (!isApart) {
      await this.#proofs.start()
      endStart({ servesTraffic: true })
    }
    const files = await Promise.all(this.#reloaders.map((reloader) => reloader.files()))
    this.#watch = new FileWatch(files.flat(), () => this.#look())
    this.#look() // finds changes since the files were loaded
    this.#maker.lead()
    if (this.#ticketKeys.isRandom)
      this.#rotation = setInterval(() => ticketKeys.reloader.check(true), TICKET_KEY_LIFE_MS).unref()
    await this.#catalogueFilled()
    this.#steady.start()
    this.#state = 'serving'
  }

  /**
   * Waits until the catalogue is filled. Clients of the app are served meanwhile. Does not wait for an
   * unreachable database, nor for a catalogue that cannot be filled, which the log reports.
   */
  async #catalogueFilled(): Promise<void> {
    const { management } = this.settings
    if (management === null) return
    this.#isFilling = true
    await Promise.race([this.#managementStarted, wait(STORE_WAIT_MS, undefined, { ref: false })])
    if (this.#management?.isOpen === true) await this.#maker.catalogue.firstEnd
    this.#isFilling = false
  }

  /** Opens the port for probes, metrics and the API. Returns its reloaders. */
  async #openPort(): Promise<readonly Reloader<unknown>[]> {
    const { settings } = this
    // Also loads the code for the first scrape now. Loading it later would delay clients.
    const [{ ManagePort }] = await Promise.all([portCode(), textCode()])
    const port = new ManagePort(
      { ...settings.port, dataFolder: settings.dataFolder },
      this.#operations,
      {
        ...(this.#management === null ? {} : { api: this.#management.middleware }),
        unready: () => this.#unready(),
        metrics: async (type) => metricsText([this.#metrics.read(), ...(await this.#dataPlane.read())], type),
      },
      this.#log,
    )
    this.#port = port
    port.addMetrics(this.#metrics)
    return port.start()
  }

  /**
   * A proxy of a fleet starts with the Snapshot on its disk or its bootstrap file. Without
   * one, `bus.first_snapshot` decides.
   */
  async #startKnowledge(): Promise<void> {
    const { fleet, dataFolder, version, worker } = this.settings
    if (fleet === null) return this.#maker.load()
    await this.#snapshots.load(this.#log)
    const { FleetProxy } = await import('../plane/fleet-proxy.ts')
    const settings = { ...fleet, dataFolder, version, app: worker.app }
    this.#fleet = await FleetProxy.open(settings, () => this.#workers(), this.#log)
    this.#fleet.addMetrics(this.#metrics)
    if ((await this.#fleet.restore()) || fleet.firstSnapshot === 'wait') return
    this.#fleet.useBuiltin()
    await this.#maker.load()
    this.#bus.publish(this.#maker.first())
    this.#maker.close() // from now on, the managers make Snapshots
  }

  /** The workers' status. While the first Snapshot is missing, all report that as their reason. */
  #workers(): readonly WorkerStatus[] {
    const reason = this.#fleet?.waitsFor ?? null
    const workers = this.#dataPlane.workers()
    return reason === null ? workers : workers.map((worker) => ({ ...worker, unready: [reason.detail] }))
  }

  /**
   * Starts the management plane without waiting for its database. Only if no other source has the
   * policy does this wait for a moment.
   */
  async #startManagement(): Promise<void> {
    const isPolicyKnown = await this.#maker.recall()
    const started = this.#management?.start(this.manageAddress)
    this.#managementStarted = started ?? Promise.resolve()
    if (isPolicyKnown) return
    const hasStarted = started!.then(() => true)
    if (await Promise.race([hasStarted, wait(POLICY_WAIT_MS, false, { ref: false })])) return
    this.#log.warn('the database does not answer: until it does, no policy of the API is in force')
  }

  /**
   * Passes sightings on. Without a database or a fleet they are only counted, and
   * written to the file if there is one.
   */
  readonly #take: SightingListener = async (batch, pressure, counts) => {
    if (this.#management !== null) return this.#management.take(batch, pressure, counts)
    await this.#fleet?.take(batch, counts)
    this.#sightings += batch.length
    this.#sightingFile?.append(batch)
  }

  #look(): void {
    for (const reloader of this.#reloaders) void reloader.check(false)
  }

  #use(changed: Partial<LiveState>): void {
    this.#live = { ...this.#live, ...changed }
    this.#dataPlane.use(this.#live)
  }

  #useSigning(keys: SigningKeys): void {
    this.#signingKeys = keys
    // Workers get only the key that signs.
    if (this.settings.signing.upstream) this.#use({ signingKey: signingKeysText([keys[0]]) })
  }

  #unready(): readonly UnreadyReason[] {
    if (this.#state === 'serving') return this.#steady.now()
    const isStarting = this.#state === 'starting'
    if (isStarting && this.#isFilling) return [CATALOGUE_FILLING]
    const waitsFor = isStarting ? (this.#fleet?.waitsFor ?? null) : null
    return waitsFor === null ? reasonsOfState(this.#state) : [waitsFor]
  }

  #addMetrics(): void {
    const metrics = this.#metrics
    addBuildInfo(metrics, this.settings)
    addReadinessMetrics(metrics, () => this.#unready())
    addCertificateMetrics(metrics, () => [...this.#certificates.inUse, ...(this.#port?.certificates ?? [])])
    this.#proofs.addMetrics(metrics)
    this.#maker.addMetrics(metrics)
    if (this.#management !== null) this.#management.addMetrics(metrics)
    else addReceivedMetrics(metrics, () => this.#sightings)
    if (this.#sightingFile !== null) addSightingFileMetrics(metrics, this.#sightingFile)
    const statuses = () => this.#reloaders.map(({ status }) => status)
    addReloadMetrics(metrics, () => [...statuses(), ...this.#maker.statuses()])
    if (this.#dataPlane instanceof WorkerPool) addPoolMetrics(metrics, this.#dataPlane)
  }
}

/** A local database opens in some ten milliseconds. An unreachable one must not delay the start. */
const STORE_WAIT_MS = 10_000
const POLICY_WAIT_MS = 3_000
/**
 * Lets clients that retried during startup be served first, before loading more code blocks
 * the process for about as long.
 */
const FIRST_SERVED_MS = 100
