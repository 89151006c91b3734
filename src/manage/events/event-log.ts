import type { SoftwareNames } from '../../classify/known/software-names.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { EventRecord, NewEvent } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import type { AfterCommit } from '../intake/ingest.ts'
import { newId } from '../http/ids.ts'
import { fileThreats } from './threats/threat-cases.ts'
import { wants } from './webhooks/event-filter.ts'

/** Records all events, whichever part of the process detects them. */
export class EventLog {
  readonly #store: Store
  readonly #nowMs: () => number
  readonly #names: () => SoftwareNames | null
  readonly #listeners = new Set<() => void>()

  /** `names` resolves the agent names in webhook filters; `null`: not loaded yet. */
  constructor(store: Store, nowMs: () => number = Date.now, names: () => SoftwareNames | null = () => null) {
    this.#store = store
    this.#nowMs = nowMs
    this.#names = names
  }

  /**
   * Adds events, the cases of threats, and webhook deliveries. Call it last in the transaction that causes the events, and
   * call what it returns after the commit.
   */
  async add(events: readonly NewEvent[], queries: Queries): Promise<AfterCommit> {
    const cases = await fileThreats(this.#store.cases, events, queries)
    const added = await this.#store.events.add(events, queries, cases)
    if (added.length === 0) return () => undefined
    await fanOut(this.#store, added, this.#nowMs(), this.#names(), queries)
    return () => this.added()
  }

  /** Notifies the listeners that a transaction with new events has committed. */
  added(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Events of other processes cause no call, so a listener also has to poll. Returns the unsubscriber. */
  onAdded(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** Adds the webhook deliveries of these events, in the transaction that adds the events. */
async function fanOut(
  store: Store,
  events: readonly EventRecord[],
  nowMs: number,
  names: SoftwareNames | null,
  queries: Queries,
): Promise<void> {
  const enabled = await store.webhookHealth.enabled(queries)
  const told = enabled.filter((webhook) => events.some((event) => wants(webhook, event, names)))
  if (told.length === 0) return
  // A webhook that is changed at the same time is changed before this lock or after this transaction.
  const locked = await store.webhookHealth.lock(
    told.map(({ id }) => id),
    queries,
  )
  const deliveries = locked.flatMap((webhook) =>
    (webhook.isEnabled ? events.filter((event) => wants(webhook, event, names)) : []).map(
      ({ number, subject }) => ({
        id: newId('dlv'),
        webhookId: webhook.id,
        eventNumber: number,
        lane: subject,
        nextAtMs: nowMs,
      }),
    ),
  )
  await store.deliveries.add(deliveries, nowMs, queries)
}
