import { createHash } from 'node:crypto'
import type { Log } from '../../shared/log.ts'
import type { MergeCounts } from '../../store/catalogue/catalogue-merge.ts'
import type { Store } from '../../store/store.ts'

export interface CatalogueLinks {
  /** Of all that the sources say now; `null` before they have been read. */
  hash(): Promise<string | null>
  /** Makes the tables the same as the sources. Throws a Fault. */
  merge(hash: string): Promise<MergeCounts>
}

/** Keeps the catalogue in the database the same as what the gateway judges by: at the start, and when files change. */
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

  /** Whether the tables have had all that the sources say, once since the start. */
  get isFilled(): boolean {
    return this.#isFilled
  }

  /** Resolves when the tables are filled, or the first attempt has failed, or it is closed. */
  get firstEnd(): Promise<void> {
    return this.#firstEnd.promise
  }

  attach(store: Store): void {
    this.#store = store
    this.nudge()
  }

  /** The sources may have changed: who nudges while they are merged is seen to afterwards. */
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

  /** The process that leads fills the tables: a hash is there when it has done so. */
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

/** Of sources: what comes with Gatehouse, by its hash, and the files of the operator and of feeds, by theirs. */
export function sourcesHash(builtin: string, files: string): string {
  return createHash('sha256').update(`${ROWS_VERSION}\n${builtin}\n${files}`).digest('hex')
}

/** Rises when rows are made otherwise of the same sources. */
const ROWS_VERSION = 2
const RETRY_MS = 30_000
const LOOK_MS = 500
