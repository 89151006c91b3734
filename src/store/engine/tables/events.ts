import type { Generated } from 'kysely'

export interface EventTables {
  event_positions: EventPositionTable
  events: EventTable
}

/** What others are told of. */
export interface EventTable {
  /** In the order in which they became true: a number that can be seen has none below it that cannot. */
  number: Generated<number>
  id: string
  type: EventType
  at_ms: number
  /** What it is about; events of one subject are told in their order. */
  subject: string
  /** The id of an agent. */
  agent: string | null
  category: string | null
  severity: Severity | null
  /** From 0 to 1: how sure it is who it was. */
  confidence: number | null
  /** JSON: an object, as it is told. */
  data: string
}

/** How far somebody has come who reads on, and how far they are forgotten; bounded: one for each sink there ever was. */
export interface EventPositionTable {
  name: string
  /** Behind which it goes on. */
  number: number
  /** Who reads on, and until when nobody else does. */
  holder: string | null
  held_until_ms: number
}

/** `test`: asked for by who wants to see one; told to nobody else. */
export type EventType = 'new_agent' | 'new_signature' | 'threat_detected' | 'test'

export const SEVERITIES = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]
