import { ALL_APPS } from '../../apps/app-scope.ts'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import type { Effective } from '../../config/reader.ts'
import type { Items } from '../../config/items.ts'
import { SETTINGS } from '../../config/schema.ts'
import { nameOf } from '../../config/source.ts'
import type { Log } from '../../shared/log.ts'
import { RESTORED, type StoredSetting } from '../../store/work/settings.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, changed } from '../http/audit.ts'
import { Outage } from './outage.ts'

/**
 * The settings that can be changed at runtime, with their schemas. All others are read at the start and need
 * a restart. A test compares this list with the configuration.
 */
export const LIVE_SETTINGS = {
  'log.level': z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  'manage.access_log': z.boolean(),
  'limits.free_per_day': z.int().min(1).max(1_000_000_000),
  'limits.standard_per_hour': z.int().min(1).max(1_000_000_000),
  'submissions.auto_accept': z.boolean(),
} as const

/** A request to change settings; `null` restores the configured value. */
export const LIVE_CHANGES = z.strictObject({
  'log.level': change('log.level', LIVE_SETTINGS['log.level']),
  'manage.access_log': change('manage.access_log', LIVE_SETTINGS['manage.access_log']),
  'limits.free_per_day': change('limits.free_per_day', LIVE_SETTINGS['limits.free_per_day']),
  'limits.standard_per_hour': change('limits.standard_per_hour', LIVE_SETTINGS['limits.standard_per_hour']),
  'submissions.auto_accept': change('submissions.auto_accept', LIVE_SETTINGS['submissions.auto_accept']),
} satisfies Record<LiveSetting, z.ZodType>)

export type LiveSetting = keyof typeof LIVE_SETTINGS
type LiveValue<Name extends LiveSetting> = z.output<(typeof LIVE_SETTINGS)[Name]>
type LiveChanges = z.output<typeof LIVE_CHANGES>

export interface ShownSetting {
  readonly name: string
  /** The value in force; for a secret, only whether there is one. */
  readonly value: unknown
  /** `api`, or the source at the start: a file with line and column, a variable, a flag, or `default`. */
  readonly origin: string
  /** The value that applies without a change through the API. */
  readonly configured: unknown
  readonly isLive: boolean
  readonly about: string
  readonly changedAtMs: number | null
}

/** The settings in force: those of the start, and the changes that any process has made since. */
export class LiveSettings {
  readonly #configured: readonly (Effective & { readonly name: string })[]
  readonly #log: Log
  readonly #listeners = new Map<LiveSetting, (value: never) => void>()
  #store: Store | null = null
  #restored: () => void = () => undefined
  /** The last restore of the database; `null`: not read yet. */
  #lastRestore: { readonly value: unknown } | null = null
  #rows: ReadonlyMap<string, StoredSetting> = new Map()
  #values: ReadonlyMap<string, unknown>
  readonly #said = new Map<string, number>()
  readonly #outage = new Outage()

  constructor(configured: readonly Effective[], log: Log) {
    this.#configured = configured.map((each) => ({ ...each, name: nameOf(each.pointer) }))
    this.#values = new Map(this.#configured.map(({ name, value }) => [name, value]))
    this.#log = log
  }

  /** The value in force. */
  value<Name extends LiveSetting>(name: Name): LiveValue<Name> {
    return LIVE_SETTINGS[name].parse(this.#values.get(name)) as LiveValue<Name>
  }

  /** Sets the listener of a setting, one each. It is called for changes, not for the initial value. */
  onChange<Name extends LiveSetting>(name: Name, listener: (value: LiveValue<Name>) => void): void {
    this.#listeners.set(name, listener)
  }

  /** Sets the listener for a restore from a backup while the database was open. */
  onRestored(listener: () => void): void {
    this.#restored = listener
  }

  async open(store: Store): Promise<void> {
    this.#store = store
    await this.follow()
  }

  /**
   * Applies the changes of other processes. Never rejects, because settings stay in force without a database.
   */
  async follow(): Promise<void> {
    if (this.#store === null) return
    const { settings } = this.#store
    await this.#outage.outlive(
      async () => this.#use(await settings.all()),
      (error) => this.#log.warn('the database cannot be asked for settings', { error }),
    )
  }

  /** In the order of the configuration. */
  shown(): readonly ShownSetting[] {
    return this.#configured.map(({ name, pointer, value: configured, from }) => {
      const row = isLive(name) ? valid(name, this.#rows.get(name)) : null
      return {
        name,
        configured,
        value: this.#values.get(name),
        isLive: isLive(name),
        about: aboutOf(pointer),
        origin: row === null ? from : 'api',
        changedAtMs: row?.changedAtMs ?? null,
      }
    })
  }

  /** Reads the database first. Rejects with a Fault if it is unavailable. */
  async current(): Promise<readonly ShownSetting[]> {
    this.#use(await this.#store!.settings.all())
    return this.shown()
  }

  /** Applies all changes or none. Values that stay the same are skipped. */
  async change(changes: LiveChanges, actor: Actor, nowMs: number): Promise<void> {
    const store = this.#store!
    const wanted = Object.entries(changes).filter(([name, value]) => {
      return value !== undefined && !isDeepStrictEqual(value, this.#rows.get(name)?.value ?? null)
    })
    if (wanted.length === 0) return
    const configured = (name: string) => this.#configured.find((each) => each.name === name)?.value
    const detail = Object.fromEntries(
      wanted.map(([name, value]) => {
        return [name, { before: this.#values.get(name), after: value ?? configured(name) }]
      }),
    )
    await changed(
      store,
      actor,
      { action: 'updateSettings', subject: null, apps: ALL_APPS, detail },
      nowMs,
      async (queries) => {
        for (const [name, value] of wanted) await store.settings.put(name, value, null, nowMs, queries)
      },
    )
    this.#use(await store.settings.all())
  }

  #use(rows: readonly StoredSetting[]): void {
    this.#rows = new Map(rows.map((row) => [row.name, row]))
    const values = new Map(this.#values)
    for (const { name, value: configured } of this.#configured) {
      if (!isLive(name)) continue
      const row = this.#rows.get(name)
      const found = valid(name, row)
      if (row !== undefined && row.value !== null && found === null) this.#sayBad(row)
      else values.set(name, found === null ? configured : found.value)
    }
    const before = this.#values
    this.#values = values
    for (const [name, listener] of this.#listeners) {
      const value = values.get(name)
      if (isDeepStrictEqual(value, before.get(name))) continue
      this.#log.info('a setting has changed', { name, value: String(value) })
      listener(value as never)
    }
    this.#lookForRestore(this.#rows.get(RESTORED)?.value ?? null)
  }

  #lookForRestore(value: unknown): void {
    const last = this.#lastRestore
    this.#lastRestore = { value }
    if (last === null || last.value === value) return
    this.#log.info('the database has been restored')
    this.#restored()
  }

  /** Logged once per version. The previous value stays in force. */
  #sayBad({ name, version }: StoredSetting): void {
    if (this.#said.get(name) === version) return
    this.#said.set(name, version)
    this.#log.error('a setting in the database cannot be used: the one before stays in force', { name })
  }
}

function isLive(name: string): name is LiveSetting {
  return Object.hasOwn(LIVE_SETTINGS, name)
}

/** The description in the configuration schema. */
function aboutOf(pointer: string): string {
  let items: Items = SETTINGS.members
  for (const token of pointer.slice(1).split('/')) {
    if (/^\d+$/.test(token)) continue
    const item = items[token]
    if (item === undefined) return ''
    if (item.item === 'section') items = item.members
    else if (item.item === 'sections') items = item.section.members
    else return item.about
  }
  return ''
}

function change<Schema extends z.ZodType>(name: LiveSetting, schema: Schema) {
  return schema
    .nullable()
    .optional()
    .meta({ description: aboutOf(`/${name.replaceAll('.', '/')}`) })
}

/** Another program may have written to the database. `null`: use the configured value. */
function valid(name: LiveSetting, row: StoredSetting | undefined): StoredSetting | null {
  if (row === undefined || row.value === null) return null
  return LIVE_SETTINGS[name].safeParse(row.value).success ? row : null
}
