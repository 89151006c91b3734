import { ALL_APPS } from '../../apps/app-scope.ts'
import { createHash } from 'node:crypto'
import type { Log } from '../../shared/log.ts'
import { type Policy, parseAcceptedPolicy } from '../../policy/policy.ts'
import { problemText } from '../../shared/problem.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { PolicyRecord, PolicyStore, PolicyVersion } from '../../store/work/policies.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, changed } from '../http/audit.ts'
import { requireMatch } from '../http/precondition.ts'
import type { PolicyCopy } from './policy-copy.ts'
import { Outage } from './outage.ts'

/** The policy in force and its origin. */
export interface PolicyInForce {
  readonly source: 'file' | 'api' | 'default'
  /** The file of the setting `policy.file`. */
  readonly file: string | null
  /** As its author wrote it. */
  readonly document: unknown
  /** SHA-256 of the document, in hexadecimal. */
  readonly hash: string
  /** `null`: it was not set through the API. */
  readonly version: PolicyVersion | null
  /** Since when this process has used it. */
  readonly sinceMs: number
  /** Why a newer policy is not in force; empty if this is the newest. */
  readonly problems: readonly string[]
}

/** The policy comes from a file, so the API can only read it. */
export interface PolicyFile {
  readonly kind: 'file'
  inForce(): PolicyInForce
}

export interface PolicyKeeperSettings {
  /** The id of an app. Without it, the policy is the organisation's. */
  readonly app?: string
  /** The names that a rule may route to; `null`: remote proxies have their own. */
  readonly upstreams: readonly string[] | null
  /** `null`: the caller keeps a copy. */
  readonly copy: PolicyCopy | null
  readonly log: Log
  /** Puts a policy in force in every worker. */
  use(document: unknown): void
  /** Called in the transaction that adds a version. May throw a Refusal. */
  adding?(queries: Queries, document: string, nowMs: number): Promise<void>
}

/** A wish to change the policy. */
export interface PolicyWish {
  /** The entity tag of the policy to replace. */
  readonly ifMatch: string | null
  /** The version whose document this is; `null`: it is a new one. */
  readonly restoredVersion: number | null
  /** Why, in the words of the author. */
  readonly comment?: string | null
}

/**
 * The policy that is set through the API. The database holds every version, and a copy on disk lets the next
 * start go ahead without a database. If a newer version cannot be used, the one before stays in force and the
 * problems are reported.
 */
export class PolicyKeeper {
  readonly kind = 'stored'
  readonly #settings: PolicyKeeperSettings
  readonly #counts = { loaded: 0, failed: 0 }
  #store: Store | null = null
  #inForce: PolicyInForce = DEFAULT_POLICY
  #record: PolicyRecord | null = null
  /** The newest version that was seen in the database. */
  #newest = 0
  /**
   * Version and hash of the policy that was tried last, whether or not it could be used; `null`: none yet.
   */
  #tried: string | null = null
  #looking: Promise<void> = Promise.resolve()
  readonly #outage = new Outage()

  constructor(settings: PolicyKeeperSettings) {
    this.#settings = settings
  }

  inForce(): PolicyInForce {
    return this.#inForce
  }

  /** What is in force, as stored; `null`: nothing that was set through the API. */
  get record(): PolicyRecord | null {
    return this.#record
  }

  /** Puts in force what was in force in the last run. The problems of the policy; `null`: it is in force now. */
  recall(record: PolicyRecord): readonly string[] | null {
    return this.#use(record)
  }

  /** Takes this database from now on, without reading it. */
  attach(store: Store): void {
    this.#store = store
  }

  /**
   * Loads the policy of the last run, before anything is served. `false`: unknown until the database is read.
   */
  async start(): Promise<boolean> {
    const { copy, log } = this.#settings
    const record = await copy?.read().catch((error: Error) => {
      log.error('the copy of the policy cannot be read', { error })
      return null
    })
    if (record === null || record === undefined) return false
    const problems = this.#use(record)
    if (problems === null) return true
    log.error('the copy of the policy cannot be used', { version: record.version, problems })
    return false
  }

  /** Follows this database from now on. Never rejects. */
  async open(store: Store): Promise<void> {
    this.#store = store
    await this.follow()
  }

  /** Applies a policy that another process has set. Never rejects: the policy in force outlives an outage. */
  async follow(): Promise<void> {
    if (this.#store === null) return
    await this.#outage.outlive(
      () => this.#look(),
      (error) => this.#settings.log.warn('the database cannot be asked for a newer policy', { error }),
    )
  }

  /** Reads the database if it has another newest version than was seen last. Rejects with a Fault. */
  async see(newest: Pick<PolicyVersion, 'version' | 'hash'> | null): Promise<void> {
    const isSeen =
      newest === null ? this.#inForce.version === null && this.#newest === 0 : triedAs(newest) === this.#tried
    if (!isSeen) await this.#look()
  }

  /** Reads the database first. Rejects with a Fault if it is unavailable. */
  async current(): Promise<PolicyInForce> {
    await this.#look()
    return this.#inForce
  }

  /** Changes whenever `inForce` does. */
  get etag(): string {
    const { version, hash } = this.#inForce
    return `"${this.#newest}-${version?.version ?? 0}-${hash.slice(0, HASH_SHOWN)}"`
  }

  /**
   * Puts a policy in force that `parsePolicy` has accepted. Throws a Refusal if the policy has changed since
   * `ifMatch`. Of several simultaneous calls, one wins.
   */
  async put(
    document: unknown,
    { ifMatch, ...change }: PolicyWish,
    actor: Actor,
    nowMs: number,
  ): Promise<PolicyInForce> {
    for (;;) {
      await this.#look()
      // If another call was first, this refuses, unless the caller replaces any policy.
      requireMatch(ifMatch, this.etag)
      if (await this.#add(JSON.stringify(document), change, actor, nowMs)) break
    }
    await this.#look()
    return this.#inForce
  }

  /** Stores the policy as the next version. `false`: another process was first, and nothing is stored. */
  async #add(
    text: string,
    { restoredVersion, comment = null }: Omit<PolicyWish, 'ifMatch'>,
    actor: Actor,
    nowMs: number,
  ): Promise<boolean> {
    const before = this.#inForce.version?.version ?? null
    const version = Math.max(this.#newest, before ?? 0) + 1
    const hash = hashOf(text)
    const record: PolicyRecord = {
      version,
      hash,
      author: actor.id,
      restoredVersion,
      createdAtMs: nowMs,
      comment,
      document: text,
    }
    const store = this.#store!
    const { app, adding } = this.#settings
    const done = restoredVersion === null ? 'put' : 'restore'
    const change =
      app === undefined
        ? ({ action: `${done}Policy`, subject: `policy ${version}`, apps: ALL_APPS } as const)
        : { action: `${done}AppPolicy`, subject: app, apps: [app] }
    const detail = { version, before, restored_version: restoredVersion, hash, comment }
    try {
      await changed(store, actor, { ...change, detail }, nowMs, async (queries) => {
        await adding?.(queries, text, nowMs)
        if (!(await this.#policies.add(record, VERSIONS_MAX, queries))) throw new Overtaken()
      })
      return true
    } catch (error) {
      if (error instanceof Overtaken) return false
      throw error
    }
  }

  /** For the metrics of things that can be reloaded. */
  get status() {
    const { hash, version, sinceMs, problems } = this.#inForce
    return {
      what: 'policy',
      hash,
      version: version?.version ?? 0,
      loadedAtMs: sinceMs,
      isCurrent: problems.length === 0,
      ...this.#counts,
    }
  }

  /** Runs one look at a time, each after the previous one has ended. */
  #look(): Promise<void> {
    const looking = this.#looking.then(() => this.#lookOnce())
    this.#looking = looking.catch(() => undefined)
    return looking
  }

  get #policies(): PolicyStore {
    const { policies } = this.#store!
    const { app } = this.#settings
    return app === undefined ? policies : policies.of(app)
  }

  async #lookOnce(): Promise<void> {
    const policies = this.#policies
    const found = await policies.newest()
    const newest = found?.version ?? 0
    // A restored database may have another policy under the same number.
    const tried = triedAs(found)
    const { app } = this.#settings
    if (tried === this.#tried || (newest === 0 && this.#inForce.version === null)) return
    if (newest === 0 && app !== undefined) return this.#end()
    const record = newest === 0 ? null : await policies.byVersion(newest)
    this.#newest = newest
    this.#tried = tried
    if (newest > 0 && record === null) return // it was pruned meanwhile, as there is a newer one
    const { hash, version } = this.#inForce
    if (record !== null && record.hash === hash && newest === version?.version) return this.#say([])
    const problems = record === null ? [MISSING] : this.#use(record)
    if (problems !== null) return this.#refuse(newest, problems)
    const { log, copy } = this.#settings
    log.info('the policy has changed', { ...this.#whose, version: newest, author: record!.author })
    await copy?.write(record!).catch((error: Error) => {
      log.error('the copy of the policy cannot be written', { error })
    })
  }

  /** The app has been deleted, and its policy with it. */
  #end(): void {
    this.#newest = 0
    this.#tried = null
    this.#record = null
    this.#inForce = { ...DEFAULT_POLICY, sinceMs: Date.now() }
    this.#settings.use(this.#inForce.document)
  }

  /** For the log. */
  get #whose(): { readonly app?: string } {
    const { app } = this.#settings
    return app === undefined ? {} : { app }
  }

  /** If no policy is in force yet, an older version may still be valid. */
  async #refuse(newest: number, problems: readonly string[]): Promise<void> {
    this.#counts.failed++
    if (this.#inForce.source === 'default') await this.#useAnyBefore(newest)
    this.#say(problems)
    const inForce = this.#inForce.version?.version ?? null
    const fields = { ...this.#whose, version: newest, inForce, problems }
    this.#settings.log.error('the newest policy cannot be used: one before it is in force', fields)
  }

  #say(problems: readonly string[]): void {
    this.#inForce = { ...this.#inForce, problems }
  }

  /** The problems of the policy; `null`: it is in force now. */
  #use(record: PolicyRecord): readonly string[] | null {
    const { document, ...version } = record
    const { app, upstreams, log } = this.#settings
    let value: unknown
    let policy: Policy
    try {
      value = JSON.parse(document)
      policy = parseAcceptedPolicy(value, { of: app === undefined ? 'organisation' : 'app', upstreams })
    } catch (error) {
      return (error as Error).message.split('\n').slice(0, PROBLEMS_SAID_MAX)
    }
    if (policy.unknownWords.length > 0) {
      const warnings = policy.unknownWords.slice(0, PROBLEMS_SAID_MAX).map(problemText)
      const fields = { ...this.#whose, version: record.version, warnings }
      log.warn('the policy in force has unknown words, which never match: correct it', fields)
    }
    const sinceMs = Date.now()
    this.#inForce = {
      source: 'api',
      file: null,
      document: value,
      hash: record.hash,
      version,
      sinceMs,
      problems: [],
    }
    this.#record = record
    this.#counts.loaded++
    this.#settings.use(value)
    return null
  }

  async #useAnyBefore(newest: number): Promise<void> {
    for (let version = newest - 1; version > 0 && version > newest - VERSIONS_MAX; version--) {
      const record = await this.#policies.byVersion(version)
      if (record !== null && this.#use(record) === null) return
    }
  }
}

function triedAs(newest: Pick<PolicyVersion, 'version' | 'hash'> | null): string {
  return `${newest?.version ?? 0} ${newest?.hash}`
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const TAG_ALL = { rules: [] }
/** The policy in force before any is set. */
export const DEFAULT_POLICY: PolicyInForce = {
  source: 'default',
  file: null,
  document: TAG_ALL,
  hash: hashOf(JSON.stringify(TAG_ALL)),
  version: null,
  sinceMs: Date.now(),
  problems: [],
}
const MISSING = 'the database has no policy any more'
/** Enough to undo a mistake that is noticed in time; each version may take 1 MiB. */
const VERSIONS_MAX = 50
const PROBLEMS_SAID_MAX = 10
const HASH_SHOWN = 12

/** Rolls back the transaction. */
class Overtaken extends Error {}
