import { type Outcome, type PolicyLayer, strictness } from './action.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule } from './policy.ts'
import { PolicyRequest } from './request.ts'

/** Also a decision of the settings of a proxy, which has no layer. */
export type Decision = Omit<PolicyDecision, 'layer'> & { readonly layer: PolicyLayer | null }

export interface PolicyDecision extends Outcome {
  /** What the first dry-run rule (`dry_run`) that held would have done. `null`: no dry-run rule held. */
  readonly wouldHave: Outcome | null
}

/**
 * The first rule that holds decides; dry-run rules never decide. This function is total and pure: the same
 * facts, policy and time give the same decision. It allocates only if a dry-run rule held, or if text is
 * compared regardless of case. `request`: working memory; a caller that decides on many requests passes its
 * own, which also counts failed expressions.
 */
export function decide(
  policy: Policy,
  facts: Facts,
  nowMs: number,
  request = new PolicyRequest(),
): PolicyDecision {
  if (hasOnePurpose(policy, facts)) return decideOne(policy, facts, nowMs, request)
  return strictestReading(policy, facts, nowMs, request).decision
}

/**
 * An agent with several purposes is decided about once with each of them, and the strictest decision counts: it does not
 * say which one it comes for. `purpose`: the one that counts; `null`: the agent has only one, or no rule asks for it.
 */
export function strictestReading(
  policy: Policy,
  facts: Facts,
  nowMs: number,
  request: PolicyRequest,
): { readonly purpose: string | null; readonly decision: PolicyDecision } {
  return byPurpose(policy, facts)
    .map((purpose) => {
      request.purpose = purpose
      const decision = decideOne(policy, facts, nowMs, request)
      request.purpose = null
      return { purpose, decision }
    })
    .reduce((a, b) => (strictness(b.decision.action.kind) > strictness(a.decision.action.kind) ? b : a))
}

/** Each purpose to decide with by itself; only `null` if there are not several. */
export function byPurpose(policy: Policy, facts: Facts): readonly (string | null)[] {
  return hasOnePurpose(policy, facts) ? ALL_AT_ONCE : facts.verdict.agent!.purposes
}

function hasOnePurpose({ asked }: Policy, { verdict: { agent } }: Facts): boolean {
  return !asked.purpose || agent === null || agent.purposes.length < 2
}

function decideOne(policy: Policy, facts: Facts, nowMs: number, request: PolicyRequest): PolicyDecision {
  const { layers } = policy
  let wouldHave: Outcome | null = null
  request.read(facts, policy.asked)
  for (let at = 0; at < layers.length; at++) {
    const { rules } = layers[at]!
    const starts = request.startsFor(layers[at]!.starts)
    for (let i = 0; i < rules.length; i++) {
      if (starts?.excludes(i, request.starts)) continue
      const rule = rules[i]!
      if (nowMs >= rule.expiresMs) continue
      const isHolding = holds(rule, request)
      if (request.hasFailed) request.failures++
      if (!isHolding) continue
      if (!rule.isDryRun) return decision(rule.decision, wouldHave, request)
      wouldHave ??= rule.decision
    }
  }
  return decision(policy.otherwise, wouldHave, request)
}

function decision(
  settled: PolicyDecision,
  wouldHave: Outcome | null,
  request: PolicyRequest,
): PolicyDecision {
  if (request.stepsLeft < 0) request.overruns++
  if (wouldHave === null) return settled
  const { action, rule, layer } = settled
  return { action, rule, layer, wouldHave }
}

/**
 * If a path has two readings, or if an expression has no answer, the reading that is worse for the client
 * counts: a restricting rule holds if any reading makes it hold, any other rule holds only if all readings
 * do.
 */
export function holds(rule: Pick<Rule, 'test' | 'isRestricting'>, request: PolicyRequest): boolean {
  request.isPlain = false
  request.hasFailed = false
  const isHolding = rule.test(request)
  if (request.plainPath === null && !request.hasFailed) return isHolding
  return isHolding === rule.isRestricting ? isHolding : holdsAnotherWay(rule, request)
}

function holdsAnotherWay(rule: Pick<Rule, 'test' | 'isRestricting'>, request: PolicyRequest): boolean {
  const { isRestricting } = rule
  if (request.plainPath !== null) {
    request.isPlain = true
    if (rule.test(request) === isRestricting) return isRestricting
  }
  if (!request.hasFailed) return !isRestricting
  request.failedAs = true
  let isHolding = rule.test(request)
  if (isHolding !== isRestricting && request.plainPath !== null) {
    request.isPlain = false
    isHolding = rule.test(request)
  }
  request.failedAs = false
  return isHolding
}

const ALL_AT_ONCE = [null]
