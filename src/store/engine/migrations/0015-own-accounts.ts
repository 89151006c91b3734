import type { Migration } from '../migration.ts'

export const ownAccounts: Migration = async (db, { integer, key }) => {
  await db.schema.alterTable('users').addColumn('disabled_at_ms', integer).execute()
  await db.schema.alterTable('gnap_grants').addColumn('decided_by', key).execute()
  await db.schema.alterTable('gnap_grants').addColumn('decided_at_ms', integer).execute()
  await db.schema.alterTable('gnap_tokens').addColumn('approved_by', key).execute()
  await db.schema.alterTable('gnap_tokens').addColumn('approved_at_ms', integer).execute()
  await db.schema.createIndex('gnap_tokens_by_approver').on('gnap_tokens').column('approved_by').execute()
}
