import { createHash } from 'node:crypto'
import { type App, parseAcceptedApps } from '../apps/app.ts'
import { type CampaignList, type CampaignMembers, campaignMembers } from '../classify/campaign/members.ts'
import type { Knowledge } from '../classify/known/knowledge.ts'
import { Fault } from '../shared/fault.ts'
import { parseAcceptedPolicy } from '../policy/policy.ts'
import {
  type AppPolicyText,
  areAppPolicies,
  type CompiledPolicies,
  compiledPolicies,
} from './snapshot-policies.ts'
import { isSignatureSet, type SignatureSet } from './signature-set.ts'

/** The data that proxies decide with. Immutable: the next Snapshot replaces it as a whole. */
export interface Snapshot extends CompiledPolicies {
  /** Rises with each Snapshot. */
  readonly number: number
  /** SHA-256 of its input, in hexadecimal: equal on machines that decide alike. */
  readonly hash: string
  readonly madeAtMs: number
  /** Signatures of clients; `null`: without signatures, every verdict is unknown. */
  readonly knowledge: Knowledge | null
  /** The members of running campaigns; `null`: no campaign is running. */
  readonly campaigns: CampaignMembers | null
  readonly apps: readonly App[]
  /** Whether all requests are to be counted where they are judged, because the managers take such counts. */
  readonly takesCounts: boolean
}

/** The form that travels: policies are as their authors wrote them, and the receiver compiles them. */
export interface SnapshotDocument {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: unknown
  readonly signatures: SignatureSet | null
  /** Earlier versions do not send it. */
  readonly campaigns?: CampaignList | null
  /** Missing: no apps are defined, or an earlier version sent it. */
  readonly apps?: readonly SentApp[]
  /** By the id of the app. Missing: no app has a policy, or an earlier version sent it. */
  readonly appPolicies?: readonly AppPolicyText[]
  /** Missing: the managers count requests by their Sightings. */
  readonly takesCounts?: boolean
}

/** Quotas are for the API, so a change of one makes no other Snapshot. */
type SentApp = Omit<App, 'quota'>

/** What a Snapshot may contain beside its policy and signatures. */
export interface SnapshotParts {
  readonly campaigns?: CampaignList | null
  readonly apps?: readonly App[]
  readonly appPolicies?: readonly AppPolicyText[]
  readonly takesCounts?: boolean
}

/**
 * Throws a Fault with every problem of the policy, so that an invalid one is never sent. A policy comes from a
 * file or an API call that was checked with `parsePolicy`, or was stored by an earlier version.
 */
export function makeSnapshot(
  number: number,
  policy: unknown,
  madeAtMs: number,
  signatures: SignatureSet | null = null,
  { campaigns = null, apps: all = [], appPolicies = [], takesCounts = false }: SnapshotParts = {},
): SnapshotDocument {
  const apps = all.map(({ quota: _, ...app }) => app)
  parseAcceptedPolicy(policy)
  const hash = createHash('sha256').update(JSON.stringify(policy))
  if (signatures !== null) hash.update(signatures.hash)
  if (campaigns !== null) hash.update(JSON.stringify(campaigns))
  if (apps.length > 0) hash.update(JSON.stringify(apps))
  for (const { app, document } of appPolicies) hash.update(`${app} ${document.length} ${document}`)
  if (takesCounts) hash.update('takes counts')
  const parts = {
    ...(takesCounts && { takesCounts }),
    ...(campaigns && { campaigns }),
    ...(apps.length > 0 && { apps }),
    ...(appPolicies.length > 0 && { appPolicies }),
  }
  return { number, hash: hash.digest('hex'), madeAtMs, policy, signatures, ...parts }
}

/** `knowledge` is compiled from the document's signatures. The policies are compiled with its names. */
export function parseSnapshot(document: unknown, knowledge: Knowledge | null = null): Snapshot {
  const parts = parseParts(document)
  const policies = compiledPolicies(document as SnapshotDocument, knowledge?.names ?? null)
  return Object.freeze({ ...parts, ...policies, knowledge })
}

/** The parts of a Snapshot that are not compiled. Throws a Fault. */
export function parseParts(document: unknown): Omit<Snapshot, keyof CompiledPolicies | 'knowledge'> {
  if (!isSnapshotDocument(document)) throw new Fault('SNAPSHOT_INVALID', 'this is not a Snapshot')
  const { number, hash, madeAtMs } = document
  const campaigns = campaignMembers(document.campaigns)
  const apps = document.apps === undefined ? [] : parseAcceptedApps(document.apps)
  return { number, hash, madeAtMs, campaigns, apps, takesCounts: document.takesCounts === true }
}

/** What a proxy of a single app needs. `null`: the proxy finds the app of each request, and needs all of them. */
export function snapshotOfApp(document: SnapshotDocument, app: string | null): SnapshotDocument {
  if (app === null) return document
  const { apps, appPolicies, ...rest } = document
  return {
    ...rest,
    ...(apps && { apps: apps.filter(({ id }) => id === app) }),
    ...(appPolicies && { appPolicies: appPolicies.filter((each) => each.app === app) }),
  }
}

export function isSnapshotDocument(value: unknown): value is SnapshotDocument {
  if (typeof value !== 'object' || value === null) return false
  const { number, hash, madeAtMs, signatures, appPolicies } = value as Partial<
    Record<keyof SnapshotDocument, unknown>
  >
  return (
    Number.isSafeInteger(number) &&
    typeof hash === 'string' &&
    typeof madeAtMs === 'number' &&
    'policy' in value &&
    (signatures === null || isSignatureSet(signatures)) &&
    (appPolicies === undefined || areAppPolicies(appPolicies))
  )
}
