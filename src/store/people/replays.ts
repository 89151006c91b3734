import type { Kysely } from 'kysely'
import type { Tables } from '../engine/tables.ts'

/** Proofs that were used. Of several uses in any processes, exactly one is the first. */
export class ReplayStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** `false`: it was used before. After it is deleted, the caller must refuse it for another reason. */
  async isFirst(id: string, expiresAtMs: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('replays')
      .values({ id, expires_at_ms: expiresAtMs })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    return numInsertedOrUpdatedRows === 1n
  }

  /** Deletes expired proofs, at most `rowsMax`. Resolves to their number. */
  async forget(nowMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('replays')
      .where('id', 'in', (some) =>
        some.selectFrom('replays').select('id').where('expires_at_ms', '<=', nowMs).limit(rowsMax),
      )
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}
