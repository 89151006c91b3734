import * as z from 'zod'
import { textInQuery, time } from '../http/schemas.ts'

const RULE = {
  type: 'object' as const,
  properties: {
    name: {
      ...{ type: 'string' as const, minLength: 1, maxLength: 64 },
      description: 'Letters, digits, spaces and . _ - : /, once in a policy.',
    },
    when: {
      type: ['object', 'string'] as ['object', 'string'],
      description: 'Conditions, which must all match, or an expression. `{}` matches every request.',
    },
    action: {
      type: ['string', 'object'] as ['string', 'object'],
      description: 'What happens to a request that matches.',
    },
    dry_run: {
      type: 'boolean' as const,
      description: 'On trial: what the rule would have done is recorded, and the next rule is tried.',
    },
    expires: {
      type: 'string' as const,
      description: 'The rule matches until this time (RFC 3339), like 2027-01-31T00:00:00Z.',
    },
  },
  required: ['name', 'when', 'action'],
  additionalProperties: false,
}
const RULES = {
  ...{ type: 'array' as const, maxItems: 1000, items: RULE },
  description: 'The rules. The first one that matches decides.',
}
/** This schema only documents the policy. `parsePolicy` checks it, as it checks a file. */
const UNKNOWN_SIGNER = {
  description:
    'For signed requests whose key is not known yet. `pass`, the default: they are judged at once. With `wait`, they wait for the key, at most 5s.',
  anyOf: [
    { type: 'string' as const, enum: ['pass'] },
    {
      type: 'object' as const,
      properties: { wait: { type: 'string' as const, description: 'How long, like 300ms.' } },
      required: ['wait'],
      additionalProperties: false,
    },
  ],
}
const OTHERWISE = {
  type: ['string', 'object'] as ['string', 'object'],
  description: 'The action if no rule matches. Default: `tag`.',
}
const EXAMPLE = { rules: [{ name: 'no-crawlers', when: { category: 'crawler' }, action: 'block' }] }
/** The same for the policy of an app. */
export const appPolicyDocument = z.unknown().meta({
  id: 'AppPolicy',
  description:
    'Its rules are tried after the `first` rules of the organisation and before its `last` ones. `otherwise` and `unknown_signer` replace those of the organisation.',
  override: {
    type: 'object',
    properties: { rules: RULES, otherwise: OTHERWISE, unknown_signer: UNKNOWN_SIGNER },
    additionalProperties: false,
    example: EXAMPLE,
  },
})
export const policyDocument = z.unknown().meta({
  id: 'Policy',
  description:
    'The same as a policy file, see config/README.md. The first rule that matches decides: of `first`, of the policy of the app, then of `last`. `rules` is the same as `last`, and stands alone.',
  override: {
    type: 'object',
    properties: {
      rules: RULES,
      first: { ...RULES, description: 'Rules that are tried before those of the app.' },
      last: { ...RULES, description: 'Rules that are tried after those of the app.' },
      otherwise: OTHERWISE,
      unknown_signer: UNKNOWN_SIGNER,
    },
    additionalProperties: false,
    example: EXAMPLE,
  },
})
const WARNING = 'rule "no-crawlers": unknown agent "gptbto" (did you mean "gptbot"?)'
const COMMENT_LENGTH_MAX = 500
/** Line breaks, characters that are not seen, and those that change the order of others. */
const UNSEEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
/** The query of operations that change a policy. The body is the policy itself. */
export const commented = z.strictObject({
  comment: textInQuery('Why, for the list of versions and the audit log.', COMMENT_LENGTH_MAX)
    .refine((text) => !UNSEEN.test(text), 'contains a control character or a line break')
    .optional(),
})
export const versionFields = {
  version: z.int().min(1),
  hash: z.string().meta({ description: 'SHA-256 of the policy, in hexadecimal.' }),
  author: z.string().meta({ description: 'The id of a principal.' }),
  comment: z.string().nullable().meta({ description: 'Why it was changed, as its author wrote it.' }),
  created_at: time,
  restored_version: z.int().nullable().meta({ description: 'The version that this one restores.' }),
}
export const policyVersion = z
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
const inForceFields = {
  source: z.enum(['file', 'api', 'default']).meta({
    description:
      '`file`: set by `policy.file`, and changed only in that file. `default`: everything is tagged.',
  }),
  file: z.string().nullable(),
  hash: versionFields.hash,
  version: versionFields.version.nullable(),
  author: z.string().nullable(),
  comment: versionFields.comment,
  created_at: time.nullable(),
  restored_version: versionFields.restored_version,
  in_force_since: time.meta({ description: 'Since when this process has used it.' }),
  warnings,
  problems: z
    .array(z.string())
    .meta({ description: 'Why a newer policy is not in force. Empty if the newest policy is in force.' }),
}
export const policyInForce = z
  .strictObject({ policy: policyDocument, ...inForceFields })
  .meta({ id: 'PolicyInForce' })
export const appPolicyInForce = z
  .strictObject({ policy: appPolicyDocument, ...inForceFields })
  .meta({ id: 'AppPolicyInForce' })

const ANSWERED =
  'A policy as in an answer. All other members are read-only and ignored, so an answer can be edited and sent back. To replace a specific version, send `If-Match`.'
const answeredFields = { ...policyInForce.partial().shape, in_force: z.boolean().optional() }
/** An answer of `GET /policy` or `GET /policy/versions/{version}`, sent back. Only its policy counts. */
export const policyAnswered = z
  .strictObject({ ...answeredFields, policy: policyDocument })
  .meta({ id: 'PolicyAnswered', description: ANSWERED })
export const appPolicyAnswered = z
  .strictObject({ ...answeredFields, policy: appPolicyDocument })
  .meta({ id: 'AppPolicyAnswered', description: ANSWERED })
