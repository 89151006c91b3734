import type { Log } from '../shared/log.ts'
import type { Store } from '../store/store.ts'
import type { PeriodicJob } from './jobs/periodic.ts'

/** Checks the database regularly, so that an outage is logged even while the API is not used. */
export class StoreWatch {
  readonly job: PeriodicJob
  readonly #store: Store
  readonly #log: Log
  #isUp = true

  constructor(store: Store, log: Log) {
    this.#store = store
    this.#log = log
    this.job = { name: 'ask for the database', everyMs: ASK_MS, run: () => this.#ask() }
  }

  get isUp(): boolean {
    return this.#isUp
  }

  async #ask(): Promise<'done'> {
    const wasUp = this.#isUp
    try {
      await this.#store.isThere()
      this.#isUp = true
      if (!wasUp) this.#log.info('the database can be used again')
    } catch (error) {
      this.#isUp = false
      if (wasUp) this.#log.error('the database cannot be used; proxies go on', { error: error as Error })
    }
    return 'done'
  }
}

const ASK_MS = 5_000
