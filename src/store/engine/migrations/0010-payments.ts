import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** The ledger of payments. */
export const payments: Migration = async (db, { integer, key }) => {
  const [whole, text] = [sql.raw(integer), sql.raw(key)]
  await sql`create table payments (
    id ${text} primary key, identity ${text} not null unique, scheme ${text} not null, state ${text} not null,
    app ${text} not null, rule ${text} not null, account ${text} not null, agent ${text}, key ${text}, payer ${text},
    host ${text} not null, path ${text} not null, amount ${whole} not null, currency ${text} not null,
    network ${text}, asset ${text}, transaction_id ${text}, why ${text}, purposes text not null, license ${text},
    decision_id ${text} not null, created_at_ms ${whole} not null, day ${whole} not null,
    lease_until_ms ${whole} not null, settled_at_ms ${whole}, served_at_ms ${whole}, pass_until_ms ${whole} not null,
    refunded_at_ms ${whole}, refund_note text)`.execute(db)
  await sql`create index payments_by_time on payments (created_at_ms, id)`.execute(db)
  await sql`create index payments_by_account on payments (account, day)`.execute(db)
  await sql`create index payments_by_key on payments (key, pass_until_ms)`.execute(db)
}
