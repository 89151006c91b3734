import type { Knowledge } from '../../classify/known/knowledge.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import { eventOf } from './event-draft.ts'
import type { EventLog } from './event-log.ts'
import type { EventMetrics } from './event-metrics.ts'
import type { SightingCounter } from '../intake/ingest.ts'
import { newAgentDraft } from './new-agents.ts'
import type { RobotsRules, Rule } from './threats/rule.ts'
import { threatDraft } from './threats/threat-data.ts'
import type { ThreatLog, ThreatOutcome } from './threats/threat-log.ts'
import { type Describe, threatsIn } from './threats/threat-tally.ts'

export interface SightingEventsContext {
  readonly store: Store
  readonly log: EventLog
  readonly threats: ThreatLog
  /** The enabled rules. */
  readonly rules: readonly Rule[]
  readonly robots: RobotsRules
  readonly metrics: EventMetrics
  /** The knowledge that requests are judged by. */
  knowledge(): Knowledge | null
  nowMs(): number
}

/** Adds the events that Sightings cause, each once, in the transaction that stores the Sightings. */
export class SightingEvents {
  readonly #context: SightingEventsContext
  readonly #describe: Describe
  /** The outcome of the current transaction. */
  #outcome: ThreatOutcome | null = null

  constructor(context: SightingEventsContext) {
    this.#context = context
    this.#describe = (rule, sighting, counted, names) =>
      threatDraft(rule, sighting, counted, names, {
        knowledge: context.knowledge(),
        robots: context.robots,
      })
  }

  /** Must be the last counter, because events have to be the last change of a transaction. */
  get counter(): SightingCounter {
    return async (batch, queries, firsts) => {
      this.#outcome = null
      const { rules, robots, threats, log, nowMs } = this.#context
      const found = threatsIn(batch, rules, robots, this.#describe)
      if (found.length === 0 && firsts.length === 0) return
      const agents = await this.#newAgents(firsts, queries)
      const outcome = found.length === 0 ? NONE : await threats.add(found, nowMs(), queries)
      const events = [...agents, ...outcome.events]
      await log.add(events, queries)
      this.#outcome = { ...outcome, events }
    }
  }

  /** Call it after the transaction has committed. */
  stored(): void {
    const outcome = this.#outcome
    this.#outcome = null
    if (outcome === null) return
    this.#context.metrics.count(outcome)
    if (outcome.events.length > 0) this.#context.log.added()
  }

  async #newAgents(firsts: readonly Sighting[], queries: Queries): Promise<readonly NewEvent[]> {
    if (firsts.length === 0) return []
    const { store, nowMs } = this.#context
    const names = await store.agentsSeen.names(
      firsts.map(({ agent }) => agent!),
      queries,
    )
    return firsts.map((first) => eventOf(newAgentDraft(first, names), nowMs()))
  }
}

const NONE: ThreatOutcome = { events: [], found: new Map(), suppressed: new Map() }
