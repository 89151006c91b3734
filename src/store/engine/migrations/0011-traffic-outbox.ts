import { sql } from 'kysely'
import { kindOf } from '../database.ts'
import type { Migration } from '../migration.ts'

/** Requests that wait for ClickHouse. */
export const trafficOutbox: Migration = async (db, { integer }) => {
  const bytes = kindOf(db) === 'postgres' ? 'bytea' : 'blob'
  const statements = [
    `create table traffic_outbox (last_number ${integer} primary key, requests ${integer} not null, lines ${bytes} not null)`,
    `create table traffic_outbox_state (id ${integer} primary key, last_number ${integer} not null, sending_until ${integer}, sent_number ${integer} not null)`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
