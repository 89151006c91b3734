import { setTimeout as wait } from 'node:timers/promises'
import type { Sighting } from '../../plane/sighting.ts'
import { readSighting } from '../../plane/sighting-document.ts'
import type { NumberedSighting, SightingStore } from '../../store/traffic/sightings.ts'

/** What came in since the last time, as far as it is told: newest last. */
export interface FreshRequests {
  readonly requests: readonly Sighting[]
  /** Those that came in besides: nobody reads faster. */
  readonly skipped: number
}

/**
 * Requests as they come in, from the database: so whoever took them in, all of them are told. It is read while somebody
 * listens, and as often whether that is one or a hundred.
 */
export class RequestFeed {
  readonly #store: Pick<SightingStore, 'newest'>
  readonly #everyMs: number
  readonly #waiting = new Set<(fresh: FreshRequests) => void>()
  #listeners = 0
  #reading: Promise<void> | null = null

  constructor(store: Pick<SightingStore, 'newest'>, everyMs = EVERY_MS) {
    this.#store = store
    this.#everyMs = everyMs
  }

  /** Until `stop`. Whoever does not read in time is told of what comes later. */
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
      // Who came in the very moment in which the last one left.
      if (this.#listeners > 0) this.#begin()
    })
  }

  async #read(): Promise<void> {
    let last: number | null = null
    while (this.#listeners > 0) {
      try {
        const found: readonly NumberedSighting[] = await this.#store.newest(
          null,
          last === null ? 1 : READ_AT_ONCE,
        )
        const newest = found[0]?.number ?? 0
        if (last !== null && newest > last)
          this.#tell(
            found.filter(({ number }) => number > last!),
            newest - last,
          )
        last = newest
      } catch {
        // The database is away: it is said elsewhere, and asked again.
      }
      await wait(this.#everyMs, undefined, { ref: false })
    }
  }

  #tell(fresh: readonly NumberedSighting[], count: number): void {
    const requests = fresh.flatMap(({ document }) => {
      const sighting = readSighting(document)
      return typeof sighting === 'string' ? [] : [sighting]
    })
    const told = { requests: requests.reverse(), skipped: Math.max(0, count - fresh.length) }
    for (const resolve of this.#waiting) resolve(told)
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
/** Of each half second. */
const READ_AT_ONCE = 200
