import type { Migration } from '../migration.ts'

export const keys: Migration = async (db, { integer }) => {
  await db.schema
    .createTable('api_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('plan', 'text', (column) => column.notNull())
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .addColumn('expires_at_ms', integer)
    .addColumn('revoked_at_ms', integer)
    .addColumn('last_used_at_ms', integer)
    .execute()
  await db.schema
    .createTable('audit')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('at_ms', integer, (column) => column.notNull())
    .addColumn('principal', 'text', (column) => column.notNull())
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('subject', 'text')
    .addColumn('detail', 'text', (column) => column.notNull())
    .addColumn('address', 'text')
    .addColumn('request_id', 'text')
    .execute()
  await db.schema.createIndex('audit_by_time').on('audit').columns(['at_ms', 'id']).execute()
}
