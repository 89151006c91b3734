import type { Reason } from '../../../store/catalogue/submissions.ts'

/** What a finding does to a submission. */
export type Effect =
  /** It is refused for good. */
  | 'rejects'
  /** It is there already. */
  | 'repeats'
  /** An administrator has to look at it. */
  | 'waits'
  /** It is told to who does. */
  | 'notes'

export type FindingCode = keyof typeof EFFECTS

export interface Finding extends Reason {
  readonly code: FindingCode
}

/** Of several the strongest; `notes` where there is none. */
export function effectOf(findings: readonly Finding[]): Effect {
  return STRONGEST_FIRST.find((effect) => findings.some(({ code }) => EFFECTS[code] === effect)) ?? 'notes'
}

/** Every code there is: stable, for programs. */
export const EFFECTS = {
  // The fingerprint by itself.
  impossible: 'rejects',
  empty: 'rejects',
  odd: 'waits',
  one_visitor: 'waits',
  servers_answer: 'notes',
  // The name.
  look_alike_name: 'rejects',
  name_of_browser: 'rejects',
  name_of_tool: 'waits',
  name_like_known: 'waits',
  known_agent: 'waits',
  no_agent: 'waits',
  // Who is known to have it, or parts of it.
  browser_fingerprint: 'rejects',
  browser_of_agent: 'waits',
  parts_of_browsers: 'waits',
  known: 'repeats',
  known_of_others: 'waits',
  parts_known: 'notes',
  new: 'notes',
  // Other submissions.
  submitted_before: 'repeats',
  submitted_for_another: 'waits',
  // The User-Agent that it is said to come with.
  user_agent_agrees: 'notes',
  user_agent_names: 'notes',
  user_agent_unknown: 'notes',
  user_agent_of_browser: 'waits',
  user_agent_of_another: 'waits',
  // Live traffic.
  not_seen: 'notes',
  seen: 'notes',
  seen_agrees: 'notes',
  seen_of_people: 'waits',
  seen_of_others: 'waits',
} as const satisfies Record<string, Effect>

const STRONGEST_FIRST: readonly Effect[] = ['rejects', 'repeats', 'waits', 'notes']
