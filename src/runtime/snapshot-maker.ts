import assert from 'node:assert/strict'
import { join } from 'node:path'
import { RangesRefresher } from '../identity/address/ranges-refresher.ts'
import { RangesStore, rangesFolder } from '../identity/address/ranges-store.ts'
import type { Log } from '../shared/log.ts'
import { AcceptedSignatures } from '../manage/publish/accepted-signatures.ts'
import { FeedOpener } from '../manage/publish/feed-opener.ts'
import { FeedPuller, type FeedSettings } from '../manage/publish/feed-puller.ts'
import { FeedStore, feedFolder } from '../manage/publish/feed-store.ts'
import type { ManagementSettings } from '../manage/management-plane.ts'
import type { PolicyFile, PolicyKeeper } from '../manage/publish/policy-keeper.ts'
import { Publisher } from '../manage/publish/publisher.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { SignatureSet } from '../plane/signature-set.ts'
import { makeSnapshot, type SnapshotDocument } from '../plane/snapshot.ts'
import type { Store } from '../store/store.ts'
import { type CatalogueLinks, CatalogueSync, sourcesHash } from './signatures/catalogue-sync.ts'
import type { ManagementCode } from './management-code.ts'
import { type OwnSources, PolicyPart, SignaturesPart } from './live-parts.ts'
import { rangesInUse } from './published-lists.ts'
import { Reloader, type ReloadStatus } from './reload.ts'
import { SignatureCompiler } from './signatures/signature-compiler.ts'
import { builtinHash } from './signatures/signature-files.ts'

export interface MakerSettings {
  readonly policyFile: string | null
  /** The names that a rule may route to; `null`: proxies elsewhere have theirs. */
  readonly upstreams: readonly string[] | null
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  /** `null`: published lists of addresses are not fetched. */
  readonly rangesRefreshMs: number | null
  /** Whether such lists, and what else is fetched, may be at private addresses. */
  readonly allowPrivate: boolean
  readonly dataFolder: string
  /** `null`: there is no database. */
  readonly store: Pick<ManagementSettings, 'storeUrl' | 'storeLogin'> | null
}

export interface MakerLinks {
  /** Hands a Snapshot to everybody who judges. */
  publish(document: SnapshotDocument): void
  /** Whether this process makes them; of several managers one does. */
  isLeading(): boolean
}

/**
 * Everything that Snapshots are made of: policy, signatures that come with Gatehouse, of the operator, of feeds and of
 * the API, lists of addresses. Makes one whenever any of it changes, and keeps the catalogue in the database the same.
 */
export class SnapshotMaker {
  readonly #settings: MakerSettings
  readonly #links: MakerLinks
  readonly #log: Log
  readonly #policyFile: PolicyPart
  /** `null`: a file says the policy, or nobody does. */
  readonly #policyKeeper: PolicyKeeper | null
  readonly #signatures: SignaturesPart
  readonly #compiler: SignatureCompiler
  readonly #publisher: Publisher
  readonly #accepted: AcceptedSignatures
  readonly #catalogue: CatalogueSync
  readonly #feeds: FeedPuller
  readonly #feedOpener = new FeedOpener()
  readonly #ranges: RangesRefresher
  /** The newest that lists of addresses are looked for in. */
  #ranged: SignatureSet | null = null
  #loaded: { readonly policy: unknown; readonly signatures: SignatureSet } | null = null
  #signaturesReloader: Reloader<SignatureSet> | null = null
  #reloaders: readonly Reloader<unknown>[] = []
  #isFetching = false

  /** `code`: `null` where there is no database that could say the policy. */
  constructor(
    settings: MakerSettings,
    code: Pick<ManagementCode, 'PolicyKeeper' | 'PolicyCopy'> | null,
    links: MakerLinks,
    log: Log,
  ) {
    this.#settings = settings
    this.#links = links
    this.#log = log
    const { dataFolder, policyFile, upstreams } = settings
    this.#publisher = new Publisher({
      publish: (document) => links.publish(document),
      remake: async () => this.#signaturesReloader?.check(true),
      nowMs: Date.now,
    })
    const usePolicy = (policy: unknown) => this.#publisher.usePolicy(policy)
    this.#policyFile = new PolicyPart(policyFile, upstreams, usePolicy)
    this.#policyKeeper =
      policyFile === null && code !== null
        ? new code.PolicyKeeper({
            upstreams,
            copy: new code.PolicyCopy(join(dataFolder, 'policy.json')),
            log,
            use: usePolicy,
          })
        : null
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

  /** Who says the policy. */
  get policy(): PolicyFile | PolicyKeeper {
    return this.#policyKeeper ?? this.#policyFile
  }

  /** What is loaded anew when files change. */
  get reloaders(): readonly Reloader<unknown>[] {
    return this.#reloaders
  }

  statuses(): readonly ReloadStatus[] {
    return this.#policyKeeper === null ? [] : [this.#policyKeeper.status]
  }

  /** The policy that was in force last; `false`: there is none, until the database is asked. */
  async recallPolicy(): Promise<boolean> {
    return (await this.#policyKeeper?.start()) ?? true
  }

  /** Rejects with a Fault where what is configured is no good. */
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

  /** Of what was loaded, for who waits for another one. */
  first(): SnapshotDocument {
    assert(this.#loaded !== null)
    const { policy, signatures } = this.#loaded
    return makeSnapshot(FIRST_NUMBER, policy, Date.now(), signatures)
  }

  /** Makes the first Snapshot, of what was loaded, and each that follows. */
  begin(): void {
    assert(this.#loaded !== null)
    const { policy, signatures } = this.#loaded
    this.#publisher.start(this.#policyKeeper?.inForce().document ?? policy, signatures)
    this.#feedOpener.leave()
  }

  /** What is accepted acts sooner, at the price of a process that waits. */
  stayReady(): void {
    this.#compiler.stayReady()
  }

  /** Keeps the catalogue up to date, and what is made of what others publish, while this process leads. */
  lead(): void {
    if (!this.#links.isLeading()) return
    this.#catalogue.nudge()
    this.fetch()
  }

  /**
   * Fetches what others publish, from now on: whoever may come to lead has a copy of its own by then, and makes nothing
   * of less than the one before it.
   */
  fetch(): void {
    if (!this.#isFetching) this.#feeds.start()
    this.#isFetching = true
    if (this.#loaded !== null) void this.#useRanges(this.#ranged ?? this.#loaded.signatures)
  }

  /** From here on there is a database. */
  async opened(store: Store): Promise<void> {
    if (await this.#accepted.attach(store)) this.#publisher.nudge()
    this.#catalogue.attach(store)
  }

  /** The database has something new, or another content. */
  nudge(): void {
    void this.#policyKeeper?.follow()
    this.#publisher.nudge()
    if (this.#links.isLeading()) this.#catalogue.nudge()
  }

  /** Nudges itself where the database has something new. Rejects where it cannot be asked. */
  async catchUp(): Promise<void> {
    await this.#policyKeeper?.follow()
    if (await this.#accepted.isBehind()) this.#publisher.nudge()
  }

  /** See CatalogueSync. */
  get catalogue(): Pick<CatalogueSync, 'isFilled' | 'firstEnd'> {
    return this.#catalogue
  }

  /** Feeds are fetched, and the database is asked for its policy; never rejects. */
  async reload(): Promise<void> {
    if (this.#isFetching) void this.#feeds.pull() // takes as long as their servers do
    await this.#policyKeeper?.follow()
  }

  close(): void {
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

  #signaturesFrom(feeds: FeedStore, ranges: RangesStore): SignaturesPart {
    return new SignaturesPart(
      this.#settings.signatures,
      feeds,
      this.#compiler,
      (set) => {
        this.#publisher.useSignatures(set)
        if (this.#isFetching) void this.#useRanges(set)
        if (this.#links.isLeading()) setImmediate(() => this.#catalogue.nudge()) // when it is said to be in use
      },
      () => this.#accepted.load(),
      this.#settings.rangesRefreshMs === null ? null : ranges,
    )
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

/** Those that managers make have the time of day, or more. */
const FIRST_NUMBER = 1
