import type { Kysely, Selectable, Updateable } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedTexts } from '../engine/stored.ts'
import type { UserTable } from '../engine/tables/users.ts'
import type { Tables } from '../engine/tables.ts'

/** Somebody who signs in, less what they prove it with. */
export interface UserRecord {
  readonly id: string
  readonly email: string
  readonly scopes: readonly string[]
  readonly createdAtMs: number
  readonly hasPassword: boolean
  /** Whether a one-time code is asked for. */
  readonly hasCodes: boolean
  /** Who signed in before is not signed in any more. */
  readonly signedInSinceMs: number
  /** They cannot sign in, and nothing that they have let others do is good. */
  readonly isDisabled: boolean
  /** Who they are elsewhere; `null`: nobody has said. */
  readonly openid: OpenidAccount | null
}

/** Somebody as an OpenID provider knows them for good, whatever their address is. */
export interface OpenidAccount {
  readonly issuer: string
  readonly subject: string
}

/** What somebody proves with who they are. */
export interface UserProofs {
  /** A hash. */
  readonly password: string | null
  /** What one-time codes are made of, encrypted. */
  readonly codes: string | null
}

export type NewUser = Pick<UserRecord, 'id' | 'email' | 'scopes' | 'createdAtMs'> & {
  readonly password: string | null
}

export class UserStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** `false`: there is somebody of this address. */
  async add({ id, email, password, scopes, createdAtMs }: NewUser, queries: Queries): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('users')
      .values({
        ...{ id, email, password, scopes: JSON.stringify(scopes), created_at_ms: createdAtMs },
        signed_in_since_ms: 0,
      })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .executeTakeFirst()
    return (numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  async isAnybody(): Promise<boolean> {
    const found = this.#db.selectFrom('users').select('id').limit(1)
    return (await found.executeTakeFirst()) !== undefined
  }

  async byId(id: string): Promise<UserRecord | null> {
    const row = await this.#db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }

  async byEmail(email: string): Promise<(UserRecord & UserProofs) | null> {
    const found = this.#db.selectFrom('users').selectAll().where('email', '=', email)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : { ...recordOf(row), password: row.password, codes: row.totp }
  }

  async byOpenid({ issuer, subject }: OpenidAccount): Promise<UserRecord | null> {
    const found = this.#db.selectFrom('users').selectAll().where('openid_issuer', '=', issuer)
    const row = await found.where('openid_subject', '=', subject).executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }

  /** Newest first. */
  async list<Asked extends Part>(part: Asked): Promise<PartOf<UserRecord, Asked>> {
    const found = this.#db.selectFrom('users')
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, recordOf)
  }

  /** `false`: they are not there any more. */
  async remove(id: string, queries: Queries): Promise<boolean> {
    const { numDeletedRows } = await queries.deleteFrom('users').where('id', '=', id).executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** Who is signed in is not any more. `false`: they are not there. */
  setPassword(id: string, hash: string | null, atMs: number, queries: Queries): Promise<boolean> {
    return this.#change(id, { password: hash, signed_in_since_ms: atMs }, queries)
  }

  /** Who is signed in is not any more. `false`: they are not there. */
  signOut(id: string, atMs: number, queries: Queries): Promise<boolean> {
    return this.#change(id, { signed_in_since_ms: atMs }, queries)
  }

  /** `false`: they are not there. */
  setScopes(id: string, scopes: readonly string[], queries: Queries): Promise<boolean> {
    return this.#change(id, { scopes: JSON.stringify(scopes) }, queries)
  }

  /** From then on; `null`: they may sign in. `false`: they are not there. */
  setDisabled(id: string, atMs: number | null, queries: Queries): Promise<boolean> {
    return this.#change(id, { disabled_at_ms: atMs }, queries)
  }

  /** Of who has no account there yet. `false`: they have one, or are not there, or it is somebody else's. */
  async bind(id: string, { issuer, subject }: OpenidAccount, queries: Queries): Promise<boolean> {
    const changed = queries
      .updateTable('users')
      .set({ openid_issuer: issuer, openid_subject: subject })
      .where('id', '=', id)
      .where('openid_subject', 'is', null)
      .where(({ not, exists, selectFrom }) => {
        const others = selectFrom('users as other')
          .select('other.id')
          .where('other.openid_issuer', '=', issuer)
        return not(exists(others.where('other.openid_subject', '=', subject)))
      })
    return (await changed.executeTakeFirst()).numUpdatedRows > 0n
  }

  /** Who is signed in is not any more. `false`: they are not there. */
  async unbind(id: string, atMs: number, queries: Queries): Promise<boolean> {
    const changes = { openid_issuer: null, openid_subject: null, signed_in_since_ms: atMs }
    const changed = queries.updateTable('users').set(changes).where('id', '=', id)
    return (await changed.executeTakeFirst()).numUpdatedRows > 0n
  }

  /** The same password, hashed anew: unless it has been changed meanwhile. */
  async rehash(id: string, from: string, to: string): Promise<void> {
    const changed = this.#db.updateTable('users').set({ password: to }).where('id', '=', id)
    await changed.where('password', '=', from).execute()
  }

  /** One-time codes are asked for from now on, or not any more. `false`: they are not there. */
  async setCodes(
    id: string,
    sealed: string | null,
    recoveryHashes: readonly string[],
    queries: Queries,
    /** That of the code that was used already; `null`: none was. */
    usedStep: number | null = null,
  ): Promise<boolean> {
    if (!(await this.#change(id, { totp: sealed, totp_step: usedStep }, queries))) return false
    await queries.deleteFrom('user_recovery_codes').where('user_id', '=', id).execute()
    const rows = recoveryHashes.map((hash) => ({ user_id: id, hash }))
    if (rows.length > 0) await queries.insertInto('user_recovery_codes').values(rows).execute()
    return true
  }

  /** `false`: it, or a newer one, was used before. Of several who use it at once one does. */
  async useCode(id: string, step: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('users')
      .set({ totp_step: step })
      .where('id', '=', id)
      .where(({ eb, or }) => or([eb('totp_step', 'is', null), eb('totp_step', '<', step)]))
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** `false`: there is none such, or it was used before. */
  async useRecoveryCode(id: string, hash: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('user_recovery_codes')
      .where('user_id', '=', id)
      .where('hash', '=', hash)
      .executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** How many are left. */
  async recoveryCodes(id: string): Promise<number> {
    const counted = this.#db
      .selectFrom('user_recovery_codes')
      .select(({ fn }) => fn.countAll<number>().as('total'))
    return Number((await counted.where('user_id', '=', id).executeTakeFirstOrThrow()).total)
  }

  async #change(id: string, changes: Updateable<UserTable>, queries: Queries): Promise<boolean> {
    const changed = queries.updateTable('users').set(changes).where('id', '=', id)
    return (await changed.executeTakeFirst()).numUpdatedRows > 0n
  }
}

function recordOf(row: Selectable<UserTable>): UserRecord {
  const { id, email, openid_issuer: issuer, openid_subject: subject } = row
  return {
    ...{ id, email, scopes: storedTexts(row.scopes) },
    createdAtMs: row.created_at_ms,
    hasPassword: row.password !== null,
    hasCodes: row.totp !== null,
    signedInSinceMs: row.signed_in_since_ms,
    openid: issuer === null || subject === null ? null : { issuer, subject },
    isDisabled: row.disabled_at_ms !== null,
  }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'users.created_at_ms', kind: 'whole' },
    { name: 'users.id', kind: 'text' },
  ],
  isDescending: true,
}
