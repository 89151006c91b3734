import type { EventRecord } from '../../store/events/events.ts'
import { storedObject } from '../../store/engine/stored.ts'
import { type Sight, shownTo } from '../intake/personal-data.ts'

/** An event in the form that the API, webhooks and sinks use. */
interface ShownEvent {
  readonly id: string
  readonly type: EventRecord['type']
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

/** An event as a principal of this sight sees it. Webhooks and sinks, set up by admins, get everything. */
export function shownEvent({ id, type, atMs, data }: EventRecord, sight: Sight): ShownEvent {
  return { id, type, timestamp: new Date(atMs).toISOString(), data: shownTo(sight, storedObject(data)) }
}
