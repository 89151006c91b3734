import type { EvidenceSet } from '../known/evidence.ts'
import type { Software } from '../known/software.ts'
import { agentOf } from './observe.ts'
import { PROVEN_CONFIDENCE } from './proof.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Verdict } from './verdict.ts'

/**
 * How sure it is that the client is the program that the verdict names; 0 without a name. It comes from
 * evidence of identity alone. How sure it is that the client is an agent, a tool or a person is `confidence`.
 */
export function nameConfidence(
  named: Software | null,
  shown: Shown,
  before: Software | null,
  { marks, reading }: Scratch,
): number {
  if (named === null) return 0
  const { claim } = shown
  const isClaimed =
    agentOf(claim, reading) === named ||
    [claim.software, reading.tool, reading.browser, before].includes(named)
  if (isClaimed) {
    if (canProve(named)) return CONFIDENCE.provableClaim
    return looksLike(named, shown, marks) ? CONFIDENCE.claimWithFingerprint : CONFIDENCE.claim
  }
  const { certificate, headers, stack } = shown
  const isDecided = [certificate, headers, stack].some(({ decided }) => decided.includes(named))
  return isDecided && marks.has('fingerprint-of-agent') ? CONFIDENCE.decision : CONFIDENCE.guess
}

/** The confidence in the name once proofs and conflicts are known. */
export function provenNameConfidence(
  {
    agent,
    software,
    proof,
    nameConfidence,
  }: Pick<Verdict, 'agent' | 'software' | 'proof' | 'nameConfidence'>,
  conflicts: readonly string[],
): number {
  if (software === null) return 0
  if (proof !== null && agent !== null) return PROVEN_CONFIDENCE
  return proof === null && conflicts.some((kind) => DENIALS.has(kind))
    ? Math.min(nameConfidence, CONFIDENCE.denied)
    : nameConfidence
}

function canProve({ kind, verification }: Software): boolean {
  const { signatureAgent, ranges, rangesUrl, reverseDns } = verification
  return (
    kind === 'agent' &&
    (signatureAgent !== null || ranges !== null || rangesUrl !== null || reverseDns.length > 0)
  )
}

/** Whether a fingerprint of the client is known of this program or, for a browser, of its engine. */
function looksLike(named: Software, { stack, headers, certificate }: Shown, marks: EvidenceSet): boolean {
  if (named.kind === 'browser' && marks.has('stack-agrees')) return true
  return [stack, headers, certificate].some(({ shares }) => shares.some(({ software }) => software === named))
}

/**
 * Measured on recordings by client, or taken from published shares of false claims: the table in
 * config/guide/verdicts.md says which, and which are estimates. The recordings contain no client that lies
 * about a crawler.
 */
const CONFIDENCE = {
  decision: 0.95,
  claimWithFingerprint: 0.94,
  claim: 0.72,
  guess: 0.6,
  provableClaim: 0.5,
  denied: 0.05,
} as const
/** Conflicts that speak against the name, not only against the claim to be a browser. */
const DENIALS: ReadonlySet<string> = new Set([
  'address-foreign',
  'host-foreign',
  'network-foreign',
  'signature-failed',
])
