import { rmSync, statSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import SqliteConnection from 'better-sqlite3'
import type { QueryResult } from 'kysely'
import { Fault } from '../../shared/fault.ts'
import { guarded } from './sqlite-fault.ts'

/** One connection to one file. */
export class SqliteFile {
  readonly path: string
  readonly #connection: SqliteConnection.Database
  readonly #identity: string | null
  /** The files beside the database, with their identities. */
  readonly #beside: ReadonlyMap<string, string | null>
  readonly #prepared = new Map<string, SqliteConnection.Statement>()

  /** Creates the file if it does not exist. `:memory:` is private to this connection. */
  static async make(path: string): Promise<SqliteFile> {
    if (path !== MEMORY) await makeRoom(path)
    return SqliteFile.open(path)
  }

  /**
   * Opens an existing file. It is never created here, so that a restore that replaces
   * the file finds its place empty.
   */
  static async open(path: string): Promise<SqliteFile> {
    // Waits for other programs outside of SQLite, which would block this process.
    const settings = { timeout: 0, fileMustExist: path !== MEMORY }
    const connection = guarded(() => new SqliteConnection(path, settings))
    const patience = new Patience()
    try {
      // Only of a file without content: of others, it changes the file and needs a VACUUM (see SqliteSpace).
      if ((await patience.with(() => connection.pragma('page_count', { simple: true }))) === 0)
        await patience.with(() => connection.pragma('auto_vacuum = incremental'))
      await patience.with(() => connection.pragma('journal_mode = WAL'))
      // An acknowledged write survives a crash of the machine, not only of the process.
      guarded(() => connection.pragma('synchronous = FULL'))
      guarded(() => connection.pragma('foreign_keys = ON'))
      guarded(() => connection.pragma(`journal_size_limit = ${LOG_BYTES_MAX}`))
      guarded(() => connection.pragma(`wal_autocheckpoint = ${LOG_PAGES}`))
      await patience.with(() => connection.pragma('user_version')) // creates the files beside it
      return new SqliteFile(path, connection)
    } catch (error) {
      connection.close()
      throw error
    }
  }

  private constructor(path: string, connection: SqliteConnection.Database) {
    this.path = path
    this.#connection = connection
    this.#identity = identityOf(path)
    this.#beside = new Map(['-wal', '-shm'].map((end) => [path + end, identityOf(path + end)]))
  }

  get isInTransaction(): boolean {
    return this.#connection.inTransaction
  }

  /** Throws a Fault if the file is deleted, because new writes would be lost. */
  get isReplaced(): boolean {
    if (this.path === MEMORY) return false
    const identity = identityOf(this.path)
    if (identity === null) throw new Fault('STORE_UNAVAILABLE', `the database ${this.path} is gone`)
    return identity !== this.#identity
  }

  /** Call this after the file was replaced. The old log must not be applied to the new file. */
  takeAwayLog(): void {
    for (const [path, identity] of this.#beside)
      if (identityOf(path) === identity) rmSync(path, { force: true })
  }

  run<Row>(sql: string, parameters: readonly unknown[]): QueryResult<Row> {
    // A statement without columns takes one step, which gives back one page.
    if (sql.startsWith(INCREMENTAL_VACUUM))
      return { rows: this.#connection.pragma(sql.slice(PRAGMA.length)) as Row[] }
    const statement = this.#statement(sql)
    if (statement.reader) return { rows: statement.all(parameters) as Row[] }
    const { changes } = statement.run(parameters)
    return { numAffectedRows: BigInt(changes), rows: [] }
  }

  close(): void {
    this.#connection.close()
  }

  #statement(sql: string): SqliteConnection.Statement {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const statement = this.#connection.prepare(sql)
    if (this.#prepared.size === PREPARED_MAX) this.#prepared.delete(this.#prepared.keys().next().value!)
    this.#prepared.set(sql, statement)
    return statement
  }
}

/**
 * Retries while another program locks the file. The total wait counts from the first
 * conflict, not from each query.
 */
export class Patience {
  #untilMs: number | null = null

  /** Runs `work`, and retries while another program locks the file. */
  async with<Result>(work: () => Result): Promise<Result> {
    for (let delayMs = 1; ; delayMs = Math.min(2 * delayMs, DELAY_MAX_MS)) {
      try {
        const result = guarded(work)
        this.#untilMs = null
        return result
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== 'STORE_LOCKED') throw error
        this.#untilMs ??= performance.now() + PATIENCE_MS
        if (performance.now() > this.#untilMs) throw error
      }
      await wait(delayMs)
    }
  }
}

/**
 * Creates the file readable only by its owner, because it contains addresses of people. SQLite gives
 * its other files the same mode.
 */
async function makeRoom(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await (await open(path, 'a', 0o600)).close()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('STORE_UNAVAILABLE', `the database ${path} cannot be opened (${code})`, { cause: error })
  }
}

/** `null`: the file does not exist. */
function identityOf(path: string): string | null {
  try {
    const status = statSync(path, { throwIfNoEntry: false })
    return status === undefined ? null : `${status.dev} ${status.ino}`
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('STORE_UNAVAILABLE', `the database ${path} cannot be reached (${code})`, { cause: error })
  }
}

const MEMORY = ':memory:'
const PRAGMA = 'pragma '
const INCREMENTAL_VACUUM = `${PRAGMA}incremental_vacuum`
/** After a restore, the log is as long as the database. */
const LOG_BYTES_MAX = 67_108_864
/** Then the log is written to the database. A page that changes often is written once for all of its changes. */
const LOG_PAGES = 8_000
const PATIENCE_MS = 5_000
const DELAY_MAX_MS = 25
/** There are some hundred fixed texts. Texts that depend on a list's length are evicted. */
const PREPARED_MAX = 512
