import type { Migration } from '../migration.ts'

export const rateLimits: Migration = async (db, { integer }) => {
  await db.schema
    .createTable('rate_limits')
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('points', integer, (column) => column.notNull())
    .addColumn('ends_at_ms', integer, (column) => column.notNull())
    .execute()
}
