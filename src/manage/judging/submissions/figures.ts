import type { FeedbackCount } from '../../../store/catalogue/feedback.ts'
import type { SubmissionRecord } from '../../../store/catalogue/submissions.ts'
import type { Trial, VerdictCount } from '../../../store/catalogue/trials.ts'

/** The effect that a submission would have had if it had been accepted on arrival. */
export interface TrialFigures {
  readonly trial: Trial
  /** Requests that were attributed to this agent anyway. */
  readonly agreements: number
  /** Requests that were judged human or attributed to other agents. */
  readonly disagreements: readonly VerdictCount[]
  /** All other requests: accepting the submission would attribute them to the agent. */
  readonly undecided: number
  /** Requests that operators reported as human. */
  readonly falsePositives: number
  /** Requests that operators reported as this agent, or as an agent without naming it. */
  readonly confirmations: number
  /** Requests that operators reported as another agent. */
  readonly contradictions: number
}

export function figuresOf(
  { softwareId }: SubmissionRecord,
  trial: Trial,
  told: readonly FeedbackCount[],
): TrialFigures {
  const isOwn = ({ agentId }: VerdictCount) => agentId !== null && agentId === softwareId
  const isElse = (each: VerdictCount) =>
    each.verdict === 'human' || (each.verdict === 'agent' && !isOwn(each))
  const isOther = (each: FeedbackCount) => each.softwareId !== null && each.softwareId !== softwareId
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
