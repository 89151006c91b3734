import type { Kysely, Selectable } from 'kysely'
import type { AppList, AppScope } from '../../apps/app-scope.ts'
import { rowIsWithin, storedApps } from '../engine/app-lists.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedObject, storedTexts } from '../engine/stored.ts'
import type { TrustTable } from '../engine/tables/trust.ts'
import type { Tables } from '../engine/tables.ts'

/** The permissions of an Agent Identity or a key. */
export interface TrustRecord {
  readonly id: string
  readonly kind: TrustKind
  /** The agent's id (a URL), or the key's RFC 7638 thumbprint. */
  readonly subject: string
  readonly name: string | null
  readonly scopes: readonly string[]
  /** The apps whose objects it may see. */
  readonly apps: AppList
  readonly plan: string
  /** The agent's document if it is stored here instead of fetched, or the key as a JWK. */
  readonly document: Readonly<Record<string, unknown>> | null
  readonly createdAtMs: number
}

export type TrustKind = 'agent' | 'key'

export class TrustStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** For a limit: others that count wait until this transaction has added its own. */
  async count(queries: Queries): Promise<number> {
    await lockUntilCommit(queries, this.#kind, 'trust')
    const counted = queries.selectFrom('trust').select(({ fn }) => fn.countAll<number>().as('total'))
    return Number((await counted.executeTakeFirstOrThrow()).total)
  }

  /** `false`: the agent or key already has an entry. */
  async add(record: TrustRecord, queries: Queries = this.#db): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('trust')
      .values(rowOf(record))
      .onConflict((conflict) => conflict.columns(['kind', 'subject']).doNothing())
      .executeTakeFirst()
    return numInsertedOrUpdatedRows === 1n
  }

  async byId(id: string): Promise<TrustRecord | null> {
    const row = await this.#db.selectFrom('trust').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  async of(kind: TrustKind, subject: string): Promise<TrustRecord | null> {
    const found = this.#db.selectFrom('trust').selectAll().where('kind', '=', kind)
    const row = await found.where('subject', '=', subject).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** Those within the apps, newest first. */
  async list<Asked extends Part>(part: Asked, apps: AppScope): Promise<PartOf<TrustRecord, Asked>> {
    const found = this.#db.selectFrom('trust').where(rowIsWithin(this.#kind, 'trust.apps', apps))
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, record)
  }

  /** `false`: it does not exist any more. */
  async remove(id: string, queries: Queries = this.#db): Promise<boolean> {
    const { numDeletedRows } = await queries.deleteFrom('trust').where('id', '=', id).executeTakeFirst()
    return numDeletedRows > 0n
  }
}

function rowOf({ createdAtMs, scopes, apps, document, ...same }: TrustRecord) {
  return {
    ...same,
    scopes: JSON.stringify(scopes),
    apps: JSON.stringify(apps),
    document: document === null ? null : JSON.stringify(document),
    created_at_ms: createdAtMs,
  }
}

function record(row: Selectable<TrustTable>): TrustRecord {
  const { id, subject, name, plan } = row
  return {
    id,
    subject,
    name,
    plan,
    kind: row.kind === 'key' ? 'key' : 'agent',
    scopes: storedTexts(row.scopes),
    apps: storedApps(row.apps),
    document: row.document === null ? null : storedObject(row.document),
    createdAtMs: row.created_at_ms,
  }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'trust.created_at_ms', kind: 'whole' },
    { name: 'trust.id', kind: 'text' },
  ],
  isDescending: true,
}
