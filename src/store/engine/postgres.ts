import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { Fault } from '../../shared/fault.ts'
import type { Database, Prepare } from './database.ts'
import { asFault, LOST } from './postgres-fault.ts'
import { clientOf } from './postgres-client.ts'
import { StoreLogin } from './store-login.ts'
import type { Tables } from './tables.ts'

export async function openPostgres(
  url: string,
  login: StoreLogin | null,
  prepare: Prepare,
  { connectionsMax, connectMs, statementMs, queryMs }: PostgresLimits = LIMITS,
): Promise<Database> {
  const settings: pg.PoolConfig = {
    connectionString: url,
    Client: clientOf(login),
    connectionTimeoutMillis: connectMs,
    // A server that is gone without a word is noticed.
    keepAlive: true,
    application_name: 'gatehouse',
    types: { getTypeParser },
  }
  refuseUnreadable(settings)
  const unhurried = kyselyOn(newPool({ ...settings, max: 1 }))
  await prepare(unhurried, 'postgres').finally(() => unhurried.destroy())
  const pool = newPool({
    ...settings,
    max: connectionsMax,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: statementMs,
    query_timeout: queryMs,
  })
  const db = kyselyOn(pool)
  const stop = login?.onRenewed(() => pool.renew())
  const close = () => {
    stop?.()
    return db.destroy()
  }
  return { kind: 'postgres', db, close }
}

/**
 * Whether the server lets this password in, with the files of TLS that the URL names as they are now. Rejects with a
 * Fault where it does not; a server that does not answer cannot say.
 */
export async function checkLogin(url: string, password: string | null): Promise<void> {
  const client = new (clientOf(new StoreLogin(password)))({
    connectionString: url,
    connectionTimeoutMillis: LIMITS.connectMs,
    application_name: 'gatehouse check',
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isAnswer =
      error instanceof pg.DatabaseError ? REFUSES.test(code ?? '') : !isOfNetwork(code, message)
    if (isAnswer)
      throw new Fault(
        'STORE_REFUSED',
        `the database does not take the new credentials (${message}): connections go on with the old ones. Compare store.password_file, and the files of TLS in store.url, with what the server knows; it is tried again`,
        { cause: error },
      )
  } finally {
    await client.end().catch(() => undefined)
  }
}

function isOfNetwork(code: string | undefined, message: string): boolean {
  return NETWORK.test(code ?? '') || LOST.test(message)
}

export interface PostgresLimits {
  readonly connectionsMax: number
  /** To get a connection: a new one, or one that others have. */
  readonly connectMs: number
  /** No query of ours takes a second where all is well. */
  readonly statementMs: number
  /** For a server that does not even say that it took too long. */
  readonly queryMs: number
}

function kyselyOn(pool: GuardedPool): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}

function newPool(settings: pg.PoolConfig): GuardedPool {
  const pool = new GuardedPool(settings)
  // A connection that breaks while idle is replaced by the next query.
  pool.on('error', () => undefined)
  return pool
}

/** Its connections throw Faults for what the world did. */
class GuardedPool extends pg.Pool {
  /** Counts logins: connections of an older one are not used again. */
  #login = 0
  readonly #logins = new WeakMap<pg.PoolClient, number>()

  /** Queries that run now end on the connections that they have; the next ones get new connections. */
  renew(): void {
    this.#login++
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: Parameters<pg.Pool['connect']>[0]): void
  override connect(callback?: Parameters<pg.Pool['connect']>[0]): Promise<pg.PoolClient> | undefined {
    if (callback === undefined) return this.#current()
    super.connect(callback)
    return undefined
  }

  async #current(): Promise<pg.PoolClient> {
    for (;;) {
      const login = this.#login
      const client = await super.connect().catch((error: unknown) => {
        throw asFault(error, true)
      })
      const made = this.#logins.get(client) ?? login
      this.#logins.set(client, made)
      if (made === this.#login) return guardedClient(client)
      client.release(true)
    }
  }
}

function guardedClient(client: pg.PoolClient): pg.PoolClient {
  if (GUARDED.has(client)) return client
  GUARDED.add(client)
  // The pool listens while a connection is idle only. Whoever has it is told by the query that fails.
  client.on('error', () => undefined)
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  client.query = ((...args: unknown[]) => {
    const result = query(...args)
    return result instanceof Promise ? result.catch((error: unknown) => failed(client, error)) : result
  }) as typeof client.query
  return client
}

function failed(client: pg.PoolClient, error: unknown): never {
  // The next query would wait behind the one that has no answer yet; the pool throws away what has ended.
  if (error instanceof Error && error.message === 'Query read timeout')
    void (client as unknown as pg.Client).end()
  throw asFault(error, false)
}

/** Says nothing of the URL itself, in which there may be a password after all. */
function refuseUnreadable(settings: pg.PoolConfig): void {
  try {
    // It connects to nothing yet, but reads the URL and the files that it names.
    new pg.Client(settings)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why =
      code === 'ENOENT' || code === 'EACCES' ? 'names a file that cannot be read' : 'cannot be understood'
    throw new Fault('STORE_URL_INVALID', `the URL of the store ${why}: postgres://USER@HOST/DATABASE`)
  }
}

/** Whole numbers are below 2^53 by our own doing. */
const getTypeParser: typeof pg.types.getTypeParser = ((oid: number, format: 'text' | 'binary') =>
  oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC
    ? Number
    : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser

/** SQLSTATE: the user, its password, or the database. */
const REFUSES = /^(?:28...|3D000)$/
const NETWORK = /^E(?:CONN|TIMEDOUT|HOST|NET|AI_|NOTFOUND|PIPE)/
const GUARDED = new WeakSet<pg.PoolClient>()
const LIMITS: PostgresLimits = { connectionsMax: 10, connectMs: 5_000, statementMs: 20_000, queryMs: 25_000 }
