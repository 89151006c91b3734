import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import type { PasskeyTable } from '../engine/tables/users.ts'
import type { Tables } from '../engine/tables.ts'

/** A WebAuthn key of a person's authenticator. */
export interface PasskeyRecord {
  /** The credential id from the authenticator, in base64url. */
  readonly id: string
  readonly userId: string
  readonly name: string
  /** COSE, in base64url. */
  readonly publicKey: string
  /** The authenticator's signature counter; 0: it does not count. */
  readonly counter: number
  readonly createdAtMs: number
  /** `null`: never used. */
  readonly usedAtMs: number | null
}

export class PasskeyStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** `false`: the id exists already, for any user. */
  async add(passkey: PasskeyRecord, queries: Queries): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('passkeys')
      .values({
        id: passkey.id,
        user_id: passkey.userId,
        name: passkey.name,
        public_key: passkey.publicKey,
        counter: passkey.counter,
        created_at_ms: passkey.createdAtMs,
        used_at_ms: passkey.usedAtMs,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    return (numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  async byId(id: string): Promise<PasskeyRecord | null> {
    const found = this.#db.selectFrom('passkeys').selectAll().where('id', '=', id)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }

  /** Oldest first. */
  async ofUser(userId: string, queries: Queries = this.#db): Promise<readonly PasskeyRecord[]> {
    const found = queries.selectFrom('passkeys').selectAll().where('user_id', '=', userId)
    return (await found.orderBy('created_at_ms').orderBy('id').execute()).map(recordOf)
  }

  /**
   * `false`: it does not exist, or the counter is not higher. Of two uses with
   * the same counter, one succeeds.
   */
  async use(id: string, counter: number, atMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('passkeys')
      .set({ counter, used_at_ms: atMs })
      .where('id', '=', id)
      // An authenticator that does not count always sends 0.
      .where('counter', counter === 0 ? '=' : '<', counter)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  async removeAll(userId: string, queries: Queries): Promise<void> {
    await queries.deleteFrom('passkeys').where('user_id', '=', userId).execute()
  }

  /** `false`: the user has no passkey with this id. */
  async remove(userId: string, id: string, queries: Queries): Promise<boolean> {
    const removed = queries.deleteFrom('passkeys').where('user_id', '=', userId).where('id', '=', id)
    return (await removed.executeTakeFirst()).numDeletedRows > 0n
  }
}

function recordOf(row: Selectable<PasskeyTable>): PasskeyRecord {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    publicKey: row.public_key,
    counter: row.counter,
    createdAtMs: row.created_at_ms,
    usedAtMs: row.used_at_ms,
  }
}
