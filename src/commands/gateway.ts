import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { SigningConfig } from '../config.ts'
import { Fault } from '../fault.ts'
import type { Log, LogLevel } from '../log.ts'
import { createManageServer, type FrontSettings } from '../manage/app.ts'
import { type ManageServer, useCertificate } from '../manage/front/server.ts'
import { ManageTraffic } from '../manage/front/traffic.ts'
import { FeedOpener } from '../manage/feed-opener.ts'
import { FeedPuller, type FeedSettings } from '../manage/feed-puller.ts'
import { FeedStore, feedFolder } from '../manage/feed-store.ts'
import { AcceptedSignatures } from '../manage/accepted-signatures.ts'
import type { ManagementPlane, ManagementSettings } from '../manage/management-plane.ts'
import { Publisher } from '../manage/publisher.ts'
import type { PolicyInForce, PolicyKeeper } from '../manage/policy-keeper.ts'
import { SightingFile, type SightingFileSettings } from '../manage/sighting-file.ts'
import { Metrics, metricsText } from '../metrics.ts'
import { DocumentMetrics } from '../identity/document-metrics.ts'
import { Investigations } from '../identity/investigations.ts'
import { type DirectorySettings, KeyDirectories } from '../identity/key-directories.ts'
import { type SigningKeys, signingKeysText } from '../identity/signing-key.ts'
import { RangesRefresher } from '../identity/ranges-refresher.ts'
import { RangesStore, rangesFolder } from '../identity/ranges-store.ts'
import { PlaceLookups } from '../identity/place-lookups.ts'
import { ReverseDns } from '../identity/reverse-dns.ts'
import { LocalManageBus } from '../plane/local-bus.ts'
import type { Sighting } from '../plane/sighting.ts'
import type { SignatureSet } from '../plane/signature-set.ts'
import type { DataPlane, ListenAddress, ListenAddresses, LiveState } from '../proxy/data-plane.ts'
import { InvestigationDesk } from '../proxy/investigation-line.ts'
import type { KeyPairSource } from '../proxy/key-pair.ts'
import { SingleWorker } from '../proxy/single-worker.ts'
import { collectAsUsual, dropStartGarbage } from '../proxy/garbage.ts'
import type { WorkerSettings } from '../proxy/worker.ts'
import { addProcessMetrics } from '../proxy/worker-metrics.ts'
import { WorkerPool } from '../proxy/worker-pool.ts'
import type { Store } from '../store/store.ts'
import { type CatalogueLinks, CatalogueSync, sourcesHash } from './catalogue-sync.ts'
import { FileWatch } from './file-watch.ts'
import {
  AsnPart,
  CertificatePart,
  type OwnSources,
  PolicyPart,
  SignaturesPart,
  SigningKeyPart,
  TicketKeyPart,
} from './live-parts.ts'
import { rangesInUse } from './published-lists.ts'
import { addReloadMetrics, Reloader } from './reload.ts'
import { SignatureCompiler } from './signature-compiler.ts'
import { builtinHash } from './signature-files.ts'

export interface GatewaySettings {
  readonly version: string
  readonly worker: WorkerSettings
  /** Processes for the data plane; `null` serves from this one. */
  readonly workers: number | null
  /** None: the development certificate. */
  readonly certificates: readonly KeyPairSource[]
  readonly ticketKeyFile: string | null
  readonly policyFile: string | null
  /** `null`: there is no file of them. */
  readonly sightings: SightingFileSettings | null
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  readonly signing: SigningConfig
  readonly identity: IdentitySettings
  readonly dataFolder: string
  readonly manageListen: ListenAddress
  readonly manageFront: FrontSettings
  /** `null`: the management port is without TLS. */
  readonly manageCertificate: KeyPairSource | null
  readonly isAccessLogged: boolean
  /** `null`: the data plane alone, and of the management plane only probes and metrics. */
  readonly management: ManagementSettings | null
  readonly logLevel: LogLevel
}

export interface IdentitySettings extends Pick<DirectorySettings, 'mode' | 'agents' | 'allowPrivate'> {
  readonly reverseDns: boolean
  /** None: those of the system. */
  readonly resolvers: readonly string[]
  /** `null`: none. */
  readonly asnFile: string | null
  /** `null`: published lists of addresses are not fetched. */
  readonly rangesRefreshMs: number | null
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
  readonly #manage: ManageServer
  readonly #manageCertificate: CertificatePart | null
  readonly #traffic: ManageTraffic
  readonly #management: ManagementPlane | null
  readonly #certificates: CertificatePart
  readonly #ticketKeys: TicketKeyPart
  /** `null`: nothing is signed with a key of our own. */
  readonly #signingKey: SigningKeyPart | null
  readonly #policy: PolicyPart
  /** `null`: a file says the policy, or nobody does. */
  readonly #policyKeeper: PolicyKeeper | null
  readonly #sightingFile: SightingFile | null
  readonly #signatures: SignaturesPart
  readonly #compiler: SignatureCompiler
  readonly #publisher: Publisher
  readonly #accepted: AcceptedSignatures
  readonly #catalogue: CatalogueSync
  readonly #feeds: FeedPuller
  readonly #feedOpener = new FeedOpener()
  readonly #documentMetrics = new DocumentMetrics()
  readonly #asnFile: AsnPart | null
  readonly #places: PlaceLookups | null
  readonly #investigations: Investigations
  readonly #ranges: RangesRefresher
  #reloaders: readonly Reloader<unknown>[] = []
  #live: LiveState = { keyPairs: [], ticketKeys: Buffer.alloc(0), signingKey: null }
  #signingKeys: SigningKeys | null = null
  /** The newest that lists of addresses are looked for in. */
  #ranged: SignatureSet | null = null
  #signaturesReloader: Reloader<SignatureSet> | null = null
  #sightings = 0
  #watch: FileWatch | null = null
  #rotation: NodeJS.Timeout | null = null
  #addresses: ListenAddresses | null = null
  #state: 'starting' | 'serving' | 'draining' = 'starting'

  /** Resolves when connections are taken. Rejects with a Fault that says what to do, and leaves nothing behind. */
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
    const { certificates, dataFolder, ticketKeyFile, policyFile, worker, workers } = settings
    this.#certificates = new CertificatePart('certificates', certificates, dataFolder, log, (keyPairs) =>
      this.#use({ keyPairs }),
    )
    const { manageCertificate } = settings
    this.#manageCertificate =
      manageCertificate === null
        ? null
        : new CertificatePart('manage-certificate', [manageCertificate], dataFolder, log, ([pair]) =>
            useCertificate(this.#manage, pair!),
          )
    this.#ticketKeys = new TicketKeyPart(ticketKeyFile, (ticketKeys) => this.#use({ ticketKeys }))
    const { signing } = settings
    this.#signingKey =
      signing.webhooks || signing.upstream
        ? new SigningKeyPart(signing.keyFile, dataFolder, (keys) => this.#useSigning(keys))
        : null
    const upstreams = worker.upstreams.map(({ name }) => name)
    this.#publisher = new Publisher({
      publish: (document) => {
        this.#bus.publish(document)
        void this.#management?.use(document)
      },
      remake: async () => this.#signaturesReloader?.check(true),
      nowMs: Date.now,
    })
    this.#accepted = new AcceptedSignatures(log)
    const usePolicy = (policy: unknown) => this.#publisher.usePolicy(policy)
    this.#policy = new PolicyPart(policyFile, upstreams, usePolicy)
    this.#policyKeeper =
      policyFile === null && code !== null
        ? new code.PolicyKeeper({
            upstreams,
            copy: new code.PolicyCopy(join(dataFolder, 'policy.json')),
            log,
            use: usePolicy,
          })
        : null
    this.#compiler = new SignatureCompiler(join(dataFolder, 'snapshots'))
    const store = new FeedStore(feedFolder(dataFolder), settings.feeds, log, this.#feedOpener)
    const nowMs = Date.now
    const ranges = new RangesStore(rangesFolder(dataFolder), log, nowMs)
    this.#signatures = new SignaturesPart(
      settings.signatures,
      store,
      this.#compiler,
      (set) => {
        this.#publisher.useSignatures(set)
        void this.#useRanges(set)
        setImmediate(() => this.#catalogue.nudge()) // when it is said to be in use
      },
      () => this.#accepted.load(),
      settings.identity.rangesRefreshMs === null ? null : ranges,
    )
    this.#ranges = new RangesRefresher(
      {
        refreshMs: settings.identity.rangesRefreshMs,
        allowPrivate: settings.identity.allowPrivate,
        nowMs,
      },
      ranges,
      log,
      () => this.#look(),
    )
    this.#catalogue = new CatalogueSync(this.#catalogueLinks(), log)
    this.#feeds = new FeedPuller(settings.feeds, store, log, () => this.#look())
    const { reverseDns, resolvers, asnFile } = settings.identity
    this.#asnFile = asnFile === null ? null : new AsnPart(asnFile)
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
      nowMs,
    })
    const desk = new InvestigationDesk(this.#investigations)
    this.#dataPlane =
      workers === null
        ? new SingleWorker(worker, this.#bus, log, desk)
        : new WorkerPool(workers, worker, this.#bus, log, desk)
    this.#sightingFile = settings.sightings === null ? null : new SightingFile(settings.sightings, log)
    this.#management =
      settings.management === null || code === null
        ? null
        : new code.ManagementPlane(settings.management, log, {
            publisher: this.#publisher,
            policy: this.#policyKeeper ?? this.#policy,
            opened: (opened) => void this.#opened(opened),
            restored: () => {
              this.#publisher.nudge()
              this.#catalogue.nudge()
            },
            stored: (batch) => this.#sightingFile?.append(batch),
            workers: () => this.#dataPlane.workers(),
            documentMetrics: this.#documentMetrics,
            signing: { ...signing, keys: () => this.#signingKeys },
          })
    this.#bus.onSightings((batch) => this.#take(batch))
    this.#traffic = new ManageTraffic(code?.OPERATION_IDS ?? [], settings.isAccessLogged, log)
    this.#manage = createManageServer(
      {
        ...(this.#management === null ? {} : { api: this.#management.middleware }),
        unready: () => this.#unready(),
        metrics: async () => metricsText([await this.#metrics.read(), ...(await this.#dataPlane.read())]),
        failed: (error) => log.error('the management plane failed at a request', { error }),
        answered: (visit) => this.#traffic.answered(visit),
      },
      settings.manageFront,
    )
    this.#management?.settings.onChange('manage.access_log', (isLogged) => {
      this.#traffic.isLogged = isLogged
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
    const { address: host, port } = this.#manage.address() as AddressInfo
    return { host, port }
  }

  get certificates(): CertificatePart {
    return this.#certificates
  }

  get policyInForce(): PolicyInForce {
    return (this.#policyKeeper ?? this.#policy).inForce()
  }

  /** Loads all files anew, changed or not, fetches feeds, and makes new keys for session tickets; never rejects. */
  async reload(): Promise<void> {
    void this.#feeds.pull() // takes as long as their servers do
    await Promise.all([
      ...this.#reloaders.map((reloader) => reloader.check(true)),
      this.#policyKeeper?.follow(),
    ])
  }

  /**
   * Says first that no more should come, and goes on serving for `graceMs`, in which others hear of it; then lets go of
   * what is open, for `drainMs` at most.
   */
  async stop(graceMs: number, drainMs: number): Promise<void> {
    this.#state = 'draining'
    this.#watch?.close()
    this.#feeds.close()
    this.#ranges.close()
    this.#feedOpener.close()
    this.#publisher.close()
    this.#catalogue.close()
    this.#compiler.close()
    if (this.#rotation !== null) clearInterval(this.#rotation)
    if (graceMs > 0) await wait(graceMs)
    await this.#dataPlane.drain(drainMs)
    this.#investigations.close()
    this.#bus.close()
    this.#manage.close()
    // First, so that nobody who is cut off is taken for one who has left.
    const managementClosed = this.#management?.close()
    this.#manage.closeAllConnections()
    await managementClosed
    await this.#sightingFile?.close() // what was stored last is on its way into it
  }

  /** For who cannot wait: what is open is cut off. */
  kill(): void {
    this.#dataPlane.kill()
  }

  async #start(): Promise<void> {
    // First of all, so that a probe is answered while the rest takes its time.
    const manageCertificate =
      this.#manageCertificate === null ? null : await Reloader.load(this.#manageCertificate, this.#log)
    if (manageCertificate !== null) useCertificate(this.#manage, manageCertificate.value[0]!)
    await listen(this.#manage, this.settings.manageListen)
    const signingKey = this.#signingKey === null ? null : await Reloader.load(this.#signingKey, this.#log)
    if (signingKey !== null) this.#useSigning(signingKey.value)
    const startOfManagement = this.#startManagement()
    const asnFile = this.#asnFile === null ? null : await Reloader.load(this.#asnFile, this.#log)
    if (asnFile !== null) this.#asnFile!.use(asnFile.value)
    const [certificates, ticketKeys, policy, signatures] = await Promise.all([
      Reloader.load(this.#certificates, this.#log),
      Reloader.load(this.#ticketKeys, this.#log),
      Reloader.load(this.#policy, this.#log),
      Reloader.load(this.#signatures, this.#log),
      startOfManagement,
    ])
    const reloading = [certificates, ticketKeys, ...(this.#policyKeeper === null ? [policy] : []), signatures]
    this.#reloaders = reloading.map(({ reloader }) => reloader)
    if (manageCertificate !== null) this.#reloaders = [...this.#reloaders, manageCertificate.reloader]
    if (signingKey !== null) this.#reloaders = [...this.#reloaders, signingKey.reloader]
    if (asnFile !== null) this.#reloaders = [...this.#reloaders, asnFile.reloader]
    this.#live = { ...this.#live, keyPairs: certificates.value, ticketKeys: ticketKeys.value }
    this.#signaturesReloader = signatures.reloader
    this.#publisher.start(this.#policyKeeper?.inForce().document ?? policy.value, signatures.value)
    this.#catalogue.nudge()
    // What serves in this process does it itself.
    if (this.settings.workers !== null) {
      collectAsUsual() // first: each look decides when the next one comes
      dropStartGarbage()
    }
    this.#feedOpener.leave()
    this.#addresses = await this.#dataPlane.start(this.#live)
    const files = await Promise.all(this.#reloaders.map((reloader) => reloader.files()))
    this.#watch = new FileWatch(files.flat(), () => this.#look())
    this.#look() // for what has changed since it was loaded
    this.#feeds.start()
    void this.#useRanges(signatures.value)
    if (this.#ticketKeys.isRandom)
      this.#rotation = setInterval(() => ticketKeys.reloader.check(true), TICKET_KEY_LIFE_MS).unref()
    // Who asks the API as soon as it is ready finds what there is: at the first start, that takes a moment.
    await Promise.race([this.#catalogue.settled(), wait(CATALOGUE_WAIT_MS, undefined, { ref: false })])
    this.#state = 'serving'
  }

  /** Nobody's request waits for a database, but where nothing else knows the policy it is given a moment. */
  async #startManagement(): Promise<void> {
    const isPolicyKnown = await this.#policyKeeper?.start()
    const started = this.#management?.start(this.manageAddress)
    if (isPolicyKnown !== false) return
    const hasStarted = started!.then(() => true)
    if (await Promise.race([hasStarted, wait(POLICY_WAIT_MS, false, { ref: false })])) return
    this.#log.warn('the database does not answer: until it does, no policy of the API is in force')
  }

  /** Without a database they are counted, and forgotten unless there is a file for them. */
  #take(batch: readonly Sighting[]): void | Promise<void> {
    if (this.#management !== null) return this.#management.take(batch)
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
    // Workers need no more than the one that signs.
    if (this.settings.signing.upstream) this.#use({ signingKey: signingKeysText([keys[0]]) })
  }

  async #useRanges(set: SignatureSet): Promise<void> {
    this.#ranged = set
    const inUse = await rangesInUse(set)
    if (this.#ranged === set) this.#ranges.use(inUse)
  }

  async #opened(store: Store): Promise<void> {
    if (await this.#accepted.attach(store)) this.#publisher.nudge()
    this.#catalogue.attach(store)
  }

  #catalogueLinks(): CatalogueLinks {
    const { management } = this.settings
    return {
      hash: async () => {
        const builtin = await builtinHash()
        const files = this.#signaturesReloader?.status.hash
        return files === undefined ? null : sourcesHash(builtin, files)
      },
      merge: (hash) => {
        assert(management !== null)
        const { storeUrl, storePassword } = management
        return this.#signatures.merge({ storeUrl, storePassword, hash })
      },
    }
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
      [...this.#certificates.inUse, ...(this.#manageCertificate?.inUse ?? [])].map(
        ({ name, keyType, notAfterMs }) => {
          return { labels: { certificate: name, key_type: keyType }, value: notAfterMs / 1000 }
        },
      ),
    )
    this.#documentMetrics.addTo(metrics)
    this.#investigations.addMetrics(metrics)
    this.#places?.addMetrics(metrics)
    this.#ranges.addMetrics(metrics)
    if (this.#asnFile !== null) addAsnFileMetrics(metrics, this.#asnFile)
    if (this.#management !== null) this.#management.addMetrics(metrics)
    else
      metrics.counter('sightings_received_total', 'Sightings that workers have sent.', () => [
        { labels: {}, value: this.#sightings },
      ])
    if (this.#sightingFile !== null) addSightingFileMetrics(metrics, this.#sightingFile)
    if (this.settings.feeds.length > 0) this.#feeds.addMetrics(metrics)
    this.#traffic.addMetrics(metrics)
    addReloadMetrics(metrics, () => {
      return [...this.#reloaders, ...(this.#policyKeeper === null ? [] : [this.#policyKeeper])].map(
        ({ status }) => status,
      )
    })
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

type ManagementCode = Awaited<ReturnType<typeof managementCode>>

/** What a data plane alone does without: the API with its schemas, and databases, which are 30 MiB of its memory. */
async function managementCode() {
  const [{ OPERATION_IDS }, { ManagementPlane }, { PolicyKeeper }, { PolicyCopy }] = await Promise.all([
    import('../manage/api/operations.ts'),
    import('../manage/management-plane.ts'),
    import('../manage/policy-keeper.ts'),
    import('../manage/policy-copy.ts'),
  ])
  return { OPERATION_IDS, ManagementPlane, PolicyKeeper, PolicyCopy }
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

async function listen(server: ManageServer, address: ListenAddress): Promise<void> {
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

/** A database on this machine takes some ten milliseconds; one that does not answer must not be waited for. */
const CATALOGUE_WAIT_MS = 10_000
const POLICY_WAIT_MS = 3_000
/** A stolen key opens the sessions of so long; a session that outlives it costs one full handshake. */
const TICKET_KEY_LIFE_MS = 86_400_000
