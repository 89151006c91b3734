import { CLAIM_RULES } from './claims.ts'
import { FORGED_HEADERS } from './forged-headers.ts'
import { REFUSAL_RULES } from './refusals.ts'
import { ROBOTS_VIOLATION } from './robots-violation.ts'
import type { Rule } from './rule.ts'

/** All that a request alone can show. What only many show together is in rate-anomaly.ts. */
export const RULES: readonly Rule[] = [...CLAIM_RULES, FORGED_HEADERS, ...REFUSAL_RULES, ROBOTS_VIOLATION]
