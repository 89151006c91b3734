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
    if (nowMs >= rule.expiresMs) continue
    const isHolding = holds(rule)
    if (REQUEST.hasFailed) failures++
    if (!isHolding) continue
    if (!rule.isDryRun) return decision(rule.decision, wouldHave)
    wouldHave ??= rule.decision
  }
  return decision(policy.otherwise, wouldHave)
}

/** How often a rule was tried whose expression had no answer. */
export function expressionFailures(): number {
  return failures
}

function decision(settled: Decision, wouldHave: Outcome | null): Decision {
  return wouldHave === null ? settled : { action: settled.action, rule: settled.rule, wouldHave }
}

/**
 * Of a path that can be read in two ways, and of an expression that has no answer, the worse reading counts: a rule that
 * keeps the client from something holds if any of them makes it hold, one that lets it through only if all do.
 */
function holds(rule: Rule): boolean {
  REQUEST.isPlain = false
  REQUEST.hasFailed = false
  const isHolding = hold(rule.tests, REQUEST)
  if (REQUEST.plainPath === null && !REQUEST.hasFailed) return isHolding
  return isHolding === rule.isRestricting ? isHolding : holdsAnotherWay(rule)
}

function holdsAnotherWay({ tests, isRestricting }: Rule): boolean {
  if (REQUEST.plainPath !== null) {
    REQUEST.isPlain = true
    if (hold(tests, REQUEST) === isRestricting) return isRestricting
  }
  if (!REQUEST.hasFailed) return !isRestricting
  REQUEST.failedAs = true
  let isHolding = hold(tests, REQUEST)
  if (isHolding !== isRestricting && REQUEST.plainPath !== null) {
    REQUEST.isPlain = false
    isHolding = hold(tests, REQUEST)
  }
  REQUEST.failedAs = false
  return isHolding
}

/** One for all: nothing here waits, so no second request comes in between. */
const REQUEST = new PolicyRequest()
let failures = 0
