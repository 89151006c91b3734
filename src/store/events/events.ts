import type { Kysely, Selectable } from 'kysely'
import { ALL_APPS, type AppScope, reaches } from '../../apps/app-scope.ts'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { type Order, type Part, noPart, type PartOf, partOf } from '../engine/page.ts'
import type { EventTable, EventType, Severity } from '../engine/tables/events.ts'
import type { Tables } from '../engine/tables.ts'

export interface EventRecord {
  /** Its position among all events: increasing, with gaps. */
  readonly number: number
  readonly id: string
  readonly type: EventType
  readonly atMs: number
  /** What the event is about, usually a fingerprint. Events of one subject are delivered in order. */
  readonly subject: string
  /** The id of an agent. */
  readonly agent: string | null
  readonly category: string | null
  readonly severity: Severity | null
  readonly confidence: number | null
  /** The id of the app that it is about; `null`: it is not about one app. */
  readonly app: string | null
  /** JSON: the object that receivers get. */
  readonly data: string
}

export type NewEvent = Omit<EventRecord, 'number'>

/** The ids of cases, by the ids of their events. */
export type CasesOfEvents = ReadonlyMap<string, string>

/** Events for webhooks and sinks, in the order in which they occurred. */
export class EventStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /**
   * Adds events in the transaction that causes them, as its last lock. Writers wait here until other writers
   * have committed. A reader that continues after a number therefore misses no lower number.
   */
  async add(
    events: readonly NewEvent[],
    queries: Queries,
    cases: CasesOfEvents = NO_CASES,
  ): Promise<readonly EventRecord[]> {
    if (events.length === 0) return []
    await lockUntilCommit(queries, this.#kind, 'events')
    const numbers = new Map<string, number>()
    for (const part of parts(events)) {
      const added = queries
        .insertInto('events')
        .values(part.map((event) => rowOf(event, cases)))
        .returning(['id', 'number'])
      for (const { id, number } of await added.execute()) numbers.set(id, number)
    }
    return events.map((event) => ({ ...event, number: numbers.get(event.id)! }))
  }

  /** `null`: missing, or not about one of these apps. */
  async byId(id: string, apps: AppScope): Promise<EventRecord | null> {
    const row = await this.#db.selectFrom('events').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined || !reaches(apps, row.app) ? null : eventRecord(row)
  }

  /** Events with a higher number, in order, except test events. */
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

  /** How many events have a higher number, except test events, counted up to `countMax`, and the time of the first. */
  async waiting(
    number: number,
    countMax: number,
  ): Promise<{ readonly count: number; readonly oldestAtMs: number | null }> {
    const behind = this.#db.selectFrom('events').where('number', '>', number).where('type', '!=', 'test')
    const first = await behind.select('at_ms').orderBy('number').limit(1).executeTakeFirst()
    if (first === undefined) return { count: 0, oldestAtMs: null }
    const { total } = await this.#db
      .selectFrom(behind.select('number').limit(countMax).as('some'))
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    return { count: Number(total), oldestAtMs: first.at_ms }
  }

  /** The highest number; 0 before the first event. */
  async last(): Promise<number> {
    const newest = this.#db.selectFrom('events').select('number').orderBy('number', 'desc').limit(1)
    return (await newest.executeTakeFirst())?.number ?? 0
  }

  /** About these apps, newest first, except test events. */
  async list<Asked extends Part>(
    part: Asked,
    { types, categories, agents, apps, severities, minConfidence, sinceMs, untilMs, caseId }: EventListFilter,
    scope: AppScope,
  ): Promise<PartOf<EventRecord, Asked>> {
    if (scope !== ALL_APPS && scope.size === 0) return noPart(part)
    let found = this.#db.selectFrom('events').where('type', '!=', 'test')
    if (scope !== ALL_APPS) found = found.where('app', 'in', [...scope])
    if (types.length > 0) found = found.where('type', 'in', types)
    if (categories.length > 0) found = found.where('category', 'in', categories)
    if (agents.length > 0) found = found.where('agent', 'in', agents)
    if (apps.length > 0) found = found.where('app', 'in', apps)
    if (severities !== null)
      found = found.where(({ eb, or }) => or([eb('severity', 'is', null), eb('severity', 'in', severities)]))
    if (minConfidence !== null)
      found = found.where(({ eb, or }) =>
        or([eb('confidence', 'is', null), eb('confidence', '>=', minConfidence)]),
      )
    if (caseId !== null) found = found.where('case_id', '=', caseId)
    if (sinceMs !== null) found = found.where('at_ms', '>=', sinceMs)
    if (untilMs !== null) found = found.where('at_ms', '<', untilMs)
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, eventRecord)
  }

  /** The number up to which events were deleted, and the highest number ever. Kept events are in between. */
  async kept(): Promise<KeptEvents> {
    const mark = this.#db.selectFrom('event_positions').select('number').where('name', '=', FORGOTTEN)
    const forgotten = (await mark.executeTakeFirst())?.number ?? 0
    return { forgotten, last: Math.max(forgotten, await this.last()) }
  }

  /**
   * A number that all events since `sinceMs` follow, and a few older ones; `null`: there are no such events.
   */
  async before(sinceMs: number): Promise<number | null> {
    // Numbers and times increase almost together. Clocks differ, and an earlier event may be stored later.
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
   * Deletes events that are too old or exceed `keptMax`, in order, at most `rowsMax`. An event that is kept
   * also keeps those after it. Resolves to the number of deleted events.
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

/** Empty lists and `null` match everything. */
export interface EventListFilter {
  readonly types: readonly EventType[]
  readonly categories: readonly string[]
  readonly agents: readonly string[]
  readonly apps: readonly string[]
  /** Events without a severity match too. The same holds for `minConfidence`. */
  readonly severities: readonly Severity[] | null
  readonly minConfidence: number | null
  readonly sinceMs: number | null
  /** Exclusive. */
  readonly untilMs: number | null
  readonly caseId: string | null
}

interface KeptEvents {
  readonly forgotten: number
  readonly last: number
}

function rowOf({ atMs, ...event }: NewEvent, cases: CasesOfEvents) {
  const { id, type, subject, agent, category, severity, confidence, app, data } = event
  const own = { id, type, subject, agent, category, severity, confidence, app, data }
  return { ...own, at_ms: atMs, case_id: cases.get(id) ?? null }
}

export function eventRecord({ at_ms: atMs, case_id: _, ...row }: Selectable<EventTable>): EventRecord {
  return { ...row, atMs }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'events.at_ms', kind: 'whole' },
    { name: 'events.number', kind: 'whole' },
  ],
  isDescending: true,
}
const NO_CASES: ReadonlyMap<string, string> = new Map()
/** More events than arrive within any difference of clocks. */
const NEARLY = 1_000
/** No sink has this name. */
const FORGOTTEN = 'forgotten'
