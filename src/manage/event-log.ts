import type { Queries } from '../store/database.ts'
import type { NewEvent } from '../store/events.ts'
import type { Store } from '../store/store.ts'

/** Where all that others are told of is written down, whoever finds it out. */
export class EventLog {
  readonly #store: Store
  readonly #listeners = new Set<() => void>()

  constructor(store: Store) {
    this.#store = store
  }

  /** In the transaction that makes them true, as the last that it does; `added` follows when it has ended. */
  async add(events: readonly NewEvent[], queries: Queries): Promise<void> {
    await this.#store.events.add(events, queries)
  }

  /** There may be new ones: what added some has committed. */
  added(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Events of other processes are not told of: whoever listens looks now and then as well. Returns how to stop. */
  onAdded(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
