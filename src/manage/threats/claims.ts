import { SPOOFED } from '../../classify/evidence.ts'
import type { Rule } from './rule.ts'

/** Claims that something else about the request denies: `classify` has found that out, and says so in its evidence. */
export const CLAIM_RULES: readonly Rule[] = [
  denied('spoofed_browser', [SPOOFED], 'it says to be a browser, and its fingerprints or headers deny it'),
  denied(
    'foreign_address',
    ['address-foreign', 'host-foreign'],
    'it claims to be an agent from an address that is not one of that agent’s, as its vendor tells them',
  ),
  denied(
    'proof_failed',
    ['signature-failed', 'signed-as-another'],
    'it is signed, and not by whom it says to be, or not as it was sent',
  ),
]

function denied(reason: Rule['reason'], kinds: readonly string[], detail: string): Rule {
  return {
    reason,
    holds: ({ evidence }) => kinds.some((kind) => evidence.includes(kind)),
    detail: () => detail,
  }
}
