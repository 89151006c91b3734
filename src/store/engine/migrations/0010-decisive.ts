import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const decisive: Migration = async (db) => {
  await db.schema
    .alterTable('signatures')
    .addColumn('is_decisive', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  await sql`update signatures set is_decisive = 1 where source = 'submitted' and type <> 'ja4s'`.execute(db)
}
