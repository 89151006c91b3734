import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { Fault } from '../../shared/fault.ts'
import type { Database, Prepare } from './database.ts'
import { Patience, SqliteFile } from './sqlite-file.ts'
import { asFault } from './sqlite-fault.ts'
import type { Tables } from './tables.ts'

/** Creates the file if it does not exist. `:memory:` is private to this connection. */
export async function openSqlite(path: string, prepare: Prepare): Promise<Database> {
  const prepared = async (file: SqliteFile) => {
    try {
      await prepare(kyselyOn(new Session(file, null)), 'sqlite')
      return file
    } catch (error) {
      file.close()
      throw error
    }
  }
  const reopen = async () => prepared(await SqliteFile.open(path))
  const session = new Session(await prepared(await SqliteFile.make(path)), reopen)
  const db = kyselyOn(session)
  const close = async () => {
    await db.destroy()
    session.close() // Kysely closes it only after a query
  }
  return { kind: 'sqlite', db, close }
}

/** Runs all queries one by one. Reopens the file if it was lost or replaced. */
class Session implements DatabaseConnection {
  #file: SqliteFile
  /** `null`: the file is never reopened. */
  readonly #reopen: (() => Promise<SqliteFile>) | null
  readonly #patience = new Patience()
  /** After a failure, only a new connection can tell whether the problem is over. */
  #isLost = false

  constructor(file: SqliteFile, reopen: (() => Promise<SqliteFile>) | null) {
    this.#file = file
    this.#reopen = reopen
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      // Inside a transaction, no other program can hold the lock.
      if (this.#file.isInTransaction) return this.#file.run(sql, parameters)
      if (this.#reopen !== null) await this.#renewIfNeeded(this.#reopen)
      return await this.#run(sql, parameters)
    } catch (error) {
      const fault = asFault(error)
      if (fault instanceof Fault && LOST.has(fault.code)) this.#isLost = true
      throw fault
    }
  }

  /**
   * Begins with the write lock. A read transaction cannot become a write transaction
   * after another process has written.
   */
  async begin(): Promise<void> {
    await this.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commit(): Promise<void> {
    await this.executeQuery(CompiledQuery.raw('commit'))
  }

  /** Some failures have already rolled back. */
  async rollback(): Promise<void> {
    if (this.#file.isInTransaction) await this.executeQuery(CompiledQuery.raw('rollback'))
  }

  // biome-ignore lint/correctness/useYield: streaming is unsupported, as it would block all other queries
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('lists are read in pages')
  }

  close(): void {
    this.#file.close()
  }

  async #run<Row>(sql: string, parameters: readonly unknown[]): Promise<QueryResult<Row>> {
    // Reads never wait for writers. A successful read says nothing about the write lock.
    const patience = /^\s*select\b/i.test(sql) ? new Patience() : this.#patience
    return patience.with(() => this.#file.run<Row>(sql, parameters))
  }

  async #renewIfNeeded(reopen: () => Promise<SqliteFile>): Promise<void> {
    const { isReplaced } = this.#file
    if (!isReplaced && !this.#isLost) return
    if (isReplaced) this.#file.takeAwayLog()
    const file = await reopen()
    this.#file.close()
    this.#file = file
    this.#isLost = false
  }
}

function kyselyOn(session: Session): Kysely<Tables> {
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => session,
    beginTransaction: () => session.begin(),
    commitTransaction: () => session.commit(),
    rollbackTransaction: () => session.rollback(),
    releaseConnection: async () => undefined,
    destroy: async () => session.close(),
  }
  const dialect: Dialect = {
    createDriver: () => driver,
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  }
  return new Kysely<Tables>({ dialect })
}

const LOST = new Set(['STORE_UNAVAILABLE', 'STORE_DAMAGED'])
