import type { SoftwareNames } from '../../classify/known/software-names.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import { fanOut } from './webhooks/fan-out.ts'

/** Where all that others are told of is written down, whoever finds it out. */
export class EventLog {
  readonly #store: Store
  readonly #nowMs: () => number
  readonly #names: () => SoftwareNames | null
  readonly #listeners = new Set<() => void>()

  /** `names`: what agents are called in the filters of webhooks; `null`: not known yet. */
  constructor(store: Store, nowMs: () => number = Date.now, names: () => SoftwareNames | null = () => null) {
    this.#store = store
    this.#nowMs = nowMs
    this.#names = names
  }

  /** In the transaction that makes them true, as the last that it does, with what webhooks are to be told; `added` follows when it has ended. */
  async add(events: readonly NewEvent[], queries: Queries): Promise<void> {
    const added = await this.#store.events.add(events, queries)
    if (added.length > 0) await fanOut(this.#store, added, this.#nowMs(), this.#names(), queries)
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
