import type { SoftwareNames } from '../classify/known/software-names.ts'
import { hold, type Test } from '../policy/condition-form.ts'
import { compileConditions, type CompiledCondition } from '../policy/condition.ts'
import { ExpressionCompiler } from '../policy/expression.ts'
import type { Facts } from '../policy/facts.ts'
import { allRules, type Policy, type Rule } from '../policy/policy.ts'
import { PolicyRequest } from '../policy/request.ts'
import type { Action, Outcome } from '../policy/action.ts'
import { Place } from '../shared/problem.ts'
import type { Effort } from './effort.ts'
import { anchored, EVERY_PATH, intersection, type PathPattern } from './path-pattern.ts'
import { type PathRule, type PathRules, tidied } from './path-rules.ts'

/**
 * What a policy does to a client on each path. Everything about the client is known, its path is not. Each policy is
 * prepared once.
 */
export class PolicyPaths {
  readonly #policy: Policy
  readonly #rules: readonly PreparedRule[]
  readonly #request = new PolicyRequest()
  /** By the rules that hold for a client: most clients are treated like many others. */
  readonly #known = new Map<string, PathRules<boolean>>()
  readonly #effort: Effort

  constructor(policy: Policy, names: SoftwareNames | null, effort: Effort) {
    this.#policy = policy
    this.#effort = effort
    this.#rules = allRules(policy).map((rule, index) => prepared(rule, index, names))
  }

  /** Rules that could turn a client away on some paths, and whose paths cannot be listed. They are left out. */
  get unlisted(): readonly Pick<Outcome, 'rule' | 'layer'>[] {
    return this.#rules.flatMap(({ rule, isUnlisted }) => (isUnlisted ? [rule.decision] : []))
  }

  /** Whether the client gets in, by path and query. `purpose`: the only one that conditions see; `null`: all. */
  of(facts: Facts, nowMs: number, purpose: string | null = null): PathRules<boolean> {
    // Conditions of other facts are tested with a path that no rule names.
    this.#request.read(facts, this.#policy.asked)
    this.#request.purpose = purpose
    const holding = this.#rules.filter((each) => {
      const { rule, tests, isUnlisted } = each
      return !isUnlisted && !rule.isDryRun && nowMs < rule.expiresMs && hold(tests, this.#request)
    })
    const key = holding.map((each) => `${each.index}${this.#isSparing(each) ? '-' : ''}`).join()
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const walked = this.#walk(holding, 0, EVERY_PATH)
    const rules = tidied(walked.filter(isPublished).flatMap(withQueries), this.#effort)
    this.#known.set(key, rules)
    return rules
  }

  /** Which paths an exception is for matters only if everything else in it holds. */
  #isSparing({ except, exceptIfHolds }: PreparedRule): boolean {
    return except !== null && hold(exceptIfHolds, this.#request)
  }

  #walk(rules: readonly PreparedRule[], at: number, within: PathPattern): PathRules<boolean> {
    const prepared = rules[at]
    // Rules that spare paths can multiply. Paths beyond the limit are closed.
    if (!this.#effort.spend(STEP)) return [{ pattern: within, value: false }]
    if (prepared === undefined) return [{ pattern: within, value: getsIn(this.#policy.otherwise.action) }]
    const { rule, only } = prepared
    const value = getsIn(rule.decision.action)
    const spared = this.#isSparing(prepared) ? prepared.except : null
    if (only === null && spared === null) return [{ pattern: within, value }]
    const rest = (paths: readonly PathPattern[]) => paths.flatMap((each) => this.#walk(rules, at + 1, each))
    const sparedHere = spared === null ? [] : rest(this.#common(spared, within))
    if (only === null) return [...sparedHere, { pattern: within, value }]
    const here = this.#common(only, within).map((pattern) => ({ pattern, value }))
    return [...sparedHere, ...here, ...this.#walk(rules, at + 1, within)]
  }

  /** Paths with so many stars that what they have in common cannot be listed are taken whole. */
  #common(patterns: readonly PathPattern[], within: PathPattern): readonly PathPattern[] {
    return patterns.flatMap((each) => intersection(each, within, this.#effort) ?? [each])
  }
}

/** A rule with its conditions about paths apart. */
interface PreparedRule {
  readonly index: number
  readonly rule: Rule
  /** The tests of everything else. */
  readonly tests: readonly Test[]
  /** The paths that it is for; `null`: all. */
  readonly only: readonly PathPattern[] | null
  /** The paths that its `not` spares if `exceptIfHolds` does; `null`: none. */
  readonly except: readonly PathPattern[] | null
  readonly exceptIfHolds: readonly Test[]
  readonly isUnlisted: boolean
}

function prepared(rule: Rule, index: number, names: SoftwareNames | null): PreparedRule {
  const tests: CompiledCondition['test'][] = []
  let only: readonly PathPattern[] | null = null
  let except: readonly PathPattern[] | null = null
  let exceptIfHolds: readonly Test[] = []
  let isUnlisted = false
  for (const { name, takes, test } of rule.conditions) {
    if (name === 'path') only = patternsIn(takes)
    else if (asksPath(name, takes)) isUnlisted = true
    else if (name === 'not' && typeof takes === 'object' && takes !== null && 'path' in takes) {
      const { path, ...others } = takes as { path: unknown }
      except = patternsIn(path)
      exceptIfHolds = compiledTests(others, names)
    } else tests.push(test)
  }
  return { index, rule, tests, only, except, exceptIfHolds, isUnlisted }
}

/** Whether an expression in it asks for the path, so that its paths cannot be listed. */
function asksPath(name: string, takes: unknown): boolean {
  if (name === 'not' && typeof takes === 'object' && takes !== null)
    return Object.entries(takes).some(([each, value]) => asksPath(each, value))
  if (name !== 'expression' && name !== 'not') return false
  const { asks } = new ExpressionCompiler().compile(Place.of(takes, []), null, [])!
  return asks.has('request.path') || asks.has('request.query')
}

function compiledTests(when: object, names: SoftwareNames | null): readonly Test[] {
  const needs = { asked: new Set<string>(), steps: 0, mcpConditions: 0, names, ids: [], unknownWords: [] }
  const conditions = compileConditions(Place.of(when, []), {
    ...needs,
    expressions: new ExpressionCompiler(),
  })
  return conditions.map(({ test }) => test)
}

function patternsIn(takes: unknown): readonly PathPattern[] {
  return [takes].flat().flatMap((each) => anchored(String(each)))
}

/** Every crawler may read robots.txt, whatever it says. */
function isPublished({ pattern }: PathRule<boolean>): boolean {
  return pattern !== '/robots.txt'
}

/** A condition compares the path only, so a query may follow. */
function withQueries({ pattern, value }: PathRule<boolean>): PathRules<boolean> {
  if (pattern.endsWith('*')) return [{ pattern, value }]
  return [
    { pattern, value },
    { pattern: `${pattern}?*`, value },
  ]
}

/** A client over a rate limit is told to wait, and one that has not paid to pay, not to stay away. */
function getsIn({ kind }: Action): boolean {
  return kind === 'pass' || kind === 'tag' || kind === 'route' || kind === 'rate_limit' || kind === 'charge'
}

/** The effort of one rule for one client. */
const STEP = 10
