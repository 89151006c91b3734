import type { Rule } from './rule.ts'

/** What the gateway has kept from what it asked for. A rule on trial has kept nobody from anything. */
export const REFUSAL_RULES: readonly Rule[] = [
  {
    reason: 'blocked',
    // Who is held before an answer is refused then.
    holds: ({ done }) => done === 'block' || done === 'tarpit',
    detail: ({ done, rule, dryRun }) => `it was refused (${done})${dryRun ? '' : ` by ${rule}`}`,
  },
  {
    reason: 'rate_limited',
    holds: ({ limited }) => limited,
    detail: ({ rule, dryRun }) => `it was over the limit of ${dryRun ? 'a rule' : rule}`,
  },
]
