import { type Kysely, type Selectable, sql } from 'kysely'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import type { Queries } from '../engine/database.ts'
import { noPart, type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedTexts } from '../engine/stored.ts'
import type { PaymentTable } from '../engine/tables/payments.ts'
import type { Tables } from '../engine/tables.ts'

/**
 * `open`: reserved, and not settled as far as is known. `paid`: settled. `owed`: on account, and served. `refused`: nothing
 * was paid. `refunded`: marked as paid back.
 */
export const PAYMENT_STATES = ['open', 'paid', 'owed', 'refused', 'refunded'] as const
export type PaymentState = (typeof PAYMENT_STATES)[number]

/** What is known of a payment when it is reserved. */
export interface PaymentDraft {
  readonly id: string
  readonly identity: string
  readonly scheme: string
  readonly app: string
  readonly rule: string
  readonly account: string
  readonly agent: string | null
  readonly key: string | null
  readonly payer: string | null
  readonly host: string
  readonly path: string
  /** In millionths of the currency. */
  readonly amount: number
  readonly currency: string
  readonly network: string | null
  readonly asset: string | null
  readonly purposes: readonly string[]
  readonly license: string | null
  readonly decisionId: string
  readonly createdAtMs: number
  readonly leaseUntilMs: number
  readonly passUntilMs: number
}

export interface PaymentRecord extends PaymentDraft {
  readonly state: PaymentState
  readonly transaction: string | null
  readonly why: string | null
  readonly settledAtMs: number | null
  readonly servedAtMs: number | null
  readonly refundedAtMs: number | null
  readonly refundNote: string | null
}

export interface Settlement {
  /** The name of the transfer; `null`: it is lost. */
  readonly transaction: string | null
  readonly settledAtMs: number
  /** 0: no pass. */
  readonly passUntilMs: number
}

export interface PaymentFilter {
  /** The apps whose payments may be seen. */
  readonly scope: AppScope
  /** `null` disables a filter, here and below. */
  readonly app: string | null
  readonly agent: string | null
  readonly state: PaymentState | null
  readonly scheme: string | null
  readonly sinceMs: number | null
  readonly untilMs: number | null
}

export type PaymentGroup = 'agent' | 'app' | 'day'

export interface PaymentSum {
  /** The agent, the app, or the day since 1970 (UTC); `null`: no proven agent. */
  readonly of: string | number | null
  readonly currency: string
  readonly state: PaymentState
  readonly payments: number
  /** In millionths. */
  readonly amount: number
}

/** The ledger. A payment is reserved by inserting its row, so that of any processes exactly one settles it. */
export class PaymentStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async byIdentity(identity: string): Promise<PaymentRecord | null> {
    const row = await this.#db
      .selectFrom('payments')
      .selectAll()
      .where('identity', '=', identity)
      .limit(1)
      .executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }

  async byId(id: string, queries: Queries = this.#db): Promise<PaymentRecord | null> {
    const row = await queries.selectFrom('payments').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }

  /** `taken`: it is known already. `over`: the account would spend more than `dayMax` by this rule on this day. */
  async reserve(draft: PaymentDraft, dayMax: number | null): Promise<'reserved' | 'taken' | 'over'> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('payments')
      .values(rowOf(draft))
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows !== 1n) return 'taken'
    // Its own row is in the sum, so parallel payments may all be refused, but never all pass.
    if (dayMax === null || (await this.#spent(draft)) <= dayMax) return 'reserved'
    await this.#db.deleteFrom('payments').where('id', '=', draft.id).execute()
    return 'over'
  }

  /** Takes over a payment that no request is using, and that none was served for. `false`: another was faster. */
  async takeOver(id: string, nowMs: number, leaseUntilMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('payments')
      .set({ lease_until_ms: leaseUntilMs })
      .where('id', '=', id)
      .where('served_at_ms', 'is', null)
      .where('state', 'in', ['open', 'paid', 'refused'])
      .where('lease_until_ms', '<=', nowMs)
      .executeTakeFirst()
    return numUpdatedRows === 1n
  }

  async settled(id: string, settlement: Settlement, queries: Queries = this.#db): Promise<void> {
    const { transaction, settledAtMs, passUntilMs } = settlement
    const done = { state: 'paid', transaction_id: transaction, settled_at_ms: settledAtMs, why: null }
    await queries
      .updateTable('payments')
      .set({ ...done, pass_until_ms: passUntilMs })
      .where('id', '=', id)
      .execute()
  }

  async refused(id: string, why: string): Promise<void> {
    const values = { state: 'refused', why, lease_until_ms: 0 }
    await this.#db
      .updateTable('payments')
      .set(values)
      .where('id', '=', id)
      .where('state', '=', 'open')
      .execute()
  }

  /** The payment may be used again at once. */
  async released(id: string): Promise<void> {
    const unserved = this.#db.updateTable('payments').where('id', '=', id).where('served_at_ms', 'is', null)
    await unserved.set({ lease_until_ms: 0 }).where('scheme', '!=', ON_ACCOUNT).execute()
    await unserved.set({ state: 'refused', why: 'not_served' }).where('scheme', '=', ON_ACCOUNT).execute()
  }

  /** The client got what it paid for. What is on account is owed from now on. */
  async served(id: string, nowMs: number): Promise<void> {
    const state = sql<string>`case when state = 'open' and scheme = ${ON_ACCOUNT} then 'owed' else state end`
    await this.#db
      .updateTable('payments')
      .set({ served_at_ms: nowMs, lease_until_ms: 0, state })
      .where('id', '=', id)
      .where('served_at_ms', 'is', null)
      .execute()
  }

  /** Until when a key has a pass of this rule; 0: none. */
  async passUntil(key: string, app: string, rule: string, nowMs: number): Promise<number> {
    const row = await this.#db
      .selectFrom('payments')
      .select('pass_until_ms')
      .where('key', '=', key)
      .where('pass_until_ms', '>', nowMs)
      .where('app', '=', app)
      .where('rule', '=', rule)
      .where('state', 'in', ['paid', 'owed'])
      .orderBy('pass_until_ms', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row?.pass_until_ms ?? 0
  }

  /** Newest first. */
  async list<Asked extends Part>(part: Asked, filter: PaymentFilter): Promise<PartOf<PaymentRecord, Asked>> {
    if (filter.scope !== ALL_APPS && filter.scope.size === 0) return noPart(part)
    const found = this.#filtered(filter)
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, recordOf)
  }

  /** What was paid, is owed or was refunded, the largest sums first. Of days, the latest first. */
  async sums(by: PaymentGroup, filter: PaymentFilter, rowsMax: number): Promise<readonly PaymentSum[]> {
    if (filter.scope !== ALL_APPS && filter.scope.size === 0) return []
    const grouped = this.#filtered(filter)
      .where('payments.state', 'in', ['paid', 'owed', 'refunded'])
      .select(({ fn, ref }) => [
        ref(`payments.${by}`).as('of'),
        'currency',
        'state',
        fn.countAll<number | string>().as('payments'),
        fn.sum<number | string>('amount').as('amount'),
      ])
      .groupBy([`payments.${by}`, 'currency', 'state'])
    const ordered = by === 'day' ? grouped.orderBy('payments.day', 'desc') : grouped.orderBy('amount', 'desc')
    const rows = await ordered.orderBy('currency').orderBy('state').limit(rowsMax).execute()
    return rows.map(({ of, currency, state, payments, amount }) => ({
      ...{ of, currency, state: state as PaymentState },
      payments: Number(payments),
      amount: Number(amount),
    }))
  }

  #filtered({ scope, app, agent, state, scheme, sinceMs, untilMs }: PaymentFilter) {
    let found = this.#db.selectFrom('payments')
    if (scope !== ALL_APPS) found = found.where('app', 'in', [...scope])
    if (app !== null) found = found.where('app', '=', app)
    if (agent !== null) found = found.where('agent', '=', agent)
    if (state !== null) found = found.where('state', '=', state)
    if (scheme !== null) found = found.where('scheme', '=', scheme)
    if (sinceMs !== null) found = found.where('created_at_ms', '>=', sinceMs)
    if (untilMs !== null) found = found.where('created_at_ms', '<', untilMs)
    return found
  }

  /** Ends its pass, too. `false`: nothing was paid or owed, or it is refunded already. */
  async refund(id: string, note: string | null, nowMs: number, queries: Queries): Promise<boolean> {
    const { numUpdatedRows } = await queries
      .updateTable('payments')
      .set({ state: 'refunded', refunded_at_ms: nowMs, refund_note: note, pass_until_ms: 0 })
      .where('id', '=', id)
      .where('state', 'in', ['paid', 'owed'])
      .executeTakeFirst()
    return numUpdatedRows === 1n
  }

  /** Deletes payments older than `beforeMs`, at most `rowsMax`. Resolves to their number. */
  async forget(beforeMs: number, rowsMax: number): Promise<number> {
    const oldest = this.#db.selectFrom('payments').select('id').where('created_at_ms', '<', beforeMs)
    const { numDeletedRows } = await this.#db
      .deleteFrom('payments')
      .where('id', 'in', oldest.orderBy('created_at_ms').orderBy('id').limit(rowsMax))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  async #spent({ account, app, rule, currency, createdAtMs }: PaymentDraft): Promise<number> {
    const { sum } = await this.#db
      .selectFrom('payments')
      .select(({ fn }) => fn.sum<number | string | null>('amount').as('sum'))
      .where('account', '=', account)
      .where('day', '=', dayOf(createdAtMs))
      .where('app', '=', app)
      .where('rule', '=', rule)
      .where('currency', '=', currency)
      .where('state', '!=', 'refused')
      .executeTakeFirstOrThrow()
    return Number(sum ?? 0)
  }
}

function rowOf(draft: PaymentDraft): PaymentTable {
  const { id, identity, scheme, app, rule, account, agent, key, payer, host, path, amount } = draft
  const { currency, network, asset, purposes, license, decisionId, createdAtMs } = draft
  return {
    ...{ id, identity, scheme, app, rule, account, agent, key, payer, host, path, amount, currency, network },
    ...{ asset, license, state: 'open', transaction_id: null, why: null },
    purposes: JSON.stringify(purposes),
    decision_id: decisionId,
    created_at_ms: createdAtMs,
    day: dayOf(createdAtMs),
    lease_until_ms: draft.leaseUntilMs,
    pass_until_ms: draft.passUntilMs,
    ...{ settled_at_ms: null, served_at_ms: null, refunded_at_ms: null, refund_note: null },
  }
}

function recordOf(row: Selectable<PaymentTable>): PaymentRecord {
  const { id, identity, scheme, app, rule, account, agent, key, payer, host, path, amount } = row
  const { currency, network, asset, license, why } = row
  return {
    ...{ id, identity, scheme, app, rule, account, agent, key, payer, host, path, amount, currency, network },
    ...{ asset, license, why },
    state: row.state as PaymentState,
    purposes: storedTexts(row.purposes),
    transaction: row.transaction_id,
    decisionId: row.decision_id,
    createdAtMs: row.created_at_ms,
    leaseUntilMs: row.lease_until_ms,
    settledAtMs: row.settled_at_ms,
    servedAtMs: row.served_at_ms,
    passUntilMs: row.pass_until_ms,
    refundedAtMs: row.refunded_at_ms,
    refundNote: row.refund_note,
  }
}

/** Of UTC, since 1970. */
function dayOf(atMs: number): number {
  return Math.floor(atMs / 86_400_000)
}

const ON_ACCOUNT = 'crawler-price'
const NEWEST_FIRST: Order = {
  columns: [
    { name: 'payments.created_at_ms', kind: 'whole' },
    { name: 'payments.id', kind: 'text' },
  ],
  isDescending: true,
}
