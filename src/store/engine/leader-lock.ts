import type pg from 'pg'
import { clientOf } from './postgres-client.ts'
import { asFault } from './postgres-fault.ts'
import type { StoreLogin } from './store-login.ts'

/**
 * A lock that one process at a time has, for as long as its connection lasts: PostgreSQL lets go of it when that breaks.
 * The connection is of its own, and has to reach the server itself: behind a pooler that hands out another session for
 * each transaction nobody keeps it, and `isHeld` says so.
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

  /** Takes it if nobody has it. Rejects with a Fault where the database cannot be asked. */
  async take(): Promise<boolean> {
    try {
      this.#client ??= await this.#connect()
      const { rows } = await this.#client.query('select pg_try_advisory_lock($1) as is_taken', [LOCK])
      return rows[0]?.is_taken === true
    } catch (error) {
      this.#drop()
      throw asFault(error, true)
    }
  }

  /** Whether this process still has it, as the server sees it; never rejects. */
  async isHeld(): Promise<boolean> {
    const client = this.#client
    if (client === null) return false
    try {
      const { rows } = await client.query(HELD, [LOCK])
      return rows[0]?.is_held === true
    } catch {
      this.#drop()
      return false
    }
  }

  /** Lets go of it, if it has it; another one may take it from here on. */
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

  /** Its session ends at the latest with the connection, and the lock with it. */
  #drop(): void {
    const client = this.#client
    this.#client = null
    void client?.end().catch(() => undefined)
  }
}

/** By the backend that asks: of a lock that another session has taken for us it is not true. */
const HELD = `select exists (
  select from pg_locks where locktype = 'advisory' and objsubid = 1 and granted and pid = pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())
    and (classid::bigint << 32) + objid::bigint = $1
) as is_held`
/**
 * The server finds out by itself when nobody is there any more, and another one leads: where the network is gone, and
 * where something in between goes on holding the connection for somebody who asks nothing any more.
 */
const GIVEN_UP =
  '-c tcp_user_timeout=10000 -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c idle_session_timeout=10000'
const LOCK = 7_164_201_914
const ANSWER_MS = 3_000
