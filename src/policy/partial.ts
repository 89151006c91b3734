import type { CompiledCondition } from './condition.ts'
import { strictness } from './action.ts'
import { allOf } from './condition-form.ts'
import { byPurpose, holds } from './decide.ts'
import { ExpressionCompiler } from './expression.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule, SettledOutcome } from './policy.ts'
import { Place } from '../shared/problem.ts'
import { PolicyRequest } from './request.ts'

/**
 * The decision for a request that is over. Of its headers only the User-Agent is known, and its query is
 * unknown.
 */
interface PartialDecision {
  /** `null`: the outcome depends on facts that are unknown. */
  readonly outcome: SettledOutcome | null
  /**
   * Rules that may or may not hold, for lack of facts. If there is no outcome, the last one is the reason.
   */
  readonly open: readonly Rule[]
  /** Dry-run rules that hold. */
  readonly trials: readonly Rule[]
}

/**
 * Applies policies to requests with incomplete facts. It never guesses. The lists of rules that the policies of
 * apps share are prepared once.
 */
export class PartialPolicies {
  readonly #unknown: UnknownFacts
  readonly #lists = new Map<readonly Rule[], readonly PartialRule[]>()
  readonly #request = new PolicyRequest()

  constructor(unknown: UnknownFacts = NONE_MORE) {
    this.#unknown = unknown
  }

  /** Of an agent with several purposes, the strictest decision counts, as in `decide`. */
  decide(policy: Policy, facts: Facts, nowMs: number): PartialDecision {
    return byPurpose(policy, facts)
      .map((purpose) => {
        this.#request.purpose = purpose
        const decision = this.#decideOne(policy, facts, nowMs)
        this.#request.purpose = null
        return decision
      })
      .reduce(stricter)
  }

  #decideOne(policy: Policy, facts: Facts, nowMs: number): PartialDecision {
    this.#request.read(facts, policy.asked)
    const open: Rule[] = []
    const trials: Rule[] = []
    for (const { rules } of policy.layers) {
      for (const { rule, known, isOpen } of this.#partial(rules)) {
        // If the known conditions do not hold, the rule cannot hold.
        if (nowMs >= rule.expiresMs || !holds(known, this.#request)) continue
        if (isOpen) open.push(rule)
        else if (rule.isDryRun) trials.push(rule)
        if (rule.isDryRun) continue
        return { outcome: isOpen ? null : rule.decision, open, trials }
      }
    }
    return { outcome: policy.otherwise, open, trials }
  }

  #partial(list: readonly Rule[]): readonly PartialRule[] {
    const known = this.#lists.get(list)
    if (known !== undefined) return known
    const made = list.map((rule) => partialRule(rule, this.#unknown))
    this.#lists.set(list, made)
    return made
  }
}

/** An open decision may be any, so it counts unless the other one is as strict as can be. */
function stricter(a: PartialDecision, b: PartialDecision): PartialDecision {
  const rank = ({ outcome }: PartialDecision) =>
    outcome === null ? strictness('block') - 0.5 : strictness(outcome.action.kind)
  return rank(b) > rank(a) ? b : a
}

/** The facts that a rule needs and that are missing. */
export function missingFacts({ conditions }: Rule, unknown: UnknownFacts = NONE_MORE): readonly string[] {
  return [...new Set(conditions.flatMap((condition) => needsOf(condition, unknown)))]
}

/** Facts that a request lacks besides: it was stored without them. */
export type UnknownFacts = ReadonlySet<'address' | 'path'>

interface PartialRule {
  readonly rule: Rule
  /** The same rule with only the conditions that can be tested. */
  readonly known: Rule
  readonly isOpen: boolean
}

function partialRule(rule: Rule, unknown: UnknownFacts): PartialRule {
  const judged = rule.conditions.filter((condition) => needsOf(condition, unknown).length === 0)
  const known = { ...rule, test: allOf(judged.map(({ test }) => test)) }
  return { rule, known, isOpen: judged.length < rule.conditions.length }
}

function needsOf(
  { name, takes }: Pick<CompiledCondition, 'name' | 'takes'>,
  unknown: UnknownFacts,
): readonly string[] {
  switch (name) {
    case 'mcp_method':
    case 'mcp_tool':
    case 'mcp_resource':
      return [MCP_CALL]
    case 'address':
    case 'path':
      return unknown.has(name) ? [name] : []
    case 'card':
      return ['the card of the signer']
    case 'header':
      return Object.keys(takes as object).flatMap((each) => {
        return each.toLowerCase() === USER_AGENT ? [] : [`header ${each.toLowerCase()}`]
      })
    case 'expression':
      return [...new ExpressionCompiler().compile(Place.of(takes, []), null, [])!.asks]
        .filter((asked) => isUnknown(asked, unknown))
        .map((each) => (each.startsWith('request.mcp_') ? MCP_CALL : each))
    case 'not':
      if (typeof takes === 'string') return needsOf({ name: 'expression', takes }, unknown)
      return Object.entries(takes as object).flatMap(([each, value]) =>
        needsOf({ name: each, takes: value }, unknown),
      )
    default:
      return []
  }
}

/** `asked`: a fact that an expression uses. */
function isUnknown(asked: string, unknown: UnknownFacts): boolean {
  if (asked === 'client.address') return unknown.has('address')
  if (asked === 'request.path') return unknown.has('path')
  if (asked === 'request.query' || asked.startsWith('request.mcp_')) return true
  return asked.startsWith('request.headers') && asked !== `request.headers.${USER_AGENT}`
}

const NONE_MORE: ReadonlySet<'address' | 'path'> = new Set()
const USER_AGENT = 'user-agent'
const MCP_CALL = 'the MCP call'
