import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { type Decided, decidedIn } from './gnap-grants.ts'
import { storedObject, storedTexts } from '../engine/stored.ts'
import type { GnapTokenTable } from '../engine/tables/gnap.ts'
import type { Tables } from '../engine/tables.ts'

/** A GNAP access token, without the token itself. */
export interface GnapTokenRecord {
  readonly id: string
  readonly thumbprint: string
  readonly jwk: Readonly<Record<string, unknown>>
  readonly name: string
  readonly label: string | null
  readonly scopes: readonly string[]
  readonly isBearer: boolean
  /** Whether a principal approved it. Otherwise it is valid as long as its key is trusted. */
  readonly isApproved: boolean
  /** `null`: not approved, or an earlier version did not store it. */
  readonly approved: Decided | null
  readonly expiresAtMs: number
  /** It can be renewed until then. */
  readonly endsAtMs: number
  readonly revokedAtMs: number | null
}

export interface TokenHashes {
  readonly hash: string
  readonly manageHash: string
}

export class GnapTokenStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async add(token: GnapTokenRecord, { hash, manageHash }: TokenHashes, queries: Queries): Promise<void> {
    const { id, thumbprint, name, label } = token
    const flags = { is_bearer: Number(token.isBearer), is_approved: Number(token.isApproved) }
    const times = { expires_at_ms: token.expiresAtMs, ends_at_ms: token.endsAtMs }
    await queries
      .insertInto('gnap_tokens')
      .values({
        id,
        thumbprint,
        name,
        label,
        hash,
        manage_hash: manageHash,
        revoked_at_ms: token.revokedAtMs,
        approved_by: token.approved?.by ?? null,
        approved_at_ms: token.approved?.atMs ?? null,
        jwk: JSON.stringify(token.jwk),
        scopes: JSON.stringify(token.scopes),
        ...flags,
        ...times,
      })
      .execute()
  }

  /** Includes revoked and expired tokens, so that the caller can tell the reason. */
  async byHash(hash: string): Promise<GnapTokenRecord | null> {
    const row = await this.#db
      .selectFrom('gnap_tokens')
      .selectAll()
      .where('hash', '=', hash)
      .executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** Whether the key has at least `many` tokens. */
  async hasMany(thumbprint: string, many: number): Promise<boolean> {
    const found = this.#db.selectFrom('gnap_tokens').select('id').where('thumbprint', '=', thumbprint)
    return (
      (await found
        .limit(1)
        .offset(many - 1)
        .executeTakeFirst()) !== undefined
    )
  }

  /** The token, if this management token manages it. */
  async managed(id: string, manageHash: string): Promise<GnapTokenRecord | null> {
    const found = this.#db.selectFrom('gnap_tokens').selectAll().where('id', '=', id)
    const row = await found.where('manage_hash', '=', manageHash).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** Replaces the secrets and extends the lifetime. `false`: it was rotated concurrently, or is revoked. */
  async rotate(
    { id, expiresAtMs, endsAtMs }: GnapTokenRecord,
    manageHash: string,
    next: TokenHashes,
  ): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('gnap_tokens')
      .set({
        hash: next.hash,
        manage_hash: next.manageHash,
        expires_at_ms: expiresAtMs,
        ends_at_ms: endsAtMs,
      })
      .where('id', '=', id)
      .where('manage_hash', '=', manageHash)
      .where('revoked_at_ms', 'is', null)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  async revoke(id: string, atMs: number): Promise<void> {
    await this.#db
      .updateTable('gnap_tokens')
      .set({ revoked_at_ms: atMs })
      .where('id', '=', id)
      .where('revoked_at_ms', 'is', null)
      .execute()
  }

  /** Tokens that this principal approved and that are usable or renewable, newest first. At most `most`. */
  async approvedBy(principal: string, nowMs: number, most: number): Promise<readonly GnapTokenRecord[]> {
    const found = this.#db.selectFrom('gnap_tokens').selectAll().where('approved_by', '=', principal)
    const good = found.where('revoked_at_ms', 'is', null).where('ends_at_ms', '>', nowMs)
    return (await good.orderBy('ends_at_ms', 'desc').orderBy('id').limit(most).execute()).map(record)
  }

  /** Revokes the tokens of this key that this principal approved. */
  async revokeApproved(
    principal: string,
    thumbprint: string,
    atMs: number,
    queries: Queries,
  ): Promise<number> {
    const { numUpdatedRows } = await queries
      .updateTable('gnap_tokens')
      .set({ revoked_at_ms: atMs })
      .where('approved_by', '=', principal)
      .where('thumbprint', '=', thumbprint)
      .where('revoked_at_ms', 'is', null)
      .executeTakeFirst()
    return Number(numUpdatedRows)
  }

  /** Deletes expired tokens, at most `rowsMax`. Resolves to their number. */
  async forget(nowMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('gnap_tokens')
      .where('id', 'in', (some) =>
        some.selectFrom('gnap_tokens').select('id').where('ends_at_ms', '<=', nowMs).limit(rowsMax),
      )
      // It may have been renewed meanwhile.
      .where('ends_at_ms', '<=', nowMs)
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

function record(row: Selectable<GnapTokenTable>): GnapTokenRecord {
  const { id, thumbprint, name, label } = row
  return {
    id,
    thumbprint,
    name,
    label,
    jwk: storedObject(row.jwk),
    scopes: storedTexts(row.scopes),
    isBearer: row.is_bearer === 1,
    isApproved: row.is_approved === 1,
    approved: decidedIn(row.approved_by, row.approved_at_ms),
    expiresAtMs: row.expires_at_ms,
    endsAtMs: row.ends_at_ms,
    revokedAtMs: row.revoked_at_ms,
  }
}
