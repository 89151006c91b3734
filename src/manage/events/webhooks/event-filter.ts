import { appScopeOf, reaches } from '../../../apps/app-scope.ts'
import type { SoftwareNames } from '../../../classify/known/software-names.ts'
import type { NewEvent } from '../../../store/events/events.ts'
import type { EventType } from '../../../store/engine/tables/events.ts'
import type { WebhookRecord } from '../../../store/events/webhooks.ts'
import { isWanted } from '../event-filter.ts'

/**
 * Whether a webhook wants an event. `names` resolves the agent names in its filter, and the purposes of the
 * event's agent. `null`: not loaded yet, and an event with an agent passes a filter on purposes.
 */
export function wants(
  { events, filters, apps: own }: Pick<WebhookRecord, 'events' | 'filters' | 'apps'>,
  event: NewEvent,
  names: SoftwareNames | null,
): boolean {
  const { categories = [], purposes = [], agents = [], apps = [] } = filters ?? {}
  const { min_severity = null, min_confidence = null } = filters ?? {}
  const least = { minSeverity: min_severity, minConfidence: min_confidence }
  if (!reaches(appScopeOf(own), event.app)) return false
  if (!events.includes(event.type) || !isForAny(purposes, event.agent, names)) return false
  // Resolved now, because a name that was unknown when the webhook was created may be known by now.
  const ids = agents.map((name) => names?.find(name)?.id ?? name)
  return isWanted(event, { types: EVERY_TYPE, categories, agents: ids, apps, ...least })
}

function isForAny(purposes: readonly string[], agent: string | null, names: SoftwareNames | null): boolean {
  if (purposes.length === 0) return true
  if (agent === null) return false
  return names === null || (names.find(agent)?.purposes.some((each) => purposes.includes(each)) ?? false)
}

const EVERY_TYPE: readonly EventType[] = []
