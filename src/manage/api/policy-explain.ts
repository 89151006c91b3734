import * as z from 'zod'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CATEGORIES, SOFTWARE_KINDS } from '../../classify/known/software.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import { isSigned } from '../../identity/verify/signature-check.ts'
import { explain } from '../../policy/explain.ts'
import { rulesOf } from '../../policy/explanation-text.ts'
import type { Outcome } from '../../policy/action.ts'
import { describedRequest, readWrittenRequest } from '../../policy/written-request.ts'
import { knowledgeOf } from '../judging/detection.ts'
import { evidence, proof, software } from './detect.ts'
import { given, is, rules, when } from './member-rules.ts'
import { operation } from '../http/operation.ts'
import { checked, checkPolicy, compiledInForce, namesIn, policyDocument } from './policy.ts'
import { invalid } from '../http/refusal.ts'

const SIGNED = { const: 'web-bot-auth' }
const VERDICTS = ['agent', 'automation', 'human', 'unknown'] as const

/** An object with an id and, optionally, more that is known. */
function named(more: string, values: readonly string[]) {
  const text = { type: 'string' as const }
  return {
    type: 'object' as const,
    properties: { id: text, name: text, [more]: { ...text, enum: [...values] } },
    additionalProperties: false,
    required: ['id'],
  }
}

/** This schema only documents the request. `readWrittenRequest` checks it, as it checks a file. */
const writtenRequest = z.unknown().meta({
  id: 'WrittenRequest',
  description:
    'The same as for `gatehouse check --explain`, see config/README.md. What is left out says nothing; without `verdict` it is made of the rest.',
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
          'A mapping of names to a value or several, or a list of names and values, as they were sent.',
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
            anyOf: [{ type: 'string' }, named('category', CATEGORIES)],
          },
          software: {
            anyOf: [{ type: 'string' }, named('kind', SOFTWARE_KINDS)],
          },
          confidence: { type: 'number', minimum: 0, maximum: 1 },
          verified: { enum: [...PROOF_METHODS] },
          signer: { type: 'string', description: 'Who has signed it, as a URL: with `web-bot-auth`.' },
          evidence: { type: 'array', items: { type: 'string' } },
        },
        additionalProperties: false,
        required: ['kind'],
        ...rules(
          when(given('signer'), is('verified', SIGNED)),
          when(is('verified', SIGNED), given('signer')),
        ),
        description: 'What its client is held for.',
      },
    },
    additionalProperties: false,
    example: { method: 'GET', path: '/api/items', headers: { 'User-Agent': 'GPTBot/1.2', Accept: '*/*' } },
  },
})

const REQUEST_MISSING = 'is missing or null; expected an object: {} is a request of which nothing is known'
const outcome = { rule: z.string(), action: z.string() }
const policyExplanation = z
  .strictObject({
    verdict: z.strictObject({
      kind: z.enum(VERDICTS),
      given: z.boolean().meta({ description: 'It was said with the request.' }),
      agent: z.strictObject({ id: z.string(), name: z.string(), category: z.string() }).nullable(),
      software: software.nullable(),
      confidence: z.number(),
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
            description:
              'The request can be read in more than one way, and the worse one for its client counts.',
          }),
          why: z.string().meta({ description: 'In words.' }),
          conditions: z.array(
            z.strictObject({
              name: z.string(),
              takes: z.unknown(),
              holds: z.boolean(),
              seen: z.unknown().meta({ description: 'What there was instead.' }),
            }),
          ),
        }),
      )
      .meta({ description: 'In their order, those behind the one that decides too.' }),
    decision: z.strictObject({
      ...outcome,
      would_have: z.strictObject(outcome).nullable().meta({
        description: 'What the first rule on trial (`dry_run`) that held would have done.',
      }),
    }),
    unknown_signer_wait_ms: z.int().nullable().meta({
      description:
        'Of a signed request, which is not checked here: how long it waits at the door for a key that is not known yet; null where it is not signed.',
    }),
  })
  .meta({ id: 'PolicyExplanation' })

export const explainPolicy = operation({
  id: 'explainPolicy',
  method: 'POST',
  path: '/policy/explain',
  tag: 'Administration',
  summary: 'What does a policy do to a request, and why?',
  description:
    'Judges a request that is described, and says of every rule whether it holds, and why not; nothing changes, and nothing is recorded. Without `policy`, by the one in force. The same as `gatehouse check --explain`.',
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
  { kind, agent, software, confidence, proof, conflicts, evidence }: Verdict,
  given: boolean,
) {
  return {
    ...{ kind, given, agent, software, confidence, proof },
    verified: proof?.method ?? null,
    conflicts: [...conflicts],
    evidence: evidence.map(({ kind, detail, weight }) => ({ kind, detail, weight })),
  }
}

function outcomeOf({ rule, action }: Outcome) {
  return { rule, action: action.kind }
}
