import { appScopeOf } from '../../apps/app-scope.ts'
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { KeyRecord, KeyStore } from '../../store/people/keys.ts'
import { knownPlan, knownScopes, type Principal } from '../http/access/principal.ts'

export function newKey(): string {
  return newSecret(KEY_PREFIX)
}

/**
 * 32 random bytes after a prefix that secret scanners recognize, followed by a checksum that tells a real key
 * from a lookalike.
 */
export function newSecret(prefix: string): string {
  const body = `${prefix}${randomBytes(32).toString('base64url')}`
  return body + checksum(body)
}

export function looksLikeKey(text: string): boolean {
  return looksLikeSecret(text, KEY_PREFIX)
}

/** Checks the form and the checksum, so that most invalid secrets cost no query. */
export function looksLikeSecret(text: string, prefix: string): boolean {
  if (!text.startsWith(prefix) || !FORM.test(text.slice(prefix.length))) return false
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH)
}

/** The stored hash of a key. A key has 256 random bits, so one pass of SHA-256 is enough. */
export function hashOfKey(key: string): string {
  return hash('sha256', key, 'hex')
}

export function principalOf(key: KeyRecord): Principal {
  const made = PRINCIPALS.get(key)
  if (made !== undefined) return made
  const { id, name, expiresAtMs } = key
  const principal: Principal = {
    id,
    name,
    expiresAtMs,
    scopes: new Set(knownScopes(key.scopes)),
    apps: appScopeOf(key.apps),
    plan: knownPlan(key.plan),
  }
  PRINCIPALS.set(key, principal)
  return principal
}

/**
 * Finds the principal of an API key. Caches it for 500 ms, so that a revoked key stops working within a
 * second.
 */
export class ApiKeys {
  readonly #store: KeyStore
  readonly #known = new Map<string, { readonly key: KeyRecord | null; readonly atMs: number }>()
  /** Times of use that are not written to the database yet. */
  readonly #unwritten = new Map<string, number>()

  constructor(store: KeyStore) {
    this.#store = store
  }

  /** `null`: the key is not cached, or does not exist. */
  remembered(key: string, nowMs: number): KeyRecord | null {
    return this.#knownAt(hashOfKey(key), nowMs)?.key ?? null
  }

  async find(key: string, nowMs: number): Promise<KeyRecord | null> {
    const hashed = hashOfKey(key)
    const known = this.#knownAt(hashed, nowMs)
    if (known !== undefined) return known.key
    return looksLikeKey(key) ? this.#read(hashed, nowMs) : null
  }

  #knownAt(hashed: string, nowMs: number) {
    const known = this.#known.get(hashed)
    return known !== undefined && nowMs - known.atMs < REMEMBERED_MS ? known : undefined
  }

  async #read(hashed: string, nowMs: number): Promise<KeyRecord | null> {
    const found = await this.#store.byHash(hashed)
    if (this.#known.size >= KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!)
    this.#known.set(hashed, { key: found, atMs: nowMs })
    return found
  }

  /** Records the use for `writeUsed`, so that no request waits for the write. */
  used({ id, lastUsedAtMs }: KeyRecord, nowMs: number): void {
    const isRecent = lastUsedAtMs !== null && nowMs - lastUsedAtMs < USED_EVERY_MS
    if (!isRecent && !this.#unwritten.has(id)) this.#unwritten.set(id, nowMs)
  }

  /** Writes one batch. */
  async writeUsed(): Promise<'done' | 'more'> {
    if (this.#unwritten.size === 0) return 'done'
    const uses = new Map([...this.#unwritten].slice(0, USES_MAX))
    await this.#store.used(uses)
    for (const id of uses.keys()) this.#unwritten.delete(id)
    this.forget()
    return this.#unwritten.size === 0 ? 'done' : 'more'
  }

  /** Clears the cache after a change in this process, so that the change takes effect at once. */
  forget(): void {
    this.#known.clear()
  }
}

function checksum(text: string): string {
  return crc32(text).toString(36).padStart(CHECKSUM_LENGTH, '0')
}

/** Cached for as long as the key record is. */
const PRINCIPALS = new WeakMap<KeyRecord, Principal>()
export const KEY_PREFIX = 'ghk_'
/** A CRC-32 in base 36. */
const CHECKSUM_LENGTH = 7
const FORM = /^[A-Za-z0-9_-]{43}[0-9a-z]{7}$/
const REMEMBERED_MS = 500
const KNOWN_MAX = 10_000
const USED_EVERY_MS = 60_000
/** A batch this size takes a few milliseconds in SQLite. */
const USES_MAX = 200
