import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { PolicyTable } from '../engine/tables/policies.ts'
import type { Tables } from '../engine/tables.ts'

/** A policy that was set through the API, without the document. */
export interface PolicyVersion {
  /** Counts from 1. */
  readonly version: number
  /** SHA-256 of the document, in hexadecimal. */
  readonly hash: string
  readonly author: string
  /** The version whose document this version restores. */
  readonly restoredVersion: number | null
  readonly createdAtMs: number
}

/**
 * A version with its document as JSON. Readers must validate it, because others
 * may have written to the database.
 */
export interface PolicyRecord extends PolicyVersion {
  readonly document: string
}

export class PolicyStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** `null`: no version exists. */
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

  /**
   * Adds a version and deletes those beyond `versionsMax`. `false`: another process has added this version.
   */
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
