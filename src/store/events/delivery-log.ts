import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { attemptsIn, type DeliveryAttempt } from './deliveries.ts'
import { type EventRecord, eventRecord } from './events.ts'
import { isBehind, type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { DeliveryOutcome } from '../engine/tables/deliveries.ts'
import type { EventType } from '../engine/tables/events.ts'
import type { Tables } from '../engine/tables.ts'

/** A delivery as it is shown. */
export interface DeliveryRecord {
  readonly id: string
  readonly webhookId: string
  readonly eventId: string
  readonly eventNumber: number
  readonly type: EventType
  readonly eventAtMs: number
  readonly subject: string
  /** Whether others wait for it, or it for others. */
  readonly isInLine: boolean
  readonly isHeld: boolean
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly log: readonly DeliveryAttempt[]
  readonly createdAtMs: number
  readonly nextAtMs: number | null
  readonly finishedAtMs: number | null
}

export type DeliveryStatus = DeliveryOutcome | 'pending'

/** `null`: any. */
export interface DeliveryFilter {
  readonly webhookId: string
  readonly status: DeliveryStatus | null
  readonly sinceMs: number | null
  readonly untilMs: number | null
}

/** Which events are told once more. */
export interface ReplayedEvents {
  readonly webhookId: string
  readonly types: readonly EventType[]
  readonly sinceMs: number
  readonly untilMs: number
  /** Those behind this one; `null`: from the first on. */
  readonly after: Pick<EventRecord, 'number' | 'atMs'> | null
}

/** What was sent, and what is to be, for whoever looks at it, and wants some of it again. */
export class DeliveryLog {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async byId(id: string): Promise<DeliveryRecord | null> {
    const row = await this.#rows().where('deliveries.id', '=', id).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** Newest first. */
  async list<Asked extends Part>(
    { webhookId, status, sinceMs, untilMs }: DeliveryFilter,
    part: Asked,
  ): Promise<PartOf<DeliveryRecord, Asked>> {
    let found = this.#db.selectFrom('deliveries').where('deliveries.webhook_id', '=', webhookId)
    if (status === 'pending') found = found.where('finished_at_ms', 'is', null)
    else if (status !== null) found = found.where('outcome', '=', status)
    if (sinceMs !== null) found = found.where('created_at_ms', '>=', sinceMs)
    if (untilMs !== null) found = found.where('created_at_ms', '<', untilMs)
    const rows = found
      .innerJoin('events', 'events.number', 'deliveries.event_number')
      .selectAll('deliveries')
      .select(['events.id as event_id', 'events.type', 'events.at_ms', 'events.subject'])
    return partOf(found, rows, NEWEST_FIRST, part, record)
  }

  /**
   * It is sent again, before all others, and behind nobody: one that was finished anew, one that waits at once. Its
   * webhook is locked. One that is under way stays as it is.
   */
  async again(id: string, queries: Queries): Promise<void> {
    const own = queries.updateTable('deliveries').where('id', '=', id).where('holder', 'is', null)
    const finished = { outcome: null, finished_at_ms: null, attempts: 0, next_at_ms: FIRST_OF_ALL }
    await own.set(finished).where('finished_at_ms', 'is not', null).execute()
    const waiting = own.where('finished_at_ms', 'is', null)
    await waiting.where('next_at_ms', 'is', null).set({ next_at_ms: FIRST_OF_ALL, lane: null }).execute()
    await waiting.where('next_at_ms', 'is not', null).set({ next_at_ms: FIRST_OF_ALL }).execute()
  }

  /** Those that are not waiting to be delivered to it, oldest first. */
  async replayed(asked: ReplayedEvents, limit: number): Promise<readonly EventRecord[]> {
    const { webhookId, types, sinceMs, untilMs, after } = asked
    const rows = await this.#db
      .selectFrom('events')
      .selectAll()
      .where('at_ms', '>=', sinceMs)
      .where('at_ms', '<', untilMs)
      .where((where) => (after === null ? where.lit(true) : isBehind(BY_TIME, [after.atMs, after.number])))
      .where('type', 'in', types)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('deliveries')
              .select('deliveries.id')
              .whereRef('deliveries.event_number', '=', 'events.number')
              .where('deliveries.webhook_id', '=', webhookId)
              .where('deliveries.finished_at_ms', 'is', null),
          ),
        ),
      )
      .orderBy('at_ms')
      .orderBy('number')
      .limit(limit)
      .execute()
    return rows.map(eventRecord)
  }

  /** Forgets so many at most of what was finished before; resolves to how many they were. */
  async forget(beforeMs: number, rowsMax: number): Promise<number> {
    const oldest = this.#db.selectFrom('deliveries').select('id').where('finished_at_ms', '<', beforeMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('deliveries')
      .where('id', 'in', oldest.orderBy('finished_at_ms').limit(rowsMax))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  #rows() {
    return this.#db
      .selectFrom('deliveries')
      .innerJoin('events', 'events.number', 'deliveries.event_number')
      .selectAll('deliveries')
      .select(['events.id as event_id', 'events.type', 'events.at_ms', 'events.subject'])
  }
}

interface DeliveryRow {
  readonly id: string
  readonly webhook_id: string
  readonly event_number: number
  readonly event_id: string
  readonly type: EventType
  readonly at_ms: number
  readonly subject: string
  readonly lane: string | null
  readonly holder: string | null
  readonly outcome: DeliveryOutcome | null
  readonly attempts: number
  readonly log: string
  readonly created_at_ms: number
  readonly next_at_ms: number | null
  readonly finished_at_ms: number | null
}

function record(row: DeliveryRow): DeliveryRecord {
  const { id, type, subject, attempts } = row
  return {
    ...{ id, type, subject, attempts },
    webhookId: row.webhook_id,
    eventId: row.event_id,
    eventNumber: row.event_number,
    eventAtMs: row.at_ms,
    isInLine: row.lane !== null,
    isHeld: row.holder !== null,
    status: row.outcome ?? 'pending',
    log: attemptsIn(row.log),
    createdAtMs: row.created_at_ms,
    nextAtMs: row.next_at_ms,
    finishedAtMs: row.finished_at_ms,
  }
}

const BY_TIME: Order = {
  columns: [
    { name: 'events.at_ms', kind: 'whole' },
    { name: 'events.number', kind: 'whole' },
  ],
  isDescending: false,
}
/** When what is wanted at once is due: before anything else is. */
export const FIRST_OF_ALL = 0
const NEWEST_FIRST: Order = {
  columns: [
    { name: 'deliveries.created_at_ms', kind: 'whole' },
    { name: 'deliveries.id', kind: 'text' },
  ],
  isDescending: true,
}
