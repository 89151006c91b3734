import { foldHeaderName, isFoldedName } from '../wire/header-name.ts'
import type { CompiledCondition } from './condition.ts'
import { type Decision, decide, holds } from './decide.ts'
import type { Facts } from './facts.ts'
import type { Policy, Rule } from './policy.ts'
import { PolicyRequest } from './request.ts'

/** Why a request gets its decision. */
export interface Explanation {
  readonly decision: Decision
  /** All rules in order, including those after the rule that decides. */
  readonly rules: readonly RuleExplanation[]
}

export interface RuleExplanation {
  readonly rule: string
  readonly holds: boolean
  /** The first rule that holds, is not a dry run, and has not expired. */
  readonly decides: boolean
  readonly isDryRun: boolean
  readonly hasExpired: boolean
  /** The request had more than one reading. The one that is worse for the client counts. */
  readonly isDoubtful: boolean
  readonly conditions: readonly ConditionExplanation[]
}

export interface ConditionExplanation {
  readonly name: string
  readonly takes: unknown
  readonly holds: boolean
  /** The value in the request that was compared with `takes`. */
  readonly seen: unknown
}

/** Reaches the same decision as `decide`, and reports on every rule and condition. */
export function explain(policy: Policy, facts: Facts, nowMs: number): Explanation {
  const request = new PolicyRequest()
  request.read(facts, { host: true, path: true, address: true, userAgent: true, method: true })
  const decision = decide(policy, facts, nowMs)
  const rules = policy.rules.map((rule) => explainRule(rule, request, decision, nowMs))
  return { decision, rules }
}

function explainRule(rule: Rule, request: PolicyRequest, decision: Decision, nowMs: number): RuleExplanation {
  const { stepsLeft } = request
  const hasExpired = nowMs >= rule.expiresMs
  const isHolding = holds(rule, request)
  const stepsLeftAfter = hasExpired ? stepsLeft : request.stepsLeft
  const isDoubtful = request.plainPath !== null || request.hasFailed
  const conditions = rule.conditions.map((condition) => {
    request.stepsLeft = stepsLeft // as when the rule was first tried
    return explainCondition(condition, rule, request)
  })
  request.stepsLeft = stepsLeftAfter
  return {
    rule: rule.decision.rule,
    holds: isHolding,
    decides: rule.decision.rule === decision.rule,
    isDryRun: rule.isDryRun,
    hasExpired,
    isDoubtful,
    conditions,
  }
}

function explainCondition(
  { name, takes, test }: CompiledCondition,
  rule: Rule,
  request: PolicyRequest,
): ConditionExplanation {
  const alone = { ...rule, tests: [test] }
  return { name, takes, holds: holds(alone, request), seen: SEEN[name]?.(request, takes) ?? null }
}

/** The values of the headers that a condition names; `null` for a header that was not sent. */
function headersSeen({ facts: { rawHeaders } }: PolicyRequest, takes: unknown): object {
  const names = Object.keys(takes as object)
  return Object.fromEntries(
    names.map((name) => {
      const values = rawHeaders.filter(
        (_, i) => i % 2 === 1 && isFoldedName(rawHeaders[i - 1]!, foldHeaderName(name)),
      )
      return [name, values.length === 0 ? null : values.join(', ')]
    }),
  )
}

/** The values of the facts that an expression names literally. */
function expressionSeen(request: PolicyRequest, takes: unknown): object {
  const values = request.shown
  const facts = values as unknown as Record<string, Record<string, unknown>>
  const named = new Set(
    String(takes).match(/\b(?:request|client|verdict|fingerprint)\.(?!headers)\w+/g) ?? [],
  )
  const seen: Record<string, unknown> = {}
  for (const each of named) {
    const [of, name] = each.split('.') as [string, string]
    seen[each] = facts[of]?.[name] ?? null
  }
  for (const name of headersIn(String(takes)))
    seen[`request.headers.${name}`] = values.request.headers.get(foldHeaderName(name)) ?? null
  return seen
}

function headersIn(text: string): ReadonlySet<string> {
  const access =
    /\brequest\s*\.\s*headers\s*(?:\.\s*(\w+)|\[\s*["']([^"']+)["'])|["']([^"']+)["']\s*in\s+request\.headers/g
  return new Set([...text.matchAll(access)].map(([, a, b, c]) => (a ?? b ?? c)!))
}

/** The fact that each condition tests, by the condition's name. */
const SEEN: Readonly<Record<string, (request: PolicyRequest, takes: unknown) => unknown>> = {
  verdict: ({ facts }) => facts.verdict.kind,
  agent: ({ facts }) => facts.verdict.agent?.id,
  category: ({ facts }) => facts.verdict.agent?.category,
  purpose: ({ facts }) => facts.verdict.agent?.purposes,
  software: ({ facts }) => facts.verdict.software?.id,
  evidence: ({ facts }) => facts.verdict.evidence.map(({ kind }) => kind),
  confidence_min: ({ facts }) => facts.verdict.confidence,
  verified: ({ facts }) => facts.verdict.proof?.method ?? false,
  listed: ({ facts }) => facts.verdict.agent !== null,
  signer: ({ facts }) =>
    facts.verdict.proof?.method === 'web-bot-auth' ? facts.verdict.proof.agent : undefined,
  forged: ({ facts }) => facts.forged,
  hello: ({ facts }) => facts.print.connection.noHello,
  ja4: ({ facts }) => facts.print.connection.ja4,
  stable: ({ facts }) => facts.print.connection.stable,
  ja4h: ({ facts }) => facts.print.ja4h,
  http2: ({ facts }) => facts.print.connection.http2,
  method: ({ facts }) => facts.method,
  address: ({ facts }) => facts.address,
  host: ({ host, hostEnd }) => host?.slice(0, hostEnd),
  path: ({ path, pathEnd, plainPath }) => (plainPath === null ? path.slice(0, pathEnd) : [path, plainPath]),
  user_agent: ({ facts }) => Object.values(headersSeen({ facts } as PolicyRequest, { 'user-agent': 0 }))[0],
  header: headersSeen,
  expression: expressionSeen,
}
