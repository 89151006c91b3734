import { ask, type AskOptions, askTagged, type OperationInput, type Tagged } from '../../api/ask.ts'
import type {
  AppPolicyExplanationRequest,
  AppPolicyPreviewRequest,
  AppPolicyTermsRequest,
  Policy,
  PolicyExplanation,
  PolicyInForce,
  PolicyPreview,
  PolicyTerms,
  PolicyVersion,
} from '../../api/operations.ts'

/** The id of an app; `null`: the organisation. */
export type PolicyPageOwner = string | null

/** The operations on the policy of an owner. */
interface PolicyOperations {
  load(signal: AbortSignal): Promise<Tagged<PolicyInForce>>
  put(policy: Policy, change: PolicyChange): Promise<Tagged<PolicyInForce>>
  preview(body: AppPolicyPreviewRequest): Promise<PolicyPreview>
  /** `app`: of a recorded request; `null`: the app of its host. */
  explain(body: AppPolicyExplanationRequest, app: string | null): Promise<PolicyExplanation>
  terms(body: AppPolicyTermsRequest): Promise<PolicyTerms>
  versions(query: Part, options: AskOptions): Promise<Versions>
  version(version: number): Promise<{ readonly policy: Policy }>
  restore(version: number, change: PolicyChange): Promise<Tagged<PolicyInForce>>
}

interface PolicyChange {
  /** The entity tag of the policy to replace. `null`: of an answer without one. */
  readonly tag: string | null
  /** Empty: none. */
  readonly comment: string
}

interface Versions {
  readonly versions: readonly PolicyVersion[]
  readonly total: number
}
type Part = NonNullable<OperationInput<'listPolicyVersions'>['query']>

export function policyOf(owner: PolicyPageOwner): PolicyOperations {
  if (owner === null)
    return {
      load: (signal) => askTagged('getPolicy', {}, { signal }),
      put: (body, { comment, tag }) => askTagged('putPolicy', { query: { comment }, body }, matching(tag)),
      preview: (body) => ask('previewPolicy', { body }),
      explain: (body, app) => ask('explainPolicy', { body: app === null ? body : { ...body, app } }),
      terms: (body) => ask('showTerms', { body }),
      versions: (query, options) => ask('listPolicyVersions', { query }, options),
      version: (version) => ask('getPolicyVersion', { path: { version } }),
      restore: (version, { comment, tag }) =>
        askTagged('restorePolicy', { path: { version }, query: { comment } }, matching(tag)),
    }
  const path = { app_id: owner }
  return {
    load: (signal) => askTagged('getAppPolicy', { path }, { signal }),
    put: (body, { comment, tag }) =>
      askTagged('putAppPolicy', { path, query: { comment }, body }, matching(tag)),
    preview: (body) => ask('previewAppPolicy', { path, body }),
    explain: (body) => ask('explainAppPolicy', { path, body }),
    terms: (body) => ask('showAppTerms', { path, body }),
    versions: (query, options) => ask('listAppPolicyVersions', { path, query }, options),
    version: (version) => ask('getAppPolicyVersion', { path: { ...path, version } }),
    restore: (version, { comment, tag }) =>
      askTagged('restoreAppPolicy', { path: { ...path, version }, query: { comment } }, matching(tag)),
  }
}

/** Puts the policy of before in force again, unless it was changed since. */
export function undone(
  owner: PolicyPageOwner,
  before: PolicyInForce,
  { value, tag }: Tagged<PolicyInForce>,
): Promise<Tagged<PolicyInForce>> {
  const change = { tag, comment: `Undo of version ${value.version}` }
  const { put, restore } = policyOf(owner)
  // The default policy has no version.
  return before.version === null ? put(before.policy, change) : restore(before.version, change)
}

function matching(tag: string | null): AskOptions {
  return tag === null ? {} : { ifMatch: tag }
}

/** Where a rule stands. `app`: of the request; `null`: the rule is of the organisation. */
export function layerText(layer: string, app: string | null): string {
  return layer === 'app' ? `app ${app}` : layer
}

/** Without apps, there is only one layer. */
export function isLayered(rules: readonly { readonly layer: string }[]): boolean {
  return rules.some(({ layer }) => layer !== 'last')
}
