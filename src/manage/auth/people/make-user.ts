import { type AppList, joinedApps } from '../../../apps/app-scope.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type { PasskeyRecord } from '../../../store/people/passkeys.ts'
import type { Store } from '../../../store/store.ts'
import type { OpenidAccount, UserRecord } from '../../../store/people/users.ts'
import { type Actor, type Change, changed } from '../../http/audit.ts'
import { newId } from '../../http/ids.ts'
import { Refusal } from '../../http/refusal.ts'
import type { Sealer } from '../sealer.ts'
import { DENIED_MS } from '../oauth/denials.ts'
import { SCOPES, type Scope } from '../../http/access/principal.ts'
import { hashOfRecoveryCode, newCodeSecret, newRecoveryCodes } from './one-time-codes.ts'
import type { PasswordHasher } from './password-hash.ts'

// Changes to accounts, for the API and the command line.

export interface WantedUser {
  /** As `emailIn` returns it. */
  readonly email: string
  /** Valid for `passwordProblem`. `null`: the person cannot sign in before a password is set. */
  readonly password: string | null
  readonly scopes: readonly Scope[]
  readonly apps: AppList
}

/** Normalizes an email address. `null`: invalid. */
export function emailIn(text: string): string | null {
  const email = text.trim().normalize('NFC').toLowerCase()
  return email.length <= EMAIL_LENGTH_MAX && email.isWellFormed() && EMAIL.test(email) ? email : null
}

/** `null`: an account with this address exists. */
export async function makeUser(
  store: Store,
  hasher: PasswordHasher,
  { email, password, scopes, apps }: WantedUser,
  actor: Actor,
  nowMs: number,
): Promise<UserRecord | null> {
  const hash = password === null ? null : await hasher.hash(password)
  const user = { id: newId('usr'), email, scopes, apps, createdAtMs: nowMs }
  const change = { action: 'createUser', subject: user.id, apps, detail: { email, scopes, apps } }
  const isMade = await done(store, actor, change, nowMs, (queries) =>
    store.users.add({ ...user, password: hash }, queries),
  )
  const proofs = {
    hasPassword: hash !== null,
    hasCodes: false,
    signedInSinceMs: 0,
    isDisabled: false,
    openid: null,
  }
  return isMade ? { ...user, ...proofs } : null
}

/** Also signs the person out everywhere. `false`: the account no longer exists. */
export function deleteUser(store: Store, user: UserRecord, actor: Actor, nowMs: number): Promise<boolean> {
  const { id: subject, email, apps } = user
  return done(
    store,
    actor,
    { action: 'deleteUser', subject, apps, detail: { email } },
    nowMs,
    async (queries) => {
      await signOutEverywhere(store, subject, nowMs, queries)
      return store.users.remove(subject, queries)
    },
  )
}

interface PasswordStore {
  readonly store: Store
  readonly hasher: PasswordHasher
}

/** Also signs the person out everywhere. `false`: the account no longer exists. */
export async function setPassword(
  { store, hasher }: PasswordStore,
  { id: subject, email, apps }: UserRecord,
  password: string,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const hash = await hasher.hash(password)
  return done(
    store,
    actor,
    { action: 'changePassword', subject, apps, detail: { email } },
    nowMs,
    async (queries) => {
      await signOutEverywhere(store, subject, nowMs, queries)
      return store.users.setPassword(subject, hash, nowMs, queries)
    },
  )
}

/** An administrator's changes. Missing members stay as they are. */
export interface UserChanges {
  readonly scopes?: readonly Scope[]
  readonly apps?: AppList
  /** Valid for `passwordProblem`. Signs the person out everywhere. */
  readonly password?: string
  /** Turns off one-time codes; only the person can turn them on again. */
  readonly withoutCodes?: boolean
  /** Removes all passkeys. */
  readonly withoutPasskeys?: boolean
  /** Removes the password. Signs the person out everywhere. */
  readonly withoutPassword?: boolean
  /** Disabling signs the person out everywhere. */
  readonly isDisabled?: boolean
}

/**
 * Makes all changes or none. Access given to programs shrinks within a second. `false`: the account no longer
 * exists.
 */
export async function changeUser(
  { store, hasher }: PasswordStore,
  { id: subject, email, apps: before }: UserRecord,
  { scopes, apps, password, isDisabled, ...without }: UserChanges,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const { withoutCodes, withoutPasskeys, withoutPassword = false } = without
  const hash = password === undefined ? null : await hasher.hash(password)
  const detail = {
    email,
    ...(scopes !== undefined && { scopes }),
    ...(apps !== undefined && { apps }),
    ...(hash !== null && { password: 'set' }),
    ...(withoutPassword && { password: 'removed' }),
    ...(withoutCodes === true && { one_time_codes: false }),
    ...(withoutPasskeys === true && { passkeys: false }),
    ...(isDisabled !== undefined && { disabled: isDisabled }),
  }
  const change = { action: 'updateUser', subject, apps: joinedApps(before, apps ?? []), detail }
  return done(store, actor, change, nowMs, async (queries) => {
    const { users } = store
    const isNew = hash !== null || withoutPassword
    const isOut = isNew || isDisabled === true
    if (isOut) await signOutEverywhere(store, subject, nowMs, queries)
    const steps = [
      ...(isOut ? [() => users.signOut(subject, nowMs, queries)] : []),
      ...(scopes === undefined ? [] : [() => users.setScopes(subject, scopes, queries)]),
      ...(apps === undefined ? [] : [() => users.setApps(subject, apps, queries)]),
      ...(isNew ? [() => users.setPassword(subject, hash, nowMs, queries)] : []),
      ...(withoutCodes === true ? [() => users.setCodes(subject, null, [], queries)] : []),
      ...(isDisabled === undefined
        ? []
        : [() => users.setDisabled(subject, isDisabled ? nowMs : null, queries)]),
    ]
    for (const step of steps) if (!(await step())) return false
    if (withoutPasskeys === true) await store.passkeys.removeAll(subject, queries)
    return true
  })
}

/** Ends all sessions and all access given to programs. `false`: the account no longer exists. */
export function endSessions(
  store: Store,
  { id: subject, email, apps }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'signOutEverywhere', subject, apps, detail: { email } }
  return done(store, actor, change, nowMs, async (queries) => {
    await signOutEverywhere(store, subject, nowMs, queries)
    return store.users.signOut(subject, nowMs, queries)
  })
}

/** The new secret and recovery codes, which replace the old ones. Only this answer contains them. */
interface NewCodes {
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** A secret that the person has already set up in an app. */
interface ChosenCodes {
  readonly secret: string
  /** The step of the code that confirmed it, which cannot be used again. `null`: none. */
  readonly usedStep: number | null
}

/** `null`: the account no longer exists. */
export async function startCodes(
  { store, sealer }: { readonly store: Store; readonly sealer: Sealer },
  { id: subject, email, apps }: UserRecord,
  actor: Actor,
  nowMs: number,
  { secret, usedStep }: ChosenCodes = { secret: newCodeSecret(), usedStep: null },
): Promise<NewCodes | null> {
  const codes = { secret, recoveryCodes: newRecoveryCodes() }
  const sealed = await sealer.seal(codes.secret, sealedAs(subject))
  const hashes = codes.recoveryCodes.map((code) => hashOfRecoveryCode(code)!)
  const change = { action: 'startOneTimeCodes', subject, apps, detail: { email } }
  const isDone = await done(store, actor, change, nowMs, (queries) =>
    store.users.setCodes(subject, sealed, hashes, queries, usedStep),
  )
  return isDone ? codes : null
}

/** `false`: the account no longer exists. */
export function stopCodes(
  store: Store,
  { id: subject, email, apps }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'stopOneTimeCodes', subject, apps, detail: { email } }
  return done(store, actor, change, nowMs, (queries) => store.users.setCodes(subject, null, [], queries))
}

/**
 * Binds the account to an account at the OpenID provider. If it was bound to another one, also signs the
 * person out everywhere. `false`: the account no longer exists, or another account has this binding.
 */
export function setOpenid(
  store: Store,
  { id: subject, email, apps, openid: before }: UserRecord,
  openid: OpenidAccount,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'setOpenid', subject, apps, detail: { email, ...openid } }
  return done(store, actor, change, nowMs, async (queries) => {
    if (before !== null) {
      await signOutEverywhere(store, subject, nowMs, queries)
      await store.users.unbind(subject, nowMs, queries)
    }
    return store.users.bind(subject, openid, queries)
  })
}

/** Also signs the person out everywhere. `false`: the account no longer exists. */
export function forgetOpenid(
  store: Store,
  { id: subject, email, apps }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  return done(
    store,
    actor,
    { action: 'forgetOpenid', subject, apps, detail: { email } },
    nowMs,
    async (queries) => {
      await signOutEverywhere(store, subject, nowMs, queries)
      return store.users.unbind(subject, nowMs, queries)
    },
  )
}

/**
 * `false`: the passkey is known already, or the account no longer exists. Throws a Refusal if there are too
 * many.
 */
export async function addPasskey(
  store: Store,
  { id: subject, email, apps }: UserRecord,
  passkey: Pick<PasskeyRecord, 'id' | 'publicKey' | 'counter' | 'name'>,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const { id, name } = passkey
  const change = { action: 'addPasskey', subject, apps, detail: { email, passkey: id, name } }
  return done(store, actor, change, nowMs, async (queries) => {
    if ((await store.passkeys.ofUser(subject, queries)).length >= PASSKEYS_MAX)
      throw new Refusal('conflict', `you already have ${PASSKEYS_MAX} passkeys, the maximum`)
    return store.passkeys.add({ ...passkey, userId: subject, createdAtMs: nowMs, usedAtMs: null }, queries)
  })
}

/** `false`: this person has no passkey with this id. */
export function removePasskey(
  store: Store,
  { id: subject, email, apps }: UserRecord,
  id: string,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'removePasskey', subject, apps, detail: { email, passkey: id } }
  return done(store, actor, change, nowMs, (queries) => store.passkeys.remove(subject, id, queries))
}

/** Ignores scopes that this version does not know. */
export function scopesOf({ scopes }: Pick<UserRecord, 'scopes'>): readonly Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}

/** The purpose the secret of one-time codes is sealed for. */
export function sealedAs(userId: string): string {
  return `one-time codes of ${userId}`
}

/**
 * Ends all sessions, and the access given to programs. A concurrent request can still write a session or
 * token afterwards: the session is older than `signedInSinceMs`, and the token's grant is gone.
 */
export async function signOutEverywhere(
  store: Store,
  id: string,
  nowMs: number,
  queries: Queries,
): Promise<void> {
  for (const grant of await store.oauthRecords.removePerson(id, queries)) {
    const denial = { kind: 'grant', id: grant, atMs: nowMs, expiresAtMs: nowMs + DENIED_MS } as const
    await store.oauthDenials.add(denial, queries)
  }
}

/** `false`: nothing changed, and nothing was written to the audit log. */
async function done(
  store: Store,
  actor: Actor,
  change: Change,
  nowMs: number,
  work: (queries: Queries) => Promise<boolean>,
): Promise<boolean> {
  try {
    await changed(store, actor, change, nowMs, async (queries) => {
      if (!(await work(queries))) throw NOTHING_DONE
    })
    return true
  } catch (error) {
    if (error === NOTHING_DONE) return false
    throw error
  }
}

/** OpenID Connect Core 1.0 §2. */
export const OPENID_SUBJECT = /^[\x20-\x7e]{1,255}$/
const NOTHING_DONE = new Error('nothing done')
/** More than one person has devices. */
const PASSKEYS_MAX = 20
/** RFC 5321 §4.5.3.1.3. */
export const EMAIL_LENGTH_MAX = 254
/** Looser than the standard: only delivery shows whether an address exists. */
const EMAIL = /^[^\s@\p{Cc}\p{Bidi_Control}]+@[^\s@\p{Cc}\p{Bidi_Control}]+$/u
