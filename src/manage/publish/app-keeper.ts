import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { ALL_HOSTS_MAX, type App, type AppQuota, APPS_MAX, appIn, parseApps } from '../../apps/app.ts'
import type { Log } from '../../shared/log.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { Store } from '../../store/store.ts'
import type { AppRecord } from '../../store/work/apps.ts'
import { APPS_CHANGE } from '../../store/work/settings.ts'
import { hostPatternKey } from '../../wire/host.ts'
import { type Actor, addAudit } from '../http/audit.ts'
import { Refusal } from '../http/refusal.ts'
import type { AppCopy, KeptApps } from './app-copy.ts'
import { noteChange } from './app-policies.ts'
import { Spaced } from './spaced.ts'
import { Outage } from './outage.ts'

/** An app and where it comes from. Apps of the settings have no times. */
export interface ShownApp extends App {
  readonly source: 'settings' | 'api'
  readonly createdAtMs: number | null
  readonly updatedAtMs: number | null
}

export interface AppKeeperSettings {
  /** The apps of the settings. */
  readonly configured: readonly App[]
  readonly copy: AppCopy
  readonly log: Log
  /** Puts all apps in force, those of the settings included. */
  use(apps: readonly App[]): void
}

/**
 * The apps of the settings and of the API together. Those of the API are in the database, and a copy on disk
 * lets the next start go ahead without it. If both define an id or a host, the settings win.
 */
export class AppKeeper {
  readonly #settings: AppKeeperSettings
  readonly #configured: ReadonlyMap<string, App>
  /** By `hostPatternKey`. */
  readonly #configuredHosts: ReadonlyMap<string, App>
  #store: Store | null = null
  /** `null`: neither the copy nor the database was read. */
  #kept: KeptApps | null = null
  #quotas: ReadonlyMap<string, AppQuota>
  /** The first change is in force at once. Those that follow closely share a Snapshot. */
  readonly #changes = new Spaced(() => void this.follow())
  #looking: Promise<void> = Promise.resolve()
  readonly #outage = new Outage()

  constructor(settings: AppKeeperSettings) {
    this.#settings = settings
    const { configured } = settings
    this.#configured = new Map(configured.map((app) => [app.id, app]))
    this.#configuredHosts = new Map(
      configured.flatMap((app) => app.hosts.map((host) => [hostPatternKey(host), app] as const)),
    )
    this.#quotas = quotasOf(configured)
  }

  /** The quota in force of any id, even of an unknown app. */
  quotaOf(id: string): AppQuota | null {
    return this.#quotas.get(id) ?? null
  }

  /** Loads the apps of the last run, before anything is served. */
  async start(): Promise<void> {
    const { copy, log } = this.#settings
    const kept = await copy.read().catch((error: Error) => {
      log.error('the copy of the apps cannot be read', { error })
      return null
    })
    if (kept !== null) this.#use(kept)
  }

  /** Follows this database from now on. Never rejects. */
  async open(store: Store): Promise<void> {
    this.#store = store
    await this.follow()
  }

  /** Applies what another process has changed. Never rejects: the apps in force outlive an outage. */
  async follow(): Promise<void> {
    if (this.#store === null) return
    await this.#outage.outlive(
      () => this.#look(),
      (error) => this.#settings.log.warn('the database cannot be asked for apps', { error }),
    )
  }

  /** Resolves when the database and the copy are no longer in use. */
  async close(): Promise<void> {
    this.#changes.close()
    await this.#looking
  }

  /** All apps by id. Reads the database first. Rejects with a Fault if it is unavailable. */
  async current(): Promise<readonly ShownApp[]> {
    await this.#look()
    const configured = this.#settings.configured.map(configuredApp)
    const stored = this.#kept!.records.filter(({ id }) => !this.#configured.has(id)).map(storedApp)
    return [...configured, ...stored].toSorted((one, other) => (one.id < other.id ? -1 : 1))
  }

  async byId(id: string): Promise<ShownApp | null> {
    const configured = this.#configured.get(id)
    if (configured !== undefined) return configuredApp(configured)
    const record = await this.#store!.apps.byId(id)
    return record === null ? null : storedApp(record)
  }

  /** Whether an app of this id is defined, in the settings or the database. */
  async exists(id: string, queries: Queries): Promise<boolean> {
    return this.#configured.has(id) || (await this.#store!.apps.byId(id, queries)) !== null
  }

  /** Throws a Refusal if the id or a host is taken. */
  async create(app: App, actor: Actor, nowMs: number): Promise<ShownApp> {
    const record = { ...app, createdAtMs: nowMs, updatedAtMs: nowMs }
    await this.#change(actor, nowMs, async (store, queries) => {
      this.#checkId(app.id)
      if ((await store.apps.byId(app.id, queries)) !== null)
        throw new Refusal('conflict', `the app "${app.id}" already exists`, fieldError('/id'))
      if ((await store.apps.count(queries)) >= APPS_MAX)
        throw new Refusal('conflict', `too many apps (at most ${APPS_MAX}): remove one first`)
      await this.#checkHosts(app, queries)
      await store.apps.put(record, queries)
      return { action: 'createApp', subject: app.id, apps: [app.id], detail: { ...app } }
    })
    return storedApp(record)
  }

  /** `changed` makes the new app of the stored one, and may throw a Refusal. */
  async update(
    id: string,
    changed: (before: ShownApp) => App,
    actor: Actor,
    nowMs: number,
  ): Promise<ShownApp> {
    let after: AppRecord | null = null
    await this.#change(actor, nowMs, async (store, queries) => {
      const before = await this.#stored(id, queries)
      const app = changed(storedApp(before))
      after = { ...app, createdAtMs: before.createdAtMs, updatedAtMs: nowMs }
      await this.#checkHosts(app, queries)
      await store.apps.put(after, queries)
      return { action: 'updateApp', subject: id, apps: [id], detail: { before: appIn(before), after: app } }
    })
    return storedApp(after!)
  }

  /** `check` may throw a Refusal. */
  async remove(id: string, check: (before: ShownApp) => void, actor: Actor, nowMs: number): Promise<void> {
    await this.#change(actor, nowMs, async (store, queries) => {
      const before = await this.#stored(id, queries)
      check(storedApp(before))
      await store.apps.remove(id, queries)
      const policyVersions = await store.policies.of(id).remove(queries)
      if (policyVersions > 0) await noteChange(store, nowMs, queries)
      const detail = { ...appIn(before), policy_versions: policyVersions }
      return { action: 'deleteApp', subject: id, apps: [id], detail }
    })
  }

  /** One transaction, in which no other process can change an app. */
  async #change(
    actor: Actor,
    nowMs: number,
    work: (store: Store, queries: Queries) => Promise<Parameters<typeof addAudit>[2]>,
  ): Promise<void> {
    const store = this.#store!
    await store.transaction(async (queries) => {
      await store.apps.lock(queries)
      const change = await work(store, queries)
      await store.settings.put(APPS_CHANGE, randomUUID(), null, nowMs, queries)
      await addAudit(store, actor, change, nowMs, queries)
    })
    this.#changes.nudge()
  }

  async #stored(id: string, queries: Queries): Promise<AppRecord> {
    this.#checkId(id)
    const record = await this.#store!.apps.byId(id, queries)
    if (record === null) throw new Refusal('not_found', `app "${id}" not found`)
    return record
  }

  #checkId(id: string): void {
    if (this.#configured.has(id))
      throw new Refusal('conflict', `the app "${id}" comes from the settings: change it under apps there`)
  }

  async #checkHosts(app: App, queries: Queries): Promise<void> {
    const others = this.#configuredHosts.size + (await this.#store!.apps.hostCount(app, queries))
    if (others + app.hosts.length > ALL_HOSTS_MAX)
      throw new Refusal(
        'conflict',
        `too many hosts of all apps (at most ${ALL_HOSTS_MAX}): remove some first`,
      )
    const ofSettings = app.hosts.find((host) => this.#configuredHosts.has(hostPatternKey(host)))
    const taken =
      ofSettings === undefined
        ? await this.#store!.apps.takenHost(app, queries)
        : { pattern: ofSettings, app: this.#configuredHosts.get(hostPatternKey(ofSettings))!.id }
    if (taken === null) return
    const { pattern, app: owner } = taken
    const place = `/hosts/${app.hosts.indexOf(pattern)}`
    throw new Refusal('conflict', `the host "${pattern}" belongs to the app "${owner}"`, fieldError(place))
  }

  /** Runs one look at a time, each after the previous one has ended. */
  #look(): Promise<void> {
    const looking = this.#looking.then(() => this.#lookOnce())
    this.#looking = looking.catch(() => undefined)
    return looking
  }

  async #lookOnce(): Promise<void> {
    const { settings, apps } = this.#store!
    const change = (await settings.get(APPS_CHANGE))?.value ?? null
    if (this.#kept !== null && change === this.#kept.change) return
    const kept = { change, records: (await apps.all()).filter((record) => this.#isValid(record)) }
    const { copy, log } = this.#settings
    const isNew = this.#kept === null && change === null
    this.#use(kept)
    if (isNew) return // there is nothing to keep
    await copy.write(kept).catch((error: Error) => {
      log.error('the copy of the apps cannot be written', { error })
    })
  }

  #use(kept: KeptApps): void {
    const before = this.#kept?.records ?? []
    this.#kept = kept
    if (isDeepStrictEqual(before, kept.records)) return
    this.#settings.log.info('the apps have changed', { apps: kept.records.length })
    const apps = [...this.#settings.configured, ...this.#besideConfigured(kept.records)]
    this.#quotas = quotasOf(apps)
    this.#settings.use(apps)
  }

  /** Leaves out the ids and hosts that the settings define. */
  #besideConfigured(records: readonly AppRecord[]): readonly App[] {
    if (this.#configured.size === 0) return records.map(appIn)
    const { log } = this.#settings
    return records.flatMap((record) => {
      const { id } = record
      if (this.#configured.has(id)) {
        log.warn('an app of the API is not in force: the settings define the same id', { app: id })
        return []
      }
      const hosts = record.hosts.filter((host) => !this.#configuredHosts.has(hostPatternKey(host)))
      if (hosts.length < record.hosts.length)
        log.warn('an app of the API does not get the hosts that an app of the settings has', { app: id })
      return [{ ...appIn(record), hosts }]
    })
  }

  /** Another program may have written to the database. */
  #isValid(record: AppRecord): boolean {
    try {
      parseApps([appIn(record)])
      return true
    } catch (error) {
      this.#settings.log.error('an app in the database cannot be used', {
        app: record.id,
        error: error as Error,
      })
      return false
    }
  }
}

function quotasOf(apps: readonly App[]): ReadonlyMap<string, AppQuota> {
  return new Map(apps.flatMap(({ id, quota }) => (quota === null ? [] : [[id, quota] as const])))
}

function configuredApp(app: App): ShownApp {
  return { ...app, source: 'settings', createdAtMs: null, updatedAtMs: null }
}

function storedApp(record: AppRecord): ShownApp {
  return { ...record, source: 'api' }
}

function fieldError(pointer: string) {
  return { errors: [{ pointer, detail: 'is taken' }] }
}
