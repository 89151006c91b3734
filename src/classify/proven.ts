import { markAddress } from './address-lists.ts'
import type { Conduct } from './conduct.ts'
import { EvidenceSet, SPOOFED } from './evidence.ts'
import type { Knowledge } from './knowledge.ts'
import { conflictsIn, PROVEN_CONFIDENCE, proofSaying } from './proof-evidence.ts'
import { isPublic } from './published-ranges.ts'
import type { PlaceFinding, Places, Proof, Proofs, SignatureFinding } from './proof.ts'
import type { Software } from './software.ts'
import type { Stack } from './stack.ts'
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
  const placed = withPlace(knowledge, verdict, places, seen)
  if (signature === null) return placed
  // Anybody can send a wrong signature in another's name: it proves nothing, and what else proves something still does.
  if (signature.kind !== 'proven') return told(placed, [unproven(signature)], placed.evidence)
  const signers = knowledge.identities.signingAs(signature.agentId)
  // Of whom nobody knows that he signs, or as whom, an address tells more than a key that anybody can make.
  if (signers.length === 0 && placed.proof !== null && isOfNoKey(seen.claimed))
    return told(placed, [signedAs(signature)], placed.evidence)
  return withPlace(knowledge, signedBy(knowledge, verdict, signature, signers, seen), places, seen)
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
  const isAnother = claimed !== null && !claimed.isFamily && !signers.includes(claimed)
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
  return told(signed, evidence, left)
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

/** What an address is says something of who claims to be an agent, and of nobody else: of others it is not asked. */
function withPlace(
  { identities, addresses }: Knowledge,
  verdict: Verdict,
  places: Places | null,
  { conduct }: Seen,
): Verdict {
  const software = verdict.agent === null ? null : identities.byPlace(verdict.agent.id)
  if (software === null || places === null || conduct === null || !isPublic(conduct.address)) return verdict
  const place = places.of(conduct.addressText, software.verification)
  if (place === null) return verdict
  const { reverseDns } = software.verification
  const own = place.hosts.find((host) => reverseDns.some((end) => endsWith(host, end)))
  const evidence: Evidence[] = []
  if (own !== undefined)
    evidence.push(proofSaying('host-proven', `its address is ${own}, which is ${software.name}'s`))
  else if (reverseDns.length > 0 && place.isHostKnown) {
    const isPublished = addresses.of(software)?.ranges.has(conduct.address) === true
    const foreign = hostForeign(verdict, software, place.hosts)
    // A vendor's own list goes before names that it may have forgotten to give. What is told already is told once.
    if (!isPublished && !verdict.conflicts.includes(foreign.kind)) evidence.push(foreign)
  }
  evidence.push(...ofNetwork(software, place.network))
  if (evidence.length === 0) return verdict
  const isProving = verdict.proof === null && own !== undefined
  const placed: Verdict = isProving
    ? {
        ...verdict,
        confidence: PROVEN_CONFIDENCE,
        proof: { method: 'reverse-dns', agent: software.id, key: null },
      }
    : verdict
  // Its vendor gives names to no address of others: its list, or our copy of it, is behind.
  const isAnother = verdict.conflicts.includes('signed-as-another')
  const left =
    own === undefined
      ? verdict.evidence
      : verdict.evidence.filter(
          ({ kind }) => kind !== 'signed-from-foreign-address' && (isAnother || kind !== 'address-foreign'),
        )
  const at = verdict.proof?.method === 'web-bot-auth' ? 1 : 0
  return told(placed, [...left.slice(0, at), ...evidence], left.slice(at))
}

function hostForeign(
  { proof }: Verdict,
  { name, verification }: Software,
  hosts: readonly string[],
): Evidence {
  const ends = verification.reverseDns.join(', ')
  const isSigned = proof?.method === 'web-bot-auth'
  return proofSaying(
    isSigned ? 'signed-from-foreign-address' : 'host-foreign',
    `its address is ${hosts[0] ?? 'no host'}: those of ${name} end with ${ends}`,
  )
}

/** Who keeps the file of networks is neither the agent nor its vendor: it proves nothing. */
function ofNetwork({ name, verification }: Software, network: PlaceFinding['network']): readonly Evidence[] {
  const { asns } = verification
  if (asns.length === 0 || network === null) return []
  const where = `its address is in AS${network.asn}${network.name === null ? '' : ` (${network.name})`}`
  if (asns.includes(network.asn))
    return [proofSaying('network-of-agent', `${where}, as those of ${name} are`)]
  const own = asns.map((asn) => `AS${asn}`).join(', ')
  return [proofSaying('network-foreign', `${where}: those of ${name} are in ${own}`)]
}

function unproven({ kind, why, agentId }: SignatureFinding & { kind: 'failed' | 'unchecked' }): Evidence {
  const who = agentId === null ? 'it is signed' : `it says to be signed by ${agentId}`
  return kind === 'failed'
    ? proofSaying('signature-failed', `${who}, and that does not hold: ${why}`)
    : proofSaying('signature-unchecked', `${who}, and nobody could check it: ${why}`)
}

/** Whole labels: `evilgooglebot.com` ends with nothing of Google's. */
function endsWith(host: string, end: string): boolean {
  const labels = end.startsWith('.') ? end : `.${end}`
  return host.endsWith(labels) || (end !== labels && host === end)
}

function told(verdict: Verdict, evidence: readonly Evidence[], before: readonly Evidence[]): Verdict {
  const all = [...evidence, ...before]
  return Object.freeze({ ...verdict, conflicts: conflictsIn(all), evidence: all })
}

const SCRATCH = new EvidenceSet()
