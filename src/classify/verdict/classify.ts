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
 * What a client is held for, from all it has shown up to this request. `conduct` is the connection's, and takes note of the
 * request; `null` for a request of which no connection is known. `forged`: how many of our own headers it sent.
 * `nowMs`: for who is known over time. `proofs`: what was found out about it elsewhere.
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

/** Of who is not signed, and no agent that anybody knows by its addresses' names or networks, they say nothing. */
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
 * The same of a request that somebody describes, as the first one of a connection: what was not told of it speaks neither
 * for nor against anybody.
 */
export function classifyDescribed(
  knowledge: Knowledge,
  { print, head, address, forged, knownBy, untold }: DescribedRequest,
  nowMs: number,
): DescribedVerdict {
  TALLY.clear()
  const conduct = new Conduct(null, '', address, TALLY)
  const stack = knowledge.stacks.lookUp(print.connection)
  const shown = observe(knowledge, print, stack, head, conduct, forged.length, nowMs)
  MARKS.removeAll(untold)
  MARKS.removeAll(DECIDED)
  markDecided(shown)
  const verdict = verdictFor(knowledge, shown, conduct.agent)
  // Who shows a browser's TLS and names no browser is none; where nobody tells what he names, it says nothing.
  if (knownBy === 'fingerprints' && !MARKS.hasAny(SAYING_WITHOUT_NAMES))
    return { verdict: { ...verdict, kind: 'unknown', agent: null, confidence: 0 }, probabilities: ANYBODY }
  return { verdict, probabilities: probabilitiesOf(knowledge, verdict.kind, knownBy) }
}

export interface DescribedVerdict {
  readonly verdict: Verdict
  /** How likely it is each of them, whatever it is held for; together 1, but for rounding. */
  readonly probabilities: Readonly<Record<Class, number>>
}

/** Of what MARKS has. Confidence is calibrated for what is likeliest; what it leaves, the others share as they did before. */
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
 * What can still be said of a request that is over, of which the kinds of its evidence were kept and what it was held
 * for. By the weights of today, and in general words.
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

/** The kinds of evidence alone, for who fits weights to them. */
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

/** Reads the request into READING and MARKS. */
function observe(
  knowledge: Knowledge,
  print: Print,
  stack: Stack,
  head: RequestHead,
  conduct: Conduct | null,
  forged: number,
  nowMs: number,
): Shown {
  READING.read(head, knowledge.headers)
  MARKS.clear()
  const claim = knowledge.userAgents.claim(READING.userAgent)
  if (claim.kind === 'browser' && READING.isOfScript) READING.forgetScripted()
  const { owners, orders } = knowledge
  // Browsers order headers as a page, its visitor and his extensions have them, and imitators as browsers do.
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
 * What was decided for a fingerprint is not held against a person: who says to be a browser, and shows nothing else that
 * denies it, may be one that nobody knew when it was decided.
 */
function markDecided({ claim, stack, headers, certificate }: Shown): void {
  if (stack.decided.length + headers.decided.length + certificate.decided.length === 0) return
  if (claim.kind !== 'browser' || MARKS.has('stack-unlike') || isContradicted())
    MARKS.add('fingerprint-of-agent')
}

/** An agent by what it says itself: the User-Agent first, which is nearest to the program that is run. */
function agentOf(claim: Claim): Software | null {
  const { software } = claim
  if (software?.kind === 'agent' && !software.isFamily) return software
  return READING.agent ?? (software?.kind === 'agent' ? software : null)
}

/** By who it says to be, or has said to be on its connection: the very one that the verdict names. */
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

/** `before`: what it has said first. */
function claimedAgent(agent: Software | null, before: Software | null): Software | null {
  return agent !== null && !(agent.isFamily && before !== null) ? agent : before
}

/** The same evidence about the same program is the same Verdict: one object, as long as it is remembered. */
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

/** Headers that say who it is: evidence is worded by them, also where they do not name it. */
function headerKey(): string {
  const { agent, agentHeader, tool } = READING
  return agent === null && tool === null ? '' : ` ${agent?.id ?? ''} ${agentHeader ?? ''} ${tool?.id ?? ''}`
}

function nameOf(kind: Verdict['kind'], shown: Shown, before: Software | null): Software | null {
  const { claim, stack, headers, certificate } = shown
  const agent = agentOf(claim)
  if (agent !== null && !agent.isFamily) return agent
  // Whoever names an agent is that one; then, what was decided.
  const decided = MARKS.has('fingerprint-of-agent') ? decidedFor(shown) : null
  if (decided !== null && (before === null || before.isFamily)) return decided
  // A name alone makes nobody an agent: it may be anybody's word.
  const called = claim.called?.kind === 'agent' && kind !== 'agent' ? null : claim.called
  if (called?.kind === 'agent' && (before === null || before.isFamily)) return called
  const claimed = claimedAgent(agent, before)
  if (claimed !== null) return claimed
  const shows = mostlyOne(certificate.shares) ?? mostlyOne(haveBoth(headers, stack))
  // What it says is the library it is made with.
  const isAgent = MARKS.has('headers-of-agents') || MARKS.has('certificate-of-agents')
  if (isAgent && shows?.kind === 'agent') return shows
  if (claim.software !== null) return claim.software
  if (READING.tool !== null) return READING.tool
  if (called !== null) return called
  return shows ?? mostlyOne(stack.shares)
}

/** What is least shared comes first; one that was decided to be of several agents names none of them. */
function decidedFor({ certificate, headers, stack }: Shown): Software | null {
  for (const { decided } of [certificate, headers, stack])
    if (decided.length > 0) return decided.length === 1 ? decided[0]! : null
  return null
}

/** Of those who order headers so, who have the hello, too: nobody, if others are known to have it. */
function haveBoth(headers: Owners, stack: Stack): readonly Share[] {
  if (stack.shares.length === 0) return headers.shares
  const both = headers.shares.flatMap(({ software, share }) => {
    const other = stack.shares.find((each) => each.software === software)
    return other === undefined ? [] : [{ software, share: share * other.share }]
  })
  const total = both.reduce((sum, { share }) => sum + share, 0)
  return both.map(({ software, share }) => ({ software, share: share / total }))
}

/** What is almost only one program's names it. */
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

/** By SUMS: which class it is, and which would be likeliest if it were not that one. */
function ranked(kind: Verdict['kind'] | null): { readonly held: number; readonly other: number } {
  const order = CLASSES.map((_name, c) => c).sort((a, b) => SUMS[b]! - SUMS[a]!)
  const held = kind === 'human' ? HUMAN : order[0]!
  return { held, other: order.find((c) => c !== held)! }
}

/** The address is that of the one who is named, and not of another that was claimed as well. */
function isProven({ addresses }: Shown, named: Software | null): boolean {
  return MARKS.has('address-published') && addresses?.software.id === named?.id
}

function provenByRanges({ id }: Software): Proof {
  return { method: 'ip-range', agent: id, key: null }
}

/** Of `unknown` nothing is said. */
function confidenceOf({ weights }: Knowledge, kind: Verdict['kind'], probability: number): number {
  return kind === 'unknown' ? 0 : rounded(calibrated(weights, probability))
}

/**
 * Whoever says to be a person's browser is held for something else only when something he shows contradicts it, and there
 * is hardly any doubt; and for a person where his TLS bears him out and nothing contradicts it. Automation that drives the
 * very same browser is among those.
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

/** A name for what those after it add up to. */
function spoofed(claim: Claim | null, evidence: readonly Evidence[]): Evidence {
  const name = claim?.software?.name ?? 'a browser'
  const odd = evidence.filter(({ kind }) => DISAGREEMENTS.has(kind as EvidenceKind)).map(({ kind }) => kind)
  return { kind: SPOOFED, detail: `says to be ${name}, which ${odd.join(', ')} deny`, weight: 0 }
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

/** There is one of each: nothing waits between reading a request and its Verdict. */
const READING = new Reading()
const MARKS = new EvidenceSet()
/** Of the one request that is described. */
const TALLY = new Tally()
const SUMS = new Float64Array(CLASSES.length)
const MEMORIES = new WeakMap<Knowledge, Map<string, Verdict>>()
/** Some ten megabytes, whoever fills it. */
const VERDICTS_MAX = 4096
const KEY_LENGTH_MAX = 256
const AGENT = CLASSES.indexOf('agent')
const AUTOMATION = CLASSES.indexOf('automation')
const HUMAN = CLASSES.indexOf('human')
const NAMED_SHARE_MIN = 0.9
const ANYBODY: DescribedVerdict['probabilities'] = Object.freeze({
  ...{ agent: 0.3333, automation: 0.3333, human: 0.3333 },
})
/** Of recorded clients that show a library's name, or its TLS, and nothing else is told, so many are agents by their headers. */
const HIDDEN_AGENTS: Readonly<Record<DescribedRequest['knownBy'], number>> = {
  headers: 0,
  'user-agent': 0.3,
  fingerprints: 0.5,
}
const SAYING_WITHOUT_NAMES = EvidenceSet.of(
  EVIDENCE_KINDS.filter((kind) => !['stack-of-browsers', 'stack-shared', 'stack-unknown'].includes(kind)),
)
const DECIDED = EvidenceSet.of(['fingerprint-of-agent'])
const HUMAN_DOUBT_MAX = 0.25
const HARD_DISAGREEMENTS = [...DISAGREEMENTS].filter((kind) => !SOFT_DISAGREEMENTS.has(kind))
const CONTRADICTIONS = EvidenceSet.of([
  ...(['headless', 'agent-header', 'tool-header', 'mcp-request', 'names-agent', 'declares-bot'] as const),
  'fingerprint-of-agent',
  ...HARD_DISAGREEMENTS,
])
/** What a client has once shown on a connection, it is. */
const LASTING = EvidenceSet.of([
  ...(['names-agent', 'declares-bot', 'headless', 'agent-header', 'mcp-request', 'agent-card'] as const),
  ...(['llm-request', 'forged-headers'] as const),
  ...HARD_DISAGREEMENTS,
])
