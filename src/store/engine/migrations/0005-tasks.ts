import type { Migration } from '../migration.ts'

export const tasks: Migration = async (db, { integer }) => {
  await db.schema
    .createTable('tasks')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('principal', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('total', integer, (column) => column.notNull())
    .addColumn('completed', integer, (column) => column.notNull())
    .addColumn('failed', integer, (column) => column.notNull())
    .addColumn('created_at_ms', integer, (column) => column.notNull())
    .addColumn('started_at_ms', integer)
    .addColumn('finished_at_ms', integer)
    .addColumn('lease_owner', 'text')
    .addColumn('lease_until_ms', integer)
    .addColumn('attempts', integer, (column) => column.notNull())
    .addColumn('error', 'text')
    .execute()
  await db.schema
    .createIndex('tasks_by_status')
    .on('tasks')
    .columns(['status', 'created_at_ms', 'id'])
    .execute()
  await db.schema
    .createIndex('tasks_by_principal')
    .on('tasks')
    .columns(['principal', 'created_at_ms', 'id'])
    .execute()
  await db.schema
    .createIndex('tasks_by_end')
    .on('tasks')
    .column('finished_at_ms')
    .where('finished_at_ms', 'is not', null)
    .execute()
  await db.schema
    .createTable('task_chunks')
    .addColumn('task_id', 'text', (column) => column.notNull().references('tasks.id').onDelete('cascade'))
    .addColumn('number', integer, (column) => column.notNull())
    .addColumn('from_item', integer, (column) => column.notNull())
    .addColumn('items', 'text', (column) => column.notNull())
    .addColumn('results', 'text')
    .addPrimaryKeyConstraint('task_chunks_pk', ['task_id', 'number'])
    .execute()
}
