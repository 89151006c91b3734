import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** Existing apps have no quota. */
export const appQuotas: Migration = async (db) => {
  await sql`alter table apps add column quota text`.execute(db)
}
