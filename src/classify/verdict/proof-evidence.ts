import { SPOOFED } from '../known/evidence.ts'
import type { Evidence, Verdict } from './verdict.ts'

/** What proofs add to evidence: said beside what is weighed, for they decide by themselves or not at all. */
export type ProofEvidence = (typeof PROOF_EVIDENCE)[number]

export const PROOF_EVIDENCE = [
  ...(['signature-proven', 'signature-failed', 'signature-unchecked'] as const),
  ...(['signed-as-another', 'signed-with-foreign-fingerprint', 'signed-from-foreign-address'] as const),
  ...(['host-proven', 'host-foreign', 'network-of-agent', 'network-foreign'] as const),
] as const

/** How much more it speaks for what is held than for anything else: what proves decides, what denies only has a name. */
export function proofSaying(kind: ProofEvidence, detail: string): Evidence {
  return { kind, detail, weight: PROVING.has(kind) ? PROVEN_WEIGHT : 0 }
}

/** The same verdict with evidence of proofs before what is left of its own. */
export function toldWith(
  verdict: Verdict,
  evidence: readonly Evidence[],
  left: readonly Evidence[],
): Verdict {
  const all = [...evidence, ...left]
  return Object.freeze({ ...verdict, conflicts: conflictsIn(all), evidence: all })
}

/** Of kinds that were kept, what proofs had said, in words where nothing else is left of the request. */
export function proofsRecalled(kinds: readonly string[]): readonly Evidence[] {
  const told = PROOF_EVIDENCE.filter((kind) => kinds.includes(kind))
  return told.map((kind) => proofSaying(kind, PROOF_DETAILS[kind]))
}

/** What of it denies who somebody says, or has proven, to be. */
export function conflictsIn(evidence: readonly Pick<Evidence, 'kind'>[]): readonly string[] {
  const found = evidence.filter(({ kind }) => CONFLICTS.has(kind))
  return found.length === 0 ? NO_CONFLICTS : found.map(({ kind }) => kind)
}

/** Those of all evidence that say of an identity, proven or claimed, that something else denies it. */
const CONFLICTS: ReadonlySet<string> = new Set([
  SPOOFED,
  ...(['address-foreign', 'host-foreign', 'network-foreign', 'signature-failed'] as const),
  ...(['signed-as-another', 'signed-with-foreign-fingerprint', 'signed-from-foreign-address'] as const),
])

const PROOF_DETAILS: Readonly<Record<ProofEvidence, string>> = {
  'signature-proven': 'it was signed by the agent it says',
  'signature-failed': 'it says to be signed, and that does not hold',
  'signature-unchecked': 'it says to be signed, and nobody could check it',
  'signed-as-another': 'it says to be another agent than the one that has signed it',
  'signed-with-foreign-fingerprint': 'it was signed, and the TLS is not that agent’s',
  'signed-from-foreign-address': 'it was signed, and the address is none of that agent’s',
  'host-proven': 'its address has a host name of that agent, which has this address',
  'host-foreign': 'its address has no host name of that agent',
  'network-of-agent': 'its address is in a network of that agent',
  'network-foreign': 'its address is in no network of that agent',
}

/**
 * What is proven is sure, but for keys that were stolen and addresses that are another's by now: one in a thousand is a
 * guess, and more than any sum of what is only shown comes to.
 */
export const PROVEN_CONFIDENCE = 0.999
/** The natural logarithm of its odds. */
const PROVEN_WEIGHT = 6.91
const PROVING: ReadonlySet<ProofEvidence> = new Set<ProofEvidence>(['signature-proven', 'host-proven'])
const NO_CONFLICTS: readonly string[] = []
