import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { PolicyTable } from '../engine/tables/policies.ts'
import type { Tables } from '../engine/tables.ts'

/** A policy that was put by way of the API, less the policy. */
export interface PolicyVersion {
  /** Counts from 1. */
  readonly version: number
  /** SHA-256 of the document, in hexadecimal. */
  readonly hash: string
  readonly author: string
  /** The version whose document this one has again. */
  readonly restoredVersion: number | null
  readonly createdAtMs: number
}

/** With the policy as JSON, which whoever reads it does not trust: the database may have been written by others. */
export interface PolicyRecord extends PolicyVersion {
  readonly document: string
}

export class PolicyStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** `null`: there is none. */
  async newest(): Promise<Pick<PolicyVersion, 'version' | 'hash'> | null> {
    const found = this.#db
      .selectFrom('policies')
      .select(['version', 'hash'])
      .orderBy('version', 'desc')
      .limit(1)
    return (await found.executeTakeFirst()) ?? null
  }

  async byVersion(version: number): Promise<PolicyRecord | null> {
    const found = this.#db.selectFrom('policies').selectAll().where('version', '=', version)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : { ...versionOf(row), document: row.document }
  }

  /** Newest first. */
  async list<Asked extends Part>(part: Asked): Promise<PartOf<PolicyVersion, Asked>> {
    const found = this.#db.selectFrom('policies')
    return partOf(found, found.select(VERSION_COLUMNS), NEWEST_FIRST, part, versionOf)
  }

  /** `false`: somebody else has put this version. Of older ones, as many stay as `versionsMax` allows. */
  async add(record: PolicyRecord, versionsMax: number, queries: Queries): Promise<boolean> {
    const { version, document, hash, author } = record
    const restored = { restored_version: record.restoredVersion, created_at_ms: record.createdAtMs }
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('policies')
      .values({ version, document, hash, author, ...restored })
      .onConflict((conflict) => conflict.column('version').doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows !== 1n) return false
    await queries
      .deleteFrom('policies')
      .where('version', '<=', version - versionsMax)
      .execute()
    return true
  }
}

function versionOf(row: Omit<Selectable<PolicyTable>, 'document'>): PolicyVersion {
  const { version, hash, author } = row
  return { version, hash, author, restoredVersion: row.restored_version, createdAtMs: row.created_at_ms }
}

const VERSION_COLUMNS = ['version', 'hash', 'author', 'restored_version', 'created_at_ms'] as const
const NEWEST_FIRST: Order = { columns: [{ name: 'policies.version', kind: 'whole' }], isDescending: true }
