import type { App } from '../apps/app.ts'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DocumentMetrics } from '../identity/fetch/document-metrics.ts'
import type { SigningKeys } from '../identity/keys/signing-key.ts'
import type { SigningConfig } from '../config/identity.ts'
import type { Log, LogSettings } from '../shared/log.ts'
import type { FrontSettings } from '../manage/app.ts'
import type { FeedSettings } from '../manage/publish/feed-puller.ts'
import { FleetView } from '../manage/publish/fleet-view.ts'
import { Leadership } from '../manage/publish/leadership.ts'
import type { ManagementPlane } from '../manage/management-plane.ts'
import type { ManagementSettings } from '../manage/management-settings.ts'
import { SightingFile, type SightingFileSettings } from '../manage/intake/sighting-file.ts'
import { Metrics, metricsText } from '../shared/metrics.ts'
import { FLEET_FOLDER } from '../plane/fleet-proxy.ts'
import { JetStreamManageBus } from '../plane/jetstream/jetstream-bus.ts'
import type { BusSettings } from '../plane/jetstream/jetstream-connection.ts'
import type { StreamLimits } from '../plane/jetstream/jetstream-streams.ts'
import { reasonsOfState, type UnreadyReason } from '../plane/readiness.ts'
import type { SnapshotDocument } from '../plane/snapshot.ts'
import type { KeyPairSource } from '../proxy/tls/key-pair.ts'
import { addProcessMetrics } from '../proxy/worker/worker-metrics.ts'
import { LeaderLock } from '../store/engine/leader-lock.ts'
import { type EncryptionKeyPart, encryptionKeyPart, loadCredentials } from './credential-parts.ts'
import { FileWatch } from './file-watch.ts'
import { AsnPart, type OwnSources, SigningKeyPart } from './live-parts.ts'
import { ManagePort } from './manage-port.ts'
import { addBuildInfo, type ManagementCode, managementCode } from './management-code.ts'
import {
  addReadinessMetrics,
  CATALOGUE_FILLING,
  DATABASE_UNREACHABLE,
  NO_SNAPSHOT,
  SteadyReasons,
} from './readiness.ts'
import { addReloadMetrics, Reloader } from './reload.ts'
import { SnapshotMaker } from './snapshot-maker.ts'
import type { ListenAddress } from '../shared/listen-address.ts'
import type { Store } from '../store/store.ts'

export interface ManagerSettings {
  readonly version: string
  /** SHA-256 of the settings, in hexadecimal. */
  readonly configHash: string
  readonly bus: BusSettings & StreamLimits
  readonly management: ManagementSettings
  readonly apps: readonly App[]
  readonly policyFile: string | null
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  readonly rangesRefreshMs: number | null
  readonly allowPrivate: boolean
  /** The list of networks; `null`: none. */
  readonly asnFile: string | null
  readonly signing: SigningConfig
  /** `null`: sightings are not written to a file. */
  readonly sightings: SightingFileSettings | null
  readonly dataFolder: string
  readonly listen: ListenAddress
  readonly front: FrontSettings
  readonly certificate: KeyPairSource | null
  readonly isAccessLogged: boolean
  /** Whether it reports ready while its database is unreachable. */
  readonly isReadyWithoutStore: boolean
  readonly log: LogSettings
}

/**
 * The management plane in a process of its own. Any number of managers share one database and one bus. Each
 * answers the API and receives sightings. The leader makes Snapshots, and all managers classify with the
 * published Snapshot, as the proxies do.
 */
export class Manager {
  readonly settings: ManagerSettings
  readonly #log: Log
  readonly #metrics = new Metrics()
  readonly #bus: JetStreamManageBus
  readonly #leadership: Leadership
  readonly #fleet = new FleetView()
  readonly #maker: SnapshotMaker
  readonly #management: ManagementPlane
  readonly #port: ManagePort
  readonly #signingKey: SigningKeyPart | null
  readonly #encryptionKeys: EncryptionKeyPart | null
  readonly #sightingFile: SightingFile | null
  /** The list of networks; `null` without `identity.asn_file`. */
  readonly #asnFile: AsnPart | null
  #signingKeys: SigningKeys | null = null
  /** The hash of the last Snapshot that this process announced since it leads; `null`: none. */
  #announced: string | null = null
  #reloaders: readonly Reloader<unknown>[] = []
  #watch: FileWatch | null = null
  readonly #steady = new SteadyReasons(() => this.#lacksStore(), STORE_HOLD_MS)
  #state: 'starting' | 'serving' | 'draining' = 'starting'

  /** Resolves when requests are answered. Rejects with a Fault that says what to do, after cleaning up. */
  static async start(settings: ManagerSettings, log: Log): Promise<Manager> {
    const manager = new Manager(settings, await managementCode(), log)
    try {
      await manager.#start()
      return manager
    } catch (error) {
      await manager.stop(0)
      throw error
    }
  }

  private constructor(settings: ManagerSettings, code: ManagementCode, log: Log) {
    this.settings = settings
    this.#log = log
    const { bus, dataFolder, management, signing } = settings
    this.#leadership = new Leadership(new LeaderLock(management.storeUrl, management.storeLogin), log)
    const folder = join(dataFolder, FLEET_FOLDER)
    const mayPublish = () => this.#leadership.confirm()
    this.#bus = new JetStreamManageBus(bus, { ...bus, folder, mayPublish }, log)
    this.#maker = new SnapshotMaker(
      {
        ...settings,
        upstreams: management.upstreams,
        payments: management.payments.terms,
        store: management,
      },
      code,
      { publish: (document) => this.#publish(document), isLeading: () => this.#leadership.isLeader },
      log,
    )
    this.#signingKey = signing.webhooks
      ? new SigningKeyPart(signing.keyFile, dataFolder, (keys) => {
          this.#signingKeys = keys
        })
      : null
    this.#encryptionKeys = encryptionKeyPart(management.encryptionKeys, (keys) =>
      this.#management.useEncryptionKeys(keys),
    )
    this.#sightingFile = settings.sightings === null ? null : new SightingFile(settings.sightings, log)
    this.#asnFile = settings.asnFile === null ? null : new AsnPart(settings.asnFile)
    const documentMetrics = new DocumentMetrics()
    documentMetrics.addTo(this.#metrics)
    this.#management = new code.ManagementPlane(management, log, {
      publisher: { nudge: () => this.#nudge(), useCampaigns: (list) => this.#maker.useCampaigns(list) },
      policy: this.#maker.policy,
      apps: this.#maker.apps,
      appPolicies: this.#maker.appPolicies,
      fleet: { isLeading: () => this.#leadership.isLeader, view: this.#fleet },
      opened: (store) => void this.#opened(store),
      restored: () => this.#nudge(),
      catchUp: () => this.#maker.catchUp(),
      stored: (batch) => this.#sightingFile?.append(batch),
      workers: () => [],
      networks: () => this.#asnFile?.inUse ?? null,
      documentMetrics,
      signing: { ...signing, keys: () => this.#signingKeys },
    })
    this.#port = new ManagePort(
      settings,
      code.OPERATION_IDS,
      {
        api: this.#management.middleware,
        unready: () => this.unready(),
        metrics: async (type) => metricsText([this.#metrics.read()], type),
      },
      log,
    )
    this.#management.settings.onChange('manage.access_log', (isLogged) => {
      this.#port.traffic.isLogged = isLogged
    })
    this.#management.settings.onChange('log.level', (level) => log.setLevel(level))
    this.#listen()
    this.#addMetrics()
  }

  get address(): ListenAddress {
    return this.#port.address
  }

  /** Reloads all files, changed or not, and fetches feeds. Never rejects. */
  async reload(): Promise<void> {
    await Promise.all([...this.#reloaders.map((reloader) => reloader.check(true)), this.#maker.reload()])
  }

  /** Gives up the leadership at once. Serves requests for `graceMs` more, so that load balancers notice. */
  async stop(graceMs: number): Promise<void> {
    this.#state = 'draining'
    this.#watch?.close()
    this.#steady.close()
    await this.#leadership.close()
    this.#maker.close()
    if (graceMs > 0) await wait(graceMs)
    await this.#bus.closed()
    this.#port.close()
    const managementClosed = this.#management.close()
    this.#port.closeConnections()
    await managementClosed
    await this.#sightingFile?.close()
  }

  async #start(): Promise<void> {
    const ofPort = await this.#port.start()
    const signingKey = this.#signingKey === null ? null : await Reloader.load(this.#signingKey, this.#log)
    if (signingKey !== null) this.#signingKeys = signingKey.value
    const encryptionKeys =
      this.#encryptionKeys === null ? null : await Reloader.load(this.#encryptionKeys, this.#log)
    if (encryptionKeys !== null) this.#management.useEncryptionKeys(encryptionKeys.value)
    const asnFile = this.#asnFile === null ? null : await Reloader.load(this.#asnFile, this.#log)
    if (asnFile !== null) this.#asnFile?.use(asnFile.value)
    await this.#bus.restore()
    this.#bus.onSnapshot((document) => {
      this.#fleet.published(document.number)
      void this.#management.use(document)
    })
    await this.#maker.recall()
    const started = this.#management.start(this.address)
    await this.#maker.load()
    await Promise.race([started, wait(DATABASE_WAIT_MS, undefined, { ref: false })])
    this.#maker.begin()
    this.#maker.fetch()
    this.#leadership.start()
    const bus = { settings: this.settings.bus, connection: this.#bus.connection }
    const ofCredentials = await loadCredentials(bus, this.settings.management, this.#log)
    const own = [signingKey, encryptionKeys, asnFile].flatMap((each) =>
      each === null ? [] : [each.reloader],
    )
    this.#reloaders = [...ofPort, ...own, ...ofCredentials, ...this.#maker.reloaders]
    const files = await Promise.all(this.#reloaders.map((reloader) => reloader.files()))
    this.#watch = new FileWatch(files.flat(), () => {
      for (const reloader of this.#reloaders) void reloader.check(false)
    })
    const filled = this.#management.isOpen ? this.#maker.catalogue.firstEnd : Promise.resolve()
    await Promise.race([filled, wait(CATALOGUE_WAIT_MS, undefined, { ref: false })])
    this.#steady.start()
    this.#state = 'serving'
  }

  /** The reasons why it should get no requests now. */
  unready(): readonly UnreadyReason[] {
    if (this.#state !== 'serving') return reasonsOfState(this.#state)
    const { isStoreUp, hasSnapshot } = this.#management
    const isFilled = this.#maker.catalogue.isFilled || (!isStoreUp && this.settings.isReadyWithoutStore)
    return [
      ...this.#steady.now(),
      ...(hasSnapshot ? [] : [NO_SNAPSHOT]),
      ...(isFilled ? [] : [CATALOGUE_FILLING]),
    ]
  }

  #lacksStore(): readonly UnreadyReason[] {
    return this.#management.isStoreUp || this.settings.isReadyWithoutStore ? [] : [DATABASE_UNREACHABLE]
  }

  #listen(): void {
    this.#leadership.onChange((isLeader) => {
      this.#announced = null
      if (!isLeader) return
      this.#maker.stayReady()
      this.#maker.lead()
      void this.#maker.publishAgain()
      this.#maker.nudge() // catches up with the database
    })
    this.#bus.onSightings((batch, pressure, counts) => this.#management.take(batch, pressure, counts))
    this.#bus.onPayment((message) => this.#management.pay(message))
    this.#bus.onHeartbeat((heartbeat) => this.#fleet.hear(heartbeat))
    this.#bus.onNudge(() => {
      if (this.#leadership.isLeader) this.#maker.nudge()
    })
  }

  async #opened(store: Store): Promise<void> {
    await this.#maker.opened(store)
    if (this.#leadership.isLeader) await this.#maker.publishAgain()
  }

  /** Asks the leader to make a Snapshot. */
  #nudge(): void {
    if (this.#leadership.isLeader) this.#maker.nudge()
    else this.#bus.nudge()
  }

  #publish(document: SnapshotDocument): void {
    const { inUse } = this.#bus.followed
    // Until a Snapshot is published, the API classifies with the local one.
    if (inUse === null) void this.#management.use(document)
    if (!this.#leadership.isLeader || this.#announced === document.hash) return
    this.#announced = document.hash
    this.#bus.publish(document)
  }

  #addMetrics(): void {
    const metrics = this.#metrics
    addBuildInfo(metrics, this.settings)
    addReadinessMetrics(metrics, () => this.unready())
    addProcessMetrics(metrics)
    metrics.gauge('certificate_not_after_timestamp_seconds', 'When each certificate expires.', 'first', () =>
      this.#port.certificates.map(({ name, keyType, notAfterMs }) => {
        return { labels: { certificate: name, key_type: keyType }, value: notAfterMs / 1000 }
      }),
    )
    this.#leadership.addMetrics(metrics)
    this.#fleet.addMetrics(metrics)
    this.#maker.addMetrics(metrics)
    this.#management.addMetrics(metrics)
    this.#port.addMetrics(metrics)
    addReloadMetrics(metrics, () => [
      ...this.#reloaders.map(({ status }) => status),
      ...this.#maker.statuses(),
    ])
    addBusMetrics(metrics, this.#bus)
  }
}

function addBusMetrics(metrics: Metrics, bus: JetStreamManageBus): void {
  metrics.gauge('bus_up', '1 while NATS is reachable.', 'first', () => [
    { labels: {}, value: Number(bus.connection.isUp) },
  ])
  metrics.counter('bus_reconnects_total', 'Reconnections to NATS.', () => [
    { labels: {}, value: bus.connection.reconnects },
  ])
  metrics.counter('bus_batches_total', 'Batches of Sightings, by outcome.', () => [
    { labels: { outcome: 'stored' }, value: bus.counts.taken },
    { labels: { outcome: 'returned' }, value: bus.counts.returned },
    { labels: { outcome: 'unreadable' }, value: bus.counts.unreadable },
  ])
  metrics.counter('snapshots_announced_total', 'Snapshots announced by this process.', () => [
    { labels: {}, value: bus.published },
  ])
  metrics.gauge('snapshot_made_timestamp_seconds', 'When the newest Snapshot was made.', 'first', () => {
    const { inUse } = bus.followed
    return inUse === null ? [] : [{ labels: {}, value: inUse.madeAtMs / 1000 }]
  })
}

const DATABASE_WAIT_MS = 3_000
/** Time for the leader to fill the catalogue. */
const CATALOGUE_WAIT_MS = 10_000
/** The interval of the database checks, so that a single failure is not reported. */
const STORE_HOLD_MS = 5_000
