import { CATEGORIES, PURPOSES } from '../classify/known/software.ts'
import { PROOF_METHODS } from '../classify/verdict/proof.ts'
import type { Place } from '../shared/problem.ts'
import {
  agent,
  campaign,
  card,
  category,
  confidenceMin,
  evidence,
  forged,
  listed,
  purpose,
  signer,
  software,
  verdict,
  verified,
} from './client-conditions.ts'
import { hold, type PolicyNeeds, type Test } from './condition-form.ts'
import { hello, http2, ja4, ja4h, NO_HELLO, stable } from './fingerprint-conditions.ts'
import { address, header, host, method, path, userAgent } from './request-conditions.ts'
import { mcpMethod, mcpResource, mcpTool } from './mcp-conditions.ts'
import { VERDICT_KINDS } from './vocabulary.ts'

/** A condition that can stand under `when`. */
export interface Condition {
  /** For the manual. */
  readonly takes: string
  readonly about: string
  /** `null`: the condition was refused, and its place has the problem. */
  compile(place: Place, needs: PolicyNeeds): Test | null
}

/** A condition of a rule, compiled. */
export interface CompiledCondition {
  readonly name: string
  /** As written in the policy. */
  readonly takes: unknown
  readonly test: Test
}

/** Compiles all conditions of a rule, cheapest first. Nothing is compiled later. Fills in `needs`. */
export function compileConditions(
  place: Place,
  needs: PolicyNeeds,
  known: readonly string[] = CONDITION_NAMES,
): readonly CompiledCondition[] {
  const members = typeof place.value === 'string' ? new Map([['expression', place]]) : place.members(known)
  const compiled: CompiledCondition[] = []
  for (const [name, condition] of CONDITIONS) {
    const member = members.get(name)
    // A condition that is not allowed here is not compiled: one `not` can contain thousands.
    if (member === undefined || !known.includes(name)) continue
    needs.asked.add(name)
    const test = condition.compile(member, needs)
    if (test !== null) compiled.push({ name, takes: member.value, test })
  }
  return compiled
}

function not(place: Place, needs: PolicyNeeds): Test | null {
  const known = CONDITION_NAMES.filter((name) => name !== 'not')
  const tests = compileConditions(place, needs, known).map(({ test }) => test)
  if (place.isEmpty) return place.refuse('is empty, so the rule could never match')
  return (request) => {
    // `failedAs` is the result of an expression without an answer. Inside `not` it must be inverted.
    request.failedAs = !request.failedAs
    const isHolding = hold(tests, request)
    request.failedAs = !request.failedAs
    return !isHolding
  }
}

function expression(place: Place, needs: PolicyNeeds): Test | null {
  const compiled = needs.expressions.compile(place, needs.names, needs.unknownWords)
  if (compiled === null) return null
  const { steps } = compiled
  needs.steps += steps
  needs.ids.push(...compiled.ids)
  if (compiled.asks.has('request.path')) needs.asked.add('path')
  if (compiled.asks.has('request.host')) needs.asked.add('host')
  if (compiled.asks.has('request.method')) needs.asked.add('method')
  if (['method', 'tool', 'resource'].some((each) => compiled.asks.has(`request.mcp_${each}`)))
    needs.mcpConditions++
  return (request) => {
    const isHolding = request.spend(steps) ? compiled.evaluate(request) : null
    if (isHolding !== null) return isHolding
    request.hasFailed = true
    return request.failedAs
  }
}

/** By name, in the order of evaluation. */
export const CONDITIONS: ReadonlyMap<string, Condition> = new Map<string, Condition>([
  [
    'verdict',
    { takes: VERDICT_KINDS.join(', '), about: 'the classification of the client', compile: verdict },
  ],
  ['agent', { takes: 'ids, names', about: 'the agent that the client is classified as', compile: agent }],
  ['category', { takes: CATEGORIES.join(', '), about: 'the category of that agent', compile: category }],
  [
    'purpose',
    {
      takes: PURPOSES.join(', '),
      about: 'one of the published purposes of that agent; an agent can have several, or none',
      compile: purpose,
    },
  ],
  [
    'software',
    {
      takes: 'ids, names',
      about: 'the software that the client is classified as, whether it is an agent or not',
      compile: software,
    },
  ],
  ['evidence', { takes: 'patterns', about: 'a kind of evidence for the verdict', compile: evidence }],
  [
    'confidence_min',
    { takes: '0 to 1', about: 'the minimum confidence of the verdict', compile: confidenceMin },
  ],
  [
    'verified',
    {
      takes: `true, false, ${PROOF_METHODS.join(', ')}`,
      about:
        'whether the identity is verified, or by which method; also true for unknown signers: see `listed`',
      compile: verified,
    },
  ],
  [
    'listed',
    {
      takes: 'true, false',
      about: 'whether the client is classified as an agent in the signatures; an unknown signer is not',
      compile: listed,
    },
  ],
  [
    'signer',
    {
      takes: 'patterns',
      about: 'the verified signer of the request (Web Bot Auth), as a URL',
      compile: signer,
    },
  ],
  [
    'card',
    {
      takes: 'true, false, `purpose`, `trigger`, `robots`, `registry`',
      about:
        'whether the verified signer has a signature agent card, or what the card says, or which registries list it; all given members must match',
      compile: card,
    },
  ],
  [
    'forged',
    {
      takes: 'true, false',
      about: 'whether the client sent headers that only the proxy may set',
      compile: forged,
    },
  ],
  [
    'campaign',
    {
      takes: 'true, false, ids',
      about: 'whether the request belongs to a campaign, a crawler from many addresses, or to which one',
      compile: campaign,
    },
  ],
  ['hello', { takes: NO_HELLO.join(', '), about: 'why the connection has no fingerprint', compile: hello }],
  ['ja4', { takes: 'JA4s', about: 'the JA4 fingerprint; `*` matches any text within a part', compile: ja4 }],
  ['stable', { takes: 'stable keys', about: 'the stable key; `*` as in `ja4`', compile: stable }],
  ['ja4h', { takes: 'JA4Hs', about: 'the JA4H fingerprint; `*` as in `ja4`', compile: ja4h }],
  ['http2', { takes: 'patterns', about: 'the HTTP/2 fingerprint, in the Akamai format', compile: http2 }],
  ['method', { takes: 'methods', about: 'the method, written in upper case', compile: method }],
  ['address', { takes: 'addresses, ranges', about: 'the address of the client', compile: address }],
  [
    'host',
    { takes: 'patterns', about: 'the requested host, without its port; case-insensitive', compile: host },
  ],
  ['path', { takes: 'patterns', about: 'the requested path, without its query; see below', compile: path }],
  ['user_agent', { takes: 'patterns', about: 'the User-Agent; case-insensitive', compile: userAgent }],
  [
    'header',
    {
      takes: '`name: patterns`, `name: {present: true}`',
      about:
        'headers as sent: a value (case-insensitive), or whether the header is present; all listed headers must match. `X-Plan`, `X_Plan` and `x.plan` count as the same name',
      compile: header,
    },
  ],
  [
    'mcp_method',
    {
      takes: 'patterns',
      about: 'the method of a call to an app that is an MCP server, like `tools/*`; see below',
      compile: mcpMethod,
    },
  ],
  ['mcp_tool', { takes: 'patterns', about: 'the tool that such a call names', compile: mcpTool }],
  [
    'mcp_resource',
    { takes: 'patterns', about: 'the URI of the resource that such a call names', compile: mcpResource },
  ],
  [
    'expression',
    {
      takes: 'CEL',
      about: 'an expression, for tests that no other condition can express; see below',
      compile: expression,
    },
  ],
  ['not', { takes: 'conditions', about: 'matches unless all of these conditions match', compile: not }],
])
const CONDITION_NAMES = [...CONDITIONS.keys()]
