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
  /** Its files beside it, and which ones they are. */
  readonly #beside: ReadonlyMap<string, string | null>
  readonly #prepared = new Map<string, SqliteConnection.Statement>()

  /** The file is made if there is none. `:memory:` is one that nobody else has. */
  static async make(path: string): Promise<SqliteFile> {
    if (path !== MEMORY) await makeRoom(path)
    return SqliteFile.open(path)
  }

  /** One that is there: whoever puts another in its place takes it away first, and must find the place empty. */
  static async open(path: string): Promise<SqliteFile> {
    // Who has to wait for another program does not do it in here, where it would hold up everything.
    const settings = { timeout: 0, fileMustExist: path !== MEMORY }
    const connection = guarded(() => new SqliteConnection(path, settings))
    const patience = new Patience()
    try {
      await patience.with(() => connection.pragma('journal_mode = WAL'))
      // What is acknowledged outlives the machine, not only the process.
      guarded(() => connection.pragma('synchronous = FULL'))
      guarded(() => connection.pragma('foreign_keys = ON'))
      guarded(() => connection.pragma(`journal_size_limit = ${LOG_BYTES_MAX}`))
      await patience.with(() => connection.pragma('user_version')) // makes the files beside it
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

  /** Throws a Fault if the file is gone: what was written to it now nobody would find again. */
  get isReplaced(): boolean {
    if (this.path === MEMORY) return false
    const identity = identityOf(this.path)
    if (identity === null) throw new Fault('STORE_UNAVAILABLE', `the database ${this.path} is gone`)
    return identity !== this.#identity
  }

  /** Once it is replaced: what is not yet in the old file must not find its way into the new one. */
  takeAwayLog(): void {
    for (const [path, identity] of this.#beside)
      if (identityOf(path) === identity) rmSync(path, { force: true })
  }

  run<Row>(sql: string, parameters: readonly unknown[]): QueryResult<Row> {
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

/** Waits for other programs that have the file: for some seconds from when they were first in the way, and not anew for each. */
export class Patience {
  #untilMs: number | null = null

  /** Does it, again and again while another program has the file. */
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

/** Only the user it runs as can read it: it holds addresses of people. SQLite gives its other files the same mode. */
async function makeRoom(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await (await open(path, 'a', 0o600)).close()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('STORE_UNAVAILABLE', `the database ${path} cannot be opened (${code})`, { cause: error })
  }
}

/** `null`: there is none. */
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
/** After a restore the log has been as long as the database. */
const LOG_BYTES_MAX = 67_108_864
const PATIENCE_MS = 5_000
const DELAY_MAX_MS = 25
/** There are some hundred; those whose text depends on a list's length come and go. */
const PREPARED_MAX = 512
