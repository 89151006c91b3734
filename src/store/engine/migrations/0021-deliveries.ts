import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const deliveries: Migration = async (db, { integer }) => {
  const counts = ['failures', 'pauses']
  for (const name of counts)
    await db.schema
      .alterTable('webhooks')
      .addColumn(name, integer, (column) => column.notNull().defaultTo(0))
      .execute()
  const times = ['failing_since_ms', 'paused_until_ms', 'last_delivery_at_ms', 'disabled_at_ms']
  for (const name of times) await db.schema.alterTable('webhooks').addColumn(name, integer).execute()
  for (const name of ['filters', 'disabled_reason'])
    await db.schema.alterTable('webhooks').addColumn(name, 'text').execute()
  await db.schema
    .createTable('deliveries')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('webhook_id', 'text', (column) =>
      column.notNull().references('webhooks.id').onDelete('cascade'),
    )
    .addColumn('event_number', integer, (column) =>
      column.notNull().references('events.number').onDelete('cascade'),
    )
    .addColumn('lane', 'text')
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .addColumn('next_at_ms', integer)
    .addColumn('holder', 'text')
    .addColumn('attempts', integer, (column) => column.notNull())
    .addColumn('log', 'text', (column) => column.notNull())
    .addColumn('outcome', 'text')
    .addColumn('finished_at_ms', integer)
    .execute()
  await db.schema
    .createIndex('deliveries_by_next')
    .on('deliveries')
    .columns(['webhook_id', 'next_at_ms', 'event_number', 'finished_at_ms'])
    .where(sql.ref('finished_at_ms'), 'is', null)
    .execute()
  await db.schema
    .createIndex('deliveries_by_turn')
    .on('deliveries')
    .columns(['webhook_id', 'lane', 'next_at_ms', 'event_number', 'id'])
    .where('lane', 'is not', null)
    .execute()
  await db.schema.createIndex('deliveries_by_event').on('deliveries').column('event_number').execute()
  await db.schema
    .createIndex('deliveries_by_time')
    .on('deliveries')
    .columns(['webhook_id', 'created_at_ms', 'id'])
    .execute()
  await db.schema
    .createIndex('deliveries_by_end')
    .on('deliveries')
    .column('finished_at_ms')
    .where('finished_at_ms', 'is not', null)
    .execute()
}
