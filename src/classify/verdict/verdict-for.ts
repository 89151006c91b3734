import { DISAGREEMENTS, EVIDENCE_KINDS, type EvidenceKind, EvidenceSet, SPOOFED } from '../known/evidence.ts'
import type { Knowledge } from '../known/knowledge.ts'
import type { Software } from '../known/software.ts'
import type { Claim } from '../known/user-agent.ts'
import { addUp, CLASSES, calibrated, type Class, toProbabilities } from '../known/weights.ts'
import { detailOf } from './evidence-detail.ts'
import { nameConfidence } from './name-confidence.ts'
import { nameOf } from './naming.ts'
import { isContradicted } from './observe.ts'
import type { Proof } from './proof.ts'
import { toldWith } from './proof-evidence.ts'
import type { Reading } from './reading.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Evidence, Verdict } from './verdict.ts'

/**
 * Returns the same Verdict object for the same evidence about the same program, as long as it is remembered.
 */
export function verdictFor(
  knowledge: Knowledge,
  shown: Shown,
  before: Software | null,
  scratch: Scratch,
): Verdict {
  const { claim, stack, headers, certificate, addresses } = shown
  const memory = scratch.verdictsWith(knowledge)
  const owners = headers === certificate ? '' : `,${headers.number},${certificate.number}`
  const age = addresses === null ? '' : `@${shown.addressesAgeDays}`
  const { low, high } = scratch.marks
  const key = `${low} ${high} ${claim.number} ${stack.number}${owners}${age} ${before?.id ?? ''}${headerKey(scratch.reading)}`
  const found = memory.get(key)
  if (found !== undefined) return found
  if (memory.size >= VERDICTS_MAX) memory.clear()
  const verdict = judge(knowledge, shown, before, scratch)
  if (key.length <= KEY_LENGTH_MAX) memory.set(key, verdict)
  return verdict
}

/**
 * The headers that identify an agent, a tool or a browser. The text of the evidence depends on them even if
 * the verdict does not.
 */
function headerKey({ agent, agentHeader, tool, browser }: Reading): string {
  if (agent === null && tool === null && browser === null) return ''
  return ` ${agent?.id ?? ''} ${agentHeader ?? ''} ${tool?.id ?? ''} ${browser?.id ?? ''}`
}

function judge(knowledge: Knowledge, shown: Shown, before: Software | null, scratch: Scratch): Verdict {
  const { weights } = knowledge
  const { marks, reading, sums } = scratch
  addUp(weights, marks, sums)
  toProbabilities(sums, weights.temperature)
  const kind = kindFor(marks, CLASSES[ranked(sums, null).held]!, sums[HUMAN]!)
  const { held, other } = ranked(sums, kind)
  const evidence = evidenceFor(knowledge, marks, (each) => detailOf(each, shown, reading), { held, other })
  if (isSpoofed(kind, marks)) evidence.unshift(spoofed(shown.claim, evidence))
  const named = nameOf(kind, shown, before, scratch)
  const software = kind === 'agent' && named?.kind === 'browser' ? null : named
  const isInRanges = kind === 'agent' && isProven(shown, software, marks)
  const verdict = {
    kind,
    agent: kind === 'agent' && software?.kind === 'agent' ? agentFor(software) : null,
    software: software === null ? null : { id: software.id, name: software.name, kind: software.kind },
    confidence: confidenceOf(knowledge, kind, sums[held]!),
    nameConfidence: nameConfidence(software, shown, before, scratch),
    proof: isInRanges ? provenByRanges(software!) : null,
  }
  return toldWith(verdict, evidence, [])
}

/** The classes that evidence is weighed for. */
export interface Ranked {
  /** The class of the verdict. */
  readonly held: number
  /** The likeliest other class. */
  readonly other: number
}

export function ranked(sums: Sums, kind: Verdict['kind'] | null): Ranked {
  const held = kind === 'human' ? HUMAN : likeliest(sums, NO_CLASS)
  return { held, other: likeliest(sums, held) }
}

/** The first of equal ones. */
function likeliest(sums: Sums, without: number): number {
  let best = NO_CLASS
  for (let c = 0; c < CLASSES.length; c++)
    if (c !== without && (best === NO_CLASS || sums[c]! > sums[best]!)) best = c
  return best
}

/** The published address belongs to the named agent, not to another agent that was also claimed. */
function isProven({ addresses }: Shown, named: Software | null, marks: EvidenceSet): boolean {
  return marks.has('address-published') && addresses?.software.id === named?.id
}

function provenByRanges({ id }: Software): Proof {
  return { method: 'ip-range', agent: id, key: null }
}

/** An `unknown` verdict has confidence 0. */
function confidenceOf({ weights }: Knowledge, kind: Verdict['kind'], probability: number): number {
  return kind === 'unknown' ? 0 : rounded(calibrated(weights, kind, probability))
}

/**
 * A client that claims to be a browser gets another class only if evidence contradicts the claim and little
 * doubt remains. It is classified as human if its TLS matches the claim and nothing contradicts it.
 * Automation that drives the same browser is classified as human too.
 */
function kindFor(marks: EvidenceSet, best: Class, human: number): Verdict['kind'] {
  if (best === 'human') return marks.has('stack-unlike') ? 'unknown' : 'human'
  if (maySayNothing(marks) && !marks.hasAny(OF_PROGRAMS)) return isContradicted(marks) ? best : 'unknown'
  const saysBrowser = marks.has('names-browser') || marks.has('names-plain-browser')
  if (!saysBrowser) return best
  if (isContradicted(marks)) return human <= HUMAN_DOUBT_MAX ? best : 'unknown'
  return marks.has('stack-agrees') ? 'human' : 'unknown'
}

/**
 * Extensions also remove the User-Agent, and only browsers have this TLS. Consoles, televisions and old or rare
 * browsers have names that are not known, and no library's TLS.
 */
function maySayNothing(marks: EvidenceSet): boolean {
  if (marks.has('no-user-agent')) return marks.has('stack-of-browsers')
  return marks.has('odd-mozilla') && !marks.has('stack-of-libraries')
}

function isSpoofed(kind: Verdict['kind'], marks: EvidenceSet): boolean {
  if (kind === 'human' || kind === 'unknown') return false
  if (!marks.has('names-browser') && !marks.has('names-plain-browser')) return false
  for (const each of DISAGREEMENTS) if (marks.has(each)) return true
  return false
}

/** One name for the disagreements that follow it. */
export function spoofed(claim: Claim | null, evidence: readonly Evidence[]): Evidence {
  const name = claim?.software?.name ?? 'a browser'
  const odd = evidence.filter(({ kind }) => DISAGREEMENTS.has(kind as EvidenceKind)).map(({ kind }) => kind)
  return { kind: SPOOFED, detail: `claims to be ${name}; contradicted by ${odd.join(', ')}`, weight: 0 }
}

export function evidenceFor(
  knowledge: Knowledge,
  marks: EvidenceSet,
  detail: (kind: EvidenceKind) => string,
  { held, other }: Ranked,
): Evidence[] {
  const { kinds, temperature } = knowledge.weights
  const evidence: Evidence[] = []
  for (let bit = 0; bit < EVIDENCE_KINDS.length; bit++) {
    if (!marks.hasBit(bit)) continue
    const kind = EVIDENCE_KINDS[bit]!
    const weight = (kinds[bit]![held]! - kinds[bit]![other]!) / temperature
    evidence.push({
      kind,
      detail: detail(kind),
      weight: Math.round(weight * 100) / 100,
    })
  }
  return evidence.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
}

export function agentFor({ id, name, category, purposes }: Software): Verdict['agent'] {
  return { id, name, category: category!, purposes }
}

/** Four digits, like every probability that is shown. */
export function rounded(probability: number): number {
  return Math.round(probability * 10_000) / 10_000
}

type Sums = Scratch['sums']

/** What a page does not make a browser do. */
const OF_PROGRAMS = EvidenceSet.of([
  'api-token',
  'api-call',
  'llm-request',
  'agent-card',
  'runtime-fetch',
  'forged-headers',
  'robots-first',
  'crawls',
  'asks-fast',
  'asks-sitemap',
  'agent-header',
  'tool-header',
  'mcp-request',
  'oauth-discovery',
  'headless',
  'headers-of-agents',
  'certificate-of-agents',
  'certificate-of-libraries',
  'fingerprint-of-agent',
  'address-published',
])
/** At most about ten megabytes, whatever clients send. */
const VERDICTS_MAX = 4096
const KEY_LENGTH_MAX = 256
const NO_CLASS = -1
export const HUMAN = CLASSES.indexOf('human')
const HUMAN_DOUBT_MAX = 0.25
