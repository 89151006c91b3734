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

/** The file is made if there is none. `:memory:` is one that nobody else has. */
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
    session.close() // which Kysely does only where there was a query
  }
  return { kind: 'sqlite', db, close }
}

/** All queries, one after the other, on a file that may be lost and come back. */
class Session implements DatabaseConnection {
  #file: SqliteFile
  /** `null`: this one or none. */
  readonly #reopen: (() => Promise<SqliteFile>) | null
  readonly #patience = new Patience()
  /** What went wrong may be over, which only a new connection finds out. */
  #isLost = false

  constructor(file: SqliteFile, reopen: (() => Promise<SqliteFile>) | null) {
    this.#file = file
    this.#reopen = reopen
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      // Inside a transaction nobody else can be in the way.
      if (this.#file.isInTransaction) return this.#file.run(sql, parameters)
      if (this.#reopen !== null) await this.#renewIfNeeded(this.#reopen)
      return await this.#run(sql, parameters)
    } catch (error) {
      const fault = asFault(error)
      if (fault instanceof Fault && LOST.has(fault.code)) this.#isLost = true
      throw fault
    }
  }

  /** It begins as a writer's: one that begins as a reader's cannot become it once another process has written. */
  async begin(): Promise<void> {
    await this.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commit(): Promise<void> {
    await this.executeQuery(CompiledQuery.raw('commit'))
  }

  /** Some failures have done it already. */
  async rollback(): Promise<void> {
    if (this.#file.isInTransaction) await this.executeQuery(CompiledQuery.raw('rollback'))
  }

  // biome-ignore lint/correctness/useYield: there is no query that streams: it would hold all others up
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('lists are read in pages')
  }

  close(): void {
    this.#file.close()
  }

  async #run<Row>(sql: string, parameters: readonly unknown[]): Promise<QueryResult<Row>> {
    // Reading waits for nobody: that it succeeds does not say that writing would.
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
