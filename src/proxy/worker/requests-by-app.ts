import { OTHER_APPS } from '../../apps/app.ts'
import type { LabelledCounter, Sample } from '../../shared/metrics.ts'

/**
 * Counts requests for each app, in a table of its own. The first apps of the list have names in the metrics, the
 * others are counted together. An app that is removed keeps its name and its counts until the worker ends,
 * because counters never decrease.
 */
export class RequestsByApp {
  readonly #newTable: () => LabelledCounter
  readonly #named = new Set<string>()
  readonly #tables = new Map<string, LabelledCounter>()

  constructor(newTable: () => LabelledCounter) {
    this.#newTable = newTable
  }

  /** Names apps while there is room. All workers get the same list, so they agree. */
  name(apps: Iterable<string>): void {
    for (const app of apps) {
      if (this.#named.size === NAMED_MAX) return
      this.#named.add(app)
    }
  }

  /** Where to count a request. Creates a table at the first request of an app, and nothing later. */
  of(app: string): LabelledCounter {
    return this.#tables.get(app) ?? this.#tableOf(this.#named.has(app) ? app : OTHER_APPS)
  }

  *samples(): Iterable<Sample> {
    for (const [app, table] of this.#tables)
      for (const { labels, value } of table.samples()) yield { labels: { ...labels, app }, value }
  }

  #tableOf(label: string): LabelledCounter {
    const table = this.#tables.get(label) ?? this.#newTable()
    this.#tables.set(label, table)
    return table
  }
}

/** 500 apps and the app `default`. Each table takes 18 KB, and has some 20 series. */
const NAMED_MAX = 501
