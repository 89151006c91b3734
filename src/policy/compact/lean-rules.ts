import { ownText } from '../../wire/own-text.ts'
import { allOf, type Test } from '../condition-form.ts'
import type { CompiledCondition } from '../condition.ts'
import { inLayers, type Policy, type Rule, type RuleList, type SettledOutcome } from '../policy.ts'
import type { PolicyRequest } from '../request.ts'

/**
 * Decides alike, and takes a third of the memory: without what only explanations and warnings need, and with one object
 * for the members that rules share.
 */
export function withoutSources(policy: Policy): Policy {
  const { first, app, last } = policy
  const rules = inLayers({ first: lean(first), app: lean(app), last: lean(last) })
  return Object.freeze({ ...policy, ...rules, ids: [], unknownWords: [] })
}

function lean(list: RuleList): RuleList {
  const kinds = new Map<string, RuleKind>()
  const rules = list.rules.map((rule) => {
    const path = rule.conditions.find(({ name, takes }) => name === 'path' && START.test(String(takes)))
    const pattern = path === undefined ? '*' : String(path.takes)
    const others = rule.conditions.filter((each) => each !== path)
    const isExact = !pattern.endsWith('*')
    const key = keyOf(rule, others, isExact)
    const kind = kinds.get(key) ?? kindOf(rule, others, isExact)
    kinds.set(key, kind)
    return new LeanRule(kind, rule.decision.rule, ownText(isExact ? pattern : pattern.slice(0, -1)))
  })
  return { ...list, rules }
}

/** What rules have in common if only their names and paths differ. */
interface RuleKind extends Pick<Rule, 'isRestricting' | 'isDryRun' | 'expiresMs'> {
  readonly decision: Omit<SettledOutcome, 'rule'>
  /** Whether the path must end where the start ends. */
  readonly isExact: boolean
  /** The conditions beside the path; `null`: none. */
  readonly others: Test | null
}

function kindOf(rule: Rule, conditions: readonly CompiledCondition[], isExact: boolean): RuleKind {
  const { isRestricting, isDryRun, expiresMs, decision } = rule
  const others = conditions.length === 0 ? null : allOf(conditions.map(({ test }) => test))
  return { isRestricting, isDryRun, expiresMs, decision, isExact, others }
}

/** Rules with equal keys are of one kind. Everything in it comes from JSON. */
function keyOf(
  { isDryRun, expiresMs, decision }: Rule,
  conditions: readonly CompiledCondition[],
  isExact: boolean,
): string {
  const others = conditions.map(({ name, takes }) => [name, takes])
  return JSON.stringify([decision.action, isDryRun, expiresMs, isExact, others])
}

/** A fleet of many apps has tens of thousands of rules. */
class LeanRule implements Rule {
  readonly #kind: RuleKind
  readonly #name: string
  /** What the path starts with. */
  readonly #start: string
  #decision: SettledOutcome | null = null

  constructor(kind: RuleKind, name: string, start: string) {
    this.#kind = kind
    this.#name = name
    this.#start = start
  }

  test(request: PolicyRequest): boolean {
    const { isExact, others } = this.#kind
    const start = this.#start
    const isPlain = request.isPlain && request.plainPath !== null
    const path = isPlain ? request.plainPath! : request.path
    if (!path.startsWith(start)) return false
    if (isExact && (isPlain ? path.length : request.pathEnd) !== start.length) return false
    return others === null || others(request)
  }

  get conditions(): readonly CompiledCondition[] {
    return NO_CONDITIONS
  }

  /** Made for the first request that it decides. */
  get decision(): SettledOutcome {
    this.#decision ??= { ...this.#kind.decision, rule: this.#name }
    return this.#decision
  }

  get isRestricting(): boolean {
    return this.#kind.isRestricting
  }

  get isDryRun(): boolean {
    return this.#kind.isDryRun
  }

  get expiresMs(): number {
    return this.#kind.expiresMs
  }
}

const NO_CONDITIONS: readonly CompiledCondition[] = []
/** One path without an encoding, which has one form, and without a star except at its end. */
const START = /^\/[!-$&-)+\--~]*\*?$/
