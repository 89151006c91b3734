import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { DEFAULT_APP } from '../../apps/app.ts'
import type { AppPolicyText } from '../../plane/snapshot-policies.ts'
import type { Log } from '../../shared/log.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { Store } from '../../store/store.ts'
import { APP_POLICIES_CHANGE } from '../../store/work/settings.ts'
import { Refusal } from '../http/refusal.ts'
import { DiskCopy } from './disk-copy.ts'
import { POLICY_RECORD } from './policy-copy.ts'
import { DEFAULT_POLICY, type PolicyInForce, PolicyKeeper } from './policy-keeper.ts'
import { Spaced } from './spaced.ts'
import { Outage } from './outage.ts'

interface AppPolicySettings {
  readonly apps: { exists(id: string, queries: Queries): Promise<boolean> }
  /** The names that a rule may route to; `null`: remote proxies have their own. */
  readonly upstreams: readonly string[] | null
  readonly copy: AppPolicyCopy
  readonly log: Log
  /** Puts the policies of all apps in force, by id. */
  use(policies: readonly AppPolicyText[]): void
}

/** The policies of apps, each with versions of its own: a change of one leaves the others as they are. */
export class AppPolicies {
  readonly #settings: AppPolicySettings
  /** By the id of the app. Bounded: the API looks for the app first. */
  readonly #keepers = new Map<string, PolicyKeeper>()
  readonly #changes: Spaced
  #store: Store | null = null
  /** Identifies the last change that was seen; `undefined`: the database was not read. */
  #change: unknown
  #looking: Promise<void> = Promise.resolve()
  readonly #outage = new Outage()

  constructor(settings: AppPolicySettings) {
    this.#settings = settings
    this.#changes = new Spaced(() => this.#publish())
  }

  /** Loads the policies of the last run, before anything is served. */
  async start(): Promise<void> {
    const { copy, log } = this.#settings
    const kept = await copy.read().catch((error: Error) => {
      log.error('the copy of the policies of apps cannot be read', { error })
      return null
    })
    for (const { app, ...record } of kept ?? []) {
      const problems = this.of(app).recall(record)
      if (problems !== null)
        log.error('the copy of the policy of an app cannot be used', {
          app,
          version: record.version,
          problems,
        })
    }
  }

  /** Follows this database from now on. Never rejects. */
  async open(store: Store): Promise<void> {
    this.#store = store
    for (const keeper of this.#keepers.values()) keeper.attach(store)
    await this.follow()
  }

  /** Applies what another process has changed. Never rejects: the policies in force outlive an outage. */
  async follow(): Promise<void> {
    if (this.#store === null) return
    await this.#outage.outlive(
      () => this.#look(),
      (error) => this.#settings.log.warn('the database cannot be asked for policies of apps', { error }),
    )
  }

  /** The policy of an app, which may have none. */
  of(app: string): PolicyKeeper {
    const known = this.#keepers.get(app)
    if (known !== undefined) return known
    const { upstreams, log } = this.#settings
    const keeper = new PolicyKeeper({
      ...{ app, upstreams, copy: null, log },
      use: () => this.#changes.nudge(),
      adding: (queries, document, nowMs) => this.#adding(app, queries, document, nowMs),
    })
    if (this.#store !== null) keeper.attach(this.#store)
    this.#keepers.set(app, keeper)
    return keeper
  }

  /** The policy in force of any id, even of an unknown app. */
  inForce(app: string): PolicyInForce {
    return this.#keepers.get(app)?.inForce() ?? DEFAULT_POLICY
  }

  /** Resolves when the database and the copy are no longer in use. */
  async close(): Promise<void> {
    this.#changes.close()
    await this.#looking
  }

  /** Throws a Refusal if the app was deleted or its policy has no room. */
  async #adding(app: string, queries: Queries, document: string, nowMs: number): Promise<void> {
    const store = this.#store!
    await store.apps.lock(queries)
    if (app !== DEFAULT_APP && !(await this.#settings.apps.exists(app, queries)))
      throw new Refusal('not_found', `app "${app}" not found`)
    const length = document.length + (await store.policies.of(app).lengthOfOthers(queries))
    if (length > APP_POLICIES_LENGTH_MAX)
      throw new Refusal(
        'conflict',
        `the policies of all apps would have ${length} characters (at most ${APP_POLICIES_LENGTH_MAX}): shorten some first`,
      )
    await noteChange(store, nowMs, queries)
  }

  /** Runs one look at a time, each after the previous one has ended. */
  #look(): Promise<void> {
    const looking = this.#looking.then(() => this.#lookOnce())
    this.#looking = looking.catch(() => undefined)
    return looking
  }

  async #lookOnce(): Promise<void> {
    const { settings, policies } = this.#store!
    const change = (await settings.get(APP_POLICIES_CHANGE))?.value ?? null
    if (change === this.#change) return
    const newest = new Map((await policies.newestOfApps()).map((each) => [each.app, each]))
    for (const app of newest.keys()) this.of(app)
    for (const [app, keeper] of this.#keepers) await keeper.see(newest.get(app) ?? null)
    const isNew = this.#change === undefined && newest.size === 0
    this.#change = change
    if (isNew) return // there is nothing to keep
    const { copy, log } = this.#settings
    await copy.write(this.#records()).catch((error: Error) => {
      log.error('the copy of the policies of apps cannot be written', { error })
    })
  }

  #records(): readonly KeptPolicy[] {
    const kept = [...this.#keepers].flatMap(([app, { record }]) =>
      record === null ? [] : [{ app, ...record }],
    )
    return kept.toSorted((one, other) => (one.app < other.app ? -1 : 1))
  }

  #publish(): void {
    this.#settings.use(this.#records().map(({ app, document }) => ({ app, document })))
  }
}

/** Tells all processes that the policy of an app has changed, when the transaction ends. */
export async function noteChange({ settings }: Store, nowMs: number, queries: Queries): Promise<void> {
  await settings.put(APP_POLICIES_CHANGE, randomUUID(), null, nowMs, queries)
}

type KeptPolicy = z.output<typeof KEPT>

/** Without it, apps have no rules of their own until the database answers. */
export class AppPolicyCopy extends DiskCopy<readonly KeptPolicy[]> {
  constructor(file: string) {
    super(file, z.array(KEPT), 'policies of apps')
  }
}

const KEPT = POLICY_RECORD.extend({ app: z.string() })
/** Every proxy that serves all apps holds them. About a thousand apps with two hundred rules each. */
export const APP_POLICIES_LENGTH_MAX = 32 * 1024 ** 2
