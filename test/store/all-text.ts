import { sql } from 'kysely'
import { openDatabase } from '../../src/store/engine/open-database.ts'

/** Every row of every table, as text. */
export async function allText(url: string): Promise<string> {
  const database = await openDatabase(url, null, async () => undefined)
  try {
    const tables = (await database.db.introspection.getTables()).map(({ name }) => name)
    const rows: unknown[] = []
    for (const table of tables) {
      const found = await sql`select * from ${sql.table(table)}`.execute(database.db)
      rows.push(table, ...found.rows)
    }
    return JSON.stringify(rows)
  } finally {
    await database.close()
  }
}
