import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** Entries of the audit log have the apps of what was changed. Existing entries belong to the whole installation. */
export const auditApps: Migration = async (db) => {
  await sql`alter table audit add column apps text not null default '"*"'`.execute(db)
}
