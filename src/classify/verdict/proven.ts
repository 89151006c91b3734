import { markAddress } from '../known/address-lists.ts'
import type { Conduct } from './conduct.ts'
import { EvidenceSet, SPOOFED } from '../known/evidence.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { PROVEN_CONFIDENCE, proofSaying, toldWith } from './proof-evidence.ts'
import { withPlace } from './placed.ts'
import type { Proof, Proofs, SignatureFinding } from './proof.ts'
import type { Software } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import type { Evidence, Verdict } from './verdict.ts'

type Signed = SignatureFinding & { readonly kind: 'proven' }

/** What proofs are held against. */
export interface Seen {
  /** The agent that it says to be, by a name of its own. */
  readonly claimed: Software | null
  readonly stack: Stack
  readonly conduct: Conduct | null
  readonly nowMs: number
}

/**
 * The same verdict with what proofs say: who has proven who he is, is that one, whatever he looks like. Where something
 * else about him says otherwise, that has a name of its own, and both are told.
 */
export function withProofs(
  knowledge: Knowledge,
  verdict: Verdict,
  { signature, places }: Proofs,
  seen: Seen,
): Verdict {
  const placed = withPlace(knowledge, verdict, places, seen.conduct)
  if (signature === null) return placed
  // Anybody can send a wrong signature in another's name: it proves nothing, and what else proves something still does.
  if (signature.kind !== 'proven') return toldWith(placed, [unproven(signature)], placed.evidence)
  const signers = knowledge.identities.signingAs(signature.agentId)
  // Of whom nobody knows that he signs, or as whom, an address tells more than a key that anybody can make.
  if (signers.length === 0 && placed.proof !== null && isOfNoKey(seen.claimed))
    return toldWith(placed, [signedAs(signature)], placed.evidence)
  return withPlace(knowledge, signedBy(knowledge, verdict, signature, signers, seen), places, seen.conduct)
}

function isOfNoKey(software: Software | null): boolean {
  return software?.verification.signatureAgent === null
}

function signedAs({ agentId, thumbprint }: Signed): Evidence {
  return proofSaying('signature-proven', `${agentId} has signed it, with the key ${thumbprint}`)
}

function signedBy(
  knowledge: Knowledge,
  verdict: Verdict,
  signature: Signed,
  signers: readonly Software[],
  seen: Seen,
): Verdict {
  const { claimed } = seen
  const { agentId, thumbprint } = signature
  const isAnother = claimed !== null && !claimed.isFamily && !isOfVendor(claimed, signers)
  // Of several agents that share a key, it is the one it says to be.
  const named = isAnother ? undefined : signers.find(({ id }) => id === (claimed?.id ?? verdict.agent?.id))
  const agent = named ?? signers[0] ?? null
  const evidence = [signedAs(signature)]
  if (isAnother)
    evidence.push(
      proofSaying('signed-as-another', `it says to be ${claimed.name}, and ${agentId} has signed it`),
    )
  if (agent !== null) evidence.push(...deniedOf(knowledge, agent, signers, seen))
  const isElsewhere = evidence.some(({ kind }) => kind === 'signed-from-foreign-address')
  const proof: Proof = { method: 'web-bot-auth', agent: agentId, key: thumbprint }
  const signed: Verdict = {
    ...verdict,
    kind: 'agent',
    agent: agent === null ? null : { id: agent.id, name: agent.name, category: agent.category! },
    software: agent === null ? toolIn(verdict) : { id: agent.id, name: agent.name, kind: agent.kind },
    confidence: PROVEN_CONFIDENCE,
    proof,
  }
  // What was held against a mere claim is told of who has proven it in its own words, or was no lie.
  const left = verdict.evidence.filter(
    ({ kind }) =>
      !(agent !== null && kind === SPOOFED) && !(isElsewhere && !isAnother && kind === 'address-foreign'),
  )
  return toldWith(signed, evidence, left)
}

/** Who has a key for one of his agents may sign with it for another, of which nobody here knows that it signs. */
function isOfVendor(claimed: Software, signers: readonly Software[]): boolean {
  if (signers.includes(claimed)) return true
  return (
    isOfNoKey(claimed) && claimed.vendor !== null && signers.some(({ vendor }) => vendor === claimed.vendor)
  )
}

/** What speaks against the very agent that has signed. */
function deniedOf(
  { identities, addresses }: Knowledge,
  agent: Software,
  signers: readonly Software[],
  { stack, conduct, nowMs }: Seen,
): readonly Evidence[] {
  const evidence: Evidence[] = []
  if (isForeign(stack, signers, identities.lookingLike(agent))) {
    const owner = stack.shares[0]!.software.name
    const detail = `the TLS is not ${agent.name}'s but that of ${owner}`
    evidence.push(proofSaying('signed-with-foreign-fingerprint', detail))
  }
  const list = addresses.of(agent)
  if (list === null || conduct === null) return evidence
  SCRATCH.clear()
  if (markAddress(SCRATCH, list, conduct.address, nowMs) && SCRATCH.has('address-foreign')) {
    const detail = `the address is none of those published for ${agent.name}`
    evidence.push(proofSaying('signed-from-foreign-address', detail))
  }
  return evidence
}

/** It is known whose it is, and these are neither among them nor made with what they are. */
function isForeign(
  { isKnown, shares }: Stack,
  signers: readonly Software[],
  alike: ReadonlySet<string>,
): boolean {
  if (!isKnown || shares.length === 0 || alike.size === 0) return false
  return !shares.some(({ software }) => alike.has(software.id) || signers.includes(software))
}

/** What it is made with may still be told; who it says to be is nothing beside who it is. */
function toolIn({ software }: Verdict): Verdict['software'] {
  return software?.kind === 'tool' ? software : null
}

function unproven({ kind, why, agentId }: SignatureFinding & { kind: 'failed' | 'unchecked' }): Evidence {
  const who = agentId === null ? 'it is signed' : `it says to be signed by ${agentId}`
  return kind === 'failed'
    ? proofSaying('signature-failed', `${who}, and that does not hold: ${why}`)
    : proofSaying('signature-unchecked', `${who}, and nobody could check it: ${why}`)
}

const SCRATCH = new EvidenceSet()
