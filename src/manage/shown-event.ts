import type { EventRecord } from '../store/events.ts'
import { storedObject } from '../store/stored.ts'

/** An event as everybody is told of it. */
export interface ShownEvent {
  readonly id: string
  readonly type: EventRecord['type']
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

export function shownEvent({ id, type, atMs, data }: EventRecord): ShownEvent {
  return { id, type, timestamp: new Date(atMs).toISOString(), data: storedObject(data) }
}
