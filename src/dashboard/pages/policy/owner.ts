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
  put(policy: Policy, options: AskOptions): Promise<unknown>
  preview(body: AppPolicyPreviewRequest): Promise<PolicyPreview>
  /** `app`: of a recorded request; `null`: the app of its host. */
  explain(body: AppPolicyExplanationRequest, app: string | null): Promise<PolicyExplanation>
  terms(body: AppPolicyTermsRequest): Promise<PolicyTerms>
  versions(query: Part, options: AskOptions): Promise<Versions>
  version(version: number): Promise<{ readonly policy: Policy }>
  restore(version: number, options: AskOptions): Promise<unknown>
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
      put: (body, options) => ask('putPolicy', { body }, options),
      preview: (body) => ask('previewPolicy', { body }),
      explain: (body, app) => ask('explainPolicy', { body: app === null ? body : { ...body, app } }),
      terms: (body) => ask('showTerms', { body }),
      versions: (query, options) => ask('listPolicyVersions', { query }, options),
      version: (version) => ask('getPolicyVersion', { path: { version } }),
      restore: (version, options) => ask('restorePolicy', { path: { version } }, options),
    }
  const path = { app_id: owner }
  return {
    load: (signal) => askTagged('getAppPolicy', { path }, { signal }),
    put: (body, options) => ask('putAppPolicy', { path, body }, options),
    preview: (body) => ask('previewAppPolicy', { path, body }),
    explain: (body) => ask('explainAppPolicy', { path, body }),
    terms: (body) => ask('showAppTerms', { path, body }),
    versions: (query, options) => ask('listAppPolicyVersions', { path, query }, options),
    version: (version) => ask('getAppPolicyVersion', { path: { ...path, version } }),
    restore: (version, options) => ask('restoreAppPolicy', { path: { ...path, version } }, options),
  }
}

/** Where a rule stands. `app`: of the request; `null`: the rule is of the organisation. */
export function layerText(layer: string, app: string | null): string {
  return layer === 'app' ? `app ${app}` : layer
}

/** Without apps, there is only one layer. */
export function isLayered(rules: readonly { readonly layer: string }[]): boolean {
  return rules.some(({ layer }) => layer !== 'last')
}
