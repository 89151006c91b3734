import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { Fault } from '../fault.ts'
import type { Database } from './database.ts'
import type { Tables } from './tables.ts'

export async function openPostgres(url: string, password: string | null): Promise<Database> {
  const pool = new GuardedPool({
    connectionString: url,
    ...(password === null ? {} : { password }),
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'gatehouse',
    types: { getTypeParser },
  })
  // A connection that breaks while idle is replaced by the next query.
  pool.on('error', () => undefined)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  return {
    kind: 'postgres',
    db,
    backup: async () => {
      throw new Fault('STORE_BACKUP_ELSEWHERE', 'PostgreSQL is backed up by its own tools, like pg_dump')
    },
    close: () => db.destroy(),
  }
}

/** Its connections throw Faults for what the world did. */
class GuardedPool extends pg.Pool {
  override connect(): Promise<pg.PoolClient>
  override connect(callback: Parameters<pg.Pool['connect']>[0]): void
  override connect(callback?: Parameters<pg.Pool['connect']>[0]): Promise<pg.PoolClient> | undefined {
    if (callback === undefined) return super.connect().then(guardedClient, refused)
    super.connect(callback)
    return undefined
  }
}

const GUARDED = new WeakSet<pg.PoolClient>()

function guardedClient(client: pg.PoolClient): pg.PoolClient {
  if (GUARDED.has(client)) return client
  GUARDED.add(client)
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  client.query = ((...args: unknown[]) => {
    const result = query(...args)
    return result instanceof Promise ? result.catch(refused) : result
  }) as typeof client.query
  return client
}

/** What the world did is a Fault; a broken constraint or statement stays what it is. */
function refused(error: unknown): never {
  const { code, message } = error as { code?: unknown; message: string }
  const name = typeof code === 'string' ? code : ''
  for (const [form, fault, what] of FAULTS) {
    if (form.test(name) || (name === '' && form.test(message)))
      throw new Fault(fault, `${what} (${name === '' ? message : `${name}: ${message}`})`, { cause: error })
  }
  throw error
}

/** Whole numbers are below 2^53 by our own doing. */
const getTypeParser: typeof pg.types.getTypeParser = ((oid: number, format: 'text' | 'binary') =>
  oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC
    ? Number
    : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser

const FAULTS = [
  [/^53100$/, 'STORE_FULL', 'there is no room left for the database'],
  [/^(?:55P03|40001|40P01)$/, 'STORE_LOCKED', 'another program holds what this one needs'],
  [/^(?:28|3D)/, 'STORE_UNAVAILABLE', 'the database does not let us in'],
  [/^(?:08|57P|53)/, 'STORE_UNAVAILABLE', 'the database cannot be reached'],
  [/^(?:E[A-Z]+)$/, 'STORE_UNAVAILABLE', 'the database cannot be reached'],
  [/terminated|timeout|Connection|closed/i, 'STORE_UNAVAILABLE', 'the database cannot be reached'],
] as const
const CONNECTIONS_MAX = 10
const CONNECT_MS = 5_000
