import * as z from 'zod'
import type { ApiContext } from './context.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { putInForce, restored, shownInForce, shownRecord, shownVersion } from './policy-layer.ts'
import {
  commented,
  policyAnswered,
  policyDocument,
  policyInForce,
  policyVersion,
  versionFields,
} from './policy-schemas.ts'

const getPolicy = operation({
  id: 'getPolicy',
  method: 'GET',
  path: '/policy',
  tag: 'Administration',
  summary: 'Get the policy in force',
  description: 'Send its `ETag` as `If-Match` to change it.',
  scopes: ['admin'],
  reach: 'organisation',
  answer: policyInForce,
  run: (_, management) => shownInForce(null, management),
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
  reach: 'organisation',
  query: commented,
  body: z.union([policyDocument, policyAnswered]),
  answer: policyInForce,
  problems: ['conflict', 'precondition_failed', 'precondition_required'],
  run: (call, management) => putInForce(null, call, management),
})

const listPolicyVersions = listing({
  id: 'listPolicyVersions',
  path: '/policy/versions',
  tag: 'Administration',
  summary: 'List stored policies',
  description: 'The latest fifty, newest first.',
  scopes: ['admin'],
  reach: 'organisation',
  name: 'versions',
  filters: {},
  part: (_, part, { store }) => store.policies.list(part),
  items: {
    schema: policyVersion,
    show: (versions, management) => versions.map((each) => shownVersion(null, each, management)),
  },
})

export const versionInPath = z
  .string()
  .regex(/^[1-9]\d{0,8}$/)
  .transform(Number)
  .meta({ override: { type: 'integer', minimum: 1 } })

const byVersion = {
  params: z.strictObject({ version: versionInPath }),
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
  reach: 'organisation',
  ...byVersion,
  answer: z.strictObject({ ...versionFields, in_force: z.boolean(), policy: policyDocument }),
  run: ({ subject }, management) => ({ body: shownRecord(null, subject, management) }),
})

const restorePolicy = operation({
  id: 'restorePolicy',
  method: 'POST',
  path: '/policy/versions/{version}/restore',
  tag: 'Administration',
  summary: 'Restore an earlier policy',
  description: 'It becomes the newest version. `If-Match` works as for PUT.',
  scopes: ['admin'],
  reach: 'organisation',
  ...byVersion,
  query: commented,
  answer: policyInForce,
  problems: ['conflict', 'precondition_failed', 'precondition_required'],
  run: (call, management) => restored(null, call.subject, call, management),
})

export const POLICY_OPERATIONS: readonly ApiOffered[] = [
  ...[getPolicy, putPolicy, listPolicyVersions, getPolicyVersion, restorePolicy],
]
