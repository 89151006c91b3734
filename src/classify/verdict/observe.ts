import type { Print } from '../../fingerprint/print.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import type { CampaignMembers } from '../campaign/members.ts'
import { REQUEST_KIND } from '../campaign/seen-request.ts'
import { type AddressList, markAddress } from '../known/address-lists.ts'
import { DAY_MS } from '../known/calendar.ts'
import { DISAGREEMENTS, EvidenceSet, REMOVABLE, SOFT_DISAGREEMENTS } from '../known/evidence.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { NO_OWNERS } from '../known/owners.ts'
import type { Software } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import type { Claim } from '../known/user-agent.ts'
import type { Conduct } from './conduct.ts'
import { markRequest } from './marks.ts'
import type { Reading } from './reading.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'

/** A request, and what its connection has shown. */
export interface ObservedRequest {
  readonly print: Print
  readonly head: RequestHead
  /** The connection's record, which classification updates; `null` if the connection is unknown. */
  readonly conduct: Conduct | null
  /** How many of the proxy's own headers the client sent. */
  readonly forged?: number
  /** The running campaigns; `null`: none. */
  readonly campaigns?: CampaignMembers | null
  /** For evidence that depends on time. */
  readonly nowMs?: number
}

/**
 * Reads the request into the reading and the marks of `scratch`. `untold`: evidence that does not count,
 * because the description of the request omits its facts.
 */
export function observe(
  knowledge: Knowledge,
  { print, head, conduct, forged = 0, nowMs = 0, campaigns = null }: ObservedRequest,
  stack: Stack,
  scratch: Scratch,
  untold: EvidenceSet | null = null,
): Shown {
  const { marks, reading } = scratch
  reading.read(head, knowledge.headers)
  marks.clear()
  scratch.forgetSigns()
  const claim = knowledge.userAgents.claim(reading.userAgent)
  if (claim.kind === 'browser' && reading.isOfScript) reading.forgetScripted()
  const { owners, orders } = knowledge
  // A browser's header order depends on the page, the user and the extensions, and imitators copy browsers.
  const isBrowser = claim.kind === 'browser'
  const agent = agentOf(claim, reading)
  if (conduct !== null && agent !== null && (conduct.agent === null || conduct.agent.isFamily))
    conduct.agent = agent
  const addresses = conduct === null ? null : addressesFor(knowledge, conduct, agent, nowMs, marks)
  const shown: Shown = {
    claim,
    stack,
    headers: isBrowser ? NO_OWNERS : owners.ofHeaders(print),
    certificate: isBrowser ? NO_OWNERS : owners.ofCertificate(print),
    addresses,
    addressesAgeDays: addresses === null ? 0 : Math.floor(nowMs / DAY_MS) - addresses.day,
  }
  markRequest(scratch, shown, print.connection, head, orders)
  // Before anything that depends on whether the evidence contradicts a browser's claim.
  if (untold !== null) marks.removeAll(untold)
  if (forged > 0) marks.add('forged-headers')
  if (conduct !== null) {
    const asked = conduct.note(head, reading, shown, print.connection, nowMs)
    if (isBrowser) {
      scratch.signs.read(head, reading, asked, conduct.programOf(claim, print.connection))
      if (campaigns !== null) markCampaign(scratch, campaigns, conduct)
    }
    conduct.marks.addCommon(marks, LASTING)
    if (isOtherApi(conduct.marks, marks, reading)) conduct.marks.remove('oauth-discovery')
    marks.addAll(conduct.marks)
  }
  markDecided(shown, marks)
  if (conduct !== null) conduct.markTraffic(marks, claim.kind === 'browser' && !isContradicted(marks))
  return shown
}

/** Only pages that nothing led to: a member may share its network with a person. */
function markCampaign(scratch: Scratch, campaigns: CampaignMembers, conduct: Conduct): void {
  const { kind, program } = scratch.signs
  if (kind !== REQUEST_KIND.page) return
  scratch.campaign = campaigns.idOf(program, conduct, scratch.visitorOf)
  if (scratch.campaign !== null) scratch.marks.add('campaign')
}

/**
 * Whether the token that the client looked for on this connection is for an API that is not MCP: other programs
 * look for authorization servers too. Forms go to the authorization server itself.
 */
function isOtherApi(shown: EvidenceSet, marks: EvidenceSet, { contentType }: Reading): boolean {
  if (!shown.has('oauth-discovery') || shown.has('mcp-request') || !marks.has('api-token')) return false
  return !marks.has('agent-header') && contentType?.startsWith('application/x-www-form-urlencoded') !== true
}

/**
 * A decision about a fingerprint does not count against a person. A client that claims to be a browser, with
 * nothing else that contradicts the claim, may be a browser that was unknown when the decision was made.
 */
function markDecided({ claim, stack, headers, certificate }: Shown, marks: EvidenceSet): void {
  if (stack.decided.length + headers.decided.length + certificate.decided.length === 0) return
  if (claim.kind !== 'browser' || marks.has('stack-unlike') || isContradicted(marks))
    marks.add('fingerprint-of-agent')
}

/**
 * The agent that the request names. The User-Agent comes first, because it is closest to the program that
 * runs.
 */
export function agentOf(claim: Claim, reading: Reading): Software | null {
  const { software } = claim
  if (software?.kind === 'agent' && !software.isFamily) return software
  return reading.agent ?? (software?.kind === 'agent' ? software : null)
}

/**
 * The published addresses of the agent that the client claims to be, or claimed earlier on this connection.
 * The verdict names the same agent.
 */
function addressesFor(
  { addresses }: Knowledge,
  conduct: Conduct,
  agent: Software | null,
  nowMs: number,
  marks: EvidenceSet,
): AddressList | null {
  const claimed = claimedAgent(agent, conduct.agent)
  const list = claimed === null ? null : addresses.of(claimed)
  return list !== null && markAddress(marks, list, conduct.address, nowMs) ? list : null
}

/** `before`: the agent that was named first on this connection. */
export function claimedAgent(agent: Software | null, before: Software | null): Software | null {
  return agent !== null && !(agent.isFamily && before !== null) ? agent : before
}

/**
 * Whether evidence contradicts the claim to be a browser: one contradiction that no extension or proxy can
 * cause, or two others. Companies turn post-quantum keys off and remove headers, so these two are one.
 */
export function isContradicted(marks: EvidenceSet): boolean {
  if (marks.hasAny(CONTRADICTIONS)) return true
  if (!marks.hasAny(WEAK)) return false
  let [soft, removable] = [0, 0]
  for (const kind of SOFT) if (marks.has(kind)) soft++
  for (const kind of REMOVABLE) if (marks.has(kind)) removable++
  return soft + removable >= 2 || (soft === 1 && marks.has('post-quantum-missing'))
}

const LASTING_DISAGREEMENTS = [...DISAGREEMENTS].filter((kind) => !SOFT_DISAGREEMENTS.has(kind))
const SOFT = [...SOFT_DISAGREEMENTS].filter((kind) => kind !== 'post-quantum-missing')
const WEAK = EvidenceSet.of([...SOFT_DISAGREEMENTS, ...REMOVABLE])
const HARD_DISAGREEMENTS = LASTING_DISAGREEMENTS.filter((kind) => !REMOVABLE.has(kind))
const CONTRADICTIONS = EvidenceSet.of([
  'headless',
  'agent-header',
  'tool-header',
  'mcp-request',
  'names-agent',
  'declares-bot',
  'fingerprint-of-agent',
  ...HARD_DISAGREEMENTS,
])
/** Evidence that applies to all later requests of the connection. */
const LASTING = EvidenceSet.of([
  'names-agent',
  'declares-bot',
  'headless',
  'agent-header',
  'mcp-request',
  'agent-card',
  'oauth-discovery',
  'llm-request',
  'forged-headers',
  ...LASTING_DISAGREEMENTS,
])
