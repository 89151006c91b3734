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

// What is done to people who sign in, by the API and the command line alike.

export interface WantedUser {
  /** As `emailIn` gives it. */
  readonly email: string
  /** Without a problem; `null`: they cannot sign in before one is set. */
  readonly password: string | null
  readonly scopes: readonly Scope[]
}

/** In the one form that all its spellings have; `null`: it is none. */
export function emailIn(text: string): string | null {
  const email = text.trim().normalize('NFC').toLowerCase()
  return email.length <= EMAIL_LENGTH_MAX && email.isWellFormed() && EMAIL.test(email) ? email : null
}

/** `null`: there is somebody of this address. */
export async function makeUser(
  store: Store,
  hasher: PasswordHasher,
  { email, password, scopes }: WantedUser,
  actor: Actor,
  nowMs: number,
): Promise<UserRecord | null> {
  const hash = password === null ? null : await hasher.hash(password)
  const user = { id: newId('usr'), email, scopes, createdAtMs: nowMs }
  const change = { action: 'createUser', subject: user.id, detail: { email, scopes } }
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

/** They are signed out everywhere. `false`: they are not there any more. */
export function deleteUser(store: Store, user: UserRecord, actor: Actor, nowMs: number): Promise<boolean> {
  const { id: subject, email } = user
  return done(store, actor, { action: 'deleteUser', subject, detail: { email } }, nowMs, async (queries) => {
    await signOutEverywhere(store, subject, nowMs, queries)
    return store.users.remove(subject, queries)
  })
}

/** They are signed out everywhere. `false`: they are not there any more. */
export async function setPassword(
  store: Store,
  hasher: PasswordHasher,
  { id: subject, email }: UserRecord,
  password: string,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const hash = await hasher.hash(password)
  return done(
    store,
    actor,
    { action: 'changePassword', subject, detail: { email } },
    nowMs,
    async (queries) => {
      await signOutEverywhere(store, subject, nowMs, queries)
      return store.users.setPassword(subject, hash, nowMs, queries)
    },
  )
}

/** What an administrator changes; what is not there stays. */
export interface UserChanges {
  readonly scopes?: readonly Scope[]
  /** Without a problem. They are signed out everywhere. */
  readonly password?: string
  /** One-time codes are asked for no more; only their owner can begin with them. */
  readonly withoutCodes?: boolean
  /** All that they have are removed. */
  readonly withoutPasskeys?: boolean
  /** They are signed out everywhere when it begins. */
  readonly isDisabled?: boolean
}

/** All of it or nothing. What they have let others do gets less within a second. `false`: they are not there any more. */
export async function changeUser(
  store: Store,
  hasher: PasswordHasher,
  { id: subject, email }: UserRecord,
  { scopes, password, withoutCodes, withoutPasskeys, isDisabled }: UserChanges,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const hash = password === undefined ? null : await hasher.hash(password)
  const detail = {
    email,
    ...(scopes !== undefined && { scopes }),
    ...(hash !== null && { password: 'set' }),
    ...(withoutCodes === true && { one_time_codes: false }),
    ...(withoutPasskeys === true && { passkeys: false }),
    ...(isDisabled !== undefined && { disabled: isDisabled }),
  }
  return done(store, actor, { action: 'updateUser', subject, detail }, nowMs, async (queries) => {
    const { users } = store
    const isOut = hash !== null || isDisabled === true
    if (isOut) await signOutEverywhere(store, subject, nowMs, queries)
    const steps = [
      ...(isOut ? [() => users.signOut(subject, nowMs, queries)] : []),
      ...(scopes === undefined ? [] : [() => users.setScopes(subject, scopes, queries)]),
      ...(hash === null ? [] : [() => users.setPassword(subject, hash, nowMs, queries)]),
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

/** In every browser, and what they have let others do is over. `false`: they are not there any more. */
export function endSessions(
  store: Store,
  { id: subject, email }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'signOutEverywhere', subject, detail: { email } }
  return done(store, actor, change, nowMs, async (queries) => {
    await signOutEverywhere(store, subject, nowMs, queries)
    return store.users.signOut(subject, nowMs, queries)
  })
}

/** What is asked for beside the password from now on, in the place of what was before. It is shown here only. */
export interface NewCodes {
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** What somebody has shown to have in an app already. */
export interface ChosenCodes {
  readonly secret: string
  /** Of the code that they have shown it with, which opens nothing any more; `null`: none. */
  readonly usedStep: number | null
}

/** `null`: they are not there any more. */
export async function startCodes(
  store: Store,
  sealer: Sealer,
  { id: subject, email }: UserRecord,
  actor: Actor,
  nowMs: number,
  { secret, usedStep }: ChosenCodes = { secret: newCodeSecret(), usedStep: null },
): Promise<NewCodes | null> {
  const codes = { secret, recoveryCodes: newRecoveryCodes() }
  const sealed = await sealer.seal(codes.secret, sealedAs(subject))
  const hashes = codes.recoveryCodes.map((code) => hashOfRecoveryCode(code)!)
  const change = { action: 'startOneTimeCodes', subject, detail: { email } }
  const isDone = await done(store, actor, change, nowMs, (queries) =>
    store.users.setCodes(subject, sealed, hashes, queries, usedStep),
  )
  return isDone ? codes : null
}

/** `false`: they are not there any more. */
export function stopCodes(
  store: Store,
  { id: subject, email }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'stopOneTimeCodes', subject, detail: { email } }
  return done(store, actor, change, nowMs, (queries) => store.users.setCodes(subject, null, [], queries))
}

/**
 * From now on they are who the provider calls so, in the place of whom it called so before, who is signed out everywhere.
 * `false`: they are not there any more, or somebody else is that one.
 */
export function setOpenid(
  store: Store,
  { id: subject, email, openid: before }: UserRecord,
  openid: OpenidAccount,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'setOpenid', subject, detail: { email, ...openid } }
  return done(store, actor, change, nowMs, async (queries) => {
    if (before !== null) {
      await signOutEverywhere(store, subject, nowMs, queries)
      await store.users.unbind(subject, nowMs, queries)
    }
    return store.users.bind(subject, openid, queries)
  })
}

/** They are signed out everywhere. `false`: they are not there any more. */
export function forgetOpenid(
  store: Store,
  { id: subject, email }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  return done(
    store,
    actor,
    { action: 'forgetOpenid', subject, detail: { email } },
    nowMs,
    async (queries) => {
      await signOutEverywhere(store, subject, nowMs, queries)
      return store.users.unbind(subject, nowMs, queries)
    },
  )
}

/** `false`: it is known already, or they are not there any more. Throws a Refusal where they have too many. */
export async function addPasskey(
  store: Store,
  { id: subject, email }: UserRecord,
  passkey: Pick<PasskeyRecord, 'id' | 'publicKey' | 'counter' | 'name'>,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const { id, name } = passkey
  const change = { action: 'addPasskey', subject, detail: { email, passkey: id, name } }
  return done(store, actor, change, nowMs, async (queries) => {
    if ((await store.passkeys.ofUser(subject, queries)).length >= PASSKEYS_MAX)
      throw new Refusal('conflict', `you have ${PASSKEYS_MAX} passkeys, and there cannot be more`)
    return store.passkeys.add({ ...passkey, userId: subject, createdAtMs: nowMs, usedAtMs: null }, queries)
  })
}

/** `false`: they have none of this id. */
export function removePasskey(
  store: Store,
  { id: subject, email }: UserRecord,
  id: string,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'removePasskey', subject, detail: { email, passkey: id } }
  return done(store, actor, change, nowMs, (queries) => store.passkeys.remove(subject, id, queries))
}

/** What this version does not know of gives nothing. */
export function scopesOf({ scopes }: Pick<UserRecord, 'scopes'>): readonly Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}

/** What the secret of one person's codes is sealed as. */
export function sealedAs(userId: string): string {
  return `one-time codes of ${userId}`
}

/**
 * In no browser, and nobody goes on in their name. What is under way in this moment may be written after this: a session
 * is then older than `signedInSinceMs`, and what came of a grant is worth nothing without it.
 */
async function signOutEverywhere(store: Store, id: string, nowMs: number, queries: Queries): Promise<void> {
  for (const grant of await store.oauthRecords.removePerson(id, queries)) {
    const denial = { kind: 'grant', id: grant, atMs: nowMs, expiresAtMs: nowMs + DENIED_MS } as const
    await store.oauthDenials.add(denial, queries)
  }
}

/** `false`, and no entry in the audit log: there was nothing to do it to. */
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
/** Nobody has more devices. */
const PASSKEYS_MAX = 20
const EMAIL_LENGTH_MAX = 254
/** What it is beyond that is for whoever delivers to it. */
const EMAIL = /^[^\s@\p{Cc}\p{Bidi_Control}]+@[^\s@\p{Cc}\p{Bidi_Control}]+$/u
