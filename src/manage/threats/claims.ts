import { type EvidenceKind, SPOOFED } from '../../classify/evidence.ts'
import type { Rule } from './rule.ts'

/** Claims that something else about the request denies: `classify` has found that out, and says so in its evidence. */
export const CLAIM_RULES: readonly Rule[] = [
  denied('spoofed_browser', SPOOFED, 'it says to be a browser, and its fingerprints or headers deny it'),
  denied(
    'foreign_address',
    'address-foreign',
    'it claims to be an agent from an address that the vendor of that does not publish',
  ),
  // Here belongs `proof_failed`, as one more of these, once there is evidence of proofs that were tried and failed.
]

function denied(reason: Rule['reason'], kind: EvidenceKind | typeof SPOOFED, detail: string): Rule {
  return { reason, holds: ({ evidence }) => evidence.includes(kind), detail: () => detail }
}
