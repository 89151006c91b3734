import { SPOOFED } from '../../../classify/known/evidence.ts'
import { signatureText } from '../../intake/signature-account.ts'
import type { Rule } from './rule.ts'

/** Claims that other properties of the request contradict, as the classifier recorded in the evidence. */
export const CLAIM_RULES: readonly Rule[] = [
  denied('spoofed_browser', [SPOOFED], 'it says to be a browser, and its fingerprints or headers deny it'),
  denied(
    'foreign_address',
    ['address-foreign', 'host-foreign'],
    'it claims to be an agent from an address that is not one of that agent’s, as its vendor tells them',
  ),
  {
    reason: 'proof_failed',
    holds: ({ evidence }) => evidence.includes('signature-failed') || evidence.includes('signed-as-another'),
    detail: (sighting) =>
      sighting.evidence.includes('signed-as-another')
        ? `${sighting.signer} has signed it, and it says to be another agent`
        : (signatureText(sighting) ?? 'it is signed, and that does not hold'),
  },
  denied(
    'proof_contradicted',
    ['signed-with-foreign-fingerprint', 'signed-from-foreign-address'],
    'it has proven which agent it is, and its TLS or its address is none of that agent’s',
  ),
]

function denied(reason: Rule['reason'], kinds: readonly string[], detail: string): Rule {
  return {
    reason,
    holds: ({ evidence }) => kinds.some((kind) => evidence.includes(kind)),
    detail: () => detail,
  }
}
