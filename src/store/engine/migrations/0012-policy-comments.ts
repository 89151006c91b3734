import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** Existing versions have no comment. */
export const policyComments: Migration = async (db) => {
  await sql`alter table policies add column comment text`.execute(db)
}
