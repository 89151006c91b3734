import { EVIDENCE_KINDS, type EvidenceKind, EvidenceSet, SPOOFED } from '../known/evidence.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { addUp, CLASSES, calibrated, type Class, toProbabilities } from '../known/weights.ts'
import { Conduct } from './conduct.ts'
import type { DescribedRequest } from './described-request.ts'
import { generalDetail } from './evidence-detail.ts'
import { agentOf, type ObservedRequest, observe } from './observe.ts'
import { NO_PROOFS, type Proofs } from './proof.ts'
import { proofsRecalled } from './proof-evidence.ts'
import { withProofs } from './proven.ts'
import { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Verdict } from './verdict.ts'
import { evidenceFor, HUMAN, ranked, rounded, spoofed, verdictFor } from './verdict-for.ts'

/**
 * Classifies a client by everything it has shown up to this request. `proofs`: results of identity checks.
 */
export function classify(
  knowledge: Knowledge,
  request: ObservedRequest,
  proofs: Proofs = NO_PROOFS,
  scratch = new Scratch(),
): Verdict {
  const { print, conduct } = request
  const stack = knowledge.stacks.stackOf(print.connection)
  const shown = observe(knowledge, request, stack, scratch)
  const verdict = remembered(knowledge, shown, conduct, scratch)
  if (proofs === NO_PROOFS || !haveWord(knowledge, verdict, proofs)) return verdict
  const claimed = agentOf(shown.claim, scratch.reading)
  const seen = { claimed, stack, conduct, nowMs: request.nowMs ?? 0 }
  return withProofs(knowledge, verdict, proofs, seen, scratch)
}

/**
 * Proofs say nothing about a client that has no signature and is not an agent known by host names or
 * networks.
 */
function haveWord({ identities }: Knowledge, { agent }: Verdict, { signature, places }: Proofs): boolean {
  if (signature !== null) return true
  return places !== null && agent !== null && identities.byPlace(agent.id) !== null
}

function remembered(knowledge: Knowledge, shown: Shown, conduct: Conduct | null, scratch: Scratch): Verdict {
  if (conduct === null) return verdictFor(knowledge, shown, null, scratch)
  const { agent, last } = conduct
  const same = last.recall(knowledge, scratch, shown, agent)
  if (same !== null) return same
  const verdict = verdictFor(knowledge, shown, agent, scratch)
  last.keep(knowledge, scratch, shown, agent, verdict)
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
  scratch = new Scratch(),
): DescribedVerdict {
  const { marks, tally } = scratch
  tally.clear()
  const conduct = new Conduct(null, '', address, tally)
  const stack = knowledge.stacks.lookUp(print.connection)
  const request = { print, head, conduct, forged: forged.length, nowMs }
  const shown = observe(knowledge, request, stack, scratch, untold)
  const verdict = verdictFor(knowledge, shown, conduct.agent, scratch)
  // A browser's TLS without a browser's name is suspicious, but only if the description includes the names.
  if (knownBy === 'fingerprints' && !marks.hasAny(SAYING_WITHOUT_NAMES))
    return { verdict: { ...verdict, kind: 'unknown', agent: null, confidence: 0 }, probabilities: EVEN_ODDS }
  return { verdict, probabilities: probabilitiesOf(knowledge, verdict.kind, knownBy, scratch) }
}

export interface DescribedVerdict {
  readonly verdict: Verdict
  /** The probability of each class, whatever the verdict is. They add up to 1, except for rounding. */
  readonly probabilities: Readonly<Record<Class, number>>
}

/**
 * The probabilities for the marks. The likeliest class gets its calibrated confidence; the other classes share
 * the rest in the same proportions as before.
 */
function probabilitiesOf(
  { weights }: Knowledge,
  kind: Verdict['kind'],
  knownBy: DescribedRequest['knownBy'],
  { marks, sums }: Scratch,
): DescribedVerdict['probabilities'] {
  addUp(weights, marks, sums)
  toProbabilities(sums, weights.temperature)
  let held = kind === 'human' ? HUMAN : 0
  if (kind !== 'human') for (let c = 1; c < sums.length; c++) if (sums[c]! > sums[held]!) held = c
  const right = calibrated(weights, CLASSES[held]!, sums[held]!)
  const left = (1 - right) / (1 - sums[held]!)
  for (let c = 0; c < sums.length; c++) sums[c] = c === held ? right : sums[c]! * left
  const moved = held === AUTOMATION ? sums[AUTOMATION]! * HIDDEN_AGENTS[knownBy] : 0
  return {
    agent: rounded(sums[AGENT]! + moved),
    automation: rounded(sums[AUTOMATION]! - moved),
    human: rounded(sums[HUMAN]!),
  }
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
  const scratch = new Scratch()
  const { marks, sums } = scratch
  for (const each of EVIDENCE_KINDS) if (kinds.includes(each)) marks.add(each)
  const probabilities = probabilitiesOf(knowledge, kind, 'headers', scratch)
  addUp(knowledge.weights, marks, sums)
  const evidence = evidenceFor(knowledge, marks, generalDetail, ranked(sums, kind))
  if (kinds.includes(SPOOFED)) evidence.unshift(spoofed(null, evidence))
  evidence.unshift(...proofsRecalled(kinds))
  return { evidence, probabilities }
}

/** Returns only the kinds of evidence, for fitting weights. */
export function evidenceOf(
  knowledge: Knowledge,
  request: ObservedRequest,
  scratch = new Scratch(),
): readonly EvidenceKind[] {
  observe(knowledge, request, knowledge.stacks.stackOf(request.print.connection), scratch)
  return scratch.marks.kinds()
}

const AGENT = CLASSES.indexOf('agent')
const AUTOMATION = CLASSES.indexOf('automation')
const EVEN_ODDS: DescribedVerdict['probabilities'] = Object.freeze({
  agent: 0.3333,
  automation: 0.3333,
  human: 0.3333,
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
