import type { Print } from '../../fingerprint/print.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { type AddressList, markAddress } from '../known/address-lists.ts'
import { DAY_MS } from '../known/calendar.ts'
import { Conduct } from './conduct.ts'
import type { DescribedRequest } from './described-request.ts'
import {
  DISAGREEMENTS,
  EVIDENCE_KINDS,
  type EvidenceKind,
  EvidenceSet,
  SOFT_DISAGREEMENTS,
  SPOOFED,
} from '../known/evidence.ts'
import { detailOf, generalDetail } from './evidence-detail.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { markRequest, type Shown } from './marks.ts'
import { NOBODY, type Owners, type Share } from '../known/owners.ts'
import { NO_PROOFS, type Proof, type Proofs } from './proof.ts'
import { conflictsIn, proofsRecalled } from './proof-evidence.ts'
import { withProofs } from './proven.ts'
import { Reading } from './reading.ts'
import type { Software } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import { Tally } from './tally.ts'
import type { Claim } from '../known/user-agent.ts'
import type { Evidence, Verdict } from './verdict.ts'
import { addUp, CLASSES, calibrated, type Class, toProbabilities } from '../known/weights.ts'

/**
 * Classifies a client by everything it has shown up to this request. `conduct`: the connection's record,
 * which this call updates; `null` if the connection is unknown. `forged`: how many of the proxy's own headers
 * the client sent. `nowMs`: for evidence that depends on time. `proofs`: results of identity checks.
 */
export function classify(
  knowledge: Knowledge,
  print: Print,
  head: RequestHead,
  conduct: Conduct | null,
  forged: number,
  nowMs = 0,
  proofs: Proofs = NO_PROOFS,
): Verdict {
  const stack = knowledge.stacks.stackOf(print.connection)
  const shown = observe(knowledge, print, stack, head, conduct, forged, nowMs)
  const verdict = remembered(knowledge, shown, conduct)
  if (proofs === NO_PROOFS || !haveWord(knowledge, verdict, proofs)) return verdict
  const seen = { claimed: agentOf(shown.claim), stack, conduct, nowMs }
  return withProofs(knowledge, verdict, proofs, seen)
}

/**
 * Proofs say nothing about a client that has no signature and is not an agent known by host names or
 * networks.
 */
function haveWord({ identities }: Knowledge, { agent }: Verdict, { signature, places }: Proofs): boolean {
  if (signature !== null) return true
  return places !== null && agent !== null && identities.byPlace(agent.id) !== null
}

function remembered(knowledge: Knowledge, shown: Shown, conduct: Conduct | null): Verdict {
  if (conduct === null) return verdictFor(knowledge, shown, null)
  const { agent, last } = conduct
  const same = last.recall(knowledge, MARKS, shown, agent, READING)
  if (same !== null) return same
  const verdict = verdictFor(knowledge, shown, agent)
  last.keep(knowledge, MARKS, shown, agent, READING, verdict)
  return verdict
}

/**
 * Classifies a described request as the first one of a connection. Facts that the description omits count
 * neither for nor against any class.
 */
export function classifyDescribed(
  knowledge: Knowledge,
  { print, head, address, forged, knownBy, untold }: DescribedRequest,
  nowMs: number,
): DescribedVerdict {
  TALLY.clear()
  const conduct = new Conduct(null, '', address, TALLY)
  const stack = knowledge.stacks.lookUp(print.connection)
  const shown = observe(knowledge, print, stack, head, conduct, forged.length, nowMs, untold)
  const verdict = verdictFor(knowledge, shown, conduct.agent)
  // A browser's TLS without a browser's name is suspicious, but only if the description includes the names.
  if (knownBy === 'fingerprints' && !MARKS.hasAny(SAYING_WITHOUT_NAMES))
    return { verdict: { ...verdict, kind: 'unknown', agent: null, confidence: 0 }, probabilities: ANYBODY }
  return { verdict, probabilities: probabilitiesOf(knowledge, verdict.kind, knownBy) }
}

export interface DescribedVerdict {
  readonly verdict: Verdict
  /** The probability of each class, whatever the verdict is. They add up to 1, except for rounding. */
  readonly probabilities: Readonly<Record<Class, number>>
}

/**
 * The probabilities for MARKS. The likeliest class gets its calibrated confidence; the other classes share
 * the rest in the same proportions as before.
 */
function probabilitiesOf(
  { weights }: Knowledge,
  kind: Verdict['kind'],
  knownBy: DescribedRequest['knownBy'],
): DescribedVerdict['probabilities'] {
  addUp(weights, MARKS, SUMS)
  toProbabilities(SUMS, weights.temperature)
  let held = kind === 'human' ? HUMAN : 0
  if (kind !== 'human') for (let c = 1; c < SUMS.length; c++) if (SUMS[c]! > SUMS[held]!) held = c
  const right = calibrated(weights, SUMS[held]!)
  const left = (1 - right) / (1 - SUMS[held]!)
  for (let c = 0; c < SUMS.length; c++) SUMS[c] = c === held ? right : SUMS[c]! * left
  const moved = held === AUTOMATION ? SUMS[AUTOMATION]! * HIDDEN_AGENTS[knownBy] : 0
  return {
    agent: rounded(SUMS[AGENT]! + moved),
    automation: rounded(SUMS[AUTOMATION]! - moved),
    human: rounded(SUMS[HUMAN]!),
  }
}

function rounded(probability: number): number {
  return Math.round(probability * 10_000) / 10_000
}

/**
 * Reconstructs the evidence of a past request from its stored evidence kinds and verdict kind. It uses the
 * current weights and general texts.
 */
export function recall(
  knowledge: Knowledge,
  kinds: readonly string[],
  kind: Verdict['kind'],
): Pick<Verdict, 'evidence'> & Pick<DescribedVerdict, 'probabilities'> {
  MARKS.clear()
  for (const each of EVIDENCE_KINDS) if (kinds.includes(each)) MARKS.add(each)
  const probabilities = probabilitiesOf(knowledge, kind, 'headers')
  addUp(knowledge.weights, MARKS, SUMS)
  const { held, other } = ranked(kind)
  const evidence = evidenceFor(knowledge, generalDetail, held, other)
  if (kinds.includes(SPOOFED)) evidence.unshift(spoofed(null, evidence))
  evidence.unshift(...proofsRecalled(kinds))
  return { evidence, probabilities }
}

/** Returns only the kinds of evidence, for fitting weights. */
export function evidenceOf(
  knowledge: Knowledge,
  print: Print,
  head: RequestHead,
  conduct: Conduct | null,
  nowMs = 0,
): readonly EvidenceKind[] {
  observe(knowledge, print, knowledge.stacks.stackOf(print.connection), head, conduct, 0, nowMs)
  return MARKS.kinds()
}

/**
 * Reads the request into READING and MARKS. `untold`: evidence that does not count, because the description
 * of the request omits its facts.
 */
function observe(
  knowledge: Knowledge,
  print: Print,
  stack: Stack,
  head: RequestHead,
  conduct: Conduct | null,
  forged: number,
  nowMs: number,
  untold: EvidenceSet | null = null,
): Shown {
  READING.read(head, knowledge.headers)
  MARKS.clear()
  const claim = knowledge.userAgents.claim(READING.userAgent)
  if (claim.kind === 'browser' && READING.isOfScript) READING.forgetScripted()
  const { owners, orders } = knowledge
  // A browser's header order depends on the page, the user and the extensions, and imitators copy browsers.
  const isBrowser = claim.kind === 'browser'
  const agent = agentOf(claim)
  if (conduct !== null && agent !== null && (conduct.agent === null || conduct.agent.isFamily))
    conduct.agent = agent
  const addresses = conduct === null ? null : addressesFor(knowledge, conduct, agent, nowMs)
  const shown: Shown = {
    claim,
    stack,
    headers: isBrowser ? NOBODY : owners.ofHeaders(print),
    certificate: isBrowser ? NOBODY : owners.ofCertificate(print),
    addresses,
    addressesAgeDays: addresses === null ? 0 : Math.floor(nowMs / DAY_MS) - addresses.day,
  }
  markRequest(MARKS, shown, print.connection, head, READING, orders)
  // Before anything that depends on whether the evidence contradicts a browser's claim.
  if (untold !== null) MARKS.removeAll(untold)
  if (forged > 0) MARKS.add('forged-headers')
  if (conduct !== null) {
    conduct.note(head, READING, claim, print.connection, shown.stack, nowMs)
    conduct.marks.addCommon(MARKS, LASTING)
    MARKS.addAll(conduct.marks)
  }
  markDecided(shown)
  if (conduct !== null) conduct.markTraffic(MARKS, claim.kind === 'browser' && !isContradicted())
  return shown
}

/**
 * A decision about a fingerprint does not count against a person. A client that claims to be a browser, with
 * nothing else that contradicts the claim, may be a browser that was unknown when the decision was made.
 */
function markDecided({ claim, stack, headers, certificate }: Shown): void {
  if (stack.decided.length + headers.decided.length + certificate.decided.length === 0) return
  if (claim.kind !== 'browser' || MARKS.has('stack-unlike') || isContradicted())
    MARKS.add('fingerprint-of-agent')
}

/**
 * The agent that the request names. The User-Agent comes first, because it is closest to the program that
 * runs.
 */
function agentOf(claim: Claim): Software | null {
  const { software } = claim
  if (software?.kind === 'agent' && !software.isFamily) return software
  return READING.agent ?? (software?.kind === 'agent' ? software : null)
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
): AddressList | null {
  const claimed = claimedAgent(agent, conduct.agent)
  const list = claimed === null ? null : addresses.of(claimed)
  return list !== null && markAddress(MARKS, list, conduct.address, nowMs) ? list : null
}

/** `before`: the agent that was named first on this connection. */
function claimedAgent(agent: Software | null, before: Software | null): Software | null {
  return agent !== null && !(agent.isFamily && before !== null) ? agent : before
}

/**
 * Returns the same Verdict object for the same evidence about the same program, as long as it is remembered.
 */
function verdictFor(knowledge: Knowledge, shown: Shown, before: Software | null): Verdict {
  const { claim, stack, headers, certificate, addresses } = shown
  const memory = memoryOf(knowledge)
  const owners = headers === certificate ? '' : `,${headers.number},${certificate.number}`
  const age = addresses === null ? '' : `@${shown.addressesAgeDays}`
  const key = `${MARKS.low} ${MARKS.high} ${claim.number} ${stack.number}${owners}${age} ${before?.id ?? ''}${headerKey()}`
  const found = memory.get(key)
  if (found !== undefined) return found
  if (memory.size >= VERDICTS_MAX) memory.clear()
  const verdict = judge(knowledge, shown, before)
  if (key.length <= KEY_LENGTH_MAX) memory.set(key, verdict)
  return verdict
}

/**
 * The headers that identify an agent or a tool. The text of the evidence depends on them even if the verdict
 * does not.
 */
function headerKey(): string {
  const { agent, agentHeader, tool } = READING
  return agent === null && tool === null ? '' : ` ${agent?.id ?? ''} ${agentHeader ?? ''} ${tool?.id ?? ''}`
}

function nameOf(kind: Verdict['kind'], shown: Shown, before: Software | null): Software | null {
  const { claim, stack, headers, certificate } = shown
  const agent = agentOf(claim)
  if (agent !== null && !agent.isFamily) return agent
  // An agent that the client names comes first, then an agent that was decided.
  const decided = MARKS.has('fingerprint-of-agent') ? decidedFor(shown) : null
  if (decided !== null && (before === null || before.isFamily)) return decided
  // A name alone does not make a client an agent: any client can send it.
  const called = claim.called?.kind === 'agent' && kind !== 'agent' ? null : claim.called
  if (called?.kind === 'agent' && (before === null || before.isFamily)) return called
  const claimed = claimedAgent(agent, before)
  if (claimed !== null) return claimed
  const shows = mostlyOne(certificate.shares) ?? mostlyOne(haveBoth(headers, stack))
  // The User-Agent names the library that the agent is built with.
  const isAgent = MARKS.has('headers-of-agents') || MARKS.has('certificate-of-agents')
  if (isAgent && shows?.kind === 'agent') return shows
  if (claim.software !== null) return claim.software
  if (READING.tool !== null) return READING.tool
  if (called !== null) return called
  return shows ?? mostlyOne(stack.shares)
}

/** The least shared fingerprint comes first. If it was decided for several agents, it names none of them. */
function decidedFor({ certificate, headers, stack }: Shown): Software | null {
  for (const { decided } of [certificate, headers, stack])
    if (decided.length > 0) return decided.length === 1 ? decided[0]! : null
  return null
}

/**
 * The owners that share both this header order and this hello. Empty if the hello is known only of others.
 */
function haveBoth(headers: Owners, stack: Stack): readonly Share[] {
  if (stack.shares.length === 0) return headers.shares
  const both = headers.shares.flatMap(({ software, share }) => {
    const other = stack.shares.find((each) => each.software === software)
    return other === undefined ? [] : [{ software, share: share * other.share }]
  })
  const total = both.reduce((sum, { share }) => sum + share, 0)
  return both.map(({ software, share }) => ({ software, share: share / total }))
}

/** The one program that has almost the whole share. */
function mostlyOne(shares: readonly Share[]): Software | null {
  return shares.find(({ share }) => share >= NAMED_SHARE_MIN)?.software ?? null
}

function judge(knowledge: Knowledge, shown: Shown, before: Software | null): Verdict {
  const { weights } = knowledge
  addUp(weights, MARKS, SUMS)
  toProbabilities(SUMS, weights.temperature)
  const kind = kindFor(CLASSES[ranked(null).held]!, SUMS[HUMAN]!)
  const { held, other } = ranked(kind)
  const evidence = evidenceFor(knowledge, (each) => detailOf(each, shown, READING), held, other)
  if (isSpoofed(kind)) evidence.unshift(spoofed(shown.claim, evidence))
  const named = nameOf(kind, shown, before)
  const software = kind === 'agent' && named?.kind === 'browser' ? null : named
  const isInRanges = kind === 'agent' && isProven(shown, software)
  return Object.freeze({
    kind,
    agent: kind === 'agent' && software?.kind === 'agent' ? agentFor(software) : null,
    software: software === null ? null : { id: software.id, name: software.name, kind: software.kind },
    confidence: confidenceOf(knowledge, kind, SUMS[held]!),
    proof: isInRanges ? provenByRanges(software!) : null,
    conflicts: conflictsIn(evidence),
    evidence,
  })
}

/** Reads SUMS. `held`: the class of the verdict. `other`: the likeliest other class. */
function ranked(kind: Verdict['kind'] | null): { readonly held: number; readonly other: number } {
  const order = CLASSES.map((_name, c) => c).sort((a, b) => SUMS[b]! - SUMS[a]!)
  const held = kind === 'human' ? HUMAN : order[0]!
  return { held, other: order.find((c) => c !== held)! }
}

/** The published address belongs to the named agent, not to another agent that was also claimed. */
function isProven({ addresses }: Shown, named: Software | null): boolean {
  return MARKS.has('address-published') && addresses?.software.id === named?.id
}

function provenByRanges({ id }: Software): Proof {
  return { method: 'ip-range', agent: id, key: null }
}

/** An `unknown` verdict has confidence 0. */
function confidenceOf({ weights }: Knowledge, kind: Verdict['kind'], probability: number): number {
  return kind === 'unknown' ? 0 : rounded(calibrated(weights, probability))
}

/**
 * A client that claims to be a browser gets another class only if evidence contradicts the claim and little
 * doubt remains. It is classified as human if its TLS matches the claim and nothing contradicts it.
 * Automation that drives the same browser is classified as human too.
 */
function kindFor(best: Class, human: number): Verdict['kind'] {
  if (best === 'human') return MARKS.has('stack-unlike') ? 'unknown' : 'human'
  const saysBrowser = MARKS.has('names-browser') || MARKS.has('names-plain-browser')
  if (!saysBrowser) return best
  if (isContradicted()) return human <= HUMAN_DOUBT_MAX ? best : 'unknown'
  return MARKS.has('stack-agrees') ? 'human' : 'unknown'
}

function isContradicted(): boolean {
  if (MARKS.hasAny(CONTRADICTIONS)) return true
  let soft = 0
  for (const kind of SOFT_DISAGREEMENTS) if (MARKS.has(kind)) soft++
  return soft >= 2
}

function isSpoofed(kind: Verdict['kind']): boolean {
  if (kind === 'human' || kind === 'unknown' || !MARKS.has('names-browser')) return false
  for (const each of DISAGREEMENTS) if (MARKS.has(each)) return true
  return false
}

/** One name for the disagreements that follow it. */
function spoofed(claim: Claim | null, evidence: readonly Evidence[]): Evidence {
  const name = claim?.software?.name ?? 'a browser'
  const odd = evidence.filter(({ kind }) => DISAGREEMENTS.has(kind as EvidenceKind)).map(({ kind }) => kind)
  return { kind: SPOOFED, detail: `claims to be ${name}; contradicted by ${odd.join(', ')}`, weight: 0 }
}

function evidenceFor(
  knowledge: Knowledge,
  detail: (kind: EvidenceKind) => string,
  best: number,
  second: number,
): Evidence[] {
  const { kinds, temperature } = knowledge.weights
  const evidence: Evidence[] = []
  for (const [bit, kind] of EVIDENCE_KINDS.entries()) {
    if (!MARKS.hasBit(bit)) continue
    const weight = (kinds[bit]![best]! - kinds[bit]![second]!) / temperature
    evidence.push({
      kind,
      detail: detail(kind),
      weight: Math.round(weight * 100) / 100,
    })
  }
  return evidence.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
}

function agentFor({ id, name, category }: Software): Verdict['agent'] {
  return { id, name, category: category! }
}

function memoryOf(knowledge: Knowledge): Map<string, Verdict> {
  let memory = MEMORIES.get(knowledge)
  if (memory === undefined) {
    memory = new Map()
    MEMORIES.set(knowledge, memory)
  }
  return memory
}

/** One instance each: nothing awaits between reading a request and its Verdict. */
const READING = new Reading()
const MARKS = new EvidenceSet()
/** For the one request that is described. */
const TALLY = new Tally()
const SUMS = new Float64Array(CLASSES.length)
const MEMORIES = new WeakMap<Knowledge, Map<string, Verdict>>()
/** At most about ten megabytes, whatever clients send. */
const VERDICTS_MAX = 4096
const KEY_LENGTH_MAX = 256
const AGENT = CLASSES.indexOf('agent')
const AUTOMATION = CLASSES.indexOf('automation')
const HUMAN = CLASSES.indexOf('human')
const NAMED_SHARE_MIN = 0.9
const ANYBODY: DescribedVerdict['probabilities'] = Object.freeze({
  ...{ agent: 0.3333, automation: 0.3333, human: 0.3333 },
})
/**
 * The share of agents among recorded clients with a library's name or TLS, if nothing else is known. Their
 * headers would show that they are agents.
 */
const HIDDEN_AGENTS: Readonly<Record<DescribedRequest['knownBy'], number>> = {
  headers: 0,
  'user-agent': 0.3,
  fingerprints: 0.5,
}
const SAYING_WITHOUT_NAMES = EvidenceSet.of(
  EVIDENCE_KINDS.filter((kind) => !['stack-of-browsers', 'stack-shared', 'stack-unknown'].includes(kind)),
)
const HUMAN_DOUBT_MAX = 0.25
const HARD_DISAGREEMENTS = [...DISAGREEMENTS].filter((kind) => !SOFT_DISAGREEMENTS.has(kind))
const CONTRADICTIONS = EvidenceSet.of([
  ...(['headless', 'agent-header', 'tool-header', 'mcp-request', 'names-agent', 'declares-bot'] as const),
  'fingerprint-of-agent',
  ...HARD_DISAGREEMENTS,
])
/** Evidence that applies to all later requests of the connection. */
const LASTING = EvidenceSet.of([
  ...(['names-agent', 'declares-bot', 'headless', 'agent-header', 'mcp-request', 'agent-card'] as const),
  ...(['llm-request', 'forged-headers'] as const),
  ...HARD_DISAGREEMENTS,
])
