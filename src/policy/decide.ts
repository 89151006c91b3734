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
    const isHolding = holds(rule, REQUEST)
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

/** How many requests have used up what steps expressions have. */
export function expressionOverruns(): number {
  return overruns
}

function decision(settled: Decision, wouldHave: Outcome | null): Decision {
  if (REQUEST.stepsLeft < 0) overruns++
  return wouldHave === null ? settled : { action: settled.action, rule: settled.rule, wouldHave }
}

/**
 * Of a path that can be read in two ways, and of an expression that has no answer, the worse reading counts: a rule that
 * keeps the client from something holds if any of them makes it hold, one that lets it through only if all do.
 */
export function holds(rule: Rule, request: PolicyRequest): boolean {
  request.isPlain = false
  request.hasFailed = false
  const isHolding = hold(rule.tests, request)
  if (request.plainPath === null && !request.hasFailed) return isHolding
  return isHolding === rule.isRestricting ? isHolding : holdsAnotherWay(rule, request)
}

function holdsAnotherWay({ tests, isRestricting }: Rule, request: PolicyRequest): boolean {
  if (request.plainPath !== null) {
    request.isPlain = true
    if (hold(tests, request) === isRestricting) return isRestricting
  }
  if (!request.hasFailed) return !isRestricting
  request.failedAs = true
  let isHolding = hold(tests, request)
  if (isHolding !== isRestricting && request.plainPath !== null) {
    request.isPlain = false
    isHolding = hold(tests, request)
  }
  request.failedAs = false
  return isHolding
}

/** One for all: nothing here waits, so no second request comes in between. */
const REQUEST = new PolicyRequest()
let failures = 0
let overruns = 0
