import type { Migration } from '../migration.ts'

export const policies: Migration = async (db, { integer }) => {
  await db.schema
    .createTable('policies')
    .addColumn('version', integer, (column) => column.primaryKey())
    .addColumn('document', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .addColumn('author', 'text', (column) => column.notNull())
    .addColumn('restored_version', integer)
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .execute()
}
