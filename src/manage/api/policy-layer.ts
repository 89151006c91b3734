import {
  type Policy,
  type PolicyReading,
  parseAcceptedPolicy,
  parsePolicy,
  policyOfApp,
  policyWarnings,
} from '../../policy/policy.ts'
import type { SoftwareNames } from '../../classify/known/software-names.ts'
import { pointerTo } from '../../config/source.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import type { PolicyFor } from '../../plane/replay.ts'
import { DocumentFault, type DocumentProblem } from '../../shared/problem.ts'
import type { PolicyRecord, PolicyVersion } from '../../store/work/policies.ts'
import { actorOf, type Call } from '../http/operation.ts'
import { type FieldError, invalid, Refusal } from '../http/refusal.ts'
import { timeOf } from '../http/schemas.ts'
import {
  hashOf,
  type PolicyWish,
  type PolicyFile,
  type PolicyInForce,
  type PolicyKeeper,
} from '../publish/policy-keeper.ts'
import type { ApiContext } from './context.ts'
import { policyAnswered } from './policy-schemas.ts'

/** The organisation or an app: each has a policy with versions of its own. `null`: the organisation. */
export type PolicyOwner = string | null

function keeperOf(owner: PolicyOwner, { policy, appPolicies }: ApiContext): PolicyFile | PolicyKeeper {
  return owner === null ? policy : appPolicies.of(owner)
}

/** The policy that is set through the API. Throws a Refusal if it comes from a file. */
function storedIn(owner: PolicyOwner, management: ApiContext): PolicyKeeper {
  const keeper = keeperOf(owner, management)
  if (keeper.kind === 'stored') return keeper
  const { file } = keeper.inForce()
  throw new Refusal(
    'conflict',
    `the policy comes from a file (policy.file: ${file}): change that file, or remove the setting`,
  )
}

export async function shownInForce(owner: PolicyOwner, management: ApiContext) {
  const keeper = keeperOf(owner, management)
  if (keeper.kind === 'file') return answer(owner, keeper.inForce(), fileTag(keeper.inForce()), management)
  return answer(owner, await keeper.current(), keeper.etag, management)
}

type AnyCall = Call<unknown, { readonly comment?: string | undefined }, unknown, unknown>

export async function putInForce(owner: PolicyOwner, call: AnyCall, management: ApiContext) {
  const keeper = storedIn(owner, management)
  const { policy, pointer } = policyIn(call.body)
  checkPolicy(owner, policy, management, pointer)
  const wish = wishOf(call, null)
  const inForce = await keeper.put(policy, wish, actorOf(call), management.nowMs())
  return answer(owner, inForce, keeper.etag, management)
}

export async function restored(
  owner: PolicyOwner,
  { version: restoredVersion, document }: PolicyRecord,
  call: AnyCall,
  management: ApiContext,
) {
  const keeper = storedIn(owner, management)
  const value = documentOf(document)
  checkPolicy(owner, value, management, '')
  const wish = wishOf(call, restoredVersion)
  const inForce = await keeper.put(value, wish, actorOf(call), management.nowMs())
  return answer(owner, inForce, keeper.etag, management)
}

function wishOf({ ifMatch, query }: AnyCall, restoredVersion: number | null): PolicyWish {
  return { ifMatch: policyHalf(ifMatch), restoredVersion, comment: query.comment ?? null }
}

export function shownVersion(owner: PolicyOwner, version: PolicyVersion, management: ApiContext) {
  const { hash, author, comment, createdAtMs, restoredVersion } = version
  return {
    ...{ version: version.version, hash, author, comment, created_at: timeOf(createdAtMs) },
    restored_version: restoredVersion,
    in_force: keeperOf(owner, management).inForce().version?.version === version.version,
  }
}

export function shownRecord(owner: PolicyOwner, record: PolicyRecord, management: ApiContext) {
  return { ...shownVersion(owner, record, management), policy: documentOf(record.document) }
}

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

/**
 * Throws a Refusal with every problem of the policy: the rule, the place and the reason. `pointer`: where the
 * policy is in the body.
 */
export function checkPolicy(
  owner: PolicyOwner,
  value: unknown,
  management: ApiContext,
  pointer: string,
): Policy {
  if (value === null || value === undefined) {
    const what = value === null ? 'is null' : 'is missing'
    throw invalid([{ pointer, detail: `${what}; a policy without rules is {"rules": []}` }])
  }
  return checked(pointer, () => parsePolicy(value, readingOf(owner, management)))
}

/** The policy in force, compiled with the names that are known now. */
export function compiledInForce(owner: PolicyOwner, management: ApiContext): Policy {
  const { policy, appPolicies } = management
  const { document } = owner === null ? policy.inForce() : appPolicies.inForce(owner)
  return parseAcceptedPolicy(document, readingOf(owner, management))
}

/** What requests of an app get with this policy of its owner, and with those in force of the others. */
export function policyFor(app: string, owner: PolicyOwner, policy: Policy, management: ApiContext): Policy {
  if (owner !== null) return policyOfApp(compiledInForce(null, management), policy)
  return hasOwn(app, management) ? policyOfApp(policy, compiledInForce(app, management)) : policy
}

/** The same for requests of any apps, as far as there is room for their policies. */
export function policiesWith(owner: PolicyOwner, policy: Policy, management: ApiContext): PolicyFor {
  const known = new Map<string, Policy>()
  let length = 0
  return (app) => {
    if (app === null || (owner === null && !hasOwn(app, management))) return policy
    const found = known.get(app)
    if (found !== undefined) return found
    length += JSON.stringify(management.appPolicies.inForce(app).document).length
    if (length > LENGTH_COMPILED_MAX && known.size > 0) return null
    const made = policyFor(app, owner, policy, management)
    known.set(app, made)
    return made
  }
}

function hasOwn(app: string, { appPolicies }: ApiContext): boolean {
  return appPolicies.inForce(app).version !== null
}

/** About the policy of this owner. Its rules share the limits of a request with those of the organisation. */
export function warningsOf(owner: PolicyOwner, policy: Policy, management: ApiContext): FieldError[] {
  const others = owner === null ? 0 : compiledInForce(null, management).steps
  const counted = { ...policy, steps: policy.steps === 0 ? 0 : policy.steps + others }
  return policyWarnings(counted, namesIn(management)).map((each) => shownProblem(each, ''))
}

function readingOf(owner: PolicyOwner, management: ApiContext): PolicyReading {
  const { payments, upstreams } = management
  return { of: owner === null ? 'organisation' : 'app', upstreams, payments, names: namesIn(management) }
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

function answer(owner: PolicyOwner, inForce: PolicyInForce, etag: string, management: ApiContext) {
  const { document, source, file, hash, version, sinceMs, problems } = inForce
  const warnings = warningsOf(owner, compiledInForce(owner, management), management)
  return {
    body: {
      // A file with nothing but comments has no document.
      policy: document ?? {},
      source,
      file,
      hash,
      version: version?.version ?? null,
      author: version?.author ?? null,
      comment: version?.comment ?? null,
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

const SECOND_HALF = /\.[0-9a-f]{12}"/g
/** A longer list does not help the client. */
const ERRORS_MAX = 100
/** Takes 50 MB when compiled: two hundred rules of each of 140 apps. */
const LENGTH_COMPILED_MAX = 4 * 1024 ** 2
