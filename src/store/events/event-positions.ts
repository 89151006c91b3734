import type { Kysely } from 'kysely'
import type { Tables } from '../engine/tables.ts'

export interface PositionHolder {
  /** What reads on. */
  readonly name: string
  /** Who does, of several that might. */
  readonly holder: string
}

/** How far those have come that read all events, one after the other, and hand them on. */
export class EventPositionStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /**
   * Where to read on, until then alone; `from` at the first time. `null`: somebody else does. Whoever asks again before it
   * is over keeps it.
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

  /** `false`: somebody else has it by now. */
  async move({ name, holder }: PositionHolder, number: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#own(name, holder).set({ number }).executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** For the next one, who need not wait. */
  async leave({ name, holder }: PositionHolder): Promise<void> {
    await this.#own(name, holder).set({ holder: null, held_until_ms: 0 }).execute()
  }

  #own(name: string, holder: string) {
    return this.#db.updateTable('event_positions').where('name', '=', name).where('holder', '=', holder)
  }
}
