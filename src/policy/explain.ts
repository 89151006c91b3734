import { foldHeaderName, isFoldedName } from '../wire/header-name.ts'
import type { CompiledCondition } from './condition.ts'
import { signerFacts } from './client-conditions.ts'
import { holds, type PolicyDecision, strictestReading } from './decide.ts'
import type { Facts } from './facts.ts'
import type { PolicyLayer } from './action.ts'
import { allRules, type Policy, type Rule } from './policy.ts'
import { PolicyRequest } from './request.ts'

/** Why a request gets its decision. */
export interface Explanation {
  readonly decision: PolicyDecision
  /** All rules in order, including those after the rule that decides. */
  readonly rules: readonly RuleExplanation[]
}

export interface RuleExplanation {
  readonly rule: string
  readonly layer: PolicyLayer
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
  const { purpose, decision } = strictestReading(policy, facts, nowMs, request)
  request.read(facts, EVERYTHING)
  request.purpose = purpose
  const rules = allRules(policy).map((rule) => explainRule(rule, request, decision, nowMs))
  return { decision, rules }
}

function explainRule(
  rule: Rule,
  request: PolicyRequest,
  decision: PolicyDecision,
  nowMs: number,
): RuleExplanation {
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
    layer: rule.decision.layer,
    holds: isHolding,
    decides: rule.decision.rule === decision.rule && rule.decision.layer === decision.layer,
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
  const { isRestricting } = rule
  return {
    name,
    takes,
    holds: holds({ test, isRestricting }, request),
    seen: SEEN[name]?.(request, takes) ?? null,
  }
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

/** What the condition `card` compares. */
function cardSeen(facts: Facts): object | null {
  const signer = signerFacts(facts)
  if (signer === null) return null
  const { card, registries } = signer
  const { purpose, trigger, keepsRobots } = card ?? NO_CARD
  return { purpose, trigger, robots: keepsRobots, registry: registries }
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

function mcpSeen(bytes: string | null | undefined): string | null {
  return bytes == null ? null : Buffer.from(bytes, 'latin1').toString()
}

function headersIn(text: string): ReadonlySet<string> {
  const access =
    /\brequest\s*\.\s*headers\s*(?:\.\s*(\w+)|\[\s*["']([^"']+)["'])|["']([^"']+)["']\s*in\s+request\.headers/g
  return new Set([...text.matchAll(access)].map(([, a, b, c]) => (a ?? b ?? c)!))
}

const EVERYTHING = {
  ...{ host: true, path: true, address: true, userAgent: true, method: true, purpose: true, mcp: true },
}
const NO_CARD = { purpose: [], trigger: null, keepsRobots: null }
/** The fact that each condition tests, by the condition's name. */
const SEEN: Readonly<Record<string, (request: PolicyRequest, takes: unknown) => unknown>> = {
  verdict: ({ facts }) => facts.verdict.kind,
  agent: ({ facts }) => facts.verdict.agent?.id,
  category: ({ facts }) => facts.verdict.agent?.category,
  purpose: ({ facts, purpose }) => (purpose === null ? facts.verdict.agent?.purposes : [purpose]),
  software: ({ facts }) => facts.verdict.software?.id,
  evidence: ({ facts }) => facts.verdict.evidence.map(({ kind }) => kind),
  confidence_min: ({ facts }) => facts.verdict.confidence,
  verified: ({ facts }) => facts.verdict.proof?.method ?? false,
  listed: ({ facts }) => facts.verdict.agent !== null,
  signer: ({ facts }) =>
    facts.verdict.proof?.method === 'web-bot-auth' ? facts.verdict.proof.agent : undefined,
  card: ({ facts }) => cardSeen(facts),
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
  mcp_method: ({ facts }) => mcpSeen(facts.mcp?.method),
  mcp_tool: ({ facts }) => mcpSeen(facts.mcp?.tool),
  mcp_resource: ({ facts }) => mcpSeen(facts.mcp?.resource),
  expression: expressionSeen,
}
