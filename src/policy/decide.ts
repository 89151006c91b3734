import type { Outcome } from './action.ts'
import { hold } from './condition.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule } from './policy.ts'
import { PolicyRequest } from './request.ts'

export interface Decision extends Outcome {
  /** What the first rule on trial (`dry_run`) that held would have done. */
  readonly wouldHave: Outcome | null
}

/**
 * The first rule that holds wins; those on trial win nothing and stop nobody. Total and pure: same facts, policy and
 * time, same decision. Nothing is allocated, unless a rule on trial has held or text is compared in any case.
 */
export function decide(policy: Policy, facts: Facts, nowMs: number): Decision {
  const { rules } = policy
  let wouldHave: Outcome | null = null
  REQUEST.read(facts, policy.asked)
  for (let i = 0; i < rules.length; i++) {
    const rule = rules[i]!
    if (nowMs >= rule.expiresMs || !holds(rule)) continue
    if (!rule.isDryRun) return decision(rule.decision, wouldHave)
    wouldHave ??= rule.decision
  }
  return decision(policy.otherwise, wouldHave)
}

function decision(settled: Decision, wouldHave: Outcome | null): Decision {
  return wouldHave === null ? settled : { action: settled.action, rule: settled.rule, wouldHave }
}

/**
 * Of a path that can be read in two ways, the worse one counts: a rule that keeps the client from something holds if
 * either way makes it hold, one that lets it through only if both do.
 */
function holds(rule: Rule): boolean {
  REQUEST.isPlain = false
  const isHolding = hold(rule.tests, REQUEST)
  if (REQUEST.plainPath === null || isHolding === rule.isRestricting) return isHolding
  REQUEST.isPlain = true
  return hold(rule.tests, REQUEST)
}

/** One for all: nothing here waits, so no second request comes in between. */
const REQUEST = new PolicyRequest()
