import type { Kysely, Selectable, Updateable } from 'kysely'
import type { AppList, AppScope } from '../../apps/app-scope.ts'
import { rowIsWithin, storedApps } from '../engine/app-lists.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedTexts } from '../engine/stored.ts'
import type { UserTable } from '../engine/tables/users.ts'
import type { Tables } from '../engine/tables.ts'

/** A person who can sign in, without credentials. */
export interface UserRecord {
  readonly id: string
  readonly email: string
  readonly scopes: readonly string[]
  /** The apps whose objects they may see. */
  readonly apps: AppList
  readonly createdAtMs: number
  readonly hasPassword: boolean
  /** Whether sign-in requires a one-time code. */
  readonly hasCodes: boolean
  /** Sessions from before then are invalid. */
  readonly signedInSinceMs: number
  /** The user cannot sign in, and all access that they granted is invalid. */
  readonly isDisabled: boolean
  /** The linked OpenID account; `null`: not linked. */
  readonly openid: OpenidAccount | null
}

/** The permanent identity at an OpenID provider, independent of the email address. */
export interface OpenidAccount {
  readonly issuer: string
  readonly subject: string
}

/** The credentials of a user. */
export interface UserProofs {
  /** A hash. */
  readonly password: string | null
  /** The secret of one-time codes, encrypted. */
  readonly codes: string | null
}

export type NewUser = Pick<UserRecord, 'id' | 'email' | 'scopes' | 'apps' | 'createdAtMs'> & {
  readonly password: string | null
}

export class UserStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** `false`: the email address is taken. */
  async add(user: NewUser, queries: Queries): Promise<boolean> {
    const { id, email, password, scopes, apps, createdAtMs } = user
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('users')
      .values({
        id,
        email,
        password,
        scopes: JSON.stringify(scopes),
        apps: JSON.stringify(apps),
        created_at_ms: createdAtMs,
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

  /** Those within the apps, newest first. */
  async list<Asked extends Part>(part: Asked, apps: AppScope): Promise<PartOf<UserRecord, Asked>> {
    const found = this.#db.selectFrom('users').where(rowIsWithin(this.#kind, 'users.apps', apps))
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, recordOf)
  }

  /** `false`: the user does not exist any more. */
  async remove(id: string, queries: Queries): Promise<boolean> {
    const { numDeletedRows } = await queries.deleteFrom('users').where('id', '=', id).executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** Also ends all sessions. `false`: the user does not exist. */
  setPassword(id: string, hash: string | null, atMs: number, queries: Queries): Promise<boolean> {
    return this.#change(id, { password: hash, signed_in_since_ms: atMs }, queries)
  }

  /** Ends all sessions. `false`: the user does not exist. */
  signOut(id: string, atMs: number, queries: Queries): Promise<boolean> {
    return this.#change(id, { signed_in_since_ms: atMs }, queries)
  }

  /** `false`: the user does not exist. */
  setScopes(id: string, scopes: readonly string[], queries: Queries): Promise<boolean> {
    return this.#change(id, { scopes: JSON.stringify(scopes) }, queries)
  }

  /** `false`: the user does not exist. */
  setApps(id: string, apps: AppList, queries: Queries): Promise<boolean> {
    return this.#change(id, { apps: JSON.stringify(apps) }, queries)
  }

  /** `atMs`: disabled since then; `null`: enabled. `false`: the user does not exist. */
  setDisabled(id: string, atMs: number | null, queries: Queries): Promise<boolean> {
    return this.#change(id, { disabled_at_ms: atMs }, queries)
  }

  /**
   * Links an OpenID account. `false`: the user has one already or does not exist,
   * or it belongs to another user.
   */
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

  /** Unlinks the OpenID account and ends all sessions. `false`: the user does not exist. */
  async unbind(id: string, atMs: number, queries: Queries): Promise<boolean> {
    const changes = { openid_issuer: null, openid_subject: null, signed_in_since_ms: atMs }
    const changed = queries.updateTable('users').set(changes).where('id', '=', id)
    return (await changed.executeTakeFirst()).numUpdatedRows > 0n
  }

  /** Stores a new hash of the same password, unless the password has changed meanwhile. */
  async rehash(id: string, from: string, to: string): Promise<void> {
    const changed = this.#db.updateTable('users').set({ password: to }).where('id', '=', id)
    await changed.where('password', '=', from).execute()
  }

  /** Enables or disables one-time codes. `false`: the user does not exist. */
  async setCodes(
    id: string,
    sealed: string | null,
    recoveryHashes: readonly string[],
    queries: Queries,
    /** The step of a code that was already used; `null`: none. */
    usedStep: number | null = null,
  ): Promise<boolean> {
    if (!(await this.#change(id, { totp: sealed, totp_step: usedStep }, queries))) return false
    await queries.deleteFrom('user_recovery_codes').where('user_id', '=', id).execute()
    const rows = recoveryHashes.map((hash) => ({ user_id: id, hash }))
    if (rows.length > 0) await queries.insertInto('user_recovery_codes').values(rows).execute()
    return true
  }

  /** `false`: this or a newer code was used before. Of several concurrent uses, one succeeds. */
  async useCode(id: string, step: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('users')
      .set({ totp_step: step })
      .where('id', '=', id)
      .where(({ eb, or }) => or([eb('totp_step', 'is', null), eb('totp_step', '<', step)]))
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** `false`: the code does not exist, or was used before. */
  async useRecoveryCode(id: string, hash: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('user_recovery_codes')
      .where('user_id', '=', id)
      .where('hash', '=', hash)
      .executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** The number of unused recovery codes. */
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
    id,
    email,
    scopes: storedTexts(row.scopes),
    apps: storedApps(row.apps),
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
