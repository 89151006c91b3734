import type { Kysely } from 'kysely'
import type { Tables } from '../engine/tables.ts'

interface TrafficRecord {
  readonly process: string
  /** By the clock of that process. */
  readonly atMs: number
  /** JSON. */
  readonly document: string
}

/** The requests of each process in its last second. */
export class TrafficStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async put({ process, atMs, document }: TrafficRecord): Promise<void> {
    await this.#db
      .insertInto('traffic')
      .values({ process, at_ms: atMs, document })
      .onConflict((conflict) => conflict.column('process').doUpdateSet({ at_ms: atMs, document }))
      .execute()
  }

  /** All other processes with a record since then. */
  async ofOthers(process: string, sinceMs: number): Promise<readonly TrafficRecord[]> {
    const rows = await this.#db
      .selectFrom('traffic')
      .selectAll()
      .where('process', '<>', process)
      .where('at_ms', '>=', sinceMs)
      .execute()
    return rows.map(({ process, at_ms: atMs, document }) => ({ process, atMs, document }))
  }

  /** Deletes records of processes that have ended. */
  async forget(beforeMs: number): Promise<void> {
    await this.#db.deleteFrom('traffic').where('at_ms', '<', beforeMs).execute()
  }
}
