import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { App } from '../apps/app.ts'
import type { PaymentTerms } from '../payment/payment-terms.ts'
import type { CampaignList } from '../classify/campaign/members.ts'
import { RangesRefresher } from '../identity/address/ranges-refresher.ts'
import { RangesStore, rangesFolder } from '../identity/address/ranges-store.ts'
import type { Log } from '../shared/log.ts'
import { AcceptedSignatures } from '../manage/publish/accepted-signatures.ts'
import { FeedOpener } from '../manage/publish/feed-opener.ts'
import { FeedPuller, type FeedSettings } from '../manage/publish/feed-puller.ts'
import { FeedStore, feedFolder } from '../manage/publish/feed-store.ts'
import type { ManagementSettings } from '../manage/management-settings.ts'
import type { AppPolicies } from '../manage/publish/app-policies.ts'
import type { AppKeeper } from '../manage/publish/app-keeper.ts'
import type { PolicyFile, PolicyKeeper } from '../manage/publish/policy-keeper.ts'
import { Publisher } from '../manage/publish/publisher.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { SignatureSet } from '../plane/signature-set.ts'
import { makeSnapshot, type SnapshotDocument } from '../plane/snapshot.ts'
import type { Store } from '../store/store.ts'
import { type CatalogueLinks, CatalogueSync, sourcesHash } from './signatures/catalogue-sync.ts'
import type { ManagementCode } from './management-code.ts'
import { type OwnSources, PolicyPart, type SignaturesFrom, SignaturesPart } from './live-parts.ts'
import { rangesInUse } from './published-lists.ts'
import { Reloader, type ReloadStatus } from './reload.ts'
import { SignatureCompiler } from './signatures/signature-compiler.ts'
import { builtinHash } from './signatures/signature-files.ts'

interface MakerSettings {
  readonly apps: readonly App[]
  readonly policyFile: string | null
  /** The names that a rule may route to; `null`: the proxies run elsewhere and have their own. */
  readonly upstreams: readonly string[] | null
  /** How payments are taken. */
  readonly payments: PaymentTerms
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  /** `null`: published address ranges are not fetched. */
  readonly rangesRefreshMs: number | null
  /** Whether fetches may go to private addresses. */
  readonly allowPrivate: boolean
  readonly dataFolder: string
  /** `null`: without a database. */
  readonly store: Pick<ManagementSettings, 'storeUrl' | 'storeLogin'> | null
}

interface MakerLinks {
  /** Sends a Snapshot to every process that classifies requests. */
  publish(document: SnapshotDocument): void
  /** Whether this process makes Snapshots. Of several managers, only the leader does. */
  isLeading(): boolean
}

/**
 * Makes a Snapshot whenever one of its sources changes: the policy, the signatures (built-in, operator, feeds
 * and API) and address ranges. Also keeps the catalogue in the database up to date.
 */
export class SnapshotMaker {
  readonly #settings: MakerSettings
  readonly #links: MakerLinks
  readonly #log: Log
  readonly #policyFile: PolicyPart
  /** `null`: the policy comes from a file, or is the default. */
  readonly #policyKeeper: PolicyKeeper | null
  /** `null`: without a database. */
  readonly #apps: AppKeeper | null
  /** `null`: without a database. */
  readonly #appPolicies: AppPolicies | null
  readonly #signatures: SignaturesPart
  readonly #compiler: SignatureCompiler
  readonly #publisher: Publisher
  readonly #accepted: AcceptedSignatures
  readonly #catalogue: CatalogueSync
  readonly #feeds: FeedPuller
  readonly #feedOpener = new FeedOpener()
  readonly #ranges: RangesRefresher
  /** The newest set that was searched for address ranges. */
  #ranged: SignatureSet | null = null
  #loaded: { readonly policy: unknown; readonly signatures: SignatureSet } | null = null
  #signaturesReloader: Reloader<SignatureSet> | null = null
  #reloaders: readonly Reloader<unknown>[] = []
  #isFetching = false
  /** Whether the database was read. */
  #isOpen = false

  /** `code`: `null` if no database could hold the policy. */
  constructor(
    settings: MakerSettings,
    code: Omit<ManagementCode, 'OPERATION_IDS' | 'ManagementPlane'> | null,
    links: MakerLinks,
    log: Log,
  ) {
    this.#settings = settings
    this.#links = links
    this.#log = log
    const { dataFolder, policyFile, payments, upstreams } = settings
    this.#publisher = new Publisher({
      publish: (document) => links.publish(document),
      remake: async () => this.#signaturesReloader?.check(true),
      nowMs: Date.now,
      takesCounts: settings.store !== null,
    })
    this.#publisher.useApps(settings.apps)
    const usePolicy = (policy: unknown) => this.#publisher.usePolicy(policy)
    this.#policyFile = new PolicyPart(policyFile, { upstreams, payments }, usePolicy)
    this.#policyKeeper =
      policyFile === null && code !== null
        ? new code.PolicyKeeper({
            upstreams,
            copy: new code.PolicyCopy(join(dataFolder, 'policy.json')),
            log,
            use: usePolicy,
          })
        : null
    this.#apps =
      code === null
        ? null
        : new code.AppKeeper({
            configured: settings.apps,
            copy: new code.AppCopy(join(dataFolder, 'apps.json')),
            log,
            use: (apps) => this.#publisher.useApps(apps),
          })
    this.#appPolicies =
      code === null || this.#apps === null
        ? null
        : new code.AppPolicies({
            ...{ apps: this.#apps, upstreams, log },
            copy: new code.AppPolicyCopy(join(dataFolder, 'app-policies.json')),
            use: (policies) => this.#publisher.useAppPolicies(policies),
          })
    this.#accepted = new AcceptedSignatures(log)
    this.#compiler = new SignatureCompiler(join(dataFolder, 'snapshots'))
    const feeds = new FeedStore(feedFolder(dataFolder), settings.feeds, log, this.#feedOpener)
    const ranges = new RangesStore(rangesFolder(dataFolder), log, Date.now)
    this.#signatures = this.#signaturesFrom(feeds, ranges)
    const changed = () => void this.#signaturesReloader?.check(false)
    const { rangesRefreshMs: refreshMs, allowPrivate } = settings
    this.#ranges = new RangesRefresher({ refreshMs, allowPrivate, nowMs: Date.now }, ranges, log, changed)
    this.#catalogue = new CatalogueSync(this.#catalogueLinks(), log)
    this.#feeds = new FeedPuller(settings.feeds, feeds, log, changed)
  }

  /** The source of the policy. */
  get policy(): PolicyFile | PolicyKeeper {
    return this.#policyKeeper ?? this.#policyFile
  }

  /** The apps of the settings and of the API; only with a management plane. */
  get apps(): AppKeeper {
    assert(this.#apps !== null)
    return this.#apps
  }

  /** The policies of apps; only with a management plane. */
  get appPolicies(): AppPolicies {
    assert(this.#appPolicies !== null)
    return this.#appPolicies
  }

  /** The parts that reload when files change. */
  get reloaders(): readonly Reloader<unknown>[] {
    return this.#reloaders
  }

  statuses(): readonly ReloadStatus[] {
    return this.#policyKeeper === null ? [] : [this.#policyKeeper.status]
  }

  /**
   * Restores the apps and the policy that were last in force. `false`: no policy is known until the database
   * responds.
   */
  async recall(): Promise<boolean> {
    await this.#apps?.start()
    await this.#appPolicies?.start()
    return (await this.#policyKeeper?.start()) ?? true
  }

  /** Rejects with a Fault if the configured files are invalid. */
  async load(): Promise<void> {
    const [policy, signatures] = await Promise.all([
      Reloader.load(this.#policyFile, this.#log),
      Reloader.load(this.#signatures, this.#log),
    ])
    this.#reloaders = [
      ...(this.#policyKeeper === null ? [policy.reloader as Reloader<unknown>] : []),
      signatures.reloader as Reloader<unknown>,
    ]
    this.#signaturesReloader = signatures.reloader
    this.#loaded = { policy: policy.value, signatures: signatures.value }
  }

  /** A Snapshot of what was loaded, to use until a manager sends one. */
  first(): SnapshotDocument {
    assert(this.#loaded !== null)
    const { policy, signatures } = this.#loaded
    return makeSnapshot(FIRST_NUMBER, policy, Date.now(), signatures, { apps: this.#settings.apps })
  }

  /** Publishes the first Snapshot of what was loaded, and every later one. */
  begin(): void {
    assert(this.#loaded !== null)
    const { policy, signatures } = this.#loaded
    this.#signatures.use(signatures)
    this.#publisher.start(this.#policyKeeper?.inForce().document ?? policy)
    this.#feedOpener.leave()
  }

  /** Tells the proxies of the running campaigns. */
  useCampaigns(list: CampaignList): void {
    this.#publisher.useCampaigns(list)
  }

  /** Keeps a helper process waiting, so that accepted signatures take effect sooner. */
  stayReady(): void {
    this.#compiler.stayReady()
  }

  /** While this process leads, updates the catalogue and fetches feeds and address ranges. */
  lead(): void {
    if (!this.#links.isLeading()) return
    this.#catalogue.nudge()
    this.fetch()
  }

  /** Publishes the parts in force: changes made while no manager led were not announced. Never rejects. */
  async publishAgain(): Promise<void> {
    // The process that led before may have published something newer than what is on this disk.
    if (!this.#isOpen) return
    await Promise.all(this.#followed.map((keeper) => keeper?.follow()))
    const isBehind = await this.#accepted.isBehind().catch(() => true)
    if (!isBehind) this.#publisher.publishAgain()
  }

  /**
   * Starts to fetch feeds and address ranges. A manager that does not lead fetches too, so that it has no
   * less than its predecessor when it takes over.
   */
  fetch(): void {
    if (!this.#isFetching) this.#feeds.start()
    this.#isFetching = true
    if (this.#loaded !== null) void this.#useRanges(this.#ranged ?? this.#loaded.signatures)
  }

  /** Called when the database is open. */
  async opened(store: Store): Promise<void> {
    if (await this.#accepted.attach(store)) this.#publisher.nudge()
    this.#catalogue.attach(store)
    this.#isOpen = true
  }

  /** The database may have changed. */
  nudge(): void {
    void this.#policyKeeper?.follow()
    void this.#apps?.follow()
    void this.#appPolicies?.follow()
    this.#publisher.nudge()
    if (this.#links.isLeading()) this.#catalogue.nudge()
  }

  /** Nudges itself if the database has changes. Rejects if the database is unreachable. */
  async catchUp(): Promise<void> {
    await Promise.all(this.#followed.map((keeper) => keeper?.follow()))
    if (await this.#accepted.isBehind()) this.#publisher.nudge()
  }

  /** See CatalogueSync. */
  get catalogue(): Pick<CatalogueSync, 'isFilled' | 'firstEnd'> {
    return this.#catalogue
  }

  /** Fetches feeds and reads the policy from the database. Never rejects. */
  async reload(): Promise<void> {
    if (this.#isFetching) void this.#feeds.pull() // not awaited: as slow as the feeds' servers
    await Promise.all(this.#followed.map((keeper) => keeper?.follow()))
  }

  close(): void {
    this.#accepted.close()
    this.#feeds.close()
    this.#ranges.close()
    this.#feedOpener.close()
    this.#publisher.close()
    this.#catalogue.close()
    this.#compiler.close()
  }

  addMetrics(metrics: Metrics): void {
    this.#ranges.addMetrics(metrics)
    if (this.#settings.feeds.length > 0) this.#feeds.addMetrics(metrics)
  }

  get #followed() {
    return [this.#policyKeeper, this.#apps, this.#appPolicies]
  }

  #signaturesFrom(feeds: FeedStore, ranges: RangesStore): SignaturesPart {
    const from: SignaturesFrom = {
      own: this.#settings.signatures,
      feeds,
      accepted: () => this.#accepted.load(),
      ranges: this.#settings.rangesRefreshMs === null ? null : ranges,
    }
    return new SignaturesPart(from, this.#compiler, (set) => {
      this.#publisher.useSignatures(set)
      if (this.#isFetching) void this.#useRanges(set)
      if (this.#links.isLeading()) setImmediate(() => this.#catalogue.nudge()) // after it is logged
    })
  }

  async #useRanges(set: SignatureSet): Promise<void> {
    this.#ranged = set
    const inUse = await rangesInUse(set)
    if (this.#ranged === set) this.#ranges.use(inUse)
  }

  #catalogueLinks(): CatalogueLinks {
    const { store } = this.#settings
    return {
      hash: async () => {
        const builtin = await builtinHash()
        const files = this.#signaturesReloader?.status.hash
        return files === undefined || !this.#links.isLeading() ? null : sourcesHash(builtin, files)
      },
      merge: (hash) => {
        assert(store !== null)
        const { storeUrl, storeLogin } = store
        return this.#signatures.merge({ storeUrl, storePassword: storeLogin.password, hash })
      },
    }
  }
}

/** Snapshots of managers have higher numbers: the time of day, or more. */
const FIRST_NUMBER = 1
