import type { Generated } from 'kysely'

export interface EventTables {
  event_positions: EventPositionTable
  events: EventTable
}

/** Events that webhooks and sinks receive. */
export interface EventTable {
  /** Increases in commit order. When a number is visible, all lower numbers are visible too. */
  number: Generated<number>
  id: string
  type: EventType
  at_ms: number
  /** What the event is about. Events of one subject are delivered in order. */
  subject: string
  /** The id of an agent. */
  agent: string | null
  category: string | null
  severity: Severity | null
  /** From 0 to 1: the confidence in the identity. */
  confidence: number | null
  /** JSON: the object that receivers get. */
  data: string
  /** The id of the app that it is about; `null`: it is not about one app. */
  app: string | null
  /** The case of a threat. */
  case_id: string | null
}

/**
 * The position of each reader of events or Sightings, and of the deletion of events. Bounded: one or two rows
 * for each sink that ever existed.
 */
interface EventPositionTable {
  name: string
  /** The reader continues after it. */
  number: number
  /** The process that reads, and until when no other may. */
  holder: string | null
  held_until_ms: number
}

export const EVENT_TYPES = ['new_agent', 'new_signature', 'threat_detected', 'payment'] as const
/** `test`: requested for one receiver; no other receiver gets it. */
export type EventType = (typeof EVENT_TYPES)[number] | 'test'

export const SEVERITIES = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]
