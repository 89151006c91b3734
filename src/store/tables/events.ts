import type { Generated } from 'kysely'

export interface EventTables {
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

/** `test`: asked for by who wants to see one; told to nobody else. */
export type EventType = 'new_agent' | 'new_signature' | 'threat_detected' | 'test'

export const SEVERITIES = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]
