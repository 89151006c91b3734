import type { Migration } from '../migration.ts'

export const trust: Migration = async (db, { integer, key }) => {
  await db.schema
    .createTable('trust')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('subject', key, (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('plan', 'text', (column) => column.notNull())
    .addColumn('document', 'text')
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .execute()
  await db.schema.createIndex('trust_by_subject').on('trust').columns(['kind', 'subject']).unique().execute()
}
