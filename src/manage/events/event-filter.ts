import type { EventRecord } from '../../store/events/events.ts'
import { type EventType, SEVERITIES, type Severity } from '../../store/engine/tables/events.ts'

/** Which events somebody wants: all that each of these lets through. An empty list, and `null`, let everything through. */
export interface EventFilter {
  readonly types: readonly EventType[]
  /** Of the agent that it is about. */
  readonly categories: readonly string[]
  /** By their ids. */
  readonly agents: readonly string[]
  readonly minSeverity: Severity | null
  readonly minConfidence: number | null
}

export type FilteredEvent = Pick<EventRecord, 'type' | 'category' | 'agent' | 'severity' | 'confidence'>

/**
 * Who asks for agents or categories is not told of what is about none; a least severity or confidence says nothing of
 * events that have none.
 */
export function isWanted(event: FilteredEvent, filter: EventFilter): boolean {
  const { type, category, agent, severity, confidence } = event
  const { types, categories, agents, minSeverity, minConfidence } = filter
  return (
    isAmong(type, types) &&
    isAmong(category, categories) &&
    isAmong(agent, agents) &&
    (minSeverity === null || severity === null || severitiesFrom(minSeverity).includes(severity)) &&
    (minConfidence === null || confidence === null || confidence >= minConfidence)
  )
}

/** It, and what is worse. */
export function severitiesFrom(least: Severity): readonly Severity[] {
  return SEVERITIES.slice(SEVERITIES.indexOf(least))
}

function isAmong(value: string | null, wanted: readonly string[]): boolean {
  return wanted.length === 0 || (value !== null && wanted.includes(value))
}

export const EVERYTHING: EventFilter = {
  ...{ types: [], categories: [], agents: [] },
  ...{ minSeverity: null, minConfidence: null },
}
