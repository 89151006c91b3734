import type { Migration } from '../migration.ts'

export const users: Migration = async (db, { integer, key }) => {
  await db.schema
    .createTable('users')
    .addColumn('id', key, (column) => column.primaryKey())
    .addColumn('email', key, (column) => column.notNull().unique())
    .addColumn('password', 'text')
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .addColumn('signed_in_since_ms', integer, (column) => column.notNull())
    .addColumn('totp', 'text')
    .addColumn('totp_step', integer)
    .execute()
  await db.schema
    .createTable('user_recovery_codes')
    .addColumn('user_id', key, (column) => column.notNull().references('users.id').onDelete('cascade'))
    .addColumn('hash', key, (column) => column.notNull())
    .addPrimaryKeyConstraint('user_recovery_codes_key', ['user_id', 'hash'])
    .execute()
  await db.schema.alterTable('oauth_records').addColumn('person_id', key).execute()
  await db.schema.createIndex('oauth_records_by_person_id').on('oauth_records').column('person_id').execute()
}
