import { type Kysely, type Selectable, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { EventTable, EventType, Severity } from '../engine/tables/events.ts'
import type { Tables } from '../engine/tables.ts'

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

  /** Newest first, but for those that are told to one alone. */
  async list<Asked extends Part>(
    part: Asked,
    { types, categories, agents, severities, minConfidence, sinceMs, untilMs }: EventListFilter,
  ): Promise<PartOf<EventRecord, Asked>> {
    let found = this.#db.selectFrom('events').where('type', '!=', 'test')
    if (types.length > 0) found = found.where('type', 'in', types)
    if (categories.length > 0) found = found.where('category', 'in', categories)
    if (agents.length > 0) found = found.where('agent', 'in', agents)
    if (severities !== null)
      found = found.where(({ eb, or }) => or([eb('severity', 'is', null), eb('severity', 'in', severities)]))
    if (minConfidence !== null)
      found = found.where(({ eb, or }) =>
        or([eb('confidence', 'is', null), eb('confidence', '>=', minConfidence)]),
      )
    if (sinceMs !== null) found = found.where('at_ms', '>=', sinceMs)
    if (untilMs !== null) found = found.where('at_ms', '<', untilMs)
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, eventRecord)
  }

  /** How far they are forgotten, and the greatest number there ever was: what is kept lies between. */
  async kept(): Promise<KeptEvents> {
    const mark = this.#db.selectFrom('event_positions').select('number').where('name', '=', FORGOTTEN)
    const forgotten = (await mark.executeTakeFirst())?.number ?? 0
    return { forgotten, last: Math.max(forgotten, await this.last()) }
  }

  /** Behind which all are that are not older, and a few that are; `null`: there is none. */
  async before(sinceMs: number): Promise<number | null> {
    // Numbers and times rise nearly together: clocks differ, and what is true first may be written down second.
    const first = this.#db
      .selectFrom('events')
      .select('number')
      .where('at_ms', '>=', sinceMs)
      .orderBy('at_ms')
      .orderBy('number')
      .limit(NEARLY)
    const { number } = await this.#db
      .selectFrom(first.as('first'))
      .select(({ fn }) => fn.min<number | null>('number').as('number'))
      .executeTakeFirstOrThrow()
    return number === null ? null : number - 1
  }

  /**
   * Forgets so many at most of those that are older, or more than are kept, in their order: one that is not old yet keeps
   * those behind it. Resolves to how many they were.
   */
  async forget(beforeMs: number, keptMax: number, rowsMax: number): Promise<number> {
    const last = await this.last()
    const first = this.#db.selectFrom('events').select(['number', 'at_ms']).orderBy('number').limit(rowsMax)
    const rows = await first.execute()
    const end = rows.findIndex(({ number, at_ms }) => at_ms >= beforeMs && number > last - keptMax)
    const forgotten = (end === -1 ? rows : rows.slice(0, end)).at(-1)?.number
    if (forgotten === undefined) return 0
    return this.#db.transaction().execute(async (queries) => {
      const mark = { name: FORGOTTEN, number: forgotten, holder: null, held_until_ms: 0 }
      const marking = queries.insertInto('event_positions').values(mark)
      await marking
        .onConflict((row) =>
          row
            .column('name')
            .doUpdateSet({ number: forgotten })
            .where('event_positions.number', '<', forgotten),
        )
        .execute()
      const old = queries.deleteFrom('events').where('number', '<=', forgotten)
      return Number((await old.executeTakeFirst()).numDeletedRows)
    })
  }
}

/** Empty lists, and `null`, let everything through. */
export interface EventListFilter {
  readonly types: readonly EventType[]
  readonly categories: readonly string[]
  readonly agents: readonly string[]
  /** As `minConfidence`, of those that have one. */
  readonly severities: readonly Severity[] | null
  readonly minConfidence: number | null
  readonly sinceMs: number | null
  /** Not at this time any more. */
  readonly untilMs: number | null
}

export interface KeptEvents {
  readonly forgotten: number
  readonly last: number
}

function rowOf({ atMs, ...event }: NewEvent) {
  const { id, type, subject, agent, category, severity, confidence, data } = event
  return { id, type, at_ms: atMs, subject, agent, category, severity, confidence, data }
}

export function eventRecord({ at_ms: atMs, ...row }: Selectable<EventTable>): EventRecord {
  return { ...row, atMs }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'events.at_ms', kind: 'whole' },
    { name: 'events.number', kind: 'whole' },
  ],
  isDescending: true,
}
/** As many come within any difference of clocks. */
const NEARLY = 1_000
/** No sink is called so. */
const FORGOTTEN = 'forgotten'
/** Another number than those of the migrations and of Sightings. */
const LOCK = 7_164_201_913
