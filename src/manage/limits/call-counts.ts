import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'

/** The calls of a window. */
export interface CallCount {
  readonly points: number
  readonly endsAtMs: number
}

/** What is counted. */
export interface CountedCall {
  /** Its kind, a colon, and an id. */
  readonly key: string
  readonly windowS: number
}

/**
 * Counts calls of the API in windows. With PostgreSQL, all processes count together; if it is unreachable, each process counts
 * alone. SQLite has one process: the counts are in memory, and written each second for the next start.
 */
export class CallCounts {
  readonly #store: Store
  readonly #log: Log
  /** With PostgreSQL: what was `keep`ed, and counts while it is unreachable. */
  readonly #memory = new RateLimiterMemory({ keyPrefix: '', points: 1, duration: 1 })
  /** `null`: other processes see all counts at once. */
  readonly #unwritten: Set<string> | null
  #isReachable = true

  constructor(store: Store, log: Log) {
    this.#store = store
    this.#log = log
    this.#unwritten = store.kind === 'sqlite' ? new Set() : null
  }

  /** A count that this process has in memory. */
  async known({ key }: CountedCall): Promise<CallCount | null> {
    const found = await this.#memory.get(key)
    return found === null || found.msBeforeNext <= 0 ? null : countOf(found)
  }

  /** Adds a call to each of these counts. Resolves in their order. */
  async add(counted: readonly CountedCall[]): Promise<readonly CallCount[]> {
    if (this.#unwritten === null) return (await this.#addInStore(counted)) ?? this.#addHere(counted)
    for (const { key } of counted) this.#unwritten.add(key)
    return this.#addHere(counted)
  }

  /** Makes a count `known` until its window ends. */
  async keep({ key }: CountedCall, { points, endsAtMs }: CallCount): Promise<void> {
    if (this.#unwritten !== null) return // it is in memory
    await this.#memory.set(key, points, Math.max(1, Math.ceil((endsAtMs - Date.now()) / 1000)))
  }

  /** Stores the counts that changed since the last call, for the next start. */
  async write(): Promise<void> {
    const unwritten = this.#unwritten
    if (unwritten === null || unwritten.size === 0) return
    const keys = new Set(unwritten)
    unwritten.clear()
    const counts = this.#memory
      .dump()
      .storage.filter(({ key }) => keys.has(String(key)))
      .map(({ key, value, expiresAt }) => ({ key: String(key), points: value, endsAtMs: expiresAt ?? 0 }))
    try {
      await this.#store.transaction(async (queries) => {
        for (const count of counts) await this.#store.rateLimits.keep(count, queries)
      })
    } catch (error) {
      for (const key of keys) unwritten.add(key)
      throw error
    }
  }

  /** Goes on with the counts of the last run. `windows`: seconds, by kind. */
  async restore(windows: ReadonlyMap<string, number>): Promise<void> {
    if (this.#unwritten === null) return
    const nowMs = Date.now()
    const counts = await this.#store.rateLimits.current(nowMs)
    const storage = counts.flatMap(({ key, points, endsAtMs }) => {
      const windowS = windows.get(key.slice(0, key.indexOf(':')))
      if (windowS === undefined) return []
      // After a wrong clock, no principal is locked out for longer than one window.
      return [{ key, value: points, expiresAt: Math.min(endsAtMs, nowMs + windowS * 1000) }]
    })
    this.#memory.restore({ version: 1, storage })
  }

  async #addHere(counted: readonly CountedCall[]): Promise<readonly CallCount[]> {
    const added = counted.map(({ key, windowS }) => this.#memory.penalty(key, 1, { customDuration: windowS }))
    return (await Promise.all(added)).map(countOf)
  }

  /** `null`: the database is unreachable. */
  async #addInStore(counted: readonly CountedCall[]): Promise<readonly CallCount[] | null> {
    const counts = counted.map(({ key, windowS }) => ({ key, points: 1, windowMs: windowS * 1000 }))
    try {
      const added = await this.#store.rateLimits.addAll(counts, Date.now())
      this.#isReachable = true
      return added
    } catch (error) {
      if (this.#isReachable)
        this.#log.warn('the database is unavailable: rate limits are counted in this process only', {
          error: error as Error,
        })
      this.#isReachable = false
      return null
    }
  }
}

function countOf(found: { readonly consumedPoints: number; readonly msBeforeNext: number }): CallCount {
  return { points: found.consumedPoints, endsAtMs: Date.now() + found.msBeforeNext }
}
