import type { EventRecord } from '../../../store/events/events.ts'

/** Where events are handed on to. */
export interface Sink {
  /** Resolves when it has taken them, as far as can be known; otherwise some of them may have been taken. */
  write(events: readonly EventRecord[]): Promise<void>
  /** Why what was written lately may not have arrived; `null`: nothing speaks against it. Said once. */
  broken(): Error | null
  /** For so long after something was written it may turn out that it has not arrived. */
  readonly confirmMs: number
  /** What is under way fails. It can be written to again. */
  close(): Promise<void>
}

/** An event as a line, without its end. */
export type LineOf = (event: EventRecord) => string
