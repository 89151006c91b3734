import { markAddress } from '../known/address-lists.ts'
import { type AgentCard, statedPurposes } from '../known/claims/agent-card.ts'
import type { Conduct } from './conduct.ts'
import { EvidenceSet, SPOOFED } from '../known/evidence.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { type ProofEvidence, proofSaying, toldWith } from './proof-evidence.ts'
import { withPlace } from './placed.ts'
import {
  type PaymentTag,
  type Proof,
  type Proofs,
  PROVEN_CONFIDENCE,
  type SignatureFinding,
} from './proof.ts'
import { isPublic } from '../known/published-ranges.ts'
import type { Scratch } from './scratch.ts'
import type { Software } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import type { Evidence, Verdict } from './verdict.ts'
import { agentFor } from './verdict-for.ts'

type Signed = SignatureFinding & { readonly kind: 'proven' }

/** What proofs are compared with. */
export interface Seen {
  /** The agent that the client claims to be, by its own name. */
  readonly claimed: Software | null
  readonly stack: Stack
  readonly conduct: Conduct | null
  readonly nowMs: number
}

/**
 * Adds proofs to a verdict. A proven identity overrides everything the client looks like. If other evidence
 * contradicts it, the contradiction has a kind of its own, and the verdict lists both.
 */
export function withProofs(
  knowledge: Knowledge,
  verdict: Verdict,
  proofs: Proofs,
  seen: Seen,
  scratch: Scratch,
): Verdict {
  const judged = judgedBy(knowledge, verdict, proofs, seen, scratch)
  const tag = proofs.signature?.payment
  if (tag === undefined) return judged
  const detail = `it has a signature with the tag ${tag} (Trusted Agent Protocol), which is not verified`
  return toldWith(judged, judged.evidence, [proofSaying(TAP_EVIDENCE[tag], detail)])
}

function judgedBy(
  knowledge: Knowledge,
  verdict: Verdict,
  { signature, places }: Proofs,
  seen: Seen,
  scratch: Scratch,
): Verdict {
  const placed = withPlace(knowledge, verdict, places, seen.conduct, scratch)
  if (signature === null) return placed
  // Any client can send an invalid signature in another agent's name. It proves nothing and invalidates no
  // other proof.
  if (signature.kind === 'unchecked' && signature.why === 'payment-tag') return placed
  if (signature.kind === 'key') return toldWith(placed, [bareKey(signature)], placed.evidence)
  if (signature.kind !== 'proven') return toldWith(placed, [unproven(signature)], placed.evidence)
  const signers = knowledge.identities.signingAs(signature.agentId)
  // If no listed agent signs as this signer, an address is better evidence than a key that any client can
  // create.
  if (signers.length === 0 && placed.proof !== null && isOfNoKey(seen.claimed))
    return toldWith(placed, [signedAs(signature)], placed.evidence)
  const signed = signedBy(knowledge, verdict, signature, signers, seen)
  return withPlace(knowledge, signed, places, seen.conduct, scratch)
}

function isOfNoKey(software: Software | null): boolean {
  return software?.verification.signatureAgent === null
}

function signedAs({ agentId, thumbprint }: Signed): Evidence {
  return proofSaying('signature-proven', `signed by ${agentId} with the key ${thumbprint}`)
}

function signedBy(
  knowledge: Knowledge,
  verdict: Verdict,
  signature: Signed,
  signers: readonly Software[],
  seen: Seen,
): Verdict {
  const { claimed } = seen
  const { agentId, thumbprint, about } = signature
  const isAnother = claimed !== null && !claimed.isFamily && !isOfVendor(claimed, signers)
  // If several agents share a key, the claimed one is meant.
  const named = isAnother ? undefined : signers.find(({ id }) => id === (claimed?.id ?? verdict.agent?.id))
  const agent = named ?? signers[0] ?? null
  const evidence = [signedAs(signature)]
  if (isAnother)
    evidence.push(
      proofSaying('signed-as-another', `it claims to be ${claimed.name}, but ${agentId} signed it`),
    )
  if (agent !== null) evidence.push(...deniedOf(knowledge, agent, signers, seen))
  evidence.push(...outsideOwnRanges(signature, seen.conduct))
  const isElsewhere = evidence.some(({ kind }) => kind === 'signed-from-foreign-address')
  const proof: Proof = { method: 'web-bot-auth', agent: agentId, key: thumbprint }
  const signed: Verdict = {
    ...verdict,
    kind: 'agent',
    agent: agent === null ? null : agentWith(agent, about?.card ?? null),
    software: agent === null ? toolIn(verdict) : { id: agent.id, name: agent.name, kind: agent.kind },
    confidence: PROVEN_CONFIDENCE,
    proof,
  }
  // Evidence against a mere claim is dropped: for a proven signer it has a kind of its own, or the claim was
  // true.
  const left = verdict.evidence.filter(
    ({ kind }) =>
      !(agent !== null && kind === SPOOFED) && !(isElsewhere && !isAnother && kind === 'address-foreign'),
  )
  return toldWith(signed, evidence, left)
}

/** The agent with the purposes that it has said it comes for. */
function agentWith(agent: Software, card: AgentCard | null): Verdict['agent'] {
  return agentFor({ ...agent, purposes: statedPurposes(agent.purposes, card) })
}

/** A list that an agent publishes about itself may be late, so this is a fact and no contradiction. */
function outsideOwnRanges({ agentId, about }: Signed, conduct: Conduct | null): readonly Evidence[] {
  const ranges = about?.ranges ?? null
  if (ranges === null || conduct === null || !isPublic(conduct.address) || ranges.has(conduct.address))
    return []
  return [proofSaying('outside-card-ranges', `the address is not in the ranges of the card of ${agentId}`)]
}

/** A vendor may sign for one of its agents with the key of another, if the first is not known to sign. */
function isOfVendor(claimed: Software, signers: readonly Software[]): boolean {
  if (signers.includes(claimed)) return true
  return (
    isOfNoKey(claimed) && claimed.vendor !== null && signers.some(({ vendor }) => vendor === claimed.vendor)
  )
}

/** The evidence that contradicts the agent that signed. */
function deniedOf(
  { identities, addresses }: Knowledge,
  agent: Software,
  signers: readonly Software[],
  { stack, conduct, nowMs }: Seen,
): readonly Evidence[] {
  const evidence: Evidence[] = []
  if (isForeign(stack, signers, identities.lookingLike(agent))) {
    const owner = stack.shares[0]!.software.name
    const detail = `the TLS fingerprint belongs to ${owner}, not to ${agent.name}`
    evidence.push(proofSaying('signed-with-foreign-fingerprint', detail))
  }
  const list = addresses.of(agent)
  if (list === null || conduct === null) return evidence
  const marks = new EvidenceSet()
  if (markAddress(marks, list, conduct.address, nowMs) && marks.has('address-foreign')) {
    const detail = `the address is not in the published ranges of ${agent.name}`
    evidence.push(proofSaying('signed-from-foreign-address', detail))
  }
  return evidence
}

/**
 * Whether the owners of the TLS stack are known, and are neither the signers nor software that they are built
 * with.
 */
function isForeign(
  { isKnown, shares }: Stack,
  signers: readonly Software[],
  alike: ReadonlySet<string>,
): boolean {
  if (!isKnown || shares.length === 0 || alike.size === 0) return false
  return !shares.some(({ software }) => alike.has(software.id) || signers.includes(software))
}

/**
 * A tool that the client is built with stays in the verdict. A merely claimed agent does not, once the signer
 * is proven.
 */
function toolIn({ software }: Verdict): Verdict['software'] {
  return software?.kind === 'tool' ? software : null
}

function bareKey({ thumbprint, personOf }: SignatureFinding & { kind: 'key' }): Evidence {
  return personOf === undefined
    ? proofSaying(
        'bare-key',
        `signed with the key ${thumbprint}, which it brought itself and which names no agent`,
      )
    : proofSaying(
        'acts-for-person',
        `signed with the key ${thumbprint}, and ${personOf} says that an agent with this key acts for a person it knows`,
      )
}

function unproven({ kind, why, agentId }: SignatureFinding & { kind: 'failed' | 'unchecked' }): Evidence {
  const who = agentId === null ? 'it is signed' : `it claims to be signed by ${agentId}`
  return kind === 'failed'
    ? proofSaying('signature-failed', `${who}, but the signature is invalid: ${why}`)
    : proofSaying('signature-unchecked', `${who}, but the signature could not be checked: ${why}`)
}

const TAP_EVIDENCE: Readonly<Record<PaymentTag, ProofEvidence>> = {
  'agent-browser-auth': 'tap-browser',
  'agent-payer-auth': 'tap-payer',
}
