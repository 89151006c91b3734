import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { storedJson } from '../engine/stored.ts'
import type { SettingTable } from '../engine/tables/settings.ts'
import type { Tables } from '../engine/tables.ts'

export interface StoredSetting {
  readonly name: string
  /** Any JSON value. The reader validates it. */
  readonly value: unknown
  readonly version: number
  readonly changedAtMs: number
}

type SettingPut =
  | { readonly kind: 'saved'; readonly version: number }
  /** The setting has another version than expected; 0: it does not exist. */
  | { readonly kind: 'conflict'; readonly version: number }

/** Internal, not in the configuration. A changed value means that the whole database was replaced. */
export const RESTORED = 'store.restored'
/** Internal, not in the configuration. Has another value after each change of an app. */
export const APPS_CHANGE = 'apps.change'
/** The same after each change of the policy of an app. */
export const APP_POLICIES_CHANGE = 'app_policies.change'
/** Internal, not in the configuration. Identifies the key that last sealed the secrets in the database. */
export const SEALED_BY = 'store.sealed_by'

/** Settings that can change at run time. */
export class SettingStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async get(name: string, queries: Queries = this.#db): Promise<StoredSetting | null> {
    const row = await queries.selectFrom('settings').selectAll().where('name', '=', name).executeTakeFirst()
    return row === undefined ? null : settingOf(row)
  }

  /** There are only a few. */
  async all(): Promise<readonly StoredSetting[]> {
    return (await this.#db.selectFrom('settings').selectAll().orderBy('name').execute()).map(settingOf)
  }

  /** Saves if the stored version is `ifVersion`. 0: only if it does not exist; `null`: always. */
  async put(
    name: string,
    value: unknown,
    ifVersion: number | null,
    atMs: number,
    queries: Queries = this.#db,
  ): Promise<SettingPut> {
    const row = { name, value: JSON.stringify(value), version: 1, changed_at_ms: atMs }
    const saved = await (ifVersion === null
      ? upserted(queries, row)
      : ifVersion === 0
        ? inserted(queries, row)
        : updated(queries, row, ifVersion))
    if (saved !== undefined) return { kind: 'saved', version: saved.version }
    return { kind: 'conflict', version: (await this.get(name, queries))?.version ?? 0 }
  }
}

function inserted(queries: Queries, row: SettingTable) {
  return queries
    .insertInto('settings')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning('version')
    .executeTakeFirst()
}

function updated(queries: Queries, { name, value, changed_at_ms }: SettingTable, ifVersion: number) {
  return queries
    .updateTable('settings')
    .set({ value, changed_at_ms, version: ifVersion + 1 })
    .where('name', '=', name)
    .where('version', '=', ifVersion)
    .returning('version')
    .executeTakeFirst()
}

function upserted(queries: Queries, row: SettingTable) {
  const { value, changed_at_ms } = row
  return queries
    .insertInto('settings')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet(({ eb }) => ({ value, changed_at_ms, version: eb('settings.version', '+', 1) })),
    )
    .returning('version')
    .executeTakeFirst()
}

function settingOf({ name, value, version, changed_at_ms }: Selectable<SettingTable>): StoredSetting {
  return { name, value: storedJson(value), version, changedAtMs: changed_at_ms }
}
