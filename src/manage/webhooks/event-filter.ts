import type { NewEvent } from '../../store/events.ts'
import type { EventType } from '../../store/tables/events.ts'
import type { WebhookRecord } from '../../store/webhooks.ts'
import { isWanted } from '../event-filter.ts'

/** Whether a webhook is told of an event. */
export function wants(
  { events, filters }: Pick<WebhookRecord, 'events' | 'filters'>,
  event: NewEvent,
): boolean {
  const { categories = [], agents = [], min_severity = null, min_confidence = null } = filters ?? {}
  const least = { minSeverity: min_severity, minConfidence: min_confidence }
  return events.includes(event.type) && isWanted(event, { types: EVERY_TYPE, categories, agents, ...least })
}

const EVERY_TYPE: readonly EventType[] = []
