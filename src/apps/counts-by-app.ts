import { DEFAULT_APP, OTHER_APPS } from './app.ts'

/** Counts for metrics with the label `app`. The first apps have names, the others are counted together. */
export class CountsByApp {
  readonly #counts = new Map<string, number>([[DEFAULT_APP, 0]])

  add(app: string, count = 1): void {
    const hasName = this.#counts.has(app) || this.#counts.size < NAMED_MAX
    const name = hasName ? app : OTHER_APPS
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count)
  }

  /** Counts the items of `all` that are not in `kept`. */
  addDifference<Item>(all: readonly Item[], kept: readonly Item[], appOf: (item: Item) => string): void {
    if (kept.length === all.length) return
    const isKept = new Set(kept)
    for (const each of all) if (!isKept.has(each)) this.add(appOf(each))
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  get samples(): readonly { readonly labels: { readonly app: string }; readonly value: number }[] {
    return [...this.#counts].map(([app, value]) => ({ labels: { app }, value }))
  }
}

/** Like the names of `gatehouse_requests_total`: 500 apps and the app `default`. */
const NAMED_MAX = 501
