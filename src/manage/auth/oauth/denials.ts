import type { Queries } from '../../../store/engine/database.ts'
import type { DenialKind } from '../../../store/people/oauth-denials.ts'
import type { Store } from '../../../store/store.ts'

/**
 * The access tokens that were revoked before they expired. Reads the database again while requests arrive, so
 * that a denial by another process takes effect here within a second. If the database cannot be read, no
 * token is accepted.
 */
export class Denials {
  readonly #store: Store
  readonly #nowMs: () => number
  /** When each denial expires. */
  readonly #known = new Map<string, number>()
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | null = null

  constructor(store: Store, nowMs: () => number) {
    this.#store = store
    this.#nowMs = nowMs
  }

  /** Adds a denial and does `work` in one transaction. */
  async add(
    kind: DenialKind,
    id: string,
    work: (queries: Queries) => Promise<void> = async () => undefined,
    expiresAtMs = this.#nowMs() + DENIED_MS,
  ): Promise<void> {
    const denial = { kind, id, atMs: this.#nowMs(), expiresAtMs }
    await this.#store.transaction(async (queries) => {
      await work(queries)
      await this.#store.oauthDenials.add(denial, queries)
    })
    this.learn(kind, id, expiresAtMs)
  }

  /** Adds a denial in the caller's transaction. The caller must call `learn` after the commit. */
  async addTo(queries: Queries, kind: DenialKind, id: string): Promise<void> {
    const atMs = this.#nowMs()
    await this.#store.oauthDenials.add({ kind, id, atMs, expiresAtMs: atMs + DENIED_MS }, queries)
  }

  /** Clears the cache after a restore has replaced the database. */
  forget(): void {
    this.#known.clear()
    this.#readAtMs = Number.NEGATIVE_INFINITY
  }

  /** Makes a denial take effect in this process at once. */
  learn(kind: DenialKind, id: string, expiresAtMs = this.#nowMs() + DENIED_MS): void {
    this.#known.set(`${kind} ${id}`, expiresAtMs)
  }

  /**
   * Whether `has` is up to date. Shortly before that ends, starts a read in the background, so that no
   * request waits.
   */
  isFresh(nowMs: number): boolean {
    const ageMs = Math.abs(nowMs - this.#readAtMs)
    if (ageMs > READ_AGAIN_MS && ageMs < FRESH_MS) void this.read().catch(() => undefined)
    return ageMs < FRESH_MS
  }

  has(kind: DenialKind, id: string): boolean {
    return this.#known.size > 0 && this.#known.has(`${kind} ${id}`)
  }

  /** Throws a Fault if the database cannot be read. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const nowMs = this.#nowMs()
    // Reads everything once, then what is new. The last minute is read again: a slow transaction, or a
    // process with another clock, can add entries to it later.
    const found = await this.#store.oauthDenials.since(Math.max(0, this.#readAtMs - OVERLAP_MS), nowMs)
    for (const { kind, id, expiresAtMs } of found) this.#known.set(`${kind} ${id}`, expiresAtMs)
    for (const [name, expiresAtMs] of this.#known) if (expiresAtMs <= nowMs) this.#known.delete(name)
    this.#readAtMs = nowMs
  }
}

/** The maximum of `auth.access_token_ttl_s`. */
export const TOKEN_LIFE_MAX_S = 600
/** Longer than any issued token lives, on any clock. */
export const DENIED_MS = (TOKEN_LIFE_MAX_S + 120) * 1000
const OVERLAP_MS = 60_000
const READ_AGAIN_MS = 300
const FRESH_MS = 800
