import type { Rule } from './rule.ts'

/** Requests that the gateway refused or limited. A rule in dry run affects no request. */
export const REFUSAL_RULES: readonly Rule[] = [
  {
    reason: 'blocked',
    // A request in the tarpit is delayed and then refused.
    holds: ({ done }) => done === 'block' || done === 'tarpit',
    detail: ({ done, rule, dryRun }) => `it was refused (${done})${dryRun ? '' : ` by ${rule}`}`,
  },
  {
    reason: 'rate_limited',
    holds: ({ limited }) => limited,
    detail: ({ rule, dryRun }) => `it was over the limit of ${dryRun ? 'a rule' : rule}`,
  },
]
