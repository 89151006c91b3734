import type { Migration } from '../migration.ts'

export const eventPositions: Migration = async (db, { integer, key }) => {
  await db.schema
    .createTable('event_positions')
    .addColumn('name', key, (column) => column.primaryKey())
    .addColumn('number', integer, (column) => column.notNull())
    .addColumn('holder', 'text')
    .addColumn('held_until_ms', integer, (column) => column.notNull())
    .execute()
  // Covers all columns that lists filter by. The long event data is read only for the rows that are shown.
  await db.schema.dropIndex('events_by_time').execute()
  await db.schema
    .createIndex('events_by_time')
    .on('events')
    .columns(['at_ms', 'number', 'type', 'category', 'agent', 'severity', 'confidence'])
    .execute()
}
