import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** Sightings have the share of the requests that they stand for. */
export const sampled: Migration = async (db, { real }) => {
  await sql.raw(`alter table sightings add column sampled ${real}`).execute(db)
}
