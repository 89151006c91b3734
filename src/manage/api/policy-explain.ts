import * as z from 'zod'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CATEGORIES, PURPOSES, SOFTWARE_KINDS } from '../../classify/known/software.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import { isSigned } from '../../identity/verify/signature-check.ts'
import { explain } from '../../policy/explain.ts'
import { rulesOf } from '../../policy/explanation-text.ts'
import type { Outcome } from '../../policy/action.ts'
import { describedRequest, readWrittenRequest } from '../../policy/written-request.ts'
import { knowledgeOf } from '../judging/detection.ts'
import { evidence, nameConfidence, proof, software } from './detect.ts'
import { given, is, rules, when } from './member-rules.ts'
import { operation } from './operation.ts'
import { checked, checkPolicy, compiledInForce, namesIn, policyDocument } from './policy.ts'
import { invalid } from '../http/refusal.ts'

const SIGNED = { const: 'web-bot-auth' }
const VERDICTS = ['agent', 'automation', 'human', 'unknown'] as const

/** An object with an id and, optionally, more that is known. */
function named(more: string, values: readonly string[], others: object = {}) {
  const text = { type: 'string' as const }
  return {
    type: 'object' as const,
    properties: { id: text, name: text, [more]: { ...text, enum: [...values] }, ...others },
    additionalProperties: false,
    required: ['id'],
  }
}

/** This schema only documents the request. `readWrittenRequest` checks it, as it checks a file. */
const writtenRequest = z.unknown().meta({
  id: 'WrittenRequest',
  description:
    'The same as for `gatehouse check --explain`, see config/README.md. Missing fields are unknown. Without `verdict`, the request is judged by the other fields.',
  override: {
    type: 'object',
    properties: {
      method: { type: 'string' },
      host: { type: 'string' },
      path: { type: 'string' },
      http: { enum: ['1.1', '2', 1.1, 2] },
      address: { type: 'string' },
      headers: {
        anyOf: [
          { type: 'object' },
          { type: 'array', items: { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 } },
        ],
        description:
          'An object with one value or several for each name, or a list of name and value pairs, as they were sent.',
      },
      ja4: { type: 'string' },
      ja4h: { type: 'string' },
      stable: { type: 'string' },
      http2: { type: 'string' },
      hello: { enum: ['malformed', 'not-tls'] },
      verdict: {
        type: 'object',
        properties: {
          kind: { enum: [...VERDICTS] },
          agent: {
            anyOf: [
              { type: 'string' },
              named('category', CATEGORIES, { purpose: { type: 'array', items: { enum: [...PURPOSES] } } }),
            ],
          },
          software: {
            anyOf: [{ type: 'string' }, named('kind', SOFTWARE_KINDS)],
          },
          confidence: { type: 'number', minimum: 0, maximum: 1 },
          name_confidence: { type: 'number', minimum: 0, maximum: 1 },
          verified: { enum: [...PROOF_METHODS] },
          signer: { type: 'string', description: 'The URL of the signer, with `web-bot-auth`.' },
          evidence: { type: 'array', items: { type: 'string' } },
        },
        additionalProperties: false,
        required: ['kind'],
        ...rules(
          when(given('signer'), is('verified', SIGNED)),
          when(is('verified', SIGNED), given('signer')),
        ),
        description: 'The verdict on its client.',
      },
    },
    additionalProperties: false,
    example: { method: 'GET', path: '/api/items', headers: { 'User-Agent': 'GPTBot/1.2', Accept: '*/*' } },
  },
})

const REQUEST_MISSING = 'is missing or null; expected an object: {} is a request with no known properties'
const outcome = { rule: z.string(), action: z.string() }
const policyExplanation = z
  .strictObject({
    verdict: z.strictObject({
      kind: z.enum(VERDICTS),
      given: z.boolean().meta({ description: 'Whether the verdict was given with the request.' }),
      agent: z
        .strictObject({
          id: z.string(),
          name: z.string(),
          category: z.string(),
          purpose: z.array(z.string()),
        })
        .nullable(),
      software: software.nullable(),
      confidence: z.number(),
      name_confidence: nameConfidence,
      verified: z.enum(PROOF_METHODS).nullable(),
      proof: proof.nullable(),
      conflicts: z.array(z.string()),
      evidence: z.array(evidence),
    }),
    rules: z
      .array(
        z.strictObject({
          rule: z.string(),
          holds: z.boolean(),
          decides: z.boolean(),
          dry_run: z.boolean(),
          expired: z.boolean(),
          doubtful: z.boolean().meta({
            description: 'The request is ambiguous, and the reading that is worse for the client counts.',
          }),
          why: z.string().meta({ description: 'A readable description.' }),
          conditions: z.array(
            z.strictObject({
              name: z.string(),
              takes: z.unknown(),
              holds: z.boolean(),
              seen: z.unknown().meta({ description: 'The actual value.' }),
            }),
          ),
        }),
      )
      .meta({ description: 'All rules in their order, including those after the deciding one.' }),
    decision: z.strictObject({
      ...outcome,
      would_have: z.strictObject(outcome).nullable().meta({
        description: 'What the first matching rule on trial (`dry_run`) would have done.',
      }),
    }),
    unknown_signer_wait_ms: z.int().nullable().meta({
      description:
        'How long a signed request waits for a key that is not known yet. Signatures are not checked here. `null`: not signed.',
    }),
  })
  .meta({ id: 'PolicyExplanation' })

export const explainPolicy = operation({
  id: 'explainPolicy',
  method: 'POST',
  path: '/policy/explain',
  tag: 'Administration',
  summary: 'Explain what a policy does to a request',
  description:
    'Judges a described request, and says for every rule whether it matches and why not. Changes and records nothing. Default: the policy in force. The same as `gatehouse check --explain`.',
  scopes: ['admin'],
  body: z
    .strictObject({ request: writtenRequest, policy: policyDocument.optional() })
    .meta({ id: 'PolicyExplanationRequest' }),
  answer: policyExplanation,
  run: async ({ body }, management) => {
    const nowMs = management.nowMs()
    const policy =
      body.policy === undefined
        ? compiledInForce(management)
        : checkPolicy(body.policy, management, '/policy')
    const { request = null } = body
    if (request === null) throw invalid([{ pointer: '/request', detail: REQUEST_MISSING }])
    const known = { names: namesIn(management), knowledge: () => knowledgeOf(management) }
    const written = checked('/request', () => readWrittenRequest(request))
    const { facts, isVerdictGiven } = describedRequest(written, known, nowMs)
    const { decision, rules } = explain(policy, facts, nowMs)
    const { wouldHave } = decision
    return {
      body: {
        verdict: verdictOf(facts.verdict, isVerdictGiven),
        rules: rulesOf(rules).map((each) => ({ ...each, conditions: [...each.conditions] })),
        decision: { ...outcomeOf(decision), would_have: wouldHave === null ? null : outcomeOf(wouldHave) },
        unknown_signer_wait_ms: isSigned(facts.rawHeaders) ? policy.unknownSignerWaitMs : null,
      },
    }
  },
})

function verdictOf(
  { kind, agent, software, confidence, nameConfidence, proof, conflicts, evidence }: Verdict,
  given: boolean,
) {
  return {
    kind,
    given,
    agent: agent && shownAgent(agent),
    software,
    confidence,
    name_confidence: nameConfidence,
    proof,
    verified: proof?.method ?? null,
    conflicts: [...conflicts],
    evidence: evidence.map(({ kind, detail, weight }) => ({ kind, detail, weight })),
  }
}

function shownAgent({ id, name, category, purposes }: NonNullable<Verdict['agent']>) {
  return { id, name, category, purpose: [...purposes] }
}

function outcomeOf({ rule, action }: Outcome) {
  return { rule, action: action.kind }
}
