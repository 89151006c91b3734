import type { Outcome } from './action.ts'
import type { CompiledCondition } from './condition.ts'
import { holds } from './decide.ts'
import { ExpressionCompiler } from './expression.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule } from './policy.ts'
import { Place } from '../shared/problem.ts'
import { PolicyRequest } from './request.ts'

/**
 * The decision for a request that is over. Of its headers only the User-Agent is known, and its query is
 * unknown.
 */
export interface PartialDecision {
  /** `null`: the outcome depends on facts that are unknown. */
  readonly outcome: Outcome | null
  /**
   * Rules that may or may not hold, for lack of facts. If there is no outcome, the last one is the reason.
   */
  readonly open: readonly string[]
  /** Dry-run rules that hold. */
  readonly trials: readonly string[]
}

/** Applies a policy to requests with incomplete facts. It never guesses. */
export class PartialPolicy {
  readonly #policy: Policy
  readonly #rules: readonly PartialRule[]
  readonly #request = new PolicyRequest()

  constructor(policy: Policy) {
    this.#policy = policy
    this.#rules = policy.rules.map(partialRule)
  }

  /** The missing facts of each rule that needs any. */
  get needs(): ReadonlyMap<string, readonly string[]> {
    const needing = this.#rules.filter(({ needs }) => needs.length > 0)
    return new Map(needing.map(({ rule, needs }) => [rule.decision.rule, needs]))
  }

  decide(facts: Facts, nowMs: number): PartialDecision {
    this.#request.read(facts, this.#policy.asked)
    const open: string[] = []
    const trials: string[] = []
    for (const { rule, known, needs } of this.#rules) {
      // If the known conditions do not hold, the rule cannot hold.
      if (nowMs >= rule.expiresMs || !holds(known, this.#request)) continue
      const { rule: name } = rule.decision
      if (needs.length > 0) open.push(name)
      else if (rule.isDryRun) trials.push(name)
      if (rule.isDryRun) continue
      return { outcome: needs.length > 0 ? null : rule.decision, open, trials }
    }
    return { outcome: this.#policy.otherwise, open, trials }
  }
}

interface PartialRule {
  readonly rule: Rule
  /** The same rule with only the conditions that can be tested. */
  readonly known: Rule
  readonly needs: readonly string[]
}

function partialRule(rule: Rule): PartialRule {
  const judged = rule.conditions.filter((condition) => needsOf(condition).length === 0)
  const known = { ...rule, tests: judged.map(({ test }) => test) }
  return { rule, known, needs: [...new Set(rule.conditions.flatMap(needsOf))] }
}

function needsOf({ name, takes }: Pick<CompiledCondition, 'name' | 'takes'>): readonly string[] {
  switch (name) {
    case 'header':
      return Object.keys(takes as object).flatMap((each) => {
        return each.toLowerCase() === USER_AGENT ? [] : [`header ${each.toLowerCase()}`]
      })
    case 'expression':
      return [...new ExpressionCompiler().compile(Place.of(takes, []), null, [])!.asks].filter(isUnknown)
    case 'not':
      if (typeof takes === 'string') return needsOf({ name: 'expression', takes })
      return Object.entries(takes as object).flatMap(([each, value]) => needsOf({ name: each, takes: value }))
    default:
      return []
  }
}

/** `asked`: a fact that an expression uses. */
function isUnknown(asked: string): boolean {
  if (asked === 'request.query') return true
  return asked.startsWith('request.headers') && asked !== `request.headers.${USER_AGENT}`
}

const USER_AGENT = 'user-agent'
