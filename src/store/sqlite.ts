import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import SqliteConnection from 'better-sqlite3'
import { Kysely, SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely'
import { Fault } from '../fault.ts'
import type { Database } from './database.ts'
import type { Tables } from './tables.ts'

/** The file is made if there is none. `:memory:` is one that nobody else has. */
export async function openSqlite(file: string): Promise<Database> {
  if (file !== ':memory:') await makeRoom(file)
  const connection = guarded(() => new SqliteConnection(file))
  try {
    guarded(() => {
      // The operator's commands open the file while the gateway has it.
      connection.pragma(`busy_timeout = ${BUSY_MS}`)
      connection.pragma('journal_mode = WAL')
      // What is acknowledged outlives the machine, not only the process.
      connection.pragma('synchronous = FULL')
      connection.pragma('foreign_keys = ON')
    })
  } catch (error) {
    connection.close()
    throw error
  }
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: new Statements(connection) }) })
  return {
    kind: 'sqlite',
    db,
    backup: async (to) => {
      await connection.backup(to).catch(refused)
    },
    close: () => db.destroy(),
  }
}

/** Only the user it runs as can read it: it holds addresses of people. SQLite gives its other files the same mode. */
async function makeRoom(file: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await (await open(file, 'a', 0o600)).close()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('STORE_UNAVAILABLE', `the database ${file} cannot be opened (${code})`, { cause: error })
  }
}

/** Statements are prepared once; transactions are for writing, and say so when they begin. */
class Statements implements SqliteDatabase {
  readonly #connection: SqliteConnection.Database
  readonly #prepared = new Map<string, SqliteStatement>()

  constructor(connection: SqliteConnection.Database) {
    this.#connection = connection
  }

  prepare(sql: string): SqliteStatement {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    // A transaction that begins as a reader's cannot become a writer's once another process has written.
    const statement = this.#connection.prepare(sql === 'begin' ? 'begin immediate' : sql)
    const prepared = guardedStatement(statement)
    if (this.#prepared.size === PREPARED_MAX) this.#prepared.delete(this.#prepared.keys().next().value!)
    this.#prepared.set(sql, prepared)
    return prepared
  }

  close(): void {
    this.#connection.close()
  }
}

function guardedStatement(statement: SqliteConnection.Statement): SqliteStatement {
  return {
    reader: statement.reader,
    all: (parameters) => guarded(() => statement.all(parameters)),
    run: (parameters) => guarded(() => statement.run(parameters)),
    iterate: (parameters) => statement.iterate(parameters),
  }
}

function guarded<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    return refused(error)
  }
}

/** What the world did is a Fault; a broken constraint or statement stays what it is. */
function refused(error: unknown): never {
  const { code, message } = error as { code?: unknown; message: string }
  for (const [start, fault, what] of FAULTS) {
    if (typeof code === 'string' && code.startsWith(start))
      throw new Fault(fault, `${what} (${code}: ${message})`, { cause: error })
  }
  throw error
}

const FAULTS = [
  ['SQLITE_FULL', 'STORE_FULL', 'there is no room left for the database'],
  ['SQLITE_BUSY', 'STORE_LOCKED', 'another program holds the database'],
  ['SQLITE_LOCKED', 'STORE_LOCKED', 'another program holds the database'],
  ['SQLITE_READONLY', 'STORE_UNAVAILABLE', 'the database cannot be written to'],
  ['SQLITE_IOERR', 'STORE_UNAVAILABLE', 'the database cannot be read or written'],
  ['SQLITE_CANTOPEN', 'STORE_UNAVAILABLE', 'the database cannot be opened'],
  ['SQLITE_CORRUPT', 'STORE_DAMAGED', 'the database is damaged: restore a backup'],
  ['SQLITE_NOTADB', 'STORE_DAMAGED', 'the file is no database'],
] as const
const BUSY_MS = 5_000
/** There are some hundred; those whose text depends on a list's length come and go. */
const PREPARED_MAX = 512
