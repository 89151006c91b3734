import type { NewEvent } from '../../store/events.ts'
import { SEVERITIES, type Severity } from '../../store/tables/events.ts'
import type { WebhookRecord } from '../../store/webhooks.ts'

/**
 * Whether a webhook is told of an event. Who asks for agents or categories is not told of what is about none; a least
 * severity or confidence says nothing of events that have none.
 */
export function wants(
  { events, filters }: Pick<WebhookRecord, 'events' | 'filters'>,
  event: NewEvent,
): boolean {
  if (!events.includes(event.type)) return false
  if (filters === null) return true
  const { categories, agents, min_severity: severity, min_confidence: confidence } = filters
  if (categories !== undefined && (event.category === null || !categories.includes(event.category)))
    return false
  if (agents !== undefined && (event.agent === null || !agents.includes(event.agent))) return false
  if (severity !== undefined && event.severity !== null && rank(event.severity) < rank(severity)) return false
  return confidence === undefined || event.confidence === null || event.confidence >= confidence
}

function rank(severity: Severity): number {
  return SEVERITIES.indexOf(severity)
}
