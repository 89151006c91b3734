import type { Migration } from '../migration.ts'

export const sightings: Migration = async (db, { integer }) => {
  await db.schema
    .createTable('fingerprints_seen')
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .addColumn('last_seen_ms', integer, (column) => column.notNull())
    .addColumn('requests', integer, (column) => column.notNull())
    .addColumn('addresses', integer, (column) => column.notNull())
    .addPrimaryKeyConstraint('fingerprints_seen_key', ['type', 'value'])
    .execute()
  await db.schema
    .createTable('agents_seen')
    .addColumn('software_id', 'text', (column) => column.primaryKey())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .addColumn('last_seen_ms', integer, (column) => column.notNull())
    .addColumn('requests', integer, (column) => column.notNull())
    .execute()
}
