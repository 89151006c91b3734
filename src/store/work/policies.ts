import { type Kysely, type Selectable, sql } from 'kysely'
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
  /** Why it was changed, in the words of its author. */
  readonly comment: string | null
}

/**
 * A version with its document as JSON. Readers must validate it, because others
 * may have written to the database.
 */
export interface PolicyRecord extends PolicyVersion {
  readonly document: string
}

interface VersionOfApp extends PolicyVersion {
  /** `*`: the organisation. */
  readonly app: string
}

/** The newest version of an app. */
export interface NewestPolicy {
  readonly app: string
  readonly version: number
  readonly hash: string
}

/** The versions of the policy of the organisation, or with `of` of an app. */
export class PolicyStore {
  readonly #db: Kysely<Tables>
  readonly #app: string

  constructor(db: Kysely<Tables>, app = ORGANISATION) {
    this.#db = db
    this.#app = app
  }

  of(app: string): PolicyStore {
    return new PolicyStore(this.#db, app)
  }

  /** Of every app that has a policy, by id. */
  newestOfApps(): Promise<readonly NewestPolicy[]> {
    return this.#inForce(this.#db).select(['app', 'version', 'hash']).orderBy('app').execute()
  }

  /** The characters of the newest policies of all other apps. */
  async lengthOfOthers(queries: Queries): Promise<number> {
    const counted = this.#inForce(queries)
      .where('app', '!=', this.#app)
      .select(sql<number | null>`sum(length(document))`.as('total'))
    return Number((await counted.executeTakeFirstOrThrow()).total ?? 0)
  }

  /** Deletes all versions. Returns their number. */
  async remove(queries: Queries): Promise<number> {
    const { numDeletedRows } = await queries
      .deleteFrom('policies')
      .where('app', '=', this.#app)
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  /** `null`: no version exists. */
  async newest(): Promise<Pick<PolicyVersion, 'version' | 'hash'> | null> {
    const found = this.#versions().select(['version', 'hash']).orderBy('version', 'desc').limit(1)
    return (await found.executeTakeFirst()) ?? null
  }

  async byVersion(version: number): Promise<PolicyRecord | null> {
    const row = await this.#versions().selectAll().where('version', '=', version).executeTakeFirst()
    return row === undefined ? null : { ...versionOf(row), document: row.document }
  }

  /** Newest first. */
  async list<Asked extends Part>(part: Asked): Promise<PartOf<VersionOfApp, Asked>> {
    const found = this.#versions()
    return partOf(found, found.select(VERSION_COLUMNS), NEWEST_FIRST, part, (row) => ({
      ...versionOf(row),
      app: this.#app,
    }))
  }

  /**
   * Adds a version and deletes those beyond `versionsMax`. `false`: another process has added this version.
   */
  async add(record: PolicyRecord, versionsMax: number, queries: Queries): Promise<boolean> {
    const { version, document, hash, author, comment } = record
    const restored = { restored_version: record.restoredVersion, created_at_ms: record.createdAtMs }
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('policies')
      .values({ app: this.#app, version, document, hash, author, comment, ...restored })
      .onConflict((conflict) => conflict.columns(['app', 'version']).doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows !== 1n) return false
    await queries
      .deleteFrom('policies')
      .where('app', '=', this.#app)
      .where('version', '<=', version - versionsMax)
      .execute()
    return true
  }

  #versions() {
    return this.#db.selectFrom('policies').where('app', '=', this.#app)
  }

  #inForce(queries: Queries) {
    return queries
      .selectFrom('policies')
      .where('app', '!=', ORGANISATION)
      .where(({ eb, selectFrom }) =>
        eb(
          'version',
          '=',
          selectFrom('policies as others')
            .select(({ fn }) => fn.max('others.version').as('newest'))
            .whereRef('others.app', '=', 'policies.app'),
        ),
      )
  }
}

function versionOf(row: Omit<Selectable<PolicyTable>, 'app' | 'document'>): PolicyVersion {
  const { version, hash, author, comment } = row
  const restored = { restoredVersion: row.restored_version, createdAtMs: row.created_at_ms }
  return { version, hash, author, comment, ...restored }
}

/** Cannot be the id of an app. */
export const ORGANISATION = '*'
const VERSION_COLUMNS = ['version', 'hash', 'author', 'restored_version', 'created_at_ms', 'comment'] as const
const NEWEST_FIRST: Order = { columns: [{ name: 'policies.version', kind: 'whole' }], isDescending: true }
