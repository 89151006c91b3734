import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** Cases of threats. Earlier events belong to no case. */
export const cases: Migration = async (db, { integer, key }) => {
  const [whole, text] = [sql.raw(integer), sql.raw(key)]
  await sql`create table cases (
    id ${text} primary key, identity ${text} not null unique, app ${text}, reason ${text} not null,
    severity ${text} not null, campaign ${text}, agent ${text}, ja4 ${text}, address ${text},
    first_at_ms ${whole} not null, last_at_ms ${whole} not null, events ${whole} not null, requests ${whole} not null,
    status ${text} not null, version ${whole} not null, changed_at_ms ${whole}, changed_by ${text}, note text,
    feedback ${whole} not null)`.execute(db)
  await sql`create index cases_by_time on cases (last_at_ms, id)`.execute(db)
  await sql`alter table events add column case_id ${text}`.execute(db)
  await sql`create index events_by_case on events (case_id, at_ms, number) where case_id is not null`.execute(
    db,
  )
}
