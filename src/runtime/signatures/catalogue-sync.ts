import { createHash } from 'node:crypto'
import type { Log } from '../../shared/log.ts'
import type { MergeCounts } from '../../store/catalogue/catalogue-merge.ts'
import type { Store } from '../../store/store.ts'

export interface CatalogueLinks {
  /** The hash of all sources now; `null` before they are read or while another process leads. */
  hash(): Promise<string | null>
  /** Makes the tables equal to the sources. Throws a Fault. */
  merge(hash: string): Promise<MergeCounts>
}

/**
 * Keeps the catalogue in the database equal to the gateway's signatures, at startup and when files change.
 */
export class CatalogueSync {
  readonly #links: CatalogueLinks
  readonly #log: Log
  #store: Store | null = null
  #isNudged = false
  #running: Promise<void> | null = null
  #isClosed = false
  #retry: NodeJS.Timeout | null = null
  #isFilled = false
  readonly #firstEnd = Promise.withResolvers<void>()

  constructor(links: CatalogueLinks, log: Log) {
    this.#links = links
    this.#log = log
  }

  /** Whether the tables have matched the sources once since startup. */
  get isFilled(): boolean {
    return this.#isFilled
  }

  /** Resolves when the tables are filled, the first attempt has failed, or this is closed. */
  get firstEnd(): Promise<void> {
    return this.#firstEnd.promise
  }

  attach(store: Store): void {
    this.#store = store
    this.nudge()
  }

  /** The sources may have changed. A nudge during a merge causes another merge afterwards. */
  nudge(): void {
    if (this.#store === null || this.#isClosed) return
    this.#isNudged = true
    this.#running ??= this.#run(this.#store)
  }

  close(): void {
    this.#isClosed = true
    this.#firstEnd.resolve()
    if (this.#retry !== null) clearTimeout(this.#retry)
  }

  async #run(store: Store): Promise<void> {
    while (this.#isNudged && !this.#isClosed) {
      this.#isNudged = false
      await this.#merge(store)
    }
    this.#running = null
  }

  async #merge(store: Store): Promise<void> {
    try {
      const hash = await this.#links.hash()
      if (hash === null) return await this.#lookForOthers(store)
      if ((await store.catalogueMerge.hash()) !== hash) {
        const counts = await this.#links.merge(hash)
        this.#log.info('the catalogue is up to date', { ...counts })
      }
      this.#filled()
    } catch (error) {
      if (this.#isClosed) return
      this.#log.error('the catalogue is not up to date; it is tried again', { error: error as Error })
      this.#firstEnd.resolve()
      this.#again(RETRY_MS)
    }
  }

  /** Another process leads and fills the tables. A hash in the database shows that it has done so. */
  async #lookForOthers(store: Store): Promise<void> {
    if (this.#isFilled) return
    if ((await store.catalogueMerge.hash()) === null) this.#again(LOOK_MS)
    else this.#filled()
  }

  #filled(): void {
    this.#isFilled = true
    this.#firstEnd.resolve()
  }

  #again(delayMs: number): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    if (!this.#isClosed) this.#retry = setTimeout(() => this.nudge(), delayMs)
  }
}

/** The hash of all sources: of the built-in signatures, and of the files of the operator and of feeds. */
export function sourcesHash(builtin: string, files: string): string {
  return createHash('sha256').update(`${ROWS_VERSION}\n${builtin}\n${files}`).digest('hex')
}

/** Increase it when the same sources produce different rows. */
const ROWS_VERSION = 2
const RETRY_MS = 30_000
const LOOK_MS = 500
