import type { SoftwareNames } from '../../../classify/known/software-names.ts'
import type { NewEvent } from '../../../store/events/events.ts'
import type { EventType } from '../../../store/engine/tables/events.ts'
import type { WebhookRecord } from '../../../store/events/webhooks.ts'
import { isWanted } from '../event-filter.ts'

/**
 * Whether a webhook wants an event. `names` resolves the agent names in its filter; `null`: not loaded yet.
 */
export function wants(
  { events, filters }: Pick<WebhookRecord, 'events' | 'filters'>,
  event: NewEvent,
  names: SoftwareNames | null,
): boolean {
  const { categories = [], agents = [], min_severity = null, min_confidence = null } = filters ?? {}
  const least = { minSeverity: min_severity, minConfidence: min_confidence }
  if (!events.includes(event.type)) return false
  // Resolved now, because a name that was unknown when the webhook was created may be known by now.
  const ids = agents.map((name) => names?.find(name)?.id ?? name)
  return isWanted(event, { types: EVERY_TYPE, categories, agents: ids, ...least })
}

const EVERY_TYPE: readonly EventType[] = []
