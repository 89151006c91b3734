import type { Told } from '../../../store/catalogue/feedback.ts'
import type { SubmissionRecord } from '../../../store/catalogue/submissions.ts'
import type { Trial, VerdictCount } from '../../../store/catalogue/trials.ts'

/** What a submission would have done, had it been accepted when it came. */
export interface TrialFigures {
  readonly trial: Trial
  /** Held for the agent anyway. */
  readonly agreements: number
  /** Held for people, or for other agents. */
  readonly disagreements: readonly VerdictCount[]
  /** Held for nobody in particular: what accepting it would give a name to. */
  readonly undecided: number
  /** Operators have said that such a request was a person's. */
  readonly falsePositives: number
  /** They have said that it was this agent's, or an agent's. */
  readonly confirmations: number
  /** They have said that it was another agent's. */
  readonly contradictions: number
}

export function figuresOf(
  { softwareId }: SubmissionRecord,
  trial: Trial,
  told: readonly Told[],
): TrialFigures {
  const isOwn = ({ agentId }: VerdictCount) => agentId !== null && agentId === softwareId
  const isElse = (each: VerdictCount) =>
    each.verdict === 'human' || (each.verdict === 'agent' && !isOwn(each))
  const isOther = (each: Told) => each.softwareId !== null && each.softwareId !== softwareId
  const agents = told.filter((each) => each.told === 'agent')
  return {
    trial,
    agreements: sumOf(trial.verdicts.filter(isOwn)),
    disagreements: trial.verdicts.filter(isElse),
    undecided: sumOf(trial.verdicts.filter((each) => !isOwn(each) && !isElse(each))),
    falsePositives: sumOf(told.filter((each) => each.told === 'human')),
    confirmations: sumOf(agents.filter((each) => !isOther(each))),
    contradictions: sumOf(agents.filter(isOther)),
  }
}

export function sumOf(counts: readonly { readonly count: number }[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0)
}
