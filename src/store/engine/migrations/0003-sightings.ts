import type { Migration } from '../migration.ts'

export const sightings: Migration = async (db, { integer, real, key }) => {
  await db.schema
    .createTable('sightings')
    .addColumn('number', integer === 'bigint' ? 'bigserial' : integer, (column) =>
      integer === 'bigint' ? column.primaryKey() : column.primaryKey().autoIncrement(),
    )
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('seen_at_ms', integer, (column) => column.notNull())
    .addColumn('document', 'text', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('sightings_taken')
    .addColumn('slot', 'text', (column) => column.primaryKey())
    .addColumn('ranges', 'text', (column) => column.notNull())
    .addColumn('taken_at_ms', integer, (column) => column.notNull())
    .execute()
  await db.schema
    .createIndex('sightings_taken_by_time')
    .on('sightings_taken')
    .columns(['taken_at_ms', 'slot'])
    .execute()
  await db.schema
    .createTable('rollups')
    .addColumn('grain_ms', integer, (column) => column.notNull())
    .addColumn('dimension', 'text', (column) => column.notNull())
    .addColumn('at_ms', integer, (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('requests', integer, (column) => column.notNull())
    .addColumn('agents', integer, (column) => column.notNull())
    .addColumn('blocked', integer, (column) => column.notNull())
    .addPrimaryKeyConstraint('rollups_key', ['grain_ms', 'dimension', 'at_ms', 'key'])
    .execute()
  await db.schema
    .createTable('fingerprints_seen')
    .addColumn('type', key, (column) => column.notNull())
    .addColumn('value', key, (column) => column.notNull())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .addColumn('last_seen_ms', integer, (column) => column.notNull())
    .addColumn('requests', integer, (column) => column.notNull())
    .addColumn('addresses', integer, (column) => column.notNull())
    .addColumn('sketch', 'text', (column) => column.notNull())
    .addColumn('is_named', 'integer', (column) => column.notNull())
    .addColumn('rank', real, (column) => column.notNull())
    .addPrimaryKeyConstraint('fingerprints_seen_key', ['type', 'value'])
    .execute()
  await db.schema
    .createIndex('fingerprints_seen_by_rank')
    .on('fingerprints_seen')
    .columns(['rank', 'type', 'value'])
    .execute()
  await db.schema
    .createIndex('fingerprints_seen_by_time')
    .on('fingerprints_seen')
    .columns(['last_seen_ms', 'type', 'is_named'])
    .execute()
  await db.schema
    .createTable('agents_seen')
    .addColumn('software_id', key, (column) => column.primaryKey())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .addColumn('last_seen_ms', integer, (column) => column.notNull())
    .addColumn('requests', integer, (column) => column.notNull())
    .execute()
}
