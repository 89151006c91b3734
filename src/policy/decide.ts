import type { Outcome } from './action.ts'
import { hold } from './condition-form.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule } from './policy.ts'
import { PolicyRequest } from './request.ts'

export interface Decision extends Outcome {
  /** What the first dry-run rule (`dry_run`) that held would have done. `null`: no dry-run rule held. */
  readonly wouldHave: Outcome | null
}

/**
 * The first rule that holds decides; dry-run rules never decide. This function is total and pure: the same
 * facts, policy and time give the same decision. It allocates only if a dry-run rule held, or if text is
 * compared regardless of case. `request`: working memory; a caller that decides on many requests passes its
 * own, which also counts failed expressions.
 */
export function decide(policy: Policy, facts: Facts, nowMs: number, request = new PolicyRequest()): Decision {
  const { rules } = policy
  let wouldHave: Outcome | null = null
  request.read(facts, policy.asked)
  for (let i = 0; i < rules.length; i++) {
    const rule = rules[i]!
    if (nowMs >= rule.expiresMs) continue
    const isHolding = holds(rule, request)
    if (request.hasFailed) request.failures++
    if (!isHolding) continue
    if (!rule.isDryRun) return decision(rule.decision, wouldHave, request)
    wouldHave ??= rule.decision
  }
  return decision(policy.otherwise, wouldHave, request)
}

function decision(settled: Decision, wouldHave: Outcome | null, request: PolicyRequest): Decision {
  if (request.stepsLeft < 0) request.overruns++
  return wouldHave === null ? settled : { action: settled.action, rule: settled.rule, wouldHave }
}

/**
 * If a path has two readings, or if an expression has no answer, the reading that is worse for the client
 * counts: a restricting rule holds if any reading makes it hold, any other rule holds only if all readings
 * do.
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
