import { finishSignIn, type Tokens, renewed } from './oauth.ts'
import type { ApiProblem } from './problem.ts'
import { IN_TAB } from '../parts/kept.ts'

/** The dashboard's credentials: kept as long as the tab is open, and only in this tab. */
export type Session = { readonly key: string } | Tokens

const PLACE = 'gatehouse.session'
let session = kept()
let reason: string | null = null
let renewing: Promise<void> | null = null
const watchers = new Set<() => void>()

export function currentSession(): Session | null {
  return session
}

/** Why the user was signed out; `null`: they were not. */
export function signOutReason(): string | null {
  return reason
}

/** Calls `watcher` at each sign-in and sign-out. Returns a function that stops it. */
export function watchSession(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

export function signIn(key: string): void {
  keep({ key })
}

export function signOut(): void {
  keep(null)
}

/** The API no longer accepts the credentials. */
export function signedOut({ message }: Pick<ApiProblem, 'message'>): void {
  if (session !== null) keep(null, message)
}

/**
 * Takes a key or code that a sign-in link or page has put into the address, and removes it from there, so
 * that it does not stay in the history. Resolves with why that failed, or with `null`.
 */
export async function takeFromAddress(): Promise<string | null> {
  const { hash, pathname, search } = location
  const key = new URLSearchParams(hash.slice(1)).get('key')
  if (key !== null) {
    history.replaceState(null, '', pathname + search)
    signIn(key.trim())
    return null
  }
  const query = new URLSearchParams(search)
  if (!query.has('state') || !(query.has('code') || query.has('error'))) return null
  history.replaceState(null, '', pathname)
  try {
    const { tokens, page } = await finishSignIn(query)
    history.replaceState(null, '', page)
    keep(tokens)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** The Authorization header; `null`: not signed in. */
export async function authorization(): Promise<string | null> {
  if (session !== null && 'access' in session && session.renewAtMs < Date.now()) await renew(session)
  if (session === null) return null
  return `Bearer ${'key' in session ? session.key : session.access}`
}

/** Renews once for concurrent callers, because a refresh token is valid once. */
async function renew(tokens: Tokens): Promise<void> {
  renewing ??= renewed(tokens)
    .then((fresh) => keep(fresh))
    .catch((error: Error) => keep(null, error.message))
    .finally(() => {
      renewing = null
    })
  await renewing
}

function keep(next: Session | null, why: string | null = null): void {
  session = next
  reason = why
  if (next === null) IN_TAB.delete(PLACE)
  else IN_TAB.set(PLACE, JSON.stringify(next))
  for (const watcher of watchers) watcher()
}

function kept(): Session | null {
  const text = IN_TAB.get(PLACE)
  return text === null ? null : (JSON.parse(text) as Session)
}
