import type { Severity } from '../../../store/engine/tables/events.ts'

/** The severity of each reason. The setting that selects the reported threats uses the same names. */
export const SEVERITY_OF = {
  spoofed_browser: 'medium',
  foreign_address: 'high',
  proof_failed: 'high',
  proof_contradicted: 'medium',
  forged_headers: 'high',
  blocked: 'low',
  rate_limited: 'low',
  rate_anomaly: 'medium',
  robots_violation: 'medium',
  crawl_campaign: 'medium',
} as const satisfies Readonly<Record<string, Severity>>

export type ThreatReason = keyof typeof SEVERITY_OF

export const REASONS = Object.keys(SEVERITY_OF) as readonly ThreatReason[]
