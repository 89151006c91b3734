import type { PolicyLayer } from './action.ts'
import type { ConditionExplanation, RuleExplanation } from './explain.ts'

/** A rule explanation as the API returns it. */
export interface ExplainedRule {
  readonly rule: string
  readonly layer: PolicyLayer
  readonly holds: boolean
  readonly decides: boolean
  readonly dry_run: boolean
  readonly expired: boolean
  readonly doubtful: boolean
  /** The reason as text. It contains values of the request unescaped. */
  readonly why: string
  readonly conditions: readonly ConditionExplanation[]
}

export function rulesOf(rules: readonly RuleExplanation[]): ExplainedRule[] {
  return rules.map((each) => ({
    rule: each.rule,
    layer: each.layer,
    holds: each.holds,
    decides: each.decides,
    dry_run: each.isDryRun,
    expired: each.hasExpired,
    doubtful: each.isDoubtful,
    why: whyOf(each),
    conditions: each.conditions,
  }))
}

/** Explains in words why a rule holds or does not. */
export function whyOf({
  holds,
  decides,
  isDryRun,
  hasExpired,
  isDoubtful,
  conditions,
}: RuleExplanation): string {
  const doubt = isDoubtful ? '; the request can be read in several ways, and the strictest result counts' : ''
  if (hasExpired) return 'has expired'
  if (decides) return `decides${doubt}`
  if (holds)
    return isDryRun ? `matches, but is a dry run (dry_run)${doubt}` : 'matches, but an earlier rule decides'
  const failing = conditions.filter((condition) => !condition.holds)
  if (failing.length === 0) return 'no single reading of the request meets all of its conditions'
  return `${failing.map(conditionText).join('; ')}${doubt}`
}

function conditionText({ name, takes, seen }: ConditionExplanation): string {
  if (name === 'not') return `not ${valueText(takes)}: all of these conditions match`
  return `${name} is ${valueText(seen)}, expected ${valueText(takes)}`
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}…` : text
}

const VALUE_LENGTH_MAX = 120
