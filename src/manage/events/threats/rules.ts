import type { RobotsRules, ThreatRule } from './rule.ts'
import { SPOOFED } from '../../../classify/known/evidence.ts'
import { signatureText } from '../../intake/signature-account.ts'
import type { Sighting } from '../../../plane/sighting.ts'

/** Claims that other properties of the request contradict, as the classifier recorded in the evidence. */
const CLAIM_RULES: readonly ThreatRule[] = [
  denied(
    'spoofed_browser',
    [SPOOFED],
    'it claims to be a browser, but its fingerprints or headers contradict that',
  ),
  denied(
    'foreign_address',
    ['address-foreign', 'host-foreign'],
    'it claims to be an agent, but its address is not one that the agent’s vendor publishes',
  ),
  {
    reason: 'proof_failed',
    holds: ({ evidence }) => evidence.includes('signature-failed') || evidence.includes('signed-as-another'),
    detail: (sighting) =>
      sighting.evidence.includes('signed-as-another')
        ? `${sighting.signer} signed it, but it claims to be another agent`
        : (signatureText(sighting) ?? 'its signature is invalid'),
  },
  denied(
    'proof_contradicted',
    ['signed-with-foreign-fingerprint', 'signed-from-foreign-address'],
    'it proved which agent it is, but its TLS or its address belongs to another client',
  ),
]

function denied(reason: ThreatRule['reason'], kinds: readonly string[], detail: string): ThreatRule {
  return {
    reason,
    holds: ({ evidence }) => kinds.some((kind) => evidence.includes(kind)),
    detail: () => detail,
  }
}

/** Only the gateway sets these headers. A client that sends them tries to pass for another one. */
const FORGED_HEADERS: ThreatRule = {
  reason: 'forged_headers',
  holds: ({ forged }) => forged.length > 0,
  detail: ({ forged }) => {
    const said = forged.slice(0, SAID_MAX).map((name) => name.slice(0, NAME_MAX))
    const more = forged.length - said.length
    return `it sent headers that only the gateway sets: ${said.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  },
}

/** Requests that the gateway refused or limited. A rule in dry run affects no request. */
const REFUSAL_RULES: readonly ThreatRule[] = [
  {
    reason: 'blocked',
    // A request in the tarpit is delayed and then refused.
    holds: ({ done }) => done === 'block' || done === 'tarpit',
    detail: ({ done, rule, dryRun }) => `it was refused (${done})${dryRun ? '' : ` by ${rule}`}`,
  },
  {
    reason: 'rate_limited',
    holds: ({ limited }) => limited,
    detail: ({ rule, dryRun }) => `it was over the limit of ${dryRun ? 'a rule' : rule}`,
  },
]

/** A crawler that names or has proven its identity requests a path that robots.txt disallows. */
const ROBOTS_VIOLATION: ThreatRule = {
  reason: 'robots_violation',
  holds: (sighting, robots) => isDeclaredCrawler(sighting) && lineAgainst(sighting, robots) !== null,
  detail: (sighting, robots) => `robots.txt asks it not to: ${lineAgainst(sighting, robots)}`,
}

/** The rules for a single request. Threats that only several requests show are in rate-anomaly.ts. */
export const RULES: readonly ThreatRule[] = [
  ...CLAIM_RULES,
  FORGED_HEADERS,
  ...REFUSAL_RULES,
  ROBOTS_VIOLATION,
]

function isDeclaredCrawler({ category, agent, verified, evidence }: Sighting): boolean {
  if (category !== 'crawler' || agent === null) return false
  return verified !== null || evidence.includes('names-agent')
}

function lineAgainst({ agent, host, path }: Sighting, robots: RobotsRules): string | null {
  return robots.disallowing(agent!, host, path)
}

const SAID_MAX = 5
const NAME_MAX = 64
