import { sql } from 'kysely'
import { kindOf } from '../database.ts'
import type { Migration } from '../migration.ts'

/**
 * Each transaction writes the fingerprints that it has seen. With an index on what changes, PostgreSQL adds a row to
 * every index each time, and each look reads those of before. Both queries that used the indexes read most of the rows.
 */
export const fingerprints: Migration = async (db) => {
  await sql`drop index fingerprints_seen_by_time`.execute(db)
  await sql`drop index fingerprints_seen_by_rank`.execute(db)
  // Room for a new version of each row beside the old one.
  if (kindOf(db) === 'postgres') await sql`alter table fingerprints_seen set (fillfactor = 50)`.execute(db)
}
