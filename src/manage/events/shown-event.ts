import type { EventRecord } from '../../store/events/events.ts'
import { storedObject } from '../../store/engine/stored.ts'
import { type Sight, shownTo } from '../intake/personal-data.ts'

/** An event as the API, webhooks and sinks have it. */
export interface ShownEvent {
  readonly id: string
  readonly type: EventRecord['type']
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

/** For a principal of this sight; webhooks and sinks are set up by administrators, and have everything. */
export function shownEvent({ id, type, atMs, data }: EventRecord, sight: Sight): ShownEvent {
  return { id, type, timestamp: new Date(atMs).toISOString(), data: shownTo(sight, storedObject(data)) }
}
