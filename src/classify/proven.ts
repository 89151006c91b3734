import type { Address } from '../wire/address-ranges.ts'
import { type AddressList, markAddress } from './address-lists.ts'
import type { Conduct } from './conduct.ts'
import { EvidenceSet } from './evidence.ts'
import type { Knowledge } from './knowledge.ts'
import { conflictsIn, type ProofEvidence } from './proof-evidence.ts'
import { isPublic } from './published-ranges.ts'
import type { Places, Proof, Proofs, SignatureFinding } from './proof.ts'
import type { Software } from './software.ts'
import type { Stack } from './stack.ts'
import type { Evidence, Verdict } from './verdict.ts'

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
  const placed =
    places === null || verdict.agent === null ? verdict : withPlace(knowledge, verdict, places, seen)
  if (signature === null) return placed
  if (signature.kind === 'proven') return signedBy(knowledge, placed, signature, seen)
  const evidence = [unproven(signature), ...placed.evidence]
  return Object.freeze({ ...placed, conflicts: conflictsIn(evidence), evidence })
}

/** What an address is says something of who claims to be an agent, and of nobody else: of others it is not asked. */
function withPlace({ identities }: Knowledge, verdict: Verdict, places: Places, { conduct }: Seen): Verdict {
  const software = verdict.agent === null ? null : identities.byPlace(verdict.agent.id)
  const place =
    software === null || conduct === null || !isPublic(conduct.address)
      ? null
      : places.of(conduct.addressText)
  if (software === null || place === null) return verdict
  const { hosts, network } = place
  const { reverseDns, asns } = software.verification
  const own = hosts.find((host) => reverseDns.some((end) => endsWith(host, end)))
  const evidence: Evidence[] = []
  let proof = verdict.proof
  if (own !== undefined) {
    evidence.push(saying('host-proven', `its address is ${own}, which is ${software.name}'s`, PROVEN_WEIGHT))
    proof ??= { method: 'reverse-dns', agent: software.id, key: null }
  } else if (reverseDns.length > 0 && place.isHostKnown && proof === null)
    evidence.push(
      saying(
        'host-foreign',
        `its address is ${hosts[0] ?? 'no host'}: those of ${software.name} end with ${reverseDns.join(', ')}`,
      ),
    )
  if (asns.length > 0 && network !== null) {
    const isOwn = asns.includes(network.asn)
    const text = `its address is in AS${network.asn}${network.name === null ? '' : ` (${network.name})`}`
    evidence.push(
      isOwn
        ? saying('network-of-agent', `${text}, as those of ${software.name} are`)
        : saying(
            'network-foreign',
            `${text}: those of ${software.name} are in ${asns.map((asn) => `AS${asn}`).join(', ')}`,
          ),
    )
  }
  if (evidence.length === 0) return verdict
  const all = [...evidence, ...verdict.evidence]
  return Object.freeze({
    ...verdict,
    confidence: proof === null ? verdict.confidence : Math.max(verdict.confidence, PROVEN_CONFIDENCE),
    proof,
    conflicts: conflictsIn(all),
    evidence: all,
  })
}

function signedBy(
  knowledge: Knowledge,
  verdict: Verdict,
  { agentId, thumbprint }: SignatureFinding & { kind: 'proven' },
  { claimed, stack, conduct, nowMs }: Seen,
): Verdict {
  const { identities, addresses } = knowledge
  const signers = identities.signingAs(agentId)
  const isAnother = claimed !== null && !claimed.isFamily && !signers.includes(claimed)
  // Of several agents that share a key, it is the one it says to be.
  const named = isAnother ? undefined : signers.find(({ id }) => id === (claimed?.id ?? verdict.agent?.id))
  const agent = named ?? signers[0] ?? null
  const evidence = [
    saying('signature-proven', `${agentId} has signed it, with the key ${thumbprint}`, PROVEN_WEIGHT),
  ]
  if (isAnother)
    evidence.push(saying('signed-as-another', `it says to be ${claimed.name}, and ${agentId} has signed it`))
  if (agent !== null && isForeign(stack, signers) && identities.hasFingerprints(agent))
    evidence.push(
      saying(
        'signed-with-foreign-fingerprint',
        `the TLS is not ${agent.name}'s but that of ${stack.shares[0]!.software.name}`,
      ),
    )
  const list = agent === null ? null : addresses.of(agent)
  if (list !== null && conduct !== null && isElsewhere(list, conduct.address, nowMs))
    evidence.push(
      saying('signed-from-foreign-address', `the address is none of those published for ${agent!.name}`),
    )
  const all = [...evidence, ...verdict.evidence]
  const proof: Proof = { method: 'web-bot-auth', agent: agentId, key: thumbprint }
  return Object.freeze({
    kind: 'agent',
    agent: agent === null ? null : { id: agent.id, name: agent.name, category: agent.category! },
    software: agent === null ? toolIn(verdict) : { id: agent.id, name: agent.name, kind: agent.kind },
    confidence: PROVEN_CONFIDENCE,
    proof,
    conflicts: conflictsIn(all),
    evidence: all,
  })
}

/** What it is made with may still be told; who it says to be is nothing beside who it is. */
function toolIn({ software }: Verdict): Verdict['software'] {
  return software?.kind === 'tool' ? software : null
}

/** It is known whose it is, and these are not among them. */
function isForeign({ isKnown, shares }: Stack, signers: readonly Software[]): boolean {
  return (
    isKnown &&
    shares.length > 0 &&
    !shares.some(({ software }) => signers.some(({ id }) => id === software.id))
  )
}

function isElsewhere(list: AddressList, address: Address, nowMs: number): boolean {
  SCRATCH.clear()
  return markAddress(SCRATCH, list, address, nowMs) && SCRATCH.has('address-foreign')
}

function unproven({ kind, why, agentId }: SignatureFinding & { kind: 'failed' | 'unchecked' }): Evidence {
  const who = agentId === null ? 'it is signed' : `it says to be signed by ${agentId}`
  return kind === 'failed'
    ? saying('signature-failed', `${who}, and that does not hold: ${why}`)
    : saying('signature-unchecked', `${who}, and nobody could check it: ${why}`)
}

/** Whole labels: `evilgooglebot.com` ends with nothing of Google's. */
function endsWith(host: string, end: string): boolean {
  const labels = end.startsWith('.') ? end : `.${end}`
  return host.endsWith(labels) || (end !== labels && host === end)
}

function saying(kind: ProofEvidence, detail: string, weight = 0): Evidence {
  return { kind, detail, weight }
}

export const PROVEN_CONFIDENCE = 0.999
/** The natural logarithm of its odds. */
export const PROVEN_WEIGHT = 6.91
const SCRATCH = new EvidenceSet()
