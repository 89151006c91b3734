import { createHash } from 'node:crypto'
import type { Log } from '../../shared/log.ts'
import { parsePolicy } from '../../policy/policy.ts'
import type { PolicyRecord, PolicyVersion } from '../../store/work/policies.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, changed } from '../http/audit.ts'
import { requireMatch } from '../http/precondition.ts'
import type { PolicyCopy } from './policy-copy.ts'

/** Which policy is in force, and where it comes from. */
export interface PolicyInForce {
  readonly source: 'file' | 'api' | 'default'
  /** The file of the setting `policy.file`. */
  readonly file: string | null
  /** As its author wrote it. */
  readonly document: unknown
  /** SHA-256 of the document, in hexadecimal. */
  readonly hash: string
  /** `null`: it was not put by way of the API. */
  readonly version: PolicyVersion | null
  /** Since when in this process. */
  readonly sinceMs: number
  /** Why a newer one is not in force; empty where this is the newest. */
  readonly problems: readonly string[]
}

/** Where the policy comes from while a file says it: the API may only look. */
export interface PolicyFile {
  readonly kind: 'file'
  inForce(): PolicyInForce
}

export interface KeeperSettings {
  /** The names that a rule may route to; `null`: proxies elsewhere have theirs. */
  readonly upstreams: readonly string[] | null
  readonly copy: PolicyCopy
  readonly log: Log
  /** Puts it in force, in every worker. */
  use(document: unknown): void
}

/**
 * The policy that the API puts: in the database, every version of it, and in a copy on disk with which the next start
 * waits for no database. A newer one that cannot be used leaves the one before in force, and that is said wherever
 * somebody may look.
 */
export class PolicyKeeper {
  readonly kind = 'stored'
  readonly #settings: KeeperSettings
  readonly #counts = { loaded: 0, failed: 0 }
  #store: Store | null = null
  #inForce: PolicyInForce = DEFAULT_POLICY
  /** The newest there is in the database, as far as anybody has looked. */
  #newest = 0
  /** Version and hash of the one that was tried last, whether it could be used or not; `null`: none yet. */
  #tried: string | null = null
  #looking: Promise<void> = Promise.resolve()
  #isUnreachable = false

  constructor(settings: KeeperSettings) {
    this.#settings = settings
  }

  inForce(): PolicyInForce {
    return this.#inForce
  }

  /** Before anything is served: what the last start had in force. `false`: nobody knows, until the database is asked. */
  async start(): Promise<boolean> {
    const { copy, log } = this.#settings
    const record = await copy.read().catch((error: Error) => {
      log.error('the copy of the policy cannot be read', { error })
      return null
    })
    if (record === null) return false
    const problems = this.#use(record)
    if (problems === null) return true
    log.error('the copy of the policy cannot be used', { version: record.version, problems })
    return false
  }

  /** From now on it follows the database. Never rejects. */
  async open(store: Store): Promise<void> {
    this.#store = store
    await this.follow()
  }

  /** Takes what another process has put; never rejects, as the policy in force goes on without a database. */
  async follow(): Promise<void> {
    if (this.#store === null) return
    try {
      await this.#look()
      this.#isUnreachable = false
    } catch (error) {
      if (!this.#isUnreachable)
        this.#settings.log.warn('the database cannot be asked for a newer policy', { error: error as Error })
      this.#isUnreachable = true
    }
  }

  /** As new as the database. Rejects with a Fault where that cannot be asked. */
  async current(): Promise<PolicyInForce> {
    await this.#look()
    return this.#inForce
  }

  /** Changes with whatever `inForce` says. */
  get etag(): string {
    const { version, hash } = this.#inForce
    return `"${this.#newest}-${version?.version ?? 0}-${hash.slice(0, HASH_SHOWN)}"`
  }

  /**
   * Puts a policy that `parsePolicy` has taken in force. Throws a Refusal where another one was put since the one that
   * `ifMatch` names; of several at once, one wins.
   */
  async put(
    document: unknown,
    {
      ifMatch,
      restoredVersion,
    }: { readonly ifMatch: string | null; readonly restoredVersion: number | null },
    actor: Actor,
    nowMs: number,
  ): Promise<PolicyInForce> {
    for (;;) {
      await this.#look()
      // Whoever was overtaken holds a tag of the one before, or wanted to take the place of whatever is there.
      requireMatch(ifMatch, this.etag)
      if (await this.#add(JSON.stringify(document), restoredVersion, actor, nowMs)) break
    }
    await this.#look()
    return this.#inForce
  }

  /** Whether it is the next one; `false`: somebody else was first, and nothing is done. */
  async #add(text: string, restoredVersion: number | null, actor: Actor, nowMs: number): Promise<boolean> {
    const before = this.#inForce.version?.version ?? null
    const version = Math.max(this.#newest, before ?? 0) + 1
    const hash = hashOf(text)
    const record: PolicyRecord = {
      version,
      hash,
      author: actor.id,
      restoredVersion,
      createdAtMs: nowMs,
      document: text,
    }
    const store = this.#store!
    const change = {
      action: restoredVersion === null ? 'putPolicy' : 'restorePolicy',
      subject: `policy ${version}`,
    }
    const detail = { version, before, restored_version: restoredVersion, hash }
    try {
      await changed(store, actor, { ...change, detail }, nowMs, async (queries) => {
        if (!(await store.policies.add(record, VERSIONS_MAX, queries))) throw new Overtaken()
      })
      return true
    } catch (error) {
      if (error instanceof Overtaken) return false
      throw error
    }
  }

  /** For the metrics of what can be loaded anew. */
  get status() {
    const { hash, version, sinceMs, problems } = this.#inForce
    return {
      ...{ what: 'policy', hash, version: version?.version ?? 0, loadedAtMs: sinceMs },
      isCurrent: problems.length === 0,
      ...this.#counts,
    }
  }

  /** One at a time, each from where the one before has ended. */
  #look(): Promise<void> {
    const looking = this.#looking.then(() => this.#lookOnce())
    this.#looking = looking.catch(() => undefined)
    return looking
  }

  async #lookOnce(): Promise<void> {
    const { policies } = this.#store!
    const found = await policies.newest()
    const newest = found?.version ?? 0
    // A database that was restored may have another one by the same number.
    const tried = `${newest} ${found?.hash}`
    if (tried === this.#tried || (newest === 0 && this.#inForce.version === null)) return
    const record = newest === 0 ? null : await policies.byVersion(newest)
    this.#newest = newest
    this.#tried = tried
    if (newest > 0 && record === null) return // it was pruned meanwhile, as there is a newer one
    const { hash, version } = this.#inForce
    if (record !== null && record.hash === hash && newest === version?.version) return this.#say([])
    const problems = record === null ? [MISSING] : this.#use(record)
    if (problems !== null) return this.#refuse(newest, problems)
    const { log, copy } = this.#settings
    log.info('the policy has changed', { version: newest, author: record!.author })
    await copy.write(record!).catch((error: Error) => {
      log.error('the copy of the policy cannot be written', { error })
    })
  }

  /** Where nothing is in force yet, there may be a good one before it. */
  async #refuse(newest: number, problems: readonly string[]): Promise<void> {
    this.#counts.failed++
    if (this.#inForce.source === 'default') await this.#useAnyBefore(newest)
    this.#say(problems)
    const inForce = this.#inForce.version?.version ?? null
    const fields = { version: newest, inForce, problems }
    this.#settings.log.error('the newest policy cannot be used: one before it is in force', fields)
  }

  #say(problems: readonly string[]): void {
    this.#inForce = { ...this.#inForce, problems }
  }

  /** What is wrong with it; `null`: it is in force now. */
  #use(record: PolicyRecord): readonly string[] | null {
    const { document, ...version } = record
    let value: unknown
    try {
      value = JSON.parse(document)
      parsePolicy(value, this.#settings.upstreams)
    } catch (error) {
      return (error as Error).message.split('\n').slice(0, PROBLEMS_SAID_MAX)
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
    this.#counts.loaded++
    this.#settings.use(value)
    return null
  }

  async #useAnyBefore(newest: number): Promise<void> {
    for (let version = newest - 1; version > 0 && version > newest - VERSIONS_MAX; version--) {
      const record = await this.#store!.policies.byVersion(version)
      if (record !== null && this.#use(record) === null) return
    }
  }
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const TAG_ALL = { rules: [] }
/** Where nobody has said anything. */
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
/** A way back from any mistake that is noticed in time; each may have a MiB. */
const VERSIONS_MAX = 50
const PROBLEMS_SAID_MAX = 10
const HASH_SHOWN = 12

/** Undoes what was begun in the database. */
class Overtaken extends Error {}
