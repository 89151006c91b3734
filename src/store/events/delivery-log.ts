import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { attemptsIn, type DeliveryAttempt } from './deliveries.ts'
import { type EventRecord, eventRecord } from './events.ts'
import { isBehind, type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { DeliveryOutcome } from '../engine/tables/deliveries.ts'
import type { EventType } from '../engine/tables/events.ts'
import type { Tables } from '../engine/tables.ts'

/** A delivery as the API shows it. */
export interface DeliveryRecord {
  readonly id: string
  readonly webhookId: string
  readonly eventId: string
  readonly eventNumber: number
  readonly type: EventType
  readonly eventAtMs: number
  readonly subject: string
  /** Whether it is in a queue. */
  readonly isInLine: boolean
  readonly isHeld: boolean
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly log: readonly DeliveryAttempt[]
  readonly createdAtMs: number
  readonly nextAtMs: number | null
  readonly finishedAtMs: number | null
}

type DeliveryStatus = DeliveryOutcome | 'pending'

/** `null`: any. */
interface DeliveryFilter {
  readonly webhookId: string
  readonly status: DeliveryStatus | null
  readonly sinceMs: number | null
  readonly untilMs: number | null
}

/** The events to deliver again. */
interface ReplayedEvents {
  readonly webhookId: string
  readonly types: readonly EventType[]
  readonly sinceMs: number
  readonly untilMs: number
  /** Only events after this one; `null`: from the first. */
  readonly after: Pick<EventRecord, 'number' | 'atMs'> | null
}

/** Past and pending deliveries, for the API to list and to repeat. */
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
   * Sends a delivery again, before all others and outside of its queue. A finished one starts anew, and a
   * waiting one is due at once. A claimed one is unchanged. The caller has locked the webhook.
   */
  async again(id: string, queries: Queries): Promise<void> {
    const own = queries.updateTable('deliveries').where('id', '=', id).where('holder', 'is', null)
    const finished = { outcome: null, finished_at_ms: null, attempts: 0, next_at_ms: FIRST_OF_ALL }
    await own.set(finished).where('finished_at_ms', 'is not', null).execute()
    const waiting = own.where('finished_at_ms', 'is', null)
    await waiting.where('next_at_ms', 'is', null).set({ next_at_ms: FIRST_OF_ALL, lane: null }).execute()
    await waiting.where('next_at_ms', 'is not', null).set({ next_at_ms: FIRST_OF_ALL }).execute()
  }

  /** The events without a pending delivery to the webhook, oldest first. */
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

  /** Deletes deliveries that finished before `beforeMs`, at most `rowsMax`. Resolves to their number. */
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
    id,
    type,
    subject,
    attempts,
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
/** The due time of repeated deliveries, which puts them first. */
export const FIRST_OF_ALL = 0
const NEWEST_FIRST: Order = {
  columns: [
    { name: 'deliveries.created_at_ms', kind: 'whole' },
    { name: 'deliveries.id', kind: 'text' },
  ],
  isDescending: true,
}
