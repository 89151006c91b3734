import { sql } from 'kysely'
import type { Migration } from '../migration.ts'

/** Sightings have the calls of MCP servers. Earlier ones have none. */
export const mcpCalls: Migration = async (db) => {
  for (const column of ['mcp_method', 'mcp_tool'])
    await sql.raw(`alter table sightings add column ${column} text`).execute(db)
}
