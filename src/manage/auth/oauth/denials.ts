import type { Queries } from '../../../store/engine/database.ts'
import type { DenialKind } from '../../../store/people/oauth-denials.ts'
import type { Store } from '../../../store/store.ts'

/**
 * Which access tokens are not taken any more. They are read from the database while somebody asks, so that what another
 * process has denied is in force here within a second; where the database cannot be read nobody is told that a token is
 * good.
 */
export class Denials {
  readonly #store: Store
  readonly #nowMs: () => number
  /** When each is over. */
  readonly #known = new Map<string, number>()
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | null = null

  constructor(store: Store, nowMs: () => number) {
    this.#store = store
    this.#nowMs = nowMs
  }

  /** With the work that goes with it: both or neither. */
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

  /** Part of a transaction of somebody else, who then lets this process `learn` it. */
  async addTo(queries: Queries, kind: DenialKind, id: string): Promise<void> {
    const atMs = this.#nowMs()
    await this.#store.oauthDenials.add({ kind, id, atMs, expiresAtMs: atMs + DENIED_MS }, queries)
  }

  /** The database has another content. */
  forget(): void {
    this.#known.clear()
    this.#readAtMs = Number.NEGATIVE_INFINITY
  }

  /** In force here at once. */
  learn(kind: DenialKind, id: string, expiresAtMs = this.#nowMs() + DENIED_MS): void {
    this.#known.set(`${kind} ${id}`, expiresAtMs)
  }

  /** Whether `has` knows enough. Whoever is told so soon before it ends has it read again, and nobody waits. */
  isFresh(nowMs: number): boolean {
    const ageMs = Math.abs(nowMs - this.#readAtMs)
    if (ageMs > READ_AGAIN_MS && ageMs < FRESH_MS) void this.read().catch(() => undefined)
    return ageMs < FRESH_MS
  }

  has(kind: DenialKind, id: string): boolean {
    return this.#known.size > 0 && this.#known.has(`${kind} ${id}`)
  }

  /** Throws a Fault where the database cannot be read. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const nowMs = this.#nowMs()
    // Once all, then what is new; again what was new a minute ago: it was written by other clocks, in slow transactions.
    const found = await this.#store.oauthDenials.since(Math.max(0, this.#readAtMs - OVERLAP_MS), nowMs)
    for (const { kind, id, expiresAtMs } of found) this.#known.set(`${kind} ${id}`, expiresAtMs)
    for (const [name, expiresAtMs] of this.#known) if (expiresAtMs <= nowMs) this.#known.delete(name)
    this.#readAtMs = nowMs
  }
}

/** The longest life of an access token, `auth.access_token_ttl_s`. */
export const TOKEN_LIFE_MAX_S = 600
/** Longer than any that is out lives, on any clock. */
export const DENIED_MS = (TOKEN_LIFE_MAX_S + 120) * 1000
const OVERLAP_MS = 60_000
const READ_AGAIN_MS = 300
const FRESH_MS = 800
