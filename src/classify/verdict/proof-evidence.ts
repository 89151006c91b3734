import { SPOOFED } from '../known/evidence.ts'
import { provenNameConfidence } from './name-confidence.ts'
import type { Evidence, Verdict } from './verdict.ts'

/**
 * Evidence from identity proofs. It is listed beside the weighed evidence, because a proof either decides
 * alone or not at all.
 */
export type ProofEvidence = (typeof PROOF_EVIDENCE)[number]

export const PROOF_EVIDENCE = [
  'signature-proven',
  'signature-failed',
  'signature-unchecked',
  'bare-key',
  'acts-for-person',
  'signed-as-another',
  'signed-with-foreign-fingerprint',
  'signed-from-foreign-address',
  'outside-card-ranges',
  'tap-browser',
  'tap-payer',
  'host-proven',
  'host-foreign',
  'network-of-agent',
  'network-foreign',
] as const

/**
 * Creates evidence with its weight for the verdict: a proof decides; a denial has weight 0 and is only named.
 */
export function proofSaying(kind: ProofEvidence, detail: string): Evidence {
  return { kind, detail, weight: PROVING.has(kind) ? PROVEN_WEIGHT : 0 }
}

/** The same verdict with the evidence of proofs before the rest of its own evidence. */
export function toldWith(
  verdict: Omit<Verdict, 'conflicts' | 'evidence'>,
  evidence: readonly Evidence[],
  left: readonly Evidence[],
): Verdict {
  const all = [...evidence, ...left]
  const conflicts = conflictsIn(all)
  const nameConfidence = provenNameConfidence(verdict, conflicts)
  return Object.freeze({ ...verdict, nameConfidence, conflicts, evidence: all })
}

/** Reconstructs proof evidence from stored kinds, with general texts. */
export function proofsRecalled(kinds: readonly string[]): readonly Evidence[] {
  const told = PROOF_EVIDENCE.filter((kind) => kinds.includes(kind))
  return told.map((kind) => proofSaying(kind, PROOF_DETAILS[kind]))
}

/** The kinds that contradict a claimed or proven identity. */
export function conflictsIn(evidence: readonly Pick<Evidence, 'kind'>[]): readonly string[] {
  const found = evidence.filter(({ kind }) => IS_CONFLICT.has(kind))
  return found.length === 0 ? NO_CONFLICTS : found.map(({ kind }) => kind)
}

/** All evidence kinds that contradict an identity, whether proven or claimed. */
export const CONFLICTS = [
  SPOOFED,
  'address-foreign',
  'host-foreign',
  'network-foreign',
  'signature-failed',
  'signed-as-another',
  'signed-with-foreign-fingerprint',
  'signed-from-foreign-address',
] as const
const IS_CONFLICT: ReadonlySet<string> = new Set(CONFLICTS)

const PROOF_DETAILS: Readonly<Record<ProofEvidence, string>> = {
  'signature-proven': 'the signature is valid: the claimed agent signed the request',
  'signature-failed': 'the signature is invalid',
  'signature-unchecked': 'the signature could not be checked',
  'bare-key': 'the signature is valid, with a key that the client brought itself and that names no agent',
  'acts-for-person':
    'the signature is valid, with a key of which an issuer says that its agent acts for a person',
  'signed-as-another': 'it claims to be another agent than the one that signed it',
  'signed-with-foreign-fingerprint':
    'the signature is valid, but the TLS fingerprint does not belong to that agent',
  'signed-from-foreign-address': 'the signature is valid, but the address does not belong to that agent',
  'outside-card-ranges':
    'the signature is valid, and the address is not in the ranges that the agent publishes in its card',
  'tap-browser': 'it has a signature of the Trusted Agent Protocol for looking around, which is not verified',
  'tap-payer': 'it has a signature of the Trusted Agent Protocol for paying, which is not verified',
  'host-proven': 'its address has a host name of that agent, and the host name has this address',
  'host-foreign': 'its address does not have a host name of that agent',
  'network-of-agent': 'its address is in a network of that agent',
  'network-foreign': 'its address is not in a network of that agent',
}

/** The natural logarithm of the odds of PROVEN_CONFIDENCE. */
const PROVEN_WEIGHT = 6.91
const PROVING: ReadonlySet<ProofEvidence> = new Set<ProofEvidence>(['signature-proven', 'host-proven'])
const NO_CONFLICTS: readonly string[] = []
