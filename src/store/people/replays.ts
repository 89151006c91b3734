import type { Kysely } from 'kysely'
import type { Tables } from '../engine/tables.ts'

/** Proofs that were used: of all who use one, in whatever processes, one is the first. */
export class ReplayStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** `false`: it was used before. It has to be refused for another reason from when it is forgotten. */
  async isFirst(id: string, expiresAtMs: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('replays')
      .values({ id, expires_at_ms: expiresAtMs })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    return numInsertedOrUpdatedRows === 1n
  }

  /** Forgets so many at most; resolves to how many they were. */
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
