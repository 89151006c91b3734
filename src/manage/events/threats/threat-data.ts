import type { Knowledge } from '../../../classify/known/knowledge.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import { timeOf } from '../../http/schemas.ts'
import type { EventDraft } from '../event-draft.ts'
import { detectionIn, requestOf, type SoftwareById, subjectOf } from '../../judging/sighting-account.ts'
import type { RobotsRules, ThreatRule } from './rule.ts'
import { SEVERITY_OF } from './threat.ts'
import type { Threat } from './threat-tally.ts'

/** The event draft of a threat, from the first request that showed it. */
export function threatDraft(
  rule: ThreatRule,
  sighting: Sighting,
  counted: Pick<Threat, 'count' | 'sinceMs' | 'untilMs'>,
  names: SoftwareById,
  { knowledge, robots }: { readonly knowledge: Knowledge | null; readonly robots: RobotsRules },
): EventDraft {
  const { reason } = rule
  const severity = SEVERITY_OF[reason]
  const { agent, category, confidence, app } = sighting
  const data = {
    reason,
    severity,
    detail: rule.detail(sighting, robots),
    detection: detectionIn(sighting, names, knowledge),
    action: sighting.done,
    request: requestOf(sighting),
    ...countOf(counted),
  }
  const subject = subjectOf(sighting, reason)
  return { type: 'threat_detected', subject, agent, category, severity, confidence, app, data }
}

/** The same draft with the count of more requests. */
export function withCount(draft: EventDraft, counted: Parameters<typeof countOf>[0]): EventDraft {
  return { ...draft, data: { ...draft.data, ...countOf(counted) } }
}

export function countOf({ count, sinceMs, untilMs }: Pick<Threat, 'count' | 'sinceMs' | 'untilMs'>) {
  return { count, since: timeOf(sinceMs), until: timeOf(untilMs) }
}
