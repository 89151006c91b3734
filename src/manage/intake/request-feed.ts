import { setTimeout as wait } from 'node:timers/promises'
import type { Sighting } from '../../plane/sighting.ts'
import { readSighting } from '../../plane/sighting-document.ts'
import type { NumberedSighting, SightingStore } from '../../store/traffic/sightings.ts'

/** The requests since the last read, newest last. Only the newest ones are listed. */
interface FreshRequests {
  readonly requests: readonly Sighting[]
  /** The number of further requests, which are left out because no reader could keep up. */
  readonly skipped: number
}

/**
 * Requests as they arrive, read from the database, so that the requests that other processes stored are
 * included. It is read only while there are listeners, and equally often for any number of them.
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

  /** Runs until `stop`. A listener that does not read in time misses requests. */
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
        // The database is unavailable. The error is reported elsewhere, and the next read tries again.
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
/** Per read, twice a second. */
const READ_AT_ONCE = 200
