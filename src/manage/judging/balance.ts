import { type EvidenceKind, EVIDENCE_KINDS } from '../../classify/known/evidence.ts'
import type { Knowledge } from '../../classify/known/knowledge.ts'
import { CLASSES } from '../../classify/known/weights.ts'
import { recall } from '../../classify/verdict/classify.ts'
import type { Evidence, Verdict } from '../../classify/verdict/verdict.ts'

/** How the evidence of a client stands between a person and a program. Natural logarithms of odds, which add up. */
export interface Balance {
  /** The program that it is weighed for: that of the verdict, or the likelier one. */
  readonly program: 'agent' | 'automation'
  /** Before any evidence. */
  readonly start: number
  /** Above zero for the program, below zero for a person; the strongest first. */
  readonly evidence: readonly Evidence[]
  /** Of `start` and all evidence. */
  readonly sum: number
}

/** Weighs the evidence of a past request by the weights of today. */
export function balanceOf(knowledge: Knowledge, kinds: readonly string[], verdict: Verdict['kind']): Balance {
  const { weights } = knowledge
  const towards = (triple: readonly number[], program: number) =>
    rounded((triple[program]! - triple[HUMAN]!) / weights.temperature)
  const sumOf = (program: number) => {
    const all = [...bitsOf(kinds)].map((bit) => towards(weights.kinds[bit]!, program))
    return all.reduce((sum, each) => sum + each, towards(weights.bias, program))
  }
  const likelier = sumOf(AGENT) >= sumOf(AUTOMATION) ? 'agent' : 'automation'
  const program = verdict === 'agent' || verdict === 'automation' ? verdict : likelier
  const at = CLASSES.indexOf(program)
  const evidence = recall(knowledge, kinds, verdict).evidence.map((each) => {
    const bit = EVIDENCE_KINDS.indexOf(each.kind as EvidenceKind)
    return { ...each, weight: bit === -1 ? 0 : towards(weights.kinds[bit]!, at) }
  })
  return {
    program,
    start: towards(weights.bias, at),
    evidence: evidence.sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight)),
    sum: rounded(sumOf(at)),
  }
}

function bitsOf(kinds: readonly string[]): ReadonlySet<number> {
  const bits = kinds.map((kind) => EVIDENCE_KINDS.indexOf(kind as EvidenceKind))
  return new Set(bits.filter((bit) => bit !== -1))
}

/** Without a negative zero. */
function rounded(weight: number): number {
  return Math.round(weight * 100) / 100 || 0
}

const [AGENT, AUTOMATION, HUMAN] = CLASSES.map((_, index) => index) as [number, number, number]
