import { setTimeout as wait } from 'node:timers/promises'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { SightingStore } from '../../store/traffic/sightings.ts'

/** The requests since the last read, newest last. Only the newest ones are listed. */
interface FreshRequests {
  readonly requests: readonly Sighting[]
  /** The number of further requests, which are left out because no reader could keep up. */
  readonly skipped: number
}

type SightingReads = Pick<SightingStore, 'lastNumber' | 'between'>

/**
 * Requests as they arrive, read from the database, so that the requests that other processes stored are
 * included. Each set of apps is read for itself, so that many requests to one app displace no others.
 */
export class RequestFeed {
  readonly #store: SightingReads
  readonly #scopes = new Map<string, ScopeFeed>()

  constructor(store: SightingReads) {
    this.#store = store
  }

  /** Runs until `stop`. A listener that does not read in time misses requests. */
  async *follow(apps: AppScope, stop: AbortSignal): AsyncGenerator<FreshRequests, void, undefined> {
    const key = apps === ALL_APPS ? apps : [...apps].toSorted().join()
    const feed = this.#scopes.get(key) ?? new ScopeFeed(this.#store, apps)
    this.#scopes.set(key, feed)
    try {
      yield* feed.follow(stop)
    } finally {
      if (feed.isIdle && this.#scopes.get(key) === feed) this.#scopes.delete(key)
    }
  }
}

/** The database is read only while there are listeners, and equally often for any number of them. */
class ScopeFeed {
  readonly #store: SightingReads
  readonly #apps: AppScope
  readonly #waiting = new Set<(fresh: FreshRequests) => void>()
  #listeners = 0
  #reading: Promise<void> | null = null

  constructor(store: SightingReads, apps: AppScope) {
    this.#store = store
    this.#apps = apps
  }

  get isIdle(): boolean {
    return this.#listeners === 0
  }

  async *follow(stop: AbortSignal): AsyncGenerator<FreshRequests, void, undefined> {
    this.#listeners++
    this.#begin()
    try {
      while (!stop.aborted) {
        const fresh = await this.#next(stop)
        if (fresh !== null) yield fresh
      }
    } finally {
      this.#listeners--
    }
  }

  #begin(): void {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
      // A listener may have arrived just as the last one left.
      if (this.#listeners > 0) this.#begin()
    })
  }

  async #read(): Promise<void> {
    let last: number | null = null
    while (this.#listeners > 0) {
      try {
        const newest: number = await this.#store.lastNumber()
        if (last !== null && newest > last) {
          const { found, count } = await this.#store.between(last, newest, this.#apps, READ_AT_ONCE)
          if (count > 0) this.#tell({ requests: found.toReversed(), skipped: count - found.length })
        }
        last = newest
      } catch {
        // The database is unavailable. The error is reported elsewhere, and the next read tries again.
      }
      await wait(EVERY_MS, undefined, { ref: false })
    }
  }

  #tell(fresh: FreshRequests): void {
    for (const resolve of this.#waiting) resolve(fresh)
  }

  #next(stop: AbortSignal): Promise<FreshRequests | null> {
    if (stop.aborted) return Promise.resolve(null)
    return new Promise((resolve) => {
      const end = (fresh: FreshRequests | null) => {
        this.#waiting.delete(end)
        stop.removeEventListener('abort', gone)
        resolve(fresh)
      }
      const gone = () => end(null)
      stop.addEventListener('abort', gone)
      this.#waiting.add(end)
    })
  }
}

const EVERY_MS = 500
/** Per read, twice a second. */
const READ_AT_ONCE = 200
