import type pg from 'pg'
import { LOCKS } from './locks.ts'
import { clientOf } from './postgres-client.ts'
import { asFault } from './postgres-fault.ts'
import type { StoreLogin } from './store-login.ts'

/**
 * A lock with one holder at a time. A process holds it for the lifetime of its connection, because
 * PostgreSQL releases it when the connection breaks. The lock uses a connection of its own, directly
 * to the server. Behind a pooler that changes the session for each transaction, no process keeps the
 * lock, and `isHeld` reports that.
 */
export class LeaderLock {
  readonly #settings: pg.ClientConfig
  readonly #Client: typeof pg.Client
  #client: pg.Client | null = null

  constructor(url: string, login: StoreLogin | null) {
    this.#Client = clientOf(login)
    this.#settings = {
      connectionString: url,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      application_name: 'gatehouse leader',
      options: GIVEN_UP,
    }
  }

  /** Takes the lock if it is free. Rejects with a Fault if the database is unreachable. */
  async take(): Promise<boolean> {
    try {
      this.#client ??= await this.#connect()
      const { rows } = await this.#client.query('select pg_try_advisory_lock($1) as is_taken', [LOCKS.leader])
      return rows[0]?.is_taken === true
    } catch (error) {
      this.#drop()
      throw asFault(error, true)
    }
  }

  /** Whether this process still holds the lock, according to the server. Never rejects. */
  async isHeld(): Promise<boolean> {
    const client = this.#client
    if (client === null) return false
    try {
      const { rows } = await client.query(HELD, [LOCKS.leader])
      return rows[0]?.is_held === true
    } catch {
      this.#drop()
      return false
    }
  }

  /** Releases the lock if this process holds it. Another process can take it from now on. */
  async release(): Promise<void> {
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => undefined)
  }

  async #connect(): Promise<pg.Client> {
    const client = new this.#Client(this.#settings)
    client.on('error', () => {
      if (this.#client === client) this.#client = null
    })
    await client.connect()
    return client
  }

  /** The session ends at the latest with the connection, and releases the lock. */
  #drop(): void {
    const client = this.#client
    this.#client = null
    void client?.end().catch(() => undefined)
  }
}

/** Checks the current backend's own locks, so that a lock of another session does not count. */
const HELD = `select exists (
  select from pg_locks where locktype = 'advisory' and objsubid = 1 and granted and pid = pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())
    and (classid::bigint << 32) + objid::bigint = $1
) as is_held`
/**
 * The server detects a lost client by itself, so that another process can lead. This covers a broken network,
 * and a proxy in between that keeps the connection open for a dead client.
 */
const GIVEN_UP =
  '-c tcp_user_timeout=10000 -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c idle_session_timeout=10000'
const ANSWER_MS = 3_000
