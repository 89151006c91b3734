import type { Kysely, Selectable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import type { OAuthRecordTable } from '../engine/tables/oauth.ts'
import type { Tables } from '../engine/tables.ts'

/** A record of the authorization server. Its names are digests, and its content is sealed. */
export interface OAuthRecord {
  readonly id: string
  readonly kind: string
  readonly sealed: string
  readonly grantId: string | null
  readonly uid: string | null
  readonly userCode: string | null
  readonly clientId: string | null
  readonly personId: string | null
  readonly expiresAtMs: number
  readonly consumedAtMs: number | null
}

export class OAuthRecordStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Inserts the record, or replaces the existing one. */
  async put(record: Omit<OAuthRecord, 'consumedAtMs'>): Promise<void> {
    const { id, ...row } = rowOf(record)
    await this.#db
      .insertInto('oauth_records')
      .values({ id, ...row })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
      .execute()
  }

  /** `false`: it exists and has not expired. Of several concurrent calls, one succeeds. */
  async putOnce(record: Omit<OAuthRecord, 'consumedAtMs'>, nowMs: number): Promise<boolean> {
    const { id, ...row } = rowOf(record)
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('oauth_records')
      .values({ id, ...row })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet(row).where('oauth_records.expires_at_ms', '<=', nowMs),
      )
      .executeTakeFirst()
    return (numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  async byId(id: string): Promise<OAuthRecord | null> {
    return this.#one('id', id)
  }

  async byUid(uid: string): Promise<OAuthRecord | null> {
    return this.#one('uid', uid)
  }

  async byUserCode(userCode: string): Promise<OAuthRecord | null> {
    return this.#one('user_code', userCode)
  }

  /** `false`: it does not exist, or was consumed before. */
  async consume(id: string, atMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('oauth_records')
      .set({ consumed_at_ms: atMs })
      .where('id', '=', id)
      .where('consumed_at_ms', 'is', null)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  async remove(id: string, queries: Queries = this.#db): Promise<void> {
    await queries.deleteFrom('oauth_records').where('id', '=', id).execute()
  }

  /** Removes everything that was issued under the grant. */
  async removeGrant(grantId: string, queries: Queries): Promise<void> {
    await queries.deleteFrom('oauth_records').where('grant_id', '=', grantId).execute()
  }

  async removeClient(clientId: string, queries: Queries): Promise<void> {
    await queries.deleteFrom('oauth_records').where('client_id', '=', clientId).execute()
  }

  /** Removes a person's sessions and consents. Resolves to the ids of the removed grants. */
  async removePerson(personId: string, queries: Queries): Promise<readonly string[]> {
    const removed = queries.deleteFrom('oauth_records').where('person_id', '=', personId)
    const rows = await removed.returning(['id', 'kind']).execute()
    return rows.filter(({ kind }) => kind === GRANT).map(({ id }) => id)
  }

  /** A person's consents that have not expired, the latest expiry first. At most `most`. */
  async grantsOf(personId: string, nowMs: number, most: number): Promise<readonly OAuthRecord[]> {
    const found = this.#db.selectFrom('oauth_records').selectAll().where('person_id', '=', personId)
    const good = found.where('kind', '=', GRANT).where('expires_at_ms', '>', nowMs)
    const ofClients = good.where('client_id', 'is not', null)
    const rows = await ofClients.orderBy('expires_at_ms', 'desc').orderBy('id').limit(most).execute()
    return rows.map(recordOf)
  }

  /** Removes a person's consents for one client. Resolves to the ids of the removed grants. */
  async removePersonsClient(
    personId: string,
    clientId: string,
    queries: Queries,
  ): Promise<readonly string[]> {
    const removed = queries.deleteFrom('oauth_records').where('person_id', '=', personId)
    const rows = await removed.where('client_id', '=', clientId).returning(['id', 'kind']).execute()
    return rows.filter(({ kind }) => kind === GRANT).map(({ id }) => id)
  }

  /** Deletes expired records, at most `rowsMax`. Resolves to their number. */
  async forget(nowMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('oauth_records')
      .where('id', 'in', (eb) =>
        eb.selectFrom('oauth_records').select('id').where('expires_at_ms', '<=', nowMs).limit(rowsMax),
      )
      // It may have been replaced meanwhile.
      .where('expires_at_ms', '<=', nowMs)
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  async #one(column: 'id' | 'uid' | 'user_code', value: string): Promise<OAuthRecord | null> {
    const found = this.#db.selectFrom('oauth_records').selectAll().where(column, '=', value)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }
}

function rowOf(record: Omit<OAuthRecord, 'consumedAtMs'>) {
  const { id, kind, sealed } = record
  return {
    id,
    kind,
    sealed,
    grant_id: record.grantId,
    uid: record.uid,
    user_code: record.userCode,
    client_id: record.clientId,
    person_id: record.personId,
    expires_at_ms: record.expiresAtMs,
  }
}

function recordOf(row: Selectable<OAuthRecordTable>): OAuthRecord {
  const { id, kind, sealed, uid } = row
  return {
    id,
    kind,
    sealed,
    uid,
    grantId: row.grant_id,
    userCode: row.user_code,
    clientId: row.client_id,
    personId: row.person_id,
    expiresAtMs: row.expires_at_ms,
    consumedAtMs: row.consumed_at_ms,
  }
}

/** The name of a consent in oidc-provider. */
const GRANT = 'Grant'
