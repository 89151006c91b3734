import { CLAIM_RULES } from './claims.ts'
import { FORGED_HEADERS } from './forged-headers.ts'
import { REFUSAL_RULES } from './refusals.ts'
import { ROBOTS_VIOLATION } from './robots-violation.ts'
import type { Rule } from './rule.ts'

/** The rules for a single request. Threats that only several requests show are in rate-anomaly.ts. */
export const RULES: readonly Rule[] = [...CLAIM_RULES, FORGED_HEADERS, ...REFUSAL_RULES, ROBOTS_VIOLATION]
