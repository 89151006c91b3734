import type { Migration } from '../migration.ts'

export const openid: Migration = async (db, { key }) => {
  await db.schema.alterTable('users').addColumn('openid_issuer', key).execute()
  await db.schema.alterTable('users').addColumn('openid_subject', key).execute()
  await db.schema
    .createIndex('users_by_openid')
    .unique()
    .on('users')
    .columns(['openid_issuer', 'openid_subject'])
    .execute()
}
