import type { Migration } from '../migration.ts'

export const catalogue: Migration = async (db, { integer, real }) => {
  await db.schema
    .createTable('software')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('category', 'text')
    .addColumn('document', 'text', (column) => column.notNull())
    .addColumn('origin', 'text', (column) => column.notNull())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('software_names')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('software_id', 'text', (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('signatures')
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('software_id', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('provenance', 'text', (column) => column.notNull())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .addColumn('observations', integer, (column) => column.notNull())
    .addColumn('confidence', real, (column) => column.notNull())
    .addPrimaryKeyConstraint('signatures_key', ['type', 'value', 'software_id'])
    .execute()
  await db.schema.createIndex('signatures_by_software').on('signatures').column('software_id').execute()
}
