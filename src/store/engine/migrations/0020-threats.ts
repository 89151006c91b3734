import type { Migration } from '../migration.ts'

export const threats: Migration = async (db, { integer, key }) => {
  await db.schema
    .createTable('threat_windows')
    .addColumn('key', key, (column) => column.primaryKey())
    .addColumn('topic', 'text', (column) => column.notNull())
    .addColumn('ends_at_ms', integer, (column) => column.notNull())
    .addColumn('count', integer, (column) => column.notNull())
    .addColumn('since_ms', integer, (column) => column.notNull())
    .addColumn('until_ms', integer, (column) => column.notNull())
    .addColumn('event', 'text', (column) => column.notNull())
    .execute()
  await db.schema
    .createIndex('threat_windows_by_end')
    .on('threat_windows')
    .columns(['ends_at_ms', 'key'])
    .execute()
  await db.schema
    .createTable('event_storms')
    .addColumn('topic', key, (column) => column.primaryKey())
    .addColumn('minute_ms', integer, (column) => column.notNull())
    .addColumn('told', integer, (column) => column.notNull())
    .addColumn('count', integer, (column) => column.notNull())
    .addColumn('since_ms', integer, (column) => column.notNull())
    .addColumn('until_ms', integer, (column) => column.notNull())
    .addColumn('addresses', 'text', (column) => column.notNull())
    .addColumn('fingerprints', 'text', (column) => column.notNull())
    .addColumn('examples', 'text', (column) => column.notNull())
    .addColumn('event', 'text', (column) => column.notNull())
    .execute()
}
