import { sql } from 'kysely'
import type { DatabaseKind, Queries } from './database.ts'

/** Waits for other processes, and holds the lock until the transaction ends. */
export async function lockUntilCommit(
  queries: Queries,
  kind: DatabaseKind,
  lock: keyof typeof LOCKS,
): Promise<void> {
  // SQLite's transaction locks the file by itself.
  if (kind === 'postgres') await sql`select pg_advisory_xact_lock(${LOCKS[lock]})`.execute(queries)
}

/** Arbitrary numbers that nothing else in the database uses (PostgreSQL advisory locks). */
export const LOCKS = {
  migrations: 7_164_201_911,
  sightings: 7_164_201_912,
  events: 7_164_201_913,
  leader: 7_164_201_914,
  gnapGrants: 7_164_201_915,
  trust: 7_164_201_916,
  webhooks: 7_164_201_917,
  oauthClients: 7_164_201_918,
  apps: 7_164_201_919,
} as const
