import type { Migration } from '../migration.ts'

export const managers: Migration = async (db, { integer, key }) => {
  await db.schema
    .createTable('detections')
    .addColumn('id', key, (column) => column.primaryKey())
    .addColumn('at_ms', integer, (column) => column.notNull())
    .addColumn('document', 'text', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('detections_by_time').on('detections').column('at_ms').execute()
  await db.schema
    .createTable('traffic')
    .addColumn('process', key, (column) => column.primaryKey())
    .addColumn('at_ms', integer, (column) => column.notNull())
    .addColumn('document', 'text', (column) => column.notNull())
    .execute()
}
