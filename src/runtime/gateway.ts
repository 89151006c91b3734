import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { SigningConfig } from '../config/identity.ts'
import type { Log, LogSettings } from '../shared/log.ts'
import type { FrontSettings } from '../manage/app.ts'
import type { FeedSettings } from '../manage/publish/feed-puller.ts'
import type { ManagementPlane } from '../manage/management-plane.ts'
import type { ManagementSettings } from '../manage/management-settings.ts'
import type { PolicyInForce } from '../manage/publish/policy-keeper.ts'
import { SightingFile, type SightingFileSettings } from '../manage/intake/sighting-file.ts'
import { Metrics, metricsText, textCode } from '../shared/metrics.ts'
import { DocumentMetrics } from '../identity/fetch/document-metrics.ts'
import { fetchCode } from '../identity/fetch/guarded-get.ts'
import { Investigations } from '../identity/verify/investigations.ts'
import { type DirectorySettings, KeyDirectories } from '../identity/verify/key-directories.ts'
import { type SigningKeys, signingKeysText } from '../identity/keys/signing-key.ts'
import { PlaceLookups } from '../identity/address/place-lookups.ts'
import { ReplayFloor } from '../identity/verify/replay-floor.ts'
import { ReverseDns } from '../identity/address/reverse-dns.ts'
import { SKEW_S } from '../identity/verify/web-bot-auth.ts'
import type { FleetProxy, FleetProxySettings } from '../plane/fleet-proxy.ts'
import { LocalManageBus } from '../plane/local-bus.ts'
import { reasonsOfState, type UnreadyReason } from '../plane/readiness.ts'
import type { Sighting } from '../plane/sighting.ts'
import type { WorkerStatus } from '../plane/worker-status.ts'
import type { DataPlane, ListenAddress, ListenAddresses, LiveState } from '../proxy/worker/data-plane.ts'
import { InvestigationDesk } from '../proxy/request/investigation-line.ts'
import type { KeyPairSource } from '../proxy/tls/key-pair.ts'
import { SingleWorker } from '../proxy/worker/single-worker.ts'
import { endStart } from '../proxy/connection/garbage.ts'
import type { WorkerSettings } from '../proxy/worker/worker.ts'
import { addProcessMetrics } from '../proxy/worker/worker-metrics.ts'
import { WorkerPool } from '../proxy/worker/worker-pool.ts'
import {
  BusCredentialPart,
  type EncryptionKeyPart,
  encryptionKeyPart,
  storeLoginPart,
} from './credential-parts.ts'
import { FileWatch } from './file-watch.ts'
import { AsnPart, CertificatePart, type OwnSources, SigningKeyPart, TicketKeyPart } from './live-parts.ts'
import type { ManagePort } from './manage-port.ts'
import { addBuildInfo, managementCode, type ManagementCode, portCode } from './management-code.ts'
import { addReadinessMetrics, CATALOGUE_FILLING, SteadyReasons } from './readiness.ts'
import { addReloadMetrics, type Part, Reloader } from './reload.ts'
import { SnapshotMaker } from './snapshot-maker.ts'

export interface GatewaySettings {
  readonly version: string
  /** SHA-256 of the settings, in hexadecimal. */
  readonly configHash: string
  readonly worker: WorkerSettings
  /** Worker processes for the data plane; `null` serves from this process. */
  readonly workers: number | null
  /** Empty: the development certificate is used. */
  readonly certificates: readonly KeyPairSource[]
  readonly ticketKeyFile: string | null
  readonly policyFile: string | null
  /** `null`: sightings are not written to a file. */
  readonly sightings: SightingFileSettings | null
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  readonly signing: SigningConfig
  readonly identity: IdentitySettings
  readonly dataFolder: string
  readonly manageListen: ListenAddress
  readonly manageFront: FrontSettings
  /** `null`: the management port does not use TLS. */
  readonly manageCertificate: KeyPairSource | null
  readonly isAccessLogged: boolean
  /** `null`: only the data plane runs, and the management port has only probes and metrics. */
  readonly management: ManagementSettings | null
  /** `null`: not a proxy of a fleet, whose managers are other processes. */
  readonly fleet: FleetSettings | null
  readonly log: LogSettings
}

interface FleetSettings extends Omit<FleetProxySettings, 'dataFolder' | 'version'> {
  /** What a proxy does before its first Snapshot from the fleet. */
  readonly firstSnapshot: 'wait' | 'serve'
}

interface IdentitySettings extends Pick<DirectorySettings, 'mode' | 'agents' | 'allowPrivate'> {
  readonly reverseDns: boolean
  /** Empty: the system's resolvers are used. */
  readonly resolvers: readonly string[]
  /** `null`: there is no list of networks. */
  readonly asnFile: string | null
  /** `null`: published address ranges are not fetched. */
  readonly rangesRefreshMs: number | null
}

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
  readonly #documentMetrics = new DocumentMetrics()
  readonly #asnFile: AsnPart | null
  readonly #places: PlaceLookups | null
  readonly #investigations: Investigations
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
    const { signing } = settings
    this.#signingKey =
      signing.webhooks || signing.upstream
        ? new SigningKeyPart(signing.keyFile, dataFolder, (keys) => this.#useSigning(keys))
        : null
    const { policyFile, signatures, feeds, identity, management } = settings
    this.#encryptionKeys = encryptionKeyPart(management?.encryptionKeys ?? [], (keys) =>
      this.#management?.useEncryptionKeys(keys),
    )
    const { rangesRefreshMs, allowPrivate } = identity
    this.#maker = new SnapshotMaker(
      {
        policyFile,
        signatures,
        feeds,
        rangesRefreshMs,
        allowPrivate,
        dataFolder,
        upstreams: worker.upstreams.map(({ name }) => name),
        store: management,
      },
      code,
      {
        publish: (document) => {
          this.#bus.publish(document)
          void this.#management?.use(document)
        },
        isLeading: () => settings.fleet === null,
      },
      log,
    )
    const { reverseDns, resolvers, asnFile } = settings.identity
    this.#asnFile = asnFile === null ? null : new AsnPart(asnFile)
    const nowMs = Date.now
    const startedMs = Date.now() - performance.now()
    this.#places =
      reverseDns || asnFile !== null
        ? new PlaceLookups({
            dns: reverseDns ? new ReverseDns({ resolvers }) : null,
            networks: () => this.#asnFile?.inUse ?? null,
            nowMs,
          })
        : null
    this.#investigations = new Investigations({
      directories: new KeyDirectories({ ...settings.identity, nowMs, log, metrics: this.#documentMetrics }),
      places: this.#places,
      openFloor: () => {
        const file = join(dataFolder, 'signature-uses.json')
        return ReplayFloor.open({ file, startedMs, skewS: SKEW_S, nowMs }, log)
      },
      nowMs,
    })
    const desk = new InvestigationDesk(this.#investigations)
    this.#dataPlane =
      workers === null
        ? new SingleWorker(worker, this.#bus, log, desk)
        : new WorkerPool(workers, worker, this.#bus, log, desk)
    this.#steady = new SteadyReasons(() => this.#dataPlane.unready(), holdOf(worker.upstreams))
    this.#sightingFile = settings.sightings === null ? null : new SightingFile(settings.sightings, log)
    this.#management =
      settings.management === null || code === null
        ? null
        : new code.ManagementPlane(settings.management, log, {
            publisher: this.#maker,
            policy: this.#maker.policy,
            opened: (opened) => void this.#maker.opened(opened),
            restored: () => this.#maker.nudge(),
            catchUp: () => this.#maker.catchUp(),
            stored: (batch) => this.#sightingFile?.append(batch),
            workers: () => this.#dataPlane.workers(),
            documentMetrics: this.#documentMetrics,
            signing: { ...signing, keys: () => this.#signingKeys },
          })
    this.#bus.onSightings((batch) => this.#take(batch))
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

  get manageAddress(): ListenAddress {
    return this.#port?.address ?? this.settings.manageListen
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
    this.#investigations.close()
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
    const asnFile = this.#asnFile === null ? null : await Reloader.load(this.#asnFile, this.#log)
    if (asnFile !== null) this.#asnFile!.use(asnFile.value)
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
    await this.#watchCredentials()
    this.#live = { ...this.#live, keyPairs: certificates.value, ticketKeys: ticketKeys.value }
    if (this.#fleet === null) this.#maker.begin()
    else {
      this.#fleet.start((document) => this.#bus.publish(document))
      await this.#firstSnapshot(this.#fleet)
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
      if (this.settings.identity.mode !== 'off') await fetchCode()
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
      {
        listen: settings.manageListen,
        front: settings.manageFront,
        certificate: settings.manageCertificate,
        isAccessLogged: settings.isAccessLogged,
        dataFolder: settings.dataFolder,
      },
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
   * Waits for the first Snapshot of the fleet. The client ports stay closed until then: load balancers
   * send a refused connection elsewhere, and health checks that only connect fail too. No request can be
   * served without the fleet's policy.
   */
  async #firstSnapshot(fleet: FleetProxy): Promise<void> {
    const reason = fleet.waitsFor
    if (reason === null) return
    this.#log.warn('the ports for clients stay closed until there is a Snapshot', { reason: reason.detail })
    await fleet.hasFirst
    this.#log.info('the first Snapshot of the fleet has arrived')
  }

  /**
   * A proxy of a fleet starts with the Snapshot on its disk or its bootstrap file. Without
   * one, `bus.first_snapshot` decides.
   */
  async #startKnowledge(): Promise<void> {
    const { fleet, dataFolder, version } = this.settings
    if (fleet === null) return this.#maker.load()
    const { FleetProxy } = await import('../plane/fleet-proxy.ts')
    const workers = () => this.#workers()
    this.#fleet = await FleetProxy.open({ ...fleet, dataFolder, version }, workers, this.#log)
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

  /** Watches the credentials for NATS and the database. */
  async #watchCredentials(): Promise<void> {
    const { fleet, management } = this.settings
    const ofBus =
      fleet === null || this.#fleet === null ? null : new BusCredentialPart(fleet.bus, this.#fleet.connection)
    const ofStore =
      management === null ? null : await storeLoginPart(management.storeUrl, management.storeLogin)
    for (const part of [ofBus, ofStore]) {
      if (part === null) continue
      const each = part as Part<unknown>
      const { value, reloader } = await Reloader.load(each, this.#log)
      each.use(value)
      this.#reloaders = [...this.#reloaders, reloader]
    }
  }

  /**
   * Starts the management plane without waiting for its database. Only if no other source has the
   * policy does this wait for a moment.
   */
  async #startManagement(): Promise<void> {
    const isPolicyKnown = await this.#maker.recallPolicy()
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
  async #take(batch: readonly Sighting[]): Promise<void> {
    if (this.#management !== null) return this.#management.take(batch)
    await this.#fleet?.take(batch)
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
    metrics.gauge('certificate_not_after_timestamp_seconds', 'When each certificate expires.', 'first', () =>
      [...this.#certificates.inUse, ...(this.#port?.certificates ?? [])].map(
        ({ name, keyType, notAfterMs }) => {
          return { labels: { certificate: name, key_type: keyType }, value: notAfterMs / 1000 }
        },
      ),
    )
    this.#documentMetrics.addTo(metrics)
    this.#investigations.addMetrics(metrics)
    this.#places?.addMetrics(metrics)
    this.#maker.addMetrics(metrics)
    if (this.#asnFile !== null) addAsnFileMetrics(metrics, this.#asnFile)
    if (this.#management !== null) this.#management.addMetrics(metrics)
    else
      metrics.counter('sightings_received_total', 'Sightings that workers have sent.', () => [
        { labels: {}, value: this.#sightings },
      ])
    if (this.#sightingFile !== null) addSightingFileMetrics(metrics, this.#sightingFile)
    addReloadMetrics(metrics, () => [
      ...this.#reloaders.map(({ status }) => status),
      ...this.#maker.statuses(),
    ])
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

/** At most one interval of the health checks, so that a single failed check is not reported. */
function holdOf(upstreams: WorkerSettings['upstreams']): number {
  const intervals = upstreams.map(({ health }) => health?.intervalMs ?? HOLD_MS)
  return Math.min(HOLD_MS, ...intervals)
}

function addSightingFileMetrics(metrics: Metrics, { counts }: SightingFile): void {
  metrics.counter('sightings_written_total', 'Sightings written to sightings.file.', () => [
    { labels: {}, value: counts.written },
  ])
  metrics.counter('sightings_unwritten_total', 'Sightings that could not be written to it.', () => [
    { labels: {}, value: counts.dropped },
  ])
}

function addAsnFileMetrics(metrics: Metrics, part: AsnPart): void {
  const built = 'When the list of networks in use was made (identity.asn_file).'
  metrics.gauge('asn_file_built_timestamp_seconds', built, 'first', () => {
    const { inUse } = part
    return inUse === null ? [] : [{ labels: {}, value: inUse.builtAtS }]
  })
}

/** A local database opens in some ten milliseconds. An unreachable one must not delay the start. */
const STORE_WAIT_MS = 10_000
const HOLD_MS = 10_000
const POLICY_WAIT_MS = 3_000
/**
 * Lets clients that retried during startup be served first, before loading more code blocks
 * the process for about as long.
 */
const FIRST_SERVED_MS = 100
/**
 * A stolen key exposes the sessions of this period. A session that outlives its key costs one full handshake.
 */
const TICKET_KEY_LIFE_MS = 86_400_000
