import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

export const taskCallbacks: Migration = async (db, { integer, key }) => {
  await db.schema
    .alterTable('tasks')
    .addColumn('changed_at_ms', integer, (column) => column.notNull().defaultTo(0))
    .execute()
  await db.schema.alterTable('tasks').addColumn('context_id', key).execute()
  await sql`update tasks set changed_at_ms = coalesce(finished_at_ms, started_at_ms, created_at_ms)`.execute(
    db,
  )
  await db.schema
    .createIndex('tasks_by_change')
    .on('tasks')
    .columns(['principal', 'changed_at_ms', 'id'])
    .execute()
  await db.schema
    .createTable('task_callbacks')
    .addColumn('task_id', 'text', (column) => column.notNull().references('tasks.id').onDelete('cascade'))
    .addColumn('id', key, (column) => column.notNull())
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('sealed', 'text')
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .addColumn('told', 'text', (column) => column.notNull())
    .addColumn('attempts', integer, (column) => column.notNull())
    .addColumn('next_at_ms', integer)
    .addColumn('error', 'text')
    .addPrimaryKeyConstraint('task_callbacks_pk', ['task_id', 'id'])
    .execute()
  await db.schema
    .createIndex('task_callbacks_by_next')
    .on('task_callbacks')
    .column('next_at_ms')
    .where('next_at_ms', 'is not', null)
    .execute()
}
