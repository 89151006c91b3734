import * as z from 'zod'
import type { SoftwareNames } from '../../classify/known/software-names.ts'
import { type Policy, parseAcceptedPolicy, parsePolicy, policyWarnings } from '../../policy/policy.ts'
import { pointerTo } from '../../config/source.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { DocumentFault, type DocumentProblem } from '../../shared/problem.ts'
import type { PolicyVersion } from '../../store/work/policies.ts'
import type { ApiContext } from './context.ts'
import { hashOf, type PolicyInForce, type PolicyKeeper } from '../publish/policy-keeper.ts'
import { type FieldError, invalid, Refusal } from '../http/refusal.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const RULE = {
  type: 'object' as const,
  properties: {
    name: { type: 'string' as const, minLength: 1, maxLength: 64 },
    when: { type: ['object', 'string'] as ['object', 'string'] },
    action: { type: ['string', 'object'] as ['string', 'object'] },
    dry_run: { type: 'boolean' as const },
    expires: { type: 'string' as const, description: 'A time (RFC 3339).' },
  },
  required: ['name', 'when', 'action'],
  additionalProperties: false,
}
/** This schema only documents the policy. `parsePolicy` checks it, as it checks a file. */
export const policyDocument = z.unknown().meta({
  id: 'Policy',
  description: 'The same as a policy file, see config/README.md. The first rule that matches decides.',
  override: {
    type: 'object',
    properties: {
      rules: { type: 'array', maxItems: 1000, items: RULE },
      otherwise: { type: ['string', 'object'] },
      unknown_signer: {
        anyOf: [
          { type: 'string', enum: ['pass'] },
          {
            type: 'object',
            properties: { wait: { type: 'string' } },
            required: ['wait'],
            additionalProperties: false,
          },
        ],
      },
    },
    additionalProperties: false,
    example: { rules: [{ name: 'no-crawlers', when: { category: 'crawler' }, action: 'block' }] },
  },
})
const WARNING = 'rule "no-crawlers": unknown agent "gptbto" (did you mean "gptbot"?)'
const versionFields = {
  version: z.int().min(1),
  hash: z.string().meta({ description: 'SHA-256 of the policy, in hexadecimal.' }),
  author: z.string().meta({ description: 'The id of a principal.' }),
  created_at: time,
  restored_version: z.int().nullable().meta({ description: 'The version that this one restores.' }),
}
const policyVersion = z
  .strictObject({ ...versionFields, in_force: z.boolean() })
  .meta({ id: 'PolicyVersion' })
/** Warnings about a valid policy. */
export const warnings = z
  .array(
    z
      .strictObject({
        pointer: z.string().meta({ description: 'A JSON Pointer (RFC 6901) into the policy.' }),
        detail: z.string(),
      })
      .meta({ id: 'PolicyWarning', example: { pointer: '/rules/0/when/agent', detail: WARNING } }),
  )
  .meta({
    description:
      'Possible mistakes: unknown agents and software, ambiguous names, unknown categories and kinds of evidence in a policy that an earlier version stored, and expressions that may exceed the step limit of a request.',
  })
const policyInForce = z
  .strictObject({
    policy: policyDocument,
    source: z.enum(['file', 'api', 'default']).meta({
      description:
        '`file`: set by `policy.file`, and changed only in that file. `default`: everything is tagged.',
    }),
    file: z.string().nullable(),
    hash: versionFields.hash,
    version: versionFields.version.nullable(),
    author: z.string().nullable(),
    created_at: time.nullable(),
    restored_version: versionFields.restored_version,
    in_force_since: time.meta({ description: 'Since when this process has used it.' }),
    warnings,
    problems: z
      .array(z.string())
      .meta({ description: 'Why a newer policy is not in force. Empty if the newest policy is in force.' }),
  })
  .meta({ id: 'PolicyInForce' })

/** An answer of `GET /policy` or `GET /policy/versions/{version}`, sent back. Only its policy counts. */
const policyAnswered = z
  .strictObject({
    ...policyInForce.partial().shape,
    in_force: z.boolean().optional(),
    policy: policyDocument,
  })
  .meta({
    id: 'PolicyAnswered',
    description:
      'A policy as in an answer. All other members are read-only and ignored, so an answer can be edited and sent back. To replace a specific version, send `If-Match`.',
  })

const getPolicy = operation({
  id: 'getPolicy',
  method: 'GET',
  path: '/policy',
  tag: 'Administration',
  summary: 'Get the policy in force',
  description: 'Send its `ETag` as `If-Match` to change it.',
  scopes: ['admin'],
  answer: policyInForce,
  run: async (_, management) => {
    const { policy } = management
    if (policy.kind === 'file') return answer(policy.inForce(), fileTag(policy.inForce()), management)
    return answer(await policy.current(), policy.etag, management)
  },
})

const putPolicy = operation({
  id: 'putPolicy',
  method: 'PUT',
  path: '/policy',
  tag: 'Administration',
  summary: 'Replace the policy in force',
  description:
    'The body is a policy as in a policy file, or an answer of `GET /policy` (`{"policy": …}`), whose other members are ignored. `If-Match` takes the `ETag` of the policy to replace, or `*`. The policy takes effect in every worker at once and in other processes within a second, and survives a restart. If `policy.file` is set, the policy comes from that file, and this is rejected (409).',
  scopes: ['admin'],
  body: z.union([policyDocument, policyAnswered]),
  answer: policyInForce,
  problems: ['conflict', 'precondition_failed', 'precondition_required'],
  run: async (call, management) => {
    const keeper = keeperIn(management)
    const { policy, pointer } = policyIn(call.body)
    checkPolicy(policy, management, pointer)
    const wish = { ifMatch: policyHalf(call.ifMatch), restoredVersion: null }
    const inForce = await keeper.put(policy, wish, actorOf(call), management.nowMs())
    return answer(inForce, keeper.etag, management)
  },
})

const listPolicyVersions = listing({
  id: 'listPolicyVersions',
  path: '/policy/versions',
  tag: 'Administration',
  summary: 'List stored policies',
  description: 'The latest fifty, newest first.',
  scopes: ['admin'],
  name: 'versions',
  filters: {},
  part: (_, part, { store }) => store.policies.list(part),
  items: {
    schema: policyVersion,
    show: (versions, { policy }) => {
      const inForce = policy.inForce().version?.version
      return versions.map((each) => ({ ...shown(each), in_force: each.version === inForce }))
    },
  },
})

const byVersion = {
  params: z.strictObject({
    version: z
      .string()
      .regex(/^[1-9]\d{0,8}$/)
      .transform(Number)
      .meta({ override: { type: 'integer', minimum: 1 } }),
  }),
  find: ({ params }: { params: { version: number } }, { store }: ApiContext) =>
    store.policies.byVersion(params.version),
}

const getPolicyVersion = operation({
  id: 'getPolicyVersion',
  method: 'GET',
  path: '/policy/versions/{version}',
  tag: 'Administration',
  summary: 'Get a stored policy',
  scopes: ['admin'],
  ...byVersion,
  answer: z.strictObject({ ...versionFields, in_force: z.boolean(), policy: policyDocument }),
  run: ({ subject }, { policy }) => {
    const inForce = policy.inForce().version?.version === subject.version
    return { body: { ...shown(subject), in_force: inForce, policy: documentOf(subject.document) } }
  },
})

const restorePolicy = operation({
  id: 'restorePolicy',
  method: 'POST',
  path: '/policy/versions/{version}/restore',
  tag: 'Administration',
  summary: 'Restore an earlier policy',
  description: 'It becomes the newest version. `If-Match` works as for PUT.',
  scopes: ['admin'],
  ...byVersion,
  answer: policyInForce,
  problems: ['conflict', 'precondition_failed', 'precondition_required'],
  run: async (call, management) => {
    const keeper = keeperIn(management)
    const { version: restoredVersion, document } = call.subject
    const value = documentOf(document)
    checkPolicy(value, management, '')
    const wish = { ifMatch: policyHalf(call.ifMatch), restoredVersion }
    const inForce = await keeper.put(value, wish, actorOf(call), management.nowMs())
    return answer(inForce, keeper.etag, management)
  },
})

export const POLICY_OPERATIONS: readonly ApiOffered[] = [
  ...[getPolicy, putPolicy, listPolicyVersions, getPolicyVersion, restorePolicy],
]

/** The policy in a body: the body itself, or its member `policy`. A policy has no member of this name. */
function policyIn(body: unknown): { readonly policy: unknown; readonly pointer: string } {
  const isAnswered = typeof body === 'object' && body !== null && Object.hasOwn(body, 'policy')
  if (!isAnswered) return { policy: body, pointer: '' }
  const known = Object.keys(policyAnswered.shape)
  const unknown = Object.keys(body).filter((name) => !known.includes(name))
  const [first, ...more] = unknown.slice(0, ERRORS_MAX).map((name) => ({
    pointer: pointerTo('', name),
    detail: `is not a known member beside policy${didYouMean(name, known)}`,
  }))
  if (first !== undefined) throw invalid([first, ...more])
  return { policy: (body as { readonly policy: unknown }).policy, pointer: '/policy' }
}

function keeperIn({ policy }: ApiContext): PolicyKeeper {
  if (policy.kind === 'stored') return policy
  const { file } = policy.inForce()
  throw new Refusal(
    'conflict',
    `the policy comes from a file (policy.file: ${file}): change that file, or remove the setting`,
  )
}

/**
 * Throws a Refusal with every problem of the policy: the rule, the place and the reason. `pointer`: where the
 * policy is in the body.
 */
export function checkPolicy(value: unknown, management: ApiContext, pointer: string): Policy {
  if (value === null || value === undefined) {
    const what = value === null ? 'is null' : 'is missing'
    throw invalid([{ pointer, detail: `${what}; a policy without rules is {"rules": []}` }])
  }
  return checked(pointer, () => parsePolicy(value, management.upstreams, namesIn(management)))
}

/** The policy in force, compiled with the names that are known now. */
export function compiledInForce(management: ApiContext): Policy {
  return parseAcceptedPolicy(management.policy.inForce().document, management.upstreams, namesIn(management))
}

export function warningsOf(policy: Policy, management: ApiContext): FieldError[] {
  return policyWarnings(policy, namesIn(management)).map((each) => shownProblem(each, ''))
}

/** The names of agents and software; `null` before the first signatures are in use. */
export function namesIn({ snapshot }: ApiContext): SoftwareNames | null {
  return snapshot()?.knowledge?.names ?? null
}

function shownProblem({ pointer, within, what }: DocumentProblem, inBody: string): FieldError {
  return { pointer: `${inBody}${pointer}`, detail: within === null ? what : `${within}: ${what}` }
}

/** Throws a Refusal with every problem of a document. `pointer`: where the document is in the body. */
export function checked<Parsed>(pointer: string, parse: () => Parsed): Parsed {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error
    const problems = error.problems.slice(0, ERRORS_MAX)
    const [first, ...others] = problems.map((each) => shownProblem(each, pointer)) as [
      FieldError,
      ...FieldError[],
    ]
    throw invalid([first, ...others])
  }
}

/** Another program may have changed the database, so the text may be invalid. */
function documentOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('conflict', 'the stored policy of this version is corrupt')
  }
}

function answer(inForce: PolicyInForce, etag: string, management: ApiContext) {
  const { document, source, file, hash, version, sinceMs, problems } = inForce
  const warnings = warningsOf(compiledInForce(management), management)
  return {
    body: {
      // A file with nothing but comments has no document.
      policy: document ?? {},
      source,
      file,
      hash,
      version: version?.version ?? null,
      author: version?.author ?? null,
      created_at: timeOf(version?.createdAtMs ?? null),
      restored_version: version?.restoredVersion ?? null,
      in_force_since: timeOf(sinceMs),
      warnings,
      problems: [...problems],
    },
    headers: { ETag: withWarnings(etag, warnings) },
  }
}

/**
 * An entity tag in two halves: the policy, which `If-Match` is about, and its warnings, which depend on the
 * signatures in use.
 */
function withWarnings(etag: string, warnings: readonly FieldError[]): string {
  if (warnings.length === 0) return etag
  return `${etag.slice(0, -1)}.${hashOf(JSON.stringify(warnings)).slice(0, 12)}"`
}

function policyHalf(ifMatch: string | null): string | null {
  return ifMatch === null ? null : ifMatch.replace(SECOND_HALF, '"')
}

function fileTag({ hash, problems }: PolicyInForce): string {
  return `"file-${hashOf(JSON.stringify([hash, problems])).slice(0, 12)}"`
}

function shown({ version, hash, author, createdAtMs, restoredVersion }: PolicyVersion) {
  return { version, hash, author, created_at: timeOf(createdAtMs), restored_version: restoredVersion }
}

const SECOND_HALF = /\.[0-9a-f]{12}"/g
/** A longer list does not help the client. */
const ERRORS_MAX = 100
