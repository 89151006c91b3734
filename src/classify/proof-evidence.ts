import { SPOOFED } from './evidence.ts'
import type { Evidence } from './verdict.ts'

/** What proofs add to evidence: said beside what is weighed, for they decide by themselves or not at all. */
export type ProofEvidence = (typeof PROOF_EVIDENCE)[number]

export const PROOF_EVIDENCE = [
  ...(['signature-proven', 'signature-failed', 'signature-unchecked'] as const),
  ...(['host-proven', 'host-foreign', 'network-of-agent', 'network-foreign'] as const),
  ...(['signed-as-another', 'signed-with-foreign-fingerprint', 'signed-from-foreign-address'] as const),
] as const

/** What of it denies who somebody says, or has proven, to be. */
export function conflictsIn(evidence: readonly Evidence[]): readonly string[] {
  const found = evidence.filter(({ kind }) => CONFLICTS.has(kind))
  return found.length === 0 ? NO_CONFLICTS : found.map(({ kind }) => kind)
}

/** Those of all evidence that say of an identity, proven or claimed, that something else denies it. */
const CONFLICTS: ReadonlySet<string> = new Set([
  SPOOFED,
  ...(['address-foreign', 'host-foreign', 'network-foreign', 'signature-failed'] as const),
  ...(['signed-as-another', 'signed-with-foreign-fingerprint', 'signed-from-foreign-address'] as const),
])

/** In words, where nothing is left of the request but that it showed this. */
export const PROOF_DETAILS: Readonly<Record<ProofEvidence, string>> = {
  'signature-proven': 'it was signed by the agent it says',
  'signature-failed': 'it says to be signed, and that does not hold',
  'signature-unchecked': 'it says to be signed, and nobody could check it',
  'host-proven': 'its address has a host name of that agent, which has this address',
  'host-foreign': 'its address has no host name of that agent',
  'network-of-agent': 'its address is in a network of that agent',
  'network-foreign': 'its address is in no network of that agent',
  'signed-as-another': 'it says to be another agent than the one that has signed it',
  'signed-with-foreign-fingerprint': 'it was signed, and the TLS is not that agent’s',
  'signed-from-foreign-address':
    'it was signed, and comes from none of the addresses published for that agent',
}
const NO_CONFLICTS: readonly string[] = []
