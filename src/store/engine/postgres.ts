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
    // Detects a server that disappeared without closing the connection.
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
 * Checks that the server accepts this password, with the TLS files that the URL names as they are
 * now. Rejects with a Fault if the server refuses. Resolves if the server is unreachable, because
 * the check is not possible then.
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

interface PostgresLimits {
  readonly connectionsMax: number
  /** The time to get a connection, new or from the pool. */
  readonly connectMs: number
  /** Normally, no query takes more than a second. */
  readonly statementMs: number
  /** For a server that does not report its own timeout. */
  readonly queryMs: number
}

function kyselyOn(pool: GuardedPool): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}

function newPool(settings: pg.PoolConfig): GuardedPool {
  const pool = new GuardedPool(settings)
  // If an idle connection breaks, the next query opens a new one.
  pool.on('error', () => undefined)
  return pool
}

/** A pool whose connections throw Faults for errors of the environment. */
class GuardedPool extends pg.Pool {
  /** Counts renewals. Connections from before the last one are not reused. */
  #login = 0
  readonly #logins = new WeakMap<pg.PoolClient, number>()

  /** Running queries finish on their connections. Later queries open new ones. */
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
  // The pool listens for errors only while a connection is idle. In use, the failing query reports the error.
  client.on('error', () => undefined)
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  client.query = ((...args: unknown[]) => {
    const result = query(...args)
    return result instanceof Promise ? result.catch((error: unknown) => failed(client, error)) : result
  }) as typeof client.query
  return client
}

function failed(client: pg.PoolClient, error: unknown): never {
  // The next query would wait behind the unanswered one. The pool discards ended connections.
  if (error instanceof Error && error.message === 'Query read timeout')
    void (client as unknown as pg.Client).end()
  throw asFault(error, false)
}

/** The message does not quote the URL, which may contain a password. */
function refuseUnreadable(settings: pg.PoolConfig): void {
  try {
    // This does not connect, but parses the URL and reads its files.
    new pg.Client(settings)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why =
      code === 'ENOENT' || code === 'EACCES' ? 'names a file that cannot be read' : 'cannot be understood'
    throw new Fault('STORE_URL_INVALID', `the URL of the store ${why}: postgres://USER@HOST/DATABASE`)
  }
}

/** All whole numbers are below 2^53 by design. */
const getTypeParser: typeof pg.types.getTypeParser = ((oid: number, format: 'text' | 'binary') =>
  oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC
    ? Number
    : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser

/** SQLSTATE: wrong user, password or database. */
const REFUSES = /^(?:28...|3D000)$/
const NETWORK = /^E(?:CONN|TIMEDOUT|HOST|NET|AI_|NOTFOUND|PIPE)/
const GUARDED = new WeakSet<pg.PoolClient>()
const LIMITS: PostgresLimits = { connectionsMax: 10, connectMs: 5_000, statementMs: 20_000, queryMs: 25_000 }
