import * as z from 'zod'
import type { App } from '../../apps/app.ts'
import { AppIndex } from '../../apps/app-index.ts'
import { ALL_APPS, reaches } from '../../apps/app-scope.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CATEGORIES, PURPOSES, SOFTWARE_KINDS } from '../../classify/known/software.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import { isSigned } from '../../identity/verify/signature-check.ts'
import { explain, type RuleExplanation } from '../../policy/explain.ts'
import { rulesOf } from '../../policy/explanation-text.ts'
import { type Outcome, POLICY_LAYERS } from '../../policy/action.ts'
import { describedRequest, readWrittenRequest, type WrittenRequest } from '../../policy/written-request.ts'
import { knowledgeOf } from '../judging/detection.ts'
import { evidence, nameConfidence, proof, software } from './detect.ts'
import type { Principal } from '../http/access/principal.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { checkApp, ofApp } from './app-access.ts'
import type { ApiContext } from './context.ts'
import { given, is, rules, when } from './member-rules.ts'
import { operation } from './operation.ts'
import {
  checked,
  checkPolicy,
  compiledInForce,
  namesIn,
  policyFor,
  type PolicyOwner,
  warningsOf,
} from './policy-layer.ts'
import { appPolicyDocument, policyDocument, warnings } from './policy-schemas.ts'

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
      campaign: { type: 'string' },
      mcp: {
        type: 'object',
        properties: {
          method: { type: 'string' },
          tool: { type: 'string' },
          resource: { type: 'string' },
        },
        additionalProperties: false,
        minProperties: 1,
        description:
          'The call in its body, for an app that is an MCP server. Default of `method`: `tools/call` with a tool, `resources/read` with a resource.',
      },
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
const layer = z.enum(POLICY_LAYERS).meta({
  description:
    'Where the rule stands: in the policy of the app, or in that of the organisation, before it (`first`) or after it (`last`).',
})
const outcome = { rule: z.string(), layer, action: z.string() }
const explanation = z
  .strictObject({
    app: z.string().meta({ description: 'The id of the app whose rules were tried.', example: 'default' }),
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
          layer,
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
      .meta({
        description:
          'All rules in their order, including those after the deciding one. Callers that are limited to some apps see, of the rules in force of the organisation, those that match, without their conditions.',
      }),
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
    warnings: warnings.meta({
      description:
        'Possible mistakes in the given `policy`, as in `POST /policy/preview`. Empty without one.',
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
    'Judges a described request, and says for every rule whether it matches and why not. The rules of its app are tried, too, between `first` and `last`. Changes and records nothing. Default: the policies in force. The same as `gatehouse check --explain`.',
  scopes: ['admin'],
  reach: 'filtered',
  body: z
    .strictObject({
      request: writtenRequest,
      app: z.string().max(63).optional().meta({
        description: 'The id of the app that the request is for. Default: the app of its host.',
        example: 'default',
      }),
      policy: policyDocument.optional(),
    })
    .meta({ id: 'PolicyExplanationRequest' }),
  answer: explanation,
  problems: ['not_found'],
  run: async ({ body, principal }, management) => {
    if (body.app !== undefined) await checkApp(body.app, principal, management)
    const written = requestIn(body)
    const app = body.app ?? appFor(written, principal, management)
    return explained({ written, app, owner: null, policy: body.policy }, principal, management)
  },
})

export const explainAppPolicy = operation({
  id: 'explainAppPolicy',
  method: 'POST',
  path: '/apps/{app_id}/policy/explain',
  tag: 'Apps',
  summary: 'Explain what the policy of an app does to a request',
  description:
    'Like `POST /policy/explain`, for requests of this app, whatever their host. `policy` takes the place of the policy of the app, between the `first` and `last` rules of the organisation.',
  scopes: ['admin'],
  reach: 'filtered',
  ...ofApp,
  body: z
    .strictObject({ request: writtenRequest, policy: appPolicyDocument.optional() })
    .meta({ id: 'AppPolicyExplanationRequest' }),
  answer: explanation,
  run: ({ subject: app, body, principal }, management) =>
    explained({ written: requestIn(body), app, owner: app, policy: body.policy }, principal, management),
})

function requestIn({ request = null }: { readonly request?: unknown }): WrittenRequest {
  if (request === null) throw invalid([{ pointer: '/request', detail: REQUEST_MISSING }])
  return checked('/request', () => readWrittenRequest(request))
}

/** The app of the host of a request. Throws the same Refusal for all apps that the principal may not see. */
function appFor({ facts }: WrittenRequest, { apps }: Principal, { snapshot, fixedApp }: ApiContext): string {
  const inForce = snapshot()?.apps ?? NO_APPS_YET
  const index = INDEXES.get(inForce) ?? new AppIndex(inForce, fixedApp)
  INDEXES.set(inForce, index)
  const { id } = index.appOf(facts.host ?? '')
  if (!reaches(apps, id))
    throw new Refusal('not_found', 'the request is for no app of these credentials: give its `app`')
  return id
}

interface Explained {
  readonly written: WrittenRequest
  readonly app: string
  /** `policy` is in place of the one of this owner; `undefined`: the policies in force. */
  readonly owner: PolicyOwner
  readonly policy: unknown
}

function explained({ written, app, owner, policy }: Explained, { apps }: Principal, management: ApiContext) {
  const nowMs = management.nowMs()
  const own =
    policy === undefined
      ? compiledInForce(owner, management)
      : checkPolicy(owner, policy, management, '/policy')
  const layered = policyFor(app, owner, own, management)
  const known = { names: namesIn(management), knowledge: () => knowledgeOf(management) }
  const { facts, isVerdictGiven } = describedRequest(written, known, nowMs)
  const { decision, rules } = explain(layered, facts, nowMs)
  const isOrganisationShown = apps === ALL_APPS || (owner === null && policy !== undefined)
  const { wouldHave } = decision
  return {
    body: {
      app,
      verdict: verdictOf(facts.verdict, isVerdictGiven),
      rules: rulesOf(isOrganisationShown ? rules : rules.flatMap(shownToTeam)).map((each) => {
        return { ...each, conditions: [...each.conditions] }
      }),
      decision: { ...outcomeOf(decision), would_have: wouldHave === null ? null : outcomeOf(wouldHave) },
      unknown_signer_wait_ms: isSigned(facts.rawHeaders) ? layered.unknownSignerWaitMs : null,
      warnings: policy === undefined ? [] : warningsOf(owner, own, management),
    },
  }
}

/** Rules of the organisation may name hosts and paths of other apps. */
function shownToTeam(rule: RuleExplanation): readonly RuleExplanation[] {
  if (rule.layer === 'app') return [rule]
  return rule.holds ? [{ ...rule, conditions: [] }] : []
}

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

function outcomeOf({ rule, layer, action }: Outcome) {
  return { rule, layer, action: action.kind }
}

const NO_APPS_YET: readonly App[] = []
/** Compiling 10,000 apps takes 90 ms. */
const INDEXES = new WeakMap<readonly App[], AppIndex>()
