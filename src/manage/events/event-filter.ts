import type { EventRecord } from '../../store/events/events.ts'
import { type EventType, SEVERITIES, type Severity } from '../../store/engine/tables/events.ts'

/** An event passes if it matches every criterion. An empty list and `null` match every event. */
export interface EventFilter {
  readonly types: readonly EventType[]
  /** Categories of the event's agent. */
  readonly categories: readonly string[]
  /** Agent ids. */
  readonly agents: readonly string[]
  /** App ids. */
  readonly apps: readonly string[]
  readonly minSeverity: Severity | null
  readonly minConfidence: number | null
}

type FilteredEvent = Pick<EventRecord, 'type' | 'category' | 'agent' | 'app' | 'severity' | 'confidence'>

/**
 * A filter on agents, categories or apps rejects events without an agent, a category or an app. A minimum
 * severity or confidence passes events that have none.
 */
export function isWanted(event: FilteredEvent, filter: EventFilter): boolean {
  const { type, category, agent, app, severity, confidence } = event
  const { types, categories, agents, apps, minSeverity, minConfidence } = filter
  return (
    isAmong(type, types) &&
    isAmong(category, categories) &&
    isAmong(agent, agents) &&
    isAmong(app, apps) &&
    (minSeverity === null || severity === null || severitiesFrom(minSeverity).includes(severity)) &&
    (minConfidence === null || confidence === null || confidence >= minConfidence)
  )
}

/** This severity and all higher ones. */
export function severitiesFrom(least: Severity): readonly Severity[] {
  return SEVERITIES.slice(SEVERITIES.indexOf(least))
}

export function isAmong(value: string | null, wanted: readonly string[]): boolean {
  return wanted.length === 0 || (value !== null && wanted.includes(value))
}
