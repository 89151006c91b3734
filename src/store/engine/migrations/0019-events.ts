import type { Migration } from '../migration.ts'

export const events: Migration = async (db, { integer, real, key }) => {
  await db.schema
    .createTable('events')
    .addColumn('number', integer === 'bigint' ? 'bigserial' : integer, (column) =>
      integer === 'bigint' ? column.primaryKey() : column.primaryKey().autoIncrement(),
    )
    .addColumn('id', key, (column) => column.notNull().unique())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('at_ms', integer, (column) => column.notNull())
    .addColumn('subject', key, (column) => column.notNull())
    .addColumn('agent', 'text')
    .addColumn('category', 'text')
    .addColumn('severity', 'text')
    .addColumn('confidence', real)
    .addColumn('data', 'text', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('events_by_time').on('events').columns(['at_ms', 'number']).execute()
}
