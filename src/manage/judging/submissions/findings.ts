import type { SubmissionReason } from '../../../store/catalogue/submissions.ts'

/** What a finding does to a submission. */
export type FindingEffect =
  /** The submission is rejected for good. */
  | 'rejects'
  /** The fingerprint is already registered or submitted. */
  | 'repeats'
  /** An administrator has to review it. */
  | 'waits'
  /** The finding is only shown to the reviewer. */
  | 'notes'

export type FindingCode = keyof typeof EFFECTS

export interface SubmissionFinding extends SubmissionReason {
  readonly code: FindingCode
}

/** The strongest effect of the findings; `notes` if the list is empty. */
export function effectOf(findings: readonly SubmissionFinding[]): FindingEffect {
  return STRONGEST_FIRST.find((effect) => findings.some(({ code }) => EFFECTS[code] === effect)) ?? 'notes'
}

/** Every code. Codes are stable: programs rely on them. */
export const EFFECTS = {
  // About the fingerprint itself.
  impossible: 'rejects',
  empty: 'rejects',
  odd: 'waits',
  one_visitor: 'waits',
  servers_answer: 'notes',
  // About the name.
  look_alike_name: 'rejects',
  name_of_browser: 'rejects',
  name_of_tool: 'waits',
  name_like_known: 'waits',
  known_agent: 'waits',
  no_agent: 'waits',
  // About the known owners of the fingerprint or of its parts.
  browser_fingerprint: 'rejects',
  browser_of_agent: 'waits',
  parts_of_browsers: 'waits',
  known: 'repeats',
  known_of_others: 'waits',
  parts_known: 'notes',
  new: 'notes',
  // About other submissions.
  submitted_before: 'repeats',
  submitted_for_another: 'waits',
  // About the User-Agent that was submitted with it.
  user_agent_agrees: 'notes',
  user_agent_names: 'notes',
  user_agent_unknown: 'notes',
  user_agent_of_browser: 'waits',
  user_agent_of_another: 'waits',
  // About live traffic.
  not_seen: 'notes',
  seen: 'notes',
  seen_agrees: 'notes',
  seen_of_people: 'waits',
  seen_of_others: 'waits',
} as const satisfies Record<string, FindingEffect>

const STRONGEST_FIRST: readonly FindingEffect[] = ['rejects', 'repeats', 'waits', 'notes']
