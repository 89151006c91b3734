import { createHash } from 'node:crypto'
import { type App, parseAcceptedApps } from '../apps/app.ts'
import { type CampaignList, type CampaignMembers, campaignMembers } from '../classify/campaign/members.ts'
import type { Knowledge } from '../classify/known/knowledge.ts'
import { Fault } from '../shared/fault.ts'
import { type Policy, parseAcceptedPolicy } from '../policy/policy.ts'
import { isSignatureSet, type SignatureSet } from './signature-set.ts'

/** The data that proxies decide with. Immutable: the next Snapshot replaces it as a whole. */
export interface Snapshot {
  /** Rises with each Snapshot. */
  readonly number: number
  /** SHA-256 of its input, in hexadecimal: equal on machines that decide alike. */
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: Policy
  /** Signatures of clients; `null`: without signatures, every verdict is unknown. */
  readonly knowledge: Knowledge | null
  /** The members of running campaigns; `null`: no campaign is running. */
  readonly campaigns: CampaignMembers | null
  readonly apps: readonly App[]
}

/** The form that travels: `policy` is as its author wrote it, and the receiver compiles it. */
export interface SnapshotDocument {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  readonly policy: unknown
  readonly signatures: SignatureSet | null
  /** Earlier versions do not send it. */
  readonly campaigns?: CampaignList | null
  /** Missing: no apps are defined, or an earlier version sent it. */
  readonly apps?: readonly App[]
}

/** What a Snapshot may contain beside its policy and signatures. */
export interface SnapshotParts {
  readonly campaigns?: CampaignList | null
  readonly apps?: readonly App[]
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
  { campaigns = null, apps = [] }: SnapshotParts = {},
): SnapshotDocument {
  parseAcceptedPolicy(policy)
  const hash = createHash('sha256').update(JSON.stringify(policy))
  if (signatures !== null) hash.update(signatures.hash)
  if (campaigns !== null) hash.update(JSON.stringify(campaigns))
  if (apps.length > 0) hash.update(JSON.stringify(apps))
  const parts = { ...(campaigns && { campaigns }), ...(apps.length > 0 && { apps }) }
  return { number, hash: hash.digest('hex'), madeAtMs, policy, signatures, ...parts }
}

/** `knowledge` is compiled from the document's signatures. The policy is compiled with its names. */
export function parseSnapshot(document: unknown, knowledge: Knowledge | null = null): Snapshot {
  if (!isSnapshotDocument(document)) throw new Fault('SNAPSHOT_INVALID', 'this is not a Snapshot')
  const { number, hash, madeAtMs } = document
  const policy = parseAcceptedPolicy(document.policy, null, knowledge?.names ?? null)
  const campaigns = campaignMembers(document.campaigns)
  const apps = document.apps === undefined ? [] : parseAcceptedApps(document.apps)
  return Object.freeze({ number, hash, madeAtMs, policy, knowledge, campaigns, apps })
}

export function isSnapshotDocument(value: unknown): value is SnapshotDocument {
  if (typeof value !== 'object' || value === null) return false
  const { number, hash, madeAtMs, signatures } = value as Partial<Record<keyof SnapshotDocument, unknown>>
  return (
    Number.isSafeInteger(number) &&
    typeof hash === 'string' &&
    typeof madeAtMs === 'number' &&
    'policy' in value &&
    (signatures === null || isSignatureSet(signatures))
  )
}
