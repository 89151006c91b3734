import type { Kysely } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { Tables } from '../engine/tables.ts'

interface DetectionRecord {
  /** The id of the request. */
  readonly id: string
  readonly atMs: number
  /** JSON. */
  readonly document: string
}

/** The newest answers of `/detect` from all processes. */
export class DetectionStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Callers choose the ids. If an id repeats, the later record wins. */
  async put(records: readonly DetectionRecord[]): Promise<void> {
    // One lock order in all processes prevents deadlocks.
    const sorted = records.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    for (const part of parts(sorted))
      await this.#db
        .insertInto('detections')
        .values(part.map(({ id, atMs, document }) => ({ id, at_ms: atMs, document })))
        .onConflict((conflict) =>
          conflict.column('id').doUpdateSet(({ ref }) => ({
            at_ms: ref('excluded.at_ms'),
            document: ref('excluded.document'),
          })),
        )
        .execute()
  }

  /** The record as JSON. Readers must validate it, because others may have written to the database. */
  async find(id: string): Promise<string | null> {
    const found = this.#db.selectFrom('detections').select('document').where('id', '=', id)
    return (await found.executeTakeFirst())?.document ?? null
  }

  /** Deletes the oldest records beyond `keptMax`, at most `rowsMax`. Resolves to their number. */
  async forget(keptMax: number, rowsMax: number): Promise<number> {
    const byAge = this.#db.selectFrom('detections').select('at_ms').orderBy('at_ms', 'desc')
    const newestTooMany = await byAge.offset(keptMax).limit(1).executeTakeFirst()
    if (newestTooMany === undefined) return 0
    const { numDeletedRows } = await this.#db
      .deleteFrom('detections')
      .where('id', 'in', (some) =>
        some
          .selectFrom('detections')
          .select('id')
          .where('at_ms', '<=', newestTooMany.at_ms)
          .orderBy('at_ms')
          .limit(rowsMax),
      )
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}
