import type { Queries } from '../../../store/database.ts'
import type { Store } from '../../../store/store.ts'
import type { OpenidAccount, UserRecord } from '../../../store/users.ts'
import { type Actor, type Change, changed } from '../../audit.ts'
import { newId } from '../../ids.ts'
import type { Sealer } from '../../sealer.ts'
import { DENIED_MS } from '../oauth/denials.ts'
import { SCOPES, type Scope } from '../principal.ts'
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
  return isMade
    ? { ...user, hasPassword: hash !== null, hasCodes: false, signedInSinceMs: 0, openid: null }
    : null
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

/** What is asked for beside the password from now on, in the place of what was before. It is shown here only. */
export interface NewCodes {
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** `null`: they are not there any more. */
export async function startCodes(
  store: Store,
  sealer: Sealer,
  { id: subject, email }: UserRecord,
  actor: Actor,
  nowMs: number,
): Promise<NewCodes | null> {
  const codes = { secret: newCodeSecret(), recoveryCodes: newRecoveryCodes() }
  const sealed = await sealer.seal(codes.secret, sealedAs(subject))
  const hashes = codes.recoveryCodes.map((code) => hashOfRecoveryCode(code)!)
  const change = { action: 'startOneTimeCodes', subject, detail: { email } }
  const isDone = await done(store, actor, change, nowMs, (queries) =>
    store.users.setCodes(subject, sealed, hashes, queries),
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
const EMAIL_LENGTH_MAX = 254
/** What it is beyond that is for whoever delivers to it. */
const EMAIL = /^[^\s@\p{Cc}\p{Bidi_Control}]+@[^\s@\p{Cc}\p{Bidi_Control}]+$/u
