import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { storedObject } from '../engine/stored.ts'
import type { Tables } from '../engine/tables.ts'

/** A key that signs access tokens from `signsFromMs` until the next key starts. */
export interface OAuthKey {
  /** Counts up with each key. */
  readonly number: number
  readonly kid: string
  readonly publicJwk: Readonly<Record<string, unknown>>
  /** The private key, encrypted. */
  readonly sealed: string
  readonly createdAtMs: number
  readonly signsFromMs: number
}

export class OAuthKeyStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Newest first. There are two or three. */
  async all(queries: Queries = this.#db): Promise<readonly OAuthKey[]> {
    const rows = await queries.selectFrom('oauth_keys').selectAll().orderBy('number', 'desc').execute()
    return rows.map(({ number, kid, public_jwk, sealed, created_at_ms, signs_from_ms }) => ({
      number,
      kid,
      sealed,
      publicJwk: storedObject(public_jwk),
      createdAtMs: created_at_ms,
      signsFromMs: signs_from_ms,
    }))
  }

  /** `false`: another process has added a key with this number. */
  async add(key: OAuthKey, queries: Queries = this.#db): Promise<boolean> {
    const { number, kid, sealed } = key
    const times = { created_at_ms: key.createdAtMs, signs_from_ms: key.signsFromMs }
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('oauth_keys')
      .values({ number, kid, sealed, public_jwk: JSON.stringify(key.publicJwk), ...times })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    return (numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  async remove(number: number, queries: Queries = this.#db): Promise<void> {
    await queries.deleteFrom('oauth_keys').where('number', '=', number).execute()
  }
}
