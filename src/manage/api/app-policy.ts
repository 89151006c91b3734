import * as z from 'zod'
import type { Addressed } from '../http/operation.ts'
import { appInPath, ofApp } from './app-access.ts'
import type { ApiContext } from './context.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { versionInPath } from './policy.ts'
import { explainAppPolicy } from './policy-explain.ts'
import { previewAppPolicy } from './policy-preview.ts'
import { showAppTerms } from './policy-terms.ts'
import { putInForce, restored, shownInForce, shownRecord, shownVersion } from './policy-layer.ts'
import {
  appPolicyAnswered,
  appPolicyDocument,
  appPolicyInForce,
  commented,
  policyVersion,
  versionFields,
} from './policy-schemas.ts'

const getAppPolicy = operation({
  id: 'getAppPolicy',
  method: 'GET',
  path: '/apps/{app_id}/policy',
  tag: 'Apps',
  reach: 'filtered',
  summary: 'Get the policy of an app',
  description: 'Its own rules only. Send its `ETag` as `If-Match` to change it.',
  scopes: ['admin'],
  ...ofApp,
  answer: appPolicyInForce,
  run: ({ subject }, management) => shownInForce(subject, management),
})

const putAppPolicy = operation({
  id: 'putAppPolicy',
  method: 'PUT',
  path: '/apps/{app_id}/policy',
  tag: 'Apps',
  reach: 'filtered',
  summary: 'Replace the policy of an app',
  description:
    'Its rules are tried after the `first` rules of the organisation and before its `last` ones. `If-Match` takes the `ETag` of the policy to replace, or `*`. It is in force at all proxies within two seconds, and the policies of other apps stay as they are. An app of the settings may have a policy, too.',
  scopes: ['admin'],
  ...ofApp,
  query: commented,
  body: z.union([appPolicyDocument, appPolicyAnswered]),
  answer: appPolicyInForce,
  problems: ['conflict', 'precondition_failed', 'precondition_required'],
  run: (call, management) => putInForce(call.subject, call, management),
})

const listAppPolicyVersions = listing({
  id: 'listAppPolicyVersions',
  path: '/apps/{app_id}/policy/versions',
  tag: 'Apps',
  reach: 'filtered',
  summary: 'List stored policies of an app',
  description: 'The latest fifty, newest first.',
  scopes: ['admin'],
  name: 'versions',
  filters: {},
  of: ofApp,
  part: (_, part, { store }, { owner }: { readonly owner: string }) => store.policies.of(owner).list(part),
  items: {
    schema: policyVersion,
    show: (versions, management) => versions.map((each) => shownVersion(each.app, each, management)),
  },
})

const byVersion = {
  params: z.strictObject({ app_id: appInPath, version: versionInPath }),
  find: async (
    { params, principal }: Addressed<{ app_id: string; version: number }>,
    management: ApiContext,
  ) => {
    const app = await ofApp.find({ params, principal }, management)
    const record = app === null ? null : await management.store.policies.of(app).byVersion(params.version)
    return record === null ? null : { app: app!, record }
  },
}

const getAppPolicyVersion = operation({
  id: 'getAppPolicyVersion',
  method: 'GET',
  path: '/apps/{app_id}/policy/versions/{version}',
  tag: 'Apps',
  reach: 'filtered',
  summary: 'Get a stored policy of an app',
  scopes: ['admin'],
  ...byVersion,
  answer: z.strictObject({ ...versionFields, in_force: z.boolean(), policy: appPolicyDocument }),
  run: ({ subject: { app, record } }, management) => ({ body: shownRecord(app, record, management) }),
})

const restoreAppPolicy = operation({
  id: 'restoreAppPolicy',
  method: 'POST',
  path: '/apps/{app_id}/policy/versions/{version}/restore',
  tag: 'Apps',
  reach: 'filtered',
  summary: 'Restore an earlier policy of an app',
  description: 'It becomes the newest version. `If-Match` works as for PUT.',
  scopes: ['admin'],
  ...byVersion,
  query: commented,
  answer: appPolicyInForce,
  problems: ['conflict', 'precondition_failed', 'precondition_required'],
  run: (call, management) => restored(call.subject.app, call.subject.record, call, management),
})

export const APP_POLICY_OPERATIONS: readonly ApiOffered[] = [
  ...[getAppPolicy, putAppPolicy, listAppPolicyVersions, getAppPolicyVersion, restoreAppPolicy],
  ...[explainAppPolicy, previewAppPolicy, showAppTerms],
]
