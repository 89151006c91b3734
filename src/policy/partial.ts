import type { Outcome } from './action.ts'
import type { CompiledCondition } from './condition.ts'
import { holds } from './decide.ts'
import { readExpression } from './expression.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule } from './policy.ts'
import { Place } from '../shared/problem.ts'
import { PolicyRequest } from './request.ts'

/** What is known of a request that is over: of its headers the User-Agent, and not its query. */
export interface PartialDecision {
  /** `null`: it hangs on what is not known. */
  readonly outcome: Outcome | null
  /** The rules that may hold or not, as nobody knows; the last one is why there is no outcome. */
  readonly open: readonly string[]
  /** Rules on trial that hold. */
  readonly trials: readonly string[]
}

/** A policy for requests of which not everything is known: it never guesses. */
export class PartialPolicy {
  readonly #policy: Policy
  readonly #rules: readonly PartialRule[]
  readonly #request = new PolicyRequest()

  constructor(policy: Policy) {
    this.#policy = policy
    this.#rules = policy.rules.map(partialRule)
  }

  /** What each rule would have to know, for those that would. */
  get needs(): ReadonlyMap<string, readonly string[]> {
    const needing = this.#rules.filter(({ needs }) => needs.length > 0)
    return new Map(needing.map(({ rule, needs }) => [rule.decision.rule, needs]))
  }

  decide(facts: Facts, nowMs: number): PartialDecision {
    this.#request.read(facts, this.#policy.asked)
    const open: string[] = []
    const trials: string[] = []
    for (const { rule, known, needs } of this.#rules) {
      // Where what is known does not hold, the rule cannot.
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
  /** With those conditions only that can be judged. */
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
      return [...readExpression(Place.of(takes, []))!.asks].filter(isUnknown)
    case 'not':
      if (typeof takes === 'string') return needsOf({ name: 'expression', takes })
      return Object.entries(takes as object).flatMap(([each, value]) => needsOf({ name: each, takes: value }))
    default:
      return []
  }
}

/** Of what an expression asks. */
function isUnknown(asked: string): boolean {
  if (asked === 'request.query') return true
  return asked.startsWith('request.headers') && asked !== `request.headers.${USER_AGENT}`
}

const USER_AGENT = 'user-agent'
