import { type Kysely, type RawBuilder, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { DeliveryOutcome } from '../engine/tables/deliveries.ts'
import type { EventType } from '../engine/tables/events.ts'
import type { Tables } from '../engine/tables.ts'

export interface NewDelivery {
  readonly id: string
  readonly webhookId: string
  readonly eventNumber: number
  /** In whose line it waits for its turn; `null`: in none. */
  readonly lane: string | null
  /** Before which others it is sent: since when it could have been. */
  readonly nextAtMs: number
}

/** One that is to be sent now, by whoever holds it. */
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

/** What stands in it goes to one webhook, one after the other. */
export interface Line {
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

/** What came of sending it once. */
export interface DeliveryAttempt {
  readonly atMs: number
  readonly durationMs: number
  /** Of the answer; `null`: there was none. */
  readonly status: number | null
  /** `null`: it was taken. */
  readonly error: string | null
  /** How the answer begins, as plain text. */
  readonly response: string
}

/** Where it stands after an attempt. */
export interface DeliveryTold {
  readonly delivery: DueDelivery
  readonly attempts: number
  readonly log: readonly DeliveryAttempt[]
  /** `null`: it is tried again. */
  readonly outcome: DeliveryOutcome | null
  readonly atMs: number
  /** `null`: there is no other attempt. */
  readonly nextAtMs: number | null
  /** Those behind it in its line need not wait for it any longer. */
  readonly isOutOfLine: boolean
}

/** For whom to hold how many, and until when nobody else gets them. */
export interface DeliveryClaim {
  readonly webhookId: string
  readonly holder: string
  readonly limit: number
  readonly nowMs: number
  readonly untilMs: number
}

/**
 * What is to be sent. To one webhook what is about one subject stands in a line, in the order of events: the first of
 * it has a time at which it is due, those behind it have none until it is their turn. A webhook's lines are changed by who
 * has locked it (WebhookHealthStore) only.
 */
export class DeliveryStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** Their webhooks are locked. */
  async add(deliveries: readonly NewDelivery[], nowMs: number, queries: Queries): Promise<void> {
    const led = await ledLines(deliveries, queries)
    const inOrder = deliveries.toSorted((one, other) => one.eventNumber - other.eventNumber)
    const rows = inOrder.map(({ id, webhookId, eventNumber, lane, nextAtMs }) => {
      const place = `${webhookId} ${lane}`
      const waits = lane !== null && led.has(place)
      if (lane !== null) led.add(place)
      return {
        ...{ id, webhook_id: webhookId, event_number: eventNumber, lane, created_at_ms: nowMs },
        ...{ next_at_ms: waits ? null : nextAtMs, holder: null, attempts: 0, log: '[]' },
        ...{ outcome: null, finished_at_ms: null },
      }
    })
    for (const part of parts(rows)) await queries.insertInto('deliveries').values(part).execute()
  }

  /** Those that are due, longest first, in the order of events. */
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
        ...{ ...row, webhookId: webhook_id, createdAtMs: created_at_ms, holder },
        event: events.get(event_number)!,
        log: attemptsIn(log),
      }))
  }

  /** What somebody else has taken for lost, and holds, is left to him. Their webhooks are locked. */
  async finish(told: readonly DeliveryTold[], nowMs: number, queries: Queries): Promise<void> {
    for (const part of parts(told)) await write(part, queries)
    const left = told.flatMap(({ delivery: { webhookId, lane }, isOutOfLine }) =>
      isOutOfLine && lane !== null ? [{ webhookId, lane }] : [],
    )
    await this.callNext(left, nowMs, queries)
  }

  /** These, or whatever anybody holds (`null`), are due again. */
  async release(held: readonly DueDelivery[] | null, nowMs: number): Promise<void> {
    const all = this.#db
      .updateTable('deliveries')
      .set({ holder: null, next_at_ms: nowMs })
      .where('finished_at_ms', 'is', null)
    if (held === null) await all.where('holder', 'is not', null).execute()
    else
      for (const { id, holder } of held) await all.where('id', '=', id).where('holder', '=', holder).execute()
  }

  /** What waits for a retry is due at once. */
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

  /** Lines whose first has gone, as events are forgotten with all that was to be told of them. */
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

  /** The next of each of these lines that have nobody at their head is due; their webhooks are locked. */
  async callNext(lines: readonly Line[], nowMs: number, queries: Queries): Promise<void> {
    for (const part of parts(lines)) await callNext(part, nowMs, queries)
  }

  /** By webhook. */
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

/** For people to read: one that is damaged is begun anew, and holds nothing up. */
export function attemptsIn(text: string): readonly DeliveryAttempt[] {
  try {
    const log = JSON.parse(text) as unknown
    return Array.isArray(log) ? (log as DeliveryAttempt[]) : []
  } catch {
    return []
  }
}

/** Of these lines those in which somebody is first already. */
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

/** One text for so many as there may be: the last of them as often as it takes. */
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

/** PostgreSQL wants to know of what kind values are that stand in no table. */
function text(value: string | null): RawBuilder<unknown> {
  return sql`cast(${value} as text)`
}

function number(value: number | null): RawBuilder<unknown> {
  return sql`cast(${value} as bigint)`
}
