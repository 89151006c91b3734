import type { Severity } from './events.ts'

export interface CaseTables {
  cases: CaseTable
}

/** Threats that belong together. Bounded by CASES_MAX. */
export interface CaseTable {
  id: string
  /** Unique: app, reason and subject. */
  identity: string
  /** `null`: it is not about one app. */
  app: string | null
  reason: string
  severity: Severity
  /** The subject is in one of these four columns, or in none: then it is about many clients. */
  campaign: string | null
  agent: string | null
  ja4: string | null
  /** A network, or a hash. */
  address: string | null
  first_at_ms: number
  last_at_ms: number
  /** The number of its events, also of deleted ones. */
  events: number
  /** The number of requests that these events count. */
  requests: number
  status: CaseStatus
  /** Increases with each change by a person. */
  version: number
  changed_at_ms: number | null
  changed_by: string | null
  note: string | null
  /** The number of decisions that got feedback when it became a false alarm. */
  feedback: number
}

export const CASE_STATUSES = ['open', 'accepted', 'false_alarm'] as const
export type CaseStatus = (typeof CASE_STATUSES)[number]
