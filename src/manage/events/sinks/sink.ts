import type { EventRecord } from '../../../store/events/events.ts'

/** A destination for events. */
export interface Sink {
  /**
   * Resolves when the sink has accepted the events, as far as known. After a rejection, some may be there.
   */
  write(events: readonly EventRecord[]): Promise<void>
  /** Why recent writes may not have arrived; `null`: no error is known. Reports each error once. */
  broken(): Error | null
  /** How long after a write a failure can still show. */
  readonly confirmMs: number
  /** Aborts pending writes. The sink can be written to again. */
  close(): Promise<void>
}

/** Formats an event as a line, without the line break. */
export type LineOf = (event: EventRecord) => string
