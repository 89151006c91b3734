import type { Kysely, Selectable } from 'kysely'
import { ALL_APPS, type AppList, type AppScope } from '../../apps/app-scope.ts'
import { rowIsWithin, rowNames, storedApps } from '../engine/app-lists.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedObject } from '../engine/stored.ts'
import type { AuditTable } from '../engine/tables/audit.ts'
import type { Tables } from '../engine/tables.ts'

/** An administrative change. `detail` never contains a secret. */
export interface AuditEntry {
  readonly id: string
  readonly atMs: number
  /** The id of the key that made the change, or `command-line`. */
  readonly principal: string
  /** The id of an API operation, or a similar name. */
  readonly action: string
  /** The id of what was changed. */
  readonly subject: string | null
  /** The apps of what was changed. `*`: the whole installation. */
  readonly apps: AppList
  readonly detail: Readonly<Record<string, unknown>>
  readonly address: string | null
  readonly requestId: string | null
}

export interface AuditFilter {
  /** Only entries whose apps are all among these. */
  readonly apps: AppScope
  /** Only entries that name this app. `null`: any, like in the members below. */
  readonly app: string | null
  readonly action: string | null
  readonly principal: string | null
  readonly sinceMs: number | null
}

export class AuditStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** Adds the entry in the transaction of the change. */
  async add(entry: AuditEntry, queries: Queries): Promise<void> {
    const { id, principal, action, subject, address } = entry
    const named = { id, principal, action, subject, address, request_id: entry.requestId }
    await queries
      .insertInto('audit')
      .values({
        ...named,
        at_ms: entry.atMs,
        detail: JSON.stringify(entry.detail),
        apps: JSON.stringify(entry.apps),
      })
      .execute()
  }

  /** Newest first. */
  async list<Asked extends Part>(
    part: Asked,
    { apps, app, action, principal, sinceMs }: AuditFilter = NO_FILTER,
  ): Promise<PartOf<AuditEntry, Asked>> {
    let found = this.#db.selectFrom('audit').where(rowIsWithin(this.#kind, 'audit.apps', apps))
    if (app !== null) found = found.where(rowNames(this.#kind, 'audit.apps', app))
    if (action !== null) found = found.where('action', '=', action)
    if (principal !== null) found = found.where('principal', '=', principal)
    if (sinceMs !== null) found = found.where('at_ms', '>=', sinceMs)
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, entryOf)
  }

  /** Deletes entries older than `beforeMs`, at most `rowsMax`. Resolves to their number. */
  async forget(beforeMs: number, rowsMax: number): Promise<number> {
    const oldest = this.#db.selectFrom('audit').select('id').where('at_ms', '<', beforeMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('audit')
      .where('id', 'in', oldest.orderBy('at_ms').orderBy('id').limit(rowsMax))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

function entryOf(row: Selectable<AuditTable>): AuditEntry {
  const { id, principal, action, subject, address } = row
  const detail = storedObject(row.detail)
  const [apps, requestId] = [storedApps(row.apps), row.request_id]
  return { id, atMs: row.at_ms, principal, action, subject, apps, detail, address, requestId }
}

const NO_FILTER: AuditFilter = { apps: ALL_APPS, app: null, action: null, principal: null, sinceMs: null }
const NEWEST_FIRST: Order = {
  columns: [
    { name: 'audit.at_ms', kind: 'whole' },
    { name: 'audit.id', kind: 'text' },
  ],
  isDescending: true,
}
