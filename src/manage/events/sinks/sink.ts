import type { EventRecord } from '../../../store/events/events.ts'

/** A destination for events, or for requests. */
export interface Sink<Item = EventRecord> {
  /**
   * Resolves when the sink has accepted the items, as far as known. After a rejection, some may be there.
   */
  write(items: readonly Item[]): Promise<void>
  /** Why recent writes may not have arrived; `null`: no error is known. Reports each error once. */
  broken(): Error | null
  /** How long after a write a failure can still show. */
  readonly confirmMs: number
  /** Aborts pending writes. The sink can be written to again. */
  close(): Promise<void>
}

/** Where a sink's items come from. Each has a number, and higher numbers come later. */
export interface SinkSource<Item> {
  readonly what: 'events' | 'requests'
  /** The last number, and the highest number of an item that was deleted. */
  kept(): Promise<{ readonly last: number; readonly forgotten: number }>
  /** The next items, oldest first. */
  after(number: number, limit: number): Promise<readonly Item[]>
  numberOf(item: Item): number
  atMsOf(item: Item): number
  isWanted(item: Item): boolean
  /** How many records this is. */
  sizeOf(item: Item): number
  /** Calls the listener when this process has added items. Returns a function that ends it. */
  onAdded(listener: () => void): () => void
}

/** Formats an event as a line, without the line break. */
export type LineOf = (event: EventRecord) => string
