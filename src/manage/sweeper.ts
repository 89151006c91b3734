import { setImmediate as turn } from 'node:timers/promises'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'

/** Forgets what has expired, in slices between which others have their turn. */
export class Sweeper {
  readonly #store: Store
  readonly #log: Log
  readonly #interval: NodeJS.Timeout

  constructor(store: Store, log: Log) {
    this.#store = store
    this.#log = log
    this.#interval = setInterval(() => void this.sweep(), INTERVAL_MS).unref()
  }

  async sweep(): Promise<void> {
    try {
      await this.#store.rateLimits.sweep(Date.now())
      while ((await this.#store.idempotency.forget(Date.now(), SLICE)) === SLICE) await turn()
    } catch (error) {
      // What has expired is of no effect, and goes the next time.
      this.#log.debug('what has expired could not be swept away', { error: error as Error })
    }
  }

  close(): void {
    clearInterval(this.#interval)
  }
}

const INTERVAL_MS = 3_600_000
/** Some ten milliseconds. */
const SLICE = 500
