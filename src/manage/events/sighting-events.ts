import type { Knowledge } from '../../classify/known/knowledge.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import { type EventDraft, eventOf } from './event-draft.ts'
import type { EventLog } from './event-log.ts'
import type { EventMetrics } from './event-metrics.ts'
import type { SightingEvents } from '../intake/ingest.ts'
import type { RobotsRules, ThreatRule } from './threats/rule.ts'
import { threatDraft } from './threats/threat-data.ts'
import type { ThreatLog, ThreatOutcome } from './threats/threat-log.ts'
import { type Describe, threatsIn } from './threats/threat-tally.ts'
import { proofIn } from '../../plane/sighting-document.ts'
import { timeOf } from '../http/schemas.ts'
import {
  fingerprintsOf,
  nameOf,
  outlineOf,
  type SoftwareById,
  subjectOf,
} from '../judging/sighting-account.ts'

interface SightingEventsContext {
  readonly store: Store
  readonly log: EventLog
  readonly threats: ThreatLog
  /** The enabled rules. */
  readonly rules: readonly ThreatRule[]
  readonly robots: RobotsRules
  readonly metrics: EventMetrics
  /** The knowledge that requests are judged by. */
  knowledge(): Knowledge | null
  nowMs(): number
}

/** Adds the events that Sightings cause, each once, in the transaction that stores the Sightings. */
export function sightingEvents(context: SightingEventsContext): SightingEvents {
  const { rules, robots, threats, log, metrics, knowledge, nowMs } = context
  const describe: Describe = (rule, sighting, counted, names) =>
    threatDraft(rule, sighting, counted, names, { knowledge: knowledge(), robots })
  return async (batch, queries, firsts) => {
    const found = threatsIn(batch, rules, robots, describe)
    if (found.length === 0 && firsts.length === 0) return { count: 0, afterCommit: () => undefined }
    const agents = await newAgents(firsts, context, queries)
    const outcome = found.length === 0 ? NONE : await threats.add(found, nowMs(), queries)
    const events = [...agents, ...outcome.events]
    const added = await log.add(events, queries)
    const afterCommit = () => {
      metrics.count({ ...outcome, events })
      added()
    }
    return { count: events.length, afterCommit }
  }
}

async function newAgents(
  firsts: readonly Sighting[],
  { store, nowMs }: SightingEventsContext,
  queries: Queries,
): Promise<readonly NewEvent[]> {
  if (firsts.length === 0) return []
  const names = await store.agentsSeen.names(
    firsts.map(({ agent }) => agent!),
    queries,
  )
  return firsts.map((first) => eventOf(newAgentDraft(first, names), nowMs()))
}

const NONE: ThreatOutcome = { events: [], found: new Map(), suppressed: new Map() }

/** The event for the first request of an agent, or of a client that claims to be it. */
function newAgentDraft(first: Sighting, names: SoftwareById): EventDraft {
  const id = first.agent!
  const { category, purposes, confidence, app, verified, seenAtMs } = first
  const data = {
    agent: { id, name: nameOf(id, names), category, purpose: purposes },
    fingerprints: fingerprintsOf(first),
    verified,
    proof: proofIn(first),
    first_seen: timeOf(seenAtMs),
    sighting: outlineOf(first),
  }
  const subject = subjectOf(first, `agent ${id}`)
  return { type: 'new_agent', subject, agent: id, category, severity: null, confidence, app, data }
}
