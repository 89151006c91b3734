import { type Kysely, sql } from 'kysely'
import type { ColumnTypes, Migration } from '../migration.ts'
import type { Tables } from '../tables.ts'

export const catalogue: Migration = async (db, types) => {
  await software(db, types)
  await signatures(db, types)
  await db.schema
    .createTable('catalogue_state')
    .addColumn('id', types.integer, (column) => column.primaryKey())
    .addColumn('hash', 'text', (column) => column.notNull())
    .addColumn('merged_at_ms', types.integer, (column) => column.notNull())
    .execute()
}

async function software(db: Kysely<Tables>, { integer, key }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('software')
    .addColumn('id', key, (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('category', 'text')
    .addColumn('description', 'text')
    .addColumn('search', 'text', (column) => column.notNull())
    .addColumn('document', 'text', (column) => column.notNull())
    .addColumn('origin', 'text', (column) => column.notNull())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .execute()
  await db.schema
    .createTable('software_names')
    .addColumn('name', key, (column) => column.primaryKey())
    .addColumn('software_id', key, (column) => column.notNull())
    .execute()
  await db.schema
    .createIndex('software_names_by_software')
    .on('software_names')
    .column('software_id')
    .execute()
}

async function signatures(db: Kysely<Tables>, { integer, real, key }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('signatures')
    .addColumn('type', key, (column) => column.notNull())
    .addColumn('value', key, (column) => column.notNull())
    .addColumn('software_id', key, (column) => column.notNull())
    .addColumn('part_b', key, (column) => column.notNull())
    .addColumn('part_c', key, (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('provenance', 'text', (column) => column.notNull())
    .addColumn('first_seen_ms', integer, (column) => column.notNull())
    .addColumn('observations', integer, (column) => column.notNull())
    .addColumn('confidence', real, (column) => column.notNull())
    .addPrimaryKeyConstraint('signatures_key', ['type', 'value', 'software_id'])
    .execute()
  const indexes = {
    signatures_by_software: ['software_id', 'type', 'value'],
    // For signatures with equal parts. Equal beginnings are adjacent in the primary key.
    signatures_by_part_b: ['type', 'part_b', 'part_c'],
    signatures_by_part_c: ['type', 'part_c', 'value'],
    // The sort orders of lists.
    signatures_by_time: ['first_seen_ms', 'type', 'value', 'software_id'],
    signatures_by_confidence: ['confidence', 'type', 'value', 'software_id'],
    signatures_by_observations: ['observations', 'type', 'value', 'software_id'],
  } as const
  for (const [name, columns] of Object.entries(indexes))
    await db.schema
      .createIndex(name)
      .on('signatures')
      .columns([...columns])
      .execute()
  // Few signatures come from the API or from live traffic.
  await db.schema
    .createIndex('signatures_made_here')
    .on('signatures')
    .columns(['type', 'value', 'software_id'])
    .where(sql<boolean>`source <> 'builtin'`)
    .execute()
}
