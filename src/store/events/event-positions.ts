import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import type { Tables } from '../engine/tables.ts'

export interface PositionHolder {
  /** The reader of events or Sightings. */
  readonly name: string
  /** The process that reads, of several that could. */
  readonly holder: string
}

/** The positions of readers that read all events, or all Sightings, in order and pass them on. */
export class EventPositionStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /**
   * Claims the reader's position until `untilMs`. Starts at `from` the first time. `null`: another process
   * holds it. The holder renews its claim by claiming again.
   */
  async claim(
    { name, holder }: PositionHolder,
    { nowMs, untilMs }: { readonly nowMs: number; readonly untilMs: number },
    from: number,
  ): Promise<number | null> {
    await this.#db
      .insertInto('event_positions')
      .values({ name, number: from, holder: null, held_until_ms: 0 })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const claimed = await this.#db
      .updateTable('event_positions')
      .set({ holder, held_until_ms: untilMs })
      .where('name', '=', name)
      .where(({ eb, or }) =>
        or([eb('holder', 'is', null), eb('holder', '=', holder), eb('held_until_ms', '<=', nowMs)]),
      )
      .returning('number')
      .executeTakeFirst()
    return claimed?.number ?? null
  }

  /** The positions of these readers, by name. */
  async of(names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (names.length === 0) return new Map()
    const rows = this.#db.selectFrom('event_positions').select(['name', 'number']).where('name', 'in', names)
    return new Map((await rows.execute()).map(({ name, number }) => [name, number]))
  }

  /** `false`: another process holds it by now. */
  async move({ name, holder }: PositionHolder, number: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#own(name, holder).set({ number }).executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /**
   * Records the number up to which the holder passes on one piece. A process that continues after its death finds the same
   * piece. `false`: another process holds the position by now.
   */
  async plan({ name, holder }: PositionHolder, number: number): Promise<boolean> {
    return this.#db.transaction().execute(async (queries) => {
      // Also makes processes that claim the position wait for this transaction.
      const { numUpdatedRows } = await this.#own(name, holder, queries).set({ holder }).executeTakeFirst()
      if (numUpdatedRows === 0n) return false
      await queries
        .insertInto('event_positions')
        .values({ name: planOf(name), number, holder: null, held_until_ms: 0 })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ number }))
        .execute()
      return true
    })
  }

  /** 0: nothing was planned. */
  async planned(name: string): Promise<number> {
    const rows = this.#db.selectFrom('event_positions').select('number').where('name', '=', planOf(name))
    return (await rows.executeTakeFirst())?.number ?? 0
  }

  /** Releases the claim, so that the next process need not wait. */
  async leave({ name, holder }: PositionHolder): Promise<void> {
    await this.#own(name, holder).set({ holder: null, held_until_ms: 0 }).execute()
  }

  #own(name: string, holder: string, queries: Queries = this.#db) {
    return queries.updateTable('event_positions').where('name', '=', name).where('holder', '=', holder)
  }
}

function planOf(name: string): string {
  return `${name} (plan)`
}
