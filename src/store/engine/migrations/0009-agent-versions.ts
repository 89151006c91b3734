import type { Migration } from '../migration.ts'

export const agentVersions: Migration = async (db) => {
  await db.schema
    .alterTable('agents_seen')
    .addColumn('versions', 'text', (column) => column.notNull().defaultTo('[]'))
    .execute()
}
