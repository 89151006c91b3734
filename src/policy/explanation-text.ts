import type { ConditionExplanation, RuleExplanation } from './explain.ts'

/** A rule explanation as the API returns it. */
export interface ExplainedRule {
  readonly rule: string
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
    ...{ rule: each.rule, holds: each.holds, decides: each.decides },
    ...{ dry_run: each.isDryRun, expired: each.hasExpired, doubtful: each.isDoubtful },
    ...{ why: whyOf(each), conditions: each.conditions },
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
  const doubt = isDoubtful ? '; it can be read in more than one way, and the worse one counts' : ''
  if (hasExpired) return 'has expired'
  if (decides) return `decides${doubt}`
  if (holds) return isDryRun ? `holds, on trial (dry_run)${doubt}` : 'holds, but one before it decides'
  const failing = conditions.filter((condition) => !condition.holds)
  if (failing.length === 0) return 'no one way to read the request makes all of its conditions hold'
  return `${failing.map(conditionText).join('; ')}${doubt}`
}

function conditionText({ name, takes, seen }: ConditionExplanation): string {
  if (name === 'not') return `not ${valueText(takes)}: all of it is so`
  return `${name} is ${valueText(seen)}, takes ${valueText(takes)}`
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}…` : text
}

const VALUE_LENGTH_MAX = 120
