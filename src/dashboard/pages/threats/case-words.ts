import type { Case } from '../../api/operations.ts'

type ShownStatus = Case['status']

/** What a case is about, for headings and lists. */
export function titleOf({ reason, ...subject }: Pick<Case, 'reason' | keyof CaseSubject>): string {
  return `${reasonText(reason)}: ${subjectText(subject)}`
}

/** `spoofed_browser`: “Spoofed browser”. */
export function reasonText(reason: string): string {
  const words = reason.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

interface CaseSubject {
  readonly campaign_id: string | null
  readonly agent_id: string | null
  readonly ja4: string | null
  readonly address: string | null
}

function subjectText({ campaign_id, agent_id, ja4, address }: CaseSubject): string {
  return campaign_id ?? agent_id ?? ja4 ?? address ?? 'many clients'
}

/** The filters of requests that find those of a case. */
export function requestFiltersOf(found: Pick<Case, 'reason' | keyof CaseSubject>): Record<string, string> {
  const { campaign_id, agent_id, ja4, address, reason } = found
  const given = { campaign_id, agent_id, ja4, address, ...OF_REASON[reason] }
  return Object.fromEntries(
    Object.entries(given).filter((each): each is [string, string] => each[1] !== null),
  )
}

/** Reasons with a filter of requests of the same meaning. */
const OF_REASON: Partial<Record<Case['reason'], Readonly<Record<string, string>>>> = {
  spoofed_browser: { conflict: 'spoofed-browser' },
  rate_limited: { action: 'rate_limit' },
}

export const STATUS_TEXT: Readonly<Record<ShownStatus, string>> = {
  open: 'open',
  accepted: 'accepted',
  false_alarm: 'false alarm',
}

/** Colours of a status. */
export const STATUS_LOOK: Readonly<Record<ShownStatus, string>> = {
  open: 'warn',
  accepted: 'plain',
  false_alarm: 'good',
}

/** The verdict that feedback gives if nothing else is chosen, as in the API. */
export function verdictOf(reason: Case['reason']): 'human' | 'agent' | '' {
  if (reason === 'spoofed_browser') return 'human'
  return ['foreign_address', 'proof_failed', 'proof_contradicted'].includes(reason) ? 'agent' : ''
}
