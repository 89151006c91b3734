import type { Conduct } from './conduct.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { type PlaceFinding, type Places, PROVEN_CONFIDENCE } from './proof.ts'
import { proofSaying, toldWith } from './proof-evidence.ts'
import { isPublic } from '../known/published-ranges.ts'
import type { Scratch } from './scratch.ts'
import type { Software } from '../known/software.ts'
import type { Evidence, Verdict } from './verdict.ts'

/**
 * Adds what is known of the client's address to a verdict. This applies only to clients that claim, or have
 * proven, to be an agent.
 */
export function withPlace(
  { identities, addresses }: Knowledge,
  verdict: Verdict,
  places: Places | null,
  conduct: Conduct | null,
  scratch: Scratch,
): Verdict {
  const software = verdict.agent === null ? null : identities.byPlace(verdict.agent.id)
  if (software === null || places === null || conduct === null || !isPublic(conduct.address)) return verdict
  const place = places.of(conduct.addressText, software.verification)
  if (place === null) return verdict
  // A crawler requests many pages, so the last result is cached.
  const last = scratch.placed.get(place)
  if (last?.verdict === verdict && last.address === conduct.addressText) return last.placed
  const placed = placedAt(
    verdict,
    software,
    place,
    addresses.of(software)?.ranges.has(conduct.address) === true,
  )
  scratch.placed.set(place, { verdict, address: conduct.addressText, placed })
  return placed
}

function placedAt(verdict: Verdict, software: Software, place: PlaceFinding, isPublished: boolean): Verdict {
  const { reverseDns } = software.verification
  const own = place.hosts.find((host) => reverseDns.some((end) => endsWith(host, end)))
  const evidence: Evidence[] = []
  if (own !== undefined)
    evidence.push(proofSaying('host-proven', `its address has the host name ${own} of ${software.name}`))
  else if (reverseDns.length > 0 && place.isHostKnown) {
    const foreign = hostForeign(verdict, software, place.hosts)
    // The vendor's own address list outweighs missing host names. Evidence that is already in the verdict is
    // not added twice.
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
  // A vendor gives host names only to its own addresses, so its list, or our copy of it, is outdated.
  const isAnother = verdict.conflicts.includes('signed-as-another')
  const left =
    own === undefined
      ? verdict.evidence
      : verdict.evidence.filter(
          ({ kind }) => kind !== 'signed-from-foreign-address' && (isAnother || kind !== 'address-foreign'),
        )
  const at = verdict.proof?.method === 'web-bot-auth' ? 1 : 0
  return toldWith(placed, [...left.slice(0, at), ...evidence], left.slice(at))
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
    `its address has ${hosts[0] === undefined ? 'no host name' : `the host name ${hosts[0]}`}; host names of ${name} end with ${ends}`,
  )
}

/** The file of networks comes neither from the agent nor from its vendor, so it proves nothing. */
function ofNetwork({ name, verification }: Software, network: PlaceFinding['network']): readonly Evidence[] {
  const { asns } = verification
  if (asns.length === 0 || network === null) return []
  const where = `its address is in AS${network.asn}${network.name === null ? '' : ` (${network.name})`}`
  if (asns.includes(network.asn)) return [proofSaying('network-of-agent', `${where}, a network of ${name}`)]
  const own = asns.map((asn) => `AS${asn}`).join(', ')
  return [proofSaying('network-foreign', `${where}; the networks of ${name} are ${own}`)]
}

/** Compares whole labels: `evilgooglebot.com` does not end with `googlebot.com`. */
function endsWith(host: string, end: string): boolean {
  const labels = end.startsWith('.') ? end : `.${end}`
  return host.endsWith(labels) || (end !== labels && host === end)
}
