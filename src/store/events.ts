import { type Kysely, type Selectable, sql } from 'kysely'
import { parts } from './bulk.ts'
import type { DatabaseKind, Queries } from './database.ts'
import type { EventTable, EventType, Severity } from './tables/events.ts'
import type { Tables } from './tables.ts'

export interface EventRecord {
  /** Where it stands among all: rising, with gaps. */
  readonly number: number
  readonly id: string
  readonly type: EventType
  readonly atMs: number
  /** What it is about: a fingerprint, mostly. Events of one subject are told in their order. */
  readonly subject: string
  /** The id of an agent. */
  readonly agent: string | null
  readonly category: string | null
  readonly severity: Severity | null
  readonly confidence: number | null
  /** JSON: an object, as it is told. */
  readonly data: string
}

export type NewEvent = Omit<EventRecord, 'number'>

/** What others are told of, in the order in which it became true. */
export class EventStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /**
   * In the transaction that makes them true, as the last that it locks: whoever adds events waits here for others who
   * do until these have committed, so that whoever reads on from a number misses none below it.
   */
  async add(events: readonly NewEvent[], queries: Queries): Promise<readonly EventRecord[]> {
    if (events.length === 0) return []
    // SQLite's transaction holds the file by itself.
    if (this.#kind === 'postgres') await sql`select pg_advisory_xact_lock(${LOCK})`.execute(queries)
    const numbers = new Map<string, number>()
    for (const part of parts(events)) {
      const added = queries.insertInto('events').values(part.map(rowOf)).returning(['id', 'number'])
      for (const { id, number } of await added.execute()) numbers.set(id, number)
    }
    return events.map((event) => ({ ...event, number: numbers.get(event.id)! }))
  }

  async byId(id: string): Promise<EventRecord | null> {
    const row = await this.#db.selectFrom('events').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : eventRecord(row)
  }

  /** Those with a greater number, in their order, but for those that are told to one alone. */
  async after(number: number, limit: number): Promise<readonly EventRecord[]> {
    const rows = await this.#db
      .selectFrom('events')
      .selectAll()
      .where('number', '>', number)
      .where('type', '!=', 'test')
      .orderBy('number')
      .limit(limit)
      .execute()
    return rows.map(eventRecord)
  }

  /** The greatest number there is; 0 before the first. */
  async last(): Promise<number> {
    const newest = this.#db.selectFrom('events').select('number').orderBy('number', 'desc').limit(1)
    return (await newest.executeTakeFirst())?.number ?? 0
  }

  /** Forgets so many at most of what is older; resolves to how many they were. */
  async forget(beforeMs: number, rowsMax: number): Promise<number> {
    const oldest = this.#db.selectFrom('events').select('number').where('at_ms', '<', beforeMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('events')
      .where('number', 'in', oldest.orderBy('at_ms').orderBy('number').limit(rowsMax))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

function rowOf({ atMs, ...event }: NewEvent) {
  const { id, type, subject, agent, category, severity, confidence, data } = event
  return { id, type, at_ms: atMs, subject, agent, category, severity, confidence, data }
}

export function eventRecord({ at_ms: atMs, ...row }: Selectable<EventTable>): EventRecord {
  return { ...row, atMs }
}

/** Another number than those of the migrations and of Sightings. */
const LOCK = 7_164_201_913
