import type { Kysely, Selectable } from 'kysely'
import type { AppList, AppScope } from '../../apps/app-scope.ts'
import { rowIsWithin, storedApps } from '../engine/app-lists.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedTexts } from '../engine/stored.ts'
import type { KeyTable } from '../engine/tables/keys.ts'
import type { Tables } from '../engine/tables.ts'

/** An API key, without the key itself. */
export interface KeyRecord {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  /** The apps whose objects it may see. */
  readonly apps: AppList
  readonly plan: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  readonly revokedAtMs: number | null
  readonly lastUsedAtMs: number | null
}

export type NewKey = Pick<
  KeyRecord,
  'id' | 'name' | 'scopes' | 'apps' | 'plan' | 'createdAtMs' | 'expiresAtMs'
> & {
  readonly hash: string
}

export class KeyStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  async add(key: NewKey, queries: Queries = this.#db): Promise<void> {
    const { id, hash, name, plan } = key
    const times = { created_at_ms: key.createdAtMs, expires_at_ms: key.expiresAtMs }
    const access = { scopes: JSON.stringify(key.scopes), apps: JSON.stringify(key.apps) }
    await queries
      .insertInto('api_keys')
      .values({ id, hash, name, plan, ...access, ...times })
      .execute()
  }

  /** Includes revoked and expired keys, so that the caller can tell the reason. */
  async byHash(hash: string): Promise<KeyRecord | null> {
    const row = await this.#db.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  async byId(id: string): Promise<KeyRecord | null> {
    const row = await this.#db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** Those within the apps, newest first, without revoked keys. */
  async list<Asked extends Part>(part: Asked, apps: AppScope): Promise<PartOf<KeyRecord, Asked>> {
    const valid = this.#db.selectFrom('api_keys').where('revoked_at_ms', 'is', null)
    const found = valid.where(rowIsWithin(this.#kind, 'api_keys.apps', apps))
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, record)
  }

  /** `false`: it does not exist, or was already revoked. */
  async revoke(id: string, atMs: number, queries: Queries = this.#db): Promise<boolean> {
    const { numUpdatedRows } = await queries
      .updateTable('api_keys')
      .set({ revoked_at_ms: atMs })
      .where('id', '=', id)
      .where('revoked_at_ms', 'is', null)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /**
   * Stores when keys were last used. The times never decrease, because several
   * processes report them with a delay.
   */
  async used(lastUsedAtMs: ReadonlyMap<string, number>): Promise<void> {
    await this.#db.transaction().execute(async (queries) => {
      // One lock order in all processes prevents deadlocks.
      for (const [id, atMs] of [...lastUsedAtMs].sort(([one], [other]) => (one < other ? -1 : 1)))
        await queries
          .updateTable('api_keys')
          .set({ last_used_at_ms: atMs })
          .where('id', '=', id)
          .where(({ eb, or }) => or([eb('last_used_at_ms', 'is', null), eb('last_used_at_ms', '<', atMs)]))
          .execute()
    })
  }
}

function record(row: Selectable<KeyTable>): KeyRecord {
  return {
    id: row.id,
    name: row.name,
    scopes: storedTexts(row.scopes),
    apps: storedApps(row.apps),
    plan: row.plan,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    revokedAtMs: row.revoked_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
  }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'api_keys.created_at_ms', kind: 'whole' },
    { name: 'api_keys.id', kind: 'text' },
  ],
  isDescending: true,
}
