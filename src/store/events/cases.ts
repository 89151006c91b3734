import { type Kysely, type Selectable, sql } from 'kysely'
import { ALL_APPS, type AppScope, reaches } from '../../apps/app-scope.ts'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import { noPart, type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { CaseStatus, CaseTable } from '../engine/tables/cases.ts'
import type { Tables } from '../engine/tables.ts'

/** Who or what a case is about: one of these, or none if it is about many clients. */
export interface CaseSubject {
  readonly campaign: string | null
  readonly agent: string | null
  readonly ja4: string | null
  /** A network, or a hash. */
  readonly address: string | null
}

/** What new events add to a case. */
export interface CaseDraft extends CaseSubject {
  /** For a new case. */
  readonly id: string
  /** App, reason and subject. */
  readonly identity: string
  readonly app: string | null
  readonly reason: string
  readonly severity: CaseTable['severity']
  readonly firstAtMs: number
  readonly lastAtMs: number
  readonly events: number
  readonly requests: number
}

export interface CaseRecord extends Omit<CaseDraft, 'identity'> {
  readonly status: CaseStatus
  /** Increases with each change by a person. */
  readonly version: number
  readonly changedAtMs: number | null
  /** The id of a principal. */
  readonly changedBy: string | null
  readonly note: string | null
  /** The number of decisions that got feedback. */
  readonly feedback: number
}

/** A change by a person. Members that are left out stay as they are. */
export interface CaseChange extends Partial<Pick<CaseRecord, 'status' | 'note' | 'feedback'>> {
  readonly by: string
  readonly atMs: number
}

/** `null` disables a filter. */
export interface CaseFilter {
  readonly scope: AppScope
  readonly status: CaseStatus | null
  readonly reasons: readonly string[] | null
  /** Only cases with an event since then. */
  readonly sinceMs: number | null
  /** Only cases that began before then. */
  readonly untilMs: number | null
}

/** Threats that belong together, for people to work through. */
export class CaseStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /**
   * Adds new events to the cases of these identities, and opens the missing ones. The status of a case does not
   * change. Resolves to the ids of the cases, by identity. Each identity may occur once.
   */
  async file(drafts: readonly CaseDraft[], queries: Queries): Promise<ReadonlyMap<string, string>> {
    const ids = new Map<string, string>()
    // All writers lock the rows in the same order.
    const sorted = drafts.toSorted((one, other) => (one.identity < other.identity ? -1 : 1))
    for (const part of parts(sorted)) {
      const filed = queries
        .insertInto('cases')
        .values(part.map(rowOf))
        .onConflict((conflict) =>
          conflict.column('identity').doUpdateSet({
            first_at_ms: sql<number>`case when excluded.first_at_ms < cases.first_at_ms then excluded.first_at_ms else cases.first_at_ms end`,
            last_at_ms: sql<number>`case when excluded.last_at_ms > cases.last_at_ms then excluded.last_at_ms else cases.last_at_ms end`,
            events: sql<number>`cases.events + excluded.events`,
            requests: sql<number>`cases.requests + excluded.requests`,
          }),
        )
        .returning(['id', 'identity'])
      for (const { id, identity } of await filed.execute()) ids.set(identity, id)
    }
    return ids
  }

  /** `null`: missing, or not about one of these apps. */
  async byId(id: string, apps: AppScope): Promise<CaseRecord | null> {
    const row = await this.#db.selectFrom('cases').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined || !reaches(apps, row.app) ? null : recordOf(row)
  }

  /** The one with the latest event first. */
  async list<Asked extends Part>(
    part: Asked,
    { scope, status, reasons, sinceMs, untilMs }: CaseFilter,
  ): Promise<PartOf<CaseRecord, Asked>> {
    if (scope !== ALL_APPS && scope.size === 0) return noPart(part)
    let found = this.#db.selectFrom('cases')
    if (scope !== ALL_APPS) found = found.where('app', 'in', [...scope])
    if (status !== null) found = found.where('status', '=', status)
    if (reasons !== null) found = found.where('reason', 'in', reasons)
    if (sinceMs !== null) found = found.where('last_at_ms', '>=', sinceMs)
    if (untilMs !== null) found = found.where('first_at_ms', '<', untilMs)
    return partOf(found, found.selectAll(), LATEST_FIRST, part, recordOf)
  }

  /** `version`: `null` is any. Returns `false` if the case was deleted or has another version. */
  async change(id: string, version: number | null, change: CaseChange, queries: Queries): Promise<boolean> {
    const { by, atMs, ...changes } = change
    const changed = queries
      .updateTable('cases')
      .set({ ...changes, changed_by: by, changed_at_ms: atMs, version: sql<number>`version + 1` })
      .where('id', '=', id)
    const some = version === null ? changed : changed.where('version', '=', version)
    return (await some.executeTakeFirst()).numUpdatedRows === 1n
  }

  /**
   * Deletes cases without an event since then, and those beyond the newest `keptMax`, at most `rowsMax`. Resolves to
   * their number.
   */
  async forget(beforeMs: number, keptMax: number, rowsMax: number): Promise<number> {
    const latest = this.#db.selectFrom('cases').select('id')
    const sorted = latest.orderBy('last_at_ms', 'desc').orderBy('id', 'desc')
    const more = await sorted.offset(keptMax).limit(rowsMax).execute()
    const old = await latest.where('last_at_ms', '<', beforeMs).orderBy('last_at_ms').limit(rowsMax).execute()
    const ids = [...new Set([...old, ...more].map(({ id }) => id))].slice(0, rowsMax)
    for (const part of parts(ids)) await this.#db.deleteFrom('cases').where('id', 'in', part).execute()
    return ids.length
  }
}

function rowOf({ firstAtMs, lastAtMs, ...draft }: CaseDraft): CaseTable {
  const { id, identity, app, reason, severity, campaign, agent, ja4, address, events, requests } = draft
  return {
    ...{ id, identity, app, reason, severity, campaign, agent, ja4, address, events, requests },
    first_at_ms: firstAtMs,
    last_at_ms: lastAtMs,
    ...{ status: 'open', version: 0, changed_at_ms: null, changed_by: null, note: null, feedback: 0 },
  }
}

function recordOf(row: Selectable<CaseTable>): CaseRecord {
  const { identity: _, first_at_ms, last_at_ms, changed_at_ms, changed_by, ...rest } = row
  return {
    ...rest,
    firstAtMs: first_at_ms,
    lastAtMs: last_at_ms,
    changedAtMs: changed_at_ms,
    changedBy: changed_by,
  }
}

const LATEST_FIRST: Order = {
  columns: [
    { name: 'cases.last_at_ms', kind: 'whole' },
    { name: 'cases.id', kind: 'text' },
  ],
  isDescending: true,
}
