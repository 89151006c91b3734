import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import type { Tables } from '../engine/tables.ts'

export type DenialKind = 'token' | 'grant' | 'client' | 'person' | 'key'

/** Revoked tokens: a single one, or all of a grant, a client, a person or a key. */
interface Denial {
  readonly kind: DenialKind
  readonly id: string
  readonly atMs: number
  /** The latest expiry of those tokens. */
  readonly expiresAtMs: number
}

export class OAuthDenialStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async add({ kind, id, atMs, expiresAtMs }: Denial, queries: Queries = this.#db): Promise<void> {
    const times = { at_ms: atMs, expires_at_ms: expiresAtMs }
    await queries
      .insertInto('oauth_denials')
      .values({ kind, id, ...times })
      .onConflict((conflict) => conflict.columns(['kind', 'id']).doUpdateSet(times))
      .execute()
  }

  /** Created since then, and not expired at `nowMs`. */
  async since(atMs: number, nowMs: number): Promise<readonly Denial[]> {
    const rows = await this.#db
      .selectFrom('oauth_denials')
      .selectAll()
      .where('at_ms', '>=', atMs)
      .where('expires_at_ms', '>', nowMs)
      .execute()
    return rows.map(({ kind, id, at_ms, expires_at_ms }) => ({
      kind: kind as DenialKind,
      id,
      atMs: at_ms,
      expiresAtMs: expires_at_ms,
    }))
  }

  /** Deletes expired denials, at most `rowsMax`. Resolves to their number. */
  async forget(nowMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('oauth_denials')
      .where(({ eb, refTuple, selectFrom }) =>
        eb(
          refTuple('kind', 'id'),
          'in',
          selectFrom('oauth_denials')
            .select(['kind', 'id'])
            .where('expires_at_ms', '<=', nowMs)
            .limit(rowsMax)
            .$asTuple('kind', 'id'),
        ),
      )
      .where('expires_at_ms', '<=', nowMs)
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}
