import { type Kysely, sql } from 'kysely'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { Tables } from './tables.ts'

/** The bytes of a SQLite file, and how they are given back. */
export class SqliteSpace {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** The bytes of rows and indexes, without pages that are free. */
  async used(): Promise<number> {
    const { pages, free, page_size } = await this.#read()
    return (pages - free) * page_size
  }

  /** Gives some free pages back, except a reserve for what comes next. `false`: there are no more. */
  async shrinkSome(): Promise<boolean> {
    const { pages, free, mode } = await this.#read()
    const spare = Math.floor(free - (pages - free) * RESERVE)
    if (mode !== INCREMENTAL || spare < SPARE_MIN) return false
    await sql`pragma incremental_vacuum(${sql.lit(Math.min(spare, PAGES_AT_ONCE))})`.execute(this.#db)
    return true
  }

  /**
   * Files of earlier versions never shrink. Rewrites such a file once, so that it does. Other writers wait meanwhile. A
   * large one stays as it is, because this process would not answer for too long.
   */
  async prepare(log: Log, bytesMax = REWRITTEN_BYTES_MAX): Promise<void> {
    if ((await this.#read()).mode === INCREMENTAL) return
    const bytes = await this.used()
    if (bytes > bytesMax)
      return log.warn(
        'the file of the database was made by an earlier version and does not shrink when rows are deleted: stop Gatehouse, then run "gatehouse backup" and "gatehouse restore", which rewrites the file',
        { bytes },
      )
    log.info('the file of the database is rewritten once, so that it shrinks when rows are deleted', {
      bytes,
    })
    try {
      await this.rewrite()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      log.warn('the file of the database cannot be rewritten now; tried again at the next start', { error })
    }
  }

  /** Needs as much free space on the disk as the rows take. Some ten seconds for a gigabyte. */
  async rewrite(): Promise<void> {
    await sql`pragma auto_vacuum = incremental`.execute(this.#db)
    await sql`vacuum`.execute(this.#db)
  }

  async #read(): Promise<Space> {
    const { rows } = await sql<Space>`
      select page_count as pages, freelist_count as free, page_size, auto_vacuum as mode
      from pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum`.execute(this.#db)
    return rows[0]!
  }
}

interface Space {
  readonly pages: number
  readonly free: number
  readonly page_size: number
  /** Of `pragma auto_vacuum`. */
  readonly mode: number
}

const INCREMENTAL = 2
/** Of the bytes in use. Rows that come next need them again. */
const RESERVE = 1 / 8
/** One megabyte. */
const SPARE_MIN = 256
/** Takes a few milliseconds. */
const PAGES_AT_ONCE = 512
const REWRITTEN_BYTES_MAX = 2 ** 30
