import { writeFileSync } from 'node:fs'
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { COLUMN_TYPES, MIGRATIONS } from '../../src/store/engine/migrations.ts'
import type { Tables } from '../../src/store/engine/tables.ts'
import { KINDS } from './databases.ts'

/**
 * What every migration says to a database. It is held against the files beside this one: what has been released is
 * never changed. `node test/store/migration-text.ts` writes them anew, where it is not released yet.
 */
export async function migrationText(kind: DatabaseKind): Promise<string> {
  const lines: string[] = []
  const isSqlite = kind === 'sqlite'
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => (isSqlite ? new SqliteAdapter() : new PostgresAdapter()),
      createDriver: () => new DummyDriver(),
      createIntrospector: (kysely) =>
        isSqlite ? new SqliteIntrospector(kysely) : new PostgresIntrospector(kysely),
      createQueryCompiler: () => (isSqlite ? new SqliteQueryCompiler() : new PostgresQueryCompiler()),
    },
    // A migration may read which columns are missing.
    log: ({ query }) => void (/^(?:select|with) /.test(query.sql) || lines.push(`${query.sql};`)),
  })
  for (const [name, migration] of MIGRATIONS) {
    lines.push(`-- ${name}`)
    await migration(db, COLUMN_TYPES[kind])
  }
  return `${lines.join('\n')}\n`
}

export function fileOf(kind: DatabaseKind): URL {
  return new URL(`./migrations.${kind}.sql`, import.meta.url)
}

if (import.meta.main) for (const kind of KINDS) writeFileSync(fileOf(kind), await migrationText(kind))
