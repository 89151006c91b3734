import type { Verdict } from '../classify/verdict/verdict.ts'
import type { CompiledCondition } from '../policy/condition.ts'
import { hold } from '../policy/condition-form.ts'
import { byPurpose } from '../policy/decide.ts'
import { ExpressionCompiler } from '../policy/expression.ts'
import { allRules, type Policy, type Rule } from '../policy/policy.ts'
import { PolicyRequest } from '../policy/request.ts'
import { Place } from '../shared/problem.ts'
import { REQUEST } from './published-terms.ts'

/** A rule that can decide about requests of an agent. */
export interface TouchingRule {
  readonly rule: Rule
  /** The conditions that only a request can answer. Empty: the rule holds for every request of the agent. */
  readonly dependsOn: readonly string[]
}

export interface TouchingRules {
  /** In the order in which they are tried. */
  readonly rules: readonly TouchingRule[]
  /** A rule decides about all requests that come to it, so no later rule is tried. */
  readonly isSettled: boolean
}

/** The rules of a policy that can touch an agent: their conditions about the agent itself are true of it. */
export function touchingRules(policy: Policy, verdict: Verdict, nowMs: number): TouchingRules {
  const facts = { ...REQUEST, host: null, verdict }
  const request = new PolicyRequest()
  request.read(facts, policy.asked)
  const purposes = byPurpose(policy, facts)
  const rules: TouchingRule[] = []
  for (const rule of allRules(policy)) {
    if (nowMs >= rule.expiresMs) continue
    const tests = rule.conditions.filter((each) => isOfAgent(each)).map(({ test }) => test)
    const holding = purposes.filter((purpose) => {
      request.purpose = purpose
      return hold(tests, request)
    })
    if (holding.length === 0) continue
    const open = rule.conditions.filter((each) => !isOfAgent(each)).map(({ name }) => name)
    const dependsOn = holding.length < purposes.length ? ['purpose', ...open] : open
    rules.push({ rule, dependsOn: [...new Set(dependsOn)] })
    if (dependsOn.length === 0 && !rule.isDryRun) return { rules, isSettled: true }
  }
  return { rules, isSettled: false }
}

/** Whether the condition is about the agent alone. Its proof, too, differs from request to request. */
function isOfAgent({ name, takes }: Pick<CompiledCondition, 'name' | 'takes'>): boolean {
  if (name === 'not' && typeof takes === 'object' && takes !== null)
    return Object.entries(takes).every(([each, value]) => isOfAgent({ name: each, takes: value }))
  if (name !== 'expression' && name !== 'not') return OF_AGENT.has(name)
  const { asks } = new ExpressionCompiler().compile(Place.of(takes, []), null, [])!
  return [...asks].every((each) => each.startsWith('verdict.') && OF_AGENT.has(each.slice('verdict.'.length)))
}

const OF_AGENT: ReadonlySet<string> = new Set([
  ...['verdict', 'kind', 'agent', 'category', 'purpose', 'software', 'listed'],
])
