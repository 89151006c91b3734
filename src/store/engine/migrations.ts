import { type Kysely, sql, type Transaction } from 'kysely'
import { Fault } from '../../shared/fault.ts'
import type { DatabaseKind } from './database.ts'
import { lockUntilCommit } from './locks.ts'
import type { ColumnTypes, Migration } from './migration.ts'
import { schema } from './migrations/0001-schema.ts'
import { apps } from './migrations/0002-apps.ts'
import { auditApps } from './migrations/0003-audit-apps.ts'
import { traffic } from './migrations/0004-traffic.ts'
import { fingerprints } from './migrations/0005-fingerprints.ts'
import { sampled } from './migrations/0006-sampled.ts'
import { partitions } from './migrations/0007-partitions.ts'
import { appQuotas } from './migrations/0008-app-quotas.ts'
import { mcpCalls } from './migrations/0009-mcp-calls.ts'
import { payments } from './migrations/0010-payments.ts'
import { trafficOutbox } from './migrations/0011-traffic-outbox.ts'
import { policyComments } from './migrations/0012-policy-comments.ts'
import { cases } from './migrations/0013-cases.ts'
import type { Tables } from './tables.ts'

/**
 * Applies the missing migrations: all or none, in one process at a time. If none are missing, it only
 * reads, which needs no write permission. Throws a Fault if a later version or an unreleased one has
 * written the database, or if permissions are missing.
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

/** The number of missing migrations, and what prevents them. Changes nothing. */
export async function lookAtMigrations(
  db: Kysely<Tables>,
  kind: DatabaseKind,
): Promise<{ readonly missing: number; readonly obstacle: UpgradeObstacle | null }> {
  const done = await migrationsDone(db, kind)
  return {
    missing: [...MIGRATIONS.keys()].filter((name) => !done.includes(name)).length,
    obstacle: obstacleIn(done, MIGRATIONS),
  }
}

/** Why this version cannot use a database. */
export interface UpgradeObstacle {
  readonly code: 'STORE_TOO_NEW' | 'STORE_TOO_OLD'
  /** The subject is the database. */
  readonly what: string
  readonly fix: string
}

async function addMissing(
  db: Transaction<Tables>,
  kind: DatabaseKind,
  migrations: ReadonlyMap<string, Migration>,
): Promise<readonly string[]> {
  await lockUntilCommit(db, kind, 'migrations')
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
  const obstacle = obstacleIn(done, migrations)
  if (obstacle !== null) throw new Fault(obstacle.code, `the database ${obstacle.what}: ${obstacle.fix}`)
  return [...migrations].filter(([name]) => !done.includes(name))
}

function obstacleIn(
  done: readonly string[],
  migrations: ReadonlyMap<string, Migration>,
): UpgradeObstacle | null {
  const unknown = done.filter((name) => !migrations.has(name))
  if (unknown.length === 0) return null
  if (unknown.includes(UNRELEASED))
    return {
      code: 'STORE_TOO_OLD',
      what: `was written by a version before the first release (${unknown.at(-1)}), and cannot be upgraded`,
      fix: 'save what you need with that version (GET /v1/policy, /v1/signatures, /v1/settings), then start with a new database',
    }
  return {
    code: 'STORE_TOO_NEW',
    what: `was written by a later version (${unknown.join(', ')})`,
    fix: 'start that version, or restore a backup made by this one: there is no way back',
  }
}

/** SQLSTATE 42501, insufficient_privilege. */
function isForbidden(error: unknown): boolean {
  const cause = error instanceof Fault ? error.cause : error
  return (cause as { readonly code?: unknown } | undefined)?.code === '42501'
}

/** In the order of their application. */
export const MIGRATIONS: ReadonlyMap<string, Migration> = new Map([
  ['0001-schema', schema],
  ['0002-apps', apps],
  ['0003-audit-apps', auditApps],
  ['0004-traffic', traffic],
  ['0005-fingerprints', fingerprints],
  ['0006-sampled', sampled],
  ['0007-partitions', partitions],
  ['0008-app-quotas', appQuotas],
  ['0009-mcp-calls', mcpCalls],
  ['0010-payments', payments],
  ['0011-traffic-outbox', trafficOutbox],
  ['0012-policy-comments', policyComments],
  ['0013-cases', cases],
])
export const COLUMN_TYPES: Readonly<Record<DatabaseKind, ColumnTypes>> = {
  sqlite: {
    integer: 'integer',
    real: 'real',
    serial: 'integer primary key autoincrement',
    key: 'text',
    uuid: 'text',
  },
  postgres: {
    integer: 'bigint',
    real: 'double precision',
    serial: 'bigserial primary key',
    key: 'text collate "C"',
    uuid: 'uuid',
  },
}
/** The first migration of the versions before the first release. */
const UNRELEASED = '0001-keys'
