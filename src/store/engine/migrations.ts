import { type Kysely, sql, type Transaction } from 'kysely'
import { Fault } from '../../shared/fault.ts'
import type { DatabaseKind } from './database.ts'
import type { ColumnTypes, Migration } from './migration.ts'
import { keys } from './migrations/0001-keys.ts'
import { catalogue } from './migrations/0002-catalogue.ts'
import { sightings } from './migrations/0003-sightings.ts'
import { submissions } from './migrations/0004-submissions.ts'
import { tasks } from './migrations/0005-tasks.ts'
import { webhooks } from './migrations/0006-webhooks.ts'
import { rateLimits } from './migrations/0007-rate-limits.ts'
import { policies } from './migrations/0008-policies.ts'
import { agentVersions } from './migrations/0009-agent-versions.ts'
import { decisive } from './migrations/0010-decisive.ts'
import { oauth } from './migrations/0011-oauth.ts'
import { gnap } from './migrations/0012-gnap.ts'
import { trust } from './migrations/0013-trust.ts'
import { users } from './migrations/0014-users.ts'
import { ownAccounts } from './migrations/0015-own-accounts.ts'
import { passkeys } from './migrations/0016-passkeys.ts'
import { openid } from './migrations/0017-openid.ts'
import { taskCallbacks } from './migrations/0018-task-callbacks.ts'
import { events } from './migrations/0019-events.ts'
import { threats } from './migrations/0020-threats.ts'
import { deliveries } from './migrations/0021-deliveries.ts'
import { eventPositions } from './migrations/0022-event-positions.ts'
import { managers } from './migrations/0023-managers.ts'
import type { Tables } from './tables.ts'

/**
 * Applies the missing migrations: all or none, in one process at a time. If none are missing, it only
 * reads, which needs no write permission. Throws a Fault if a later version has written the database,
 * or if permissions are missing.
 */
export async function migrate(
  db: Kysely<Tables>,
  kind: DatabaseKind,
  migrations: ReadonlyMap<string, Migration> = MIGRATIONS,
): Promise<readonly string[]> {
  if (missingIn(await migrationsDone(db, kind), migrations).length === 0) return []
  try {
    return await db.transaction().execute((transaction) => addMissing(transaction, kind, migrations))
  } catch (error) {
    if (!isForbidden(error)) throw error
    throw new Fault(
      'STORE_TOO_OLD',
      'the tables are missing, or of an earlier version, and this user may not change them: run "gatehouse migrate" as their owner',
      { cause: error },
    )
  }
}

/** The migrations that were applied. */
export async function migrationsDone(db: Kysely<Tables>, kind: DatabaseKind): Promise<readonly string[]> {
  const { rows: tables } = await (kind === 'postgres'
    ? sql`select 1 where to_regclass('migrations') is not null`
    : sql`select 1 from sqlite_schema where name = 'migrations'`
  ).execute(db)
  if (tables.length === 0) return []
  const { rows } = await sql<{ name: string }>`select name from migrations order by name`.execute(db)
  return rows.map(({ name }) => name)
}

/** The number of missing migrations, and those of a later version. Changes nothing. */
export async function lookAtMigrations(
  db: Kysely<Tables>,
  kind: DatabaseKind,
): Promise<{ readonly missing: number; readonly unknown: readonly string[] }> {
  const done = await migrationsDone(db, kind)
  return {
    missing: [...MIGRATIONS.keys()].filter((name) => !done.includes(name)).length,
    unknown: done.filter((name) => !MIGRATIONS.has(name)),
  }
}

async function addMissing(
  db: Transaction<Tables>,
  kind: DatabaseKind,
  migrations: ReadonlyMap<string, Migration>,
): Promise<readonly string[]> {
  // SQLite's transaction locks the file by itself.
  if (kind === 'postgres') await sql`select pg_advisory_xact_lock(${LOCK})`.execute(db)
  await sql`create table if not exists migrations (name text primary key, at_ms ${sql.raw(COLUMN_TYPES[kind].integer)} not null)`.execute(
    db,
  )
  const missing = missingIn(await migrationsDone(db, kind), migrations)
  for (const [name, migration] of missing) {
    await migration(db, COLUMN_TYPES[kind])
    await sql`insert into migrations (name, at_ms) values (${name}, ${Date.now()})`.execute(db)
  }
  return missing.map(([name]) => name)
}

function missingIn(done: readonly string[], migrations: ReadonlyMap<string, Migration>) {
  const unknown = done.filter((name) => !migrations.has(name))
  if (unknown.length > 0)
    throw new Fault('STORE_TOO_NEW', `a later version has written this database (${unknown.join(', ')})`)
  return [...migrations].filter(([name]) => !done.includes(name))
}

/** SQLSTATE 42501, insufficient_privilege. */
function isForbidden(error: unknown): boolean {
  const cause = error instanceof Fault ? error.cause : error
  return (cause as { readonly code?: unknown } | undefined)?.code === '42501'
}

/** In the order of their application. */
export const MIGRATIONS: ReadonlyMap<string, Migration> = new Map([
  ['0001-keys', keys],
  ['0002-catalogue', catalogue],
  ['0003-sightings', sightings],
  ['0004-submissions', submissions],
  ['0005-tasks', tasks],
  ['0006-webhooks', webhooks],
  ['0007-rate-limits', rateLimits],
  ['0008-policies', policies],
  ['0009-agent-versions', agentVersions],
  ['0010-decisive', decisive],
  ['0011-oauth', oauth],
  ['0012-gnap', gnap],
  ['0013-trust', trust],
  ['0014-users', users],
  ['0015-own-accounts', ownAccounts],
  ['0016-passkeys', passkeys],
  ['0017-openid', openid],
  ['0018-task-callbacks', taskCallbacks],
  ['0019-events', events],
  ['0020-threats', threats],
  ['0021-deliveries', deliveries],
  ['0022-event-positions', eventPositions],
  ['0023-managers', managers],
])
export const COLUMN_TYPES: Readonly<Record<DatabaseKind, ColumnTypes>> = {
  sqlite: { integer: 'integer', real: 'real', bytes: 'blob', key: 'text' },
  postgres: {
    integer: 'bigint',
    real: 'double precision',
    bytes: 'bytea',
    key: sql`text collate "C"`,
  },
}
/** An arbitrary number that nothing else in the database uses. */
const LOCK = 7_164_201_911
