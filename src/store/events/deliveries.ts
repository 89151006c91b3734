import { type Kysely, type RawBuilder, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { DeliveryOutcome } from '../engine/tables/deliveries.ts'
import type { EventType } from '../engine/tables/events.ts'
import type { Tables } from '../engine/tables.ts'

interface NewDelivery {
  readonly id: string
  readonly webhookId: string
  readonly eventNumber: number
  /** The queue in which it waits; `null`: none. */
  readonly lane: string | null
  /** The due time, which also orders deliveries. */
  readonly nextAtMs: number
}

/** A delivery that its holder sends now. */
export interface DueDelivery {
  readonly id: string
  readonly webhookId: string
  readonly lane: string | null
  readonly createdAtMs: number
  readonly attempts: number
  readonly log: readonly DeliveryAttempt[]
  readonly holder: string
  readonly event: DueEvent
}

/** A queue: its deliveries go to one webhook, one after the other. */
interface Line {
  readonly webhookId: string
  readonly lane: string
}

export interface DueEvent {
  readonly id: string
  readonly type: EventType
  readonly atMs: number
  /** JSON. */
  readonly data: string
}

/** The result of one attempt. */
export interface DeliveryAttempt {
  readonly atMs: number
  readonly durationMs: number
  /** The HTTP status; `null`: no response. */
  readonly status: number | null
  /** `null`: accepted. */
  readonly error: string | null
  /** The start of the response, as plain text. */
  readonly response: string
}

/** The state of a delivery after an attempt. */
export interface DeliveryTold {
  readonly delivery: DueDelivery
  readonly attempts: number
  readonly log: readonly DeliveryAttempt[]
  /** `null`: it is retried. */
  readonly outcome: DeliveryOutcome | null
  readonly atMs: number
  /** `null`: there is no further attempt. */
  readonly nextAtMs: number | null
  /** The deliveries behind it in its queue need not wait any longer. */
  readonly isOutOfLine: boolean
}

/** A claim of due deliveries. No other holder gets them before `untilMs`. */
interface DeliveryClaim {
  readonly webhookId: string
  readonly holder: string
  readonly limit: number
  readonly nowMs: number
  readonly untilMs: number
}

/**
 * Deliveries to send. Deliveries to one webhook about one subject form a queue in the order of events. The
 * first has a due time, and those behind it get one when it is their turn. Only the process that has locked a
 * webhook (WebhookHealthStore) changes its queues.
 */
export class DeliveryStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** The caller has locked their webhooks. */
  async add(deliveries: readonly NewDelivery[], nowMs: number, queries: Queries): Promise<void> {
    const led = await ledLines(deliveries, queries)
    const inOrder = deliveries.toSorted((one, other) => one.eventNumber - other.eventNumber)
    const rows = inOrder.map(({ id, webhookId, eventNumber, lane, nextAtMs }) => {
      const place = `${webhookId} ${lane}`
      const waits = lane !== null && led.has(place)
      if (lane !== null) led.add(place)
      return {
        id,
        webhook_id: webhookId,
        event_number: eventNumber,
        lane,
        created_at_ms: nowMs,
        next_at_ms: waits ? null : nextAtMs,
        holder: null,
        attempts: 0,
        log: '[]',
        outcome: null,
        finished_at_ms: null,
      }
    })
    for (const part of parts(rows)) await queries.insertInto('deliveries').values(part).execute()
  }

  /** The deliveries that have been due longest, in the order of events. */
  async claim(claim: DeliveryClaim, queries: Queries): Promise<readonly DueDelivery[]> {
    const { webhookId, holder, limit, nowMs, untilMs } = claim
    const isPostgres = this.#kind === 'postgres'
    const rows = await queries
      .with(
        (cte) => cte('due').materialized(),
        (from) => {
          const due = from
            .selectFrom('deliveries')
            .select('id')
            .where('webhook_id', '=', webhookId)
            .where('finished_at_ms', 'is', null)
            .where('next_at_ms', '<=', nowMs)
            .orderBy('next_at_ms')
            .orderBy('event_number')
            .limit(limit)
          return isPostgres ? due.forUpdate().skipLocked() : due
        },
      )
      .updateTable('deliveries')
      .set({ next_at_ms: untilMs, holder })
      .where('id', 'in', ({ selectFrom }) => selectFrom('due').select('due.id'))
      .returning(['id', 'webhook_id', 'event_number', 'lane', 'created_at_ms', 'attempts', 'log'])
      .execute()
    const events = await eventsOf(
      rows.map(({ event_number }) => event_number),
      queries,
    )
    return rows
      .toSorted((one, other) => one.event_number - other.event_number)
      .map(({ webhook_id, event_number, created_at_ms, log, ...row }) => ({
        ...row,
        webhookId: webhook_id,
        createdAtMs: created_at_ms,
        holder,
        event: events.get(event_number)!,
        log: attemptsIn(log),
      }))
  }

  /** Skips deliveries that another holder has claimed meanwhile. The caller has locked their webhooks. */
  async finish(told: readonly DeliveryTold[], nowMs: number, queries: Queries): Promise<void> {
    for (const part of parts(told)) await write(part, queries)
    const left = told.flatMap(({ delivery: { webhookId, lane }, isOutOfLine }) =>
      isOutOfLine && lane !== null ? [{ webhookId, lane }] : [],
    )
    await this.callNext(left, nowMs, queries)
  }

  /** Makes these deliveries due again; `null`: all claimed ones. */
  async release(held: readonly DueDelivery[] | null, nowMs: number): Promise<void> {
    const all = this.#db
      .updateTable('deliveries')
      .set({ holder: null, next_at_ms: nowMs })
      .where('finished_at_ms', 'is', null)
    if (held === null) await all.where('holder', 'is not', null).execute()
    else
      for (const { id, holder } of held) await all.where('id', '=', id).where('holder', '=', holder).execute()
  }

  /** Makes deliveries that wait for a retry due at once. */
  async hurry(webhookId: string, nowMs: number, queries: Queries): Promise<void> {
    await queries
      .updateTable('deliveries')
      .set({ next_at_ms: nowMs })
      .where('webhook_id', '=', webhookId)
      .where('finished_at_ms', 'is', null)
      .where('next_at_ms', '>', nowMs)
      .where('holder', 'is', null)
      .execute()
  }

  /** Queues whose first delivery was deleted, which happens when events are deleted. */
  async leftLines(limit: number): Promise<readonly Line[]> {
    const { rows } = await sql<{ webhook_id: string; lane: string }>`
      select distinct webhook_id, lane from deliveries
      where lane is not null and next_at_ms is null and finished_at_ms is null
      and not exists (
        select 1 from deliveries first where first.webhook_id = deliveries.webhook_id
        and first.lane = deliveries.lane and first.next_at_ms is not null)
      limit ${limit}`.execute(this.#db)
    return rows.map(({ webhook_id: webhookId, lane }) => ({ webhookId, lane }))
  }

  /** Makes the next delivery of each queue without a first one due. The caller has locked their webhooks. */
  async callNext(lines: readonly Line[], nowMs: number, queries: Queries): Promise<void> {
    for (const part of parts(lines)) await callNext(part, nowMs, queries)
  }

  /** The number of pending deliveries by webhook. */
  async pending(webhookIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (webhookIds.length === 0) return new Map()
    const rows = await this.#db
      .selectFrom('deliveries')
      .select(({ fn }) => ['webhook_id', fn.countAll<number>().as('count')])
      .where('webhook_id', 'in', webhookIds)
      .where('finished_at_ms', 'is', null)
      .groupBy('webhook_id')
      .execute()
    return new Map(rows.map(({ webhook_id, count }) => [webhook_id, Number(count)]))
  }

  async countPending(): Promise<{ readonly count: number; readonly oldestMs: number | null }> {
    const { count, oldest } = await this.#db
      .selectFrom('deliveries')
      .select(({ fn }) => [fn.countAll<number>().as('count'), fn.min('created_at_ms').as('oldest')])
      .where('finished_at_ms', 'is', null)
      .executeTakeFirstOrThrow()
    return { count: Number(count), oldestMs: oldest === null ? null : Number(oldest) }
  }
}

/** A damaged log starts empty, because it is only informative and must not block deliveries. */
export function attemptsIn(text: string): readonly DeliveryAttempt[] {
  try {
    const log = JSON.parse(text) as unknown
    return Array.isArray(log) ? (log as DeliveryAttempt[]) : []
  } catch {
    return []
  }
}

/** Which of these queues have a first delivery already. */
async function ledLines(deliveries: readonly NewDelivery[], queries: Queries): Promise<Set<string>> {
  const lines = new Map<string, Line>()
  for (const { webhookId, lane } of deliveries)
    if (lane !== null) lines.set(`${webhookId} ${lane}`, { webhookId, lane })
  const led = new Set<string>()
  for (const part of parts([...lines.values()])) {
    const { rows } = await sql<{ webhook_id: string; lane: string }>`
      with asked (webhook_id, lane) as (values ${linesIn(part)})
      select webhook_id, lane from asked where exists (
        select 1 from deliveries where deliveries.webhook_id = asked.webhook_id
        and deliveries.lane = asked.lane and deliveries.next_at_ms is not null)`.execute(queries)
    for (const { webhook_id, lane } of rows) led.add(`${webhook_id} ${lane}`)
  }
  return led
}

async function callNext(lines: readonly Line[], nowMs: number, queries: Queries): Promise<void> {
  await sql`
    with gone (webhook_id, lane) as (values ${linesIn(lines)})
    update deliveries set next_at_ms = ${nowMs} where id in (
      select (
        select waiting.id from deliveries waiting
        where waiting.webhook_id = gone.webhook_id and waiting.lane = gone.lane
        and waiting.next_at_ms is null and waiting.finished_at_ms is null
        order by waiting.next_at_ms, waiting.event_number, waiting.id limit 1)
      from gone where not exists (
        select 1 from deliveries first where first.webhook_id = gone.webhook_id
        and first.lane = gone.lane and first.next_at_ms is not null))`.execute(queries)
}

async function write(told: readonly DeliveryTold[], queries: Queries): Promise<void> {
  const rows = told.map(({ delivery, attempts, log, outcome, atMs, nextAtMs, isOutOfLine }) => {
    const finishedAtMs = outcome === null ? null : atMs
    const lane = isOutOfLine ? null : delivery.lane
    return sql`(${text(delivery.id)}, ${text(delivery.holder)}, ${number(attempts)}, ${text(JSON.stringify(log))},
      ${text(outcome)}, ${number(finishedAtMs)}, ${number(nextAtMs)}, ${text(lane)})`
  })
  await sql`
    with told (id, holder, attempts, log, outcome, finished_at_ms, next_at_ms, lane) as (values ${sql.join(rows)})
    update deliveries set holder = null, attempts = told.attempts, log = told.log, outcome = told.outcome,
      finished_at_ms = told.finished_at_ms, next_at_ms = told.next_at_ms, lane = told.lane
    from told where deliveries.id = told.id and deliveries.holder = told.holder`.execute(queries)
}

/** Pads the list to a power of two, so that there are few SQL texts. The last number is repeated. */
async function eventsOf(numbers: readonly number[], queries: Queries): Promise<Map<number, DueEvent>> {
  if (numbers.length === 0) return new Map()
  const size = 2 ** Math.ceil(Math.log2(numbers.length))
  const padded = Array.from({ length: size }, (_, index) => numbers[index] ?? numbers.at(-1)!)
  const rows = await queries
    .selectFrom('events')
    .select(['number', 'id', 'type', 'at_ms', 'data'])
    .where('number', 'in', padded)
    .execute()
  return new Map(rows.map(({ number, id, type, at_ms: atMs, data }) => [number, { id, type, atMs, data }]))
}

function linesIn(lines: readonly Line[]): RawBuilder<unknown> {
  return sql.join(lines.map(({ webhookId, lane }) => sql`(${text(webhookId)}, ${text(lane)})`))
}

/** PostgreSQL needs the type of a value that belongs to no table. */
function text(value: string | null): RawBuilder<unknown> {
  return sql`cast(${value} as text)`
}

function number(value: number | null): RawBuilder<unknown> {
  return sql`cast(${value} as bigint)`
}
