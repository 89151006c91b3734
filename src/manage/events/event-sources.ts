import type { EventMetrics } from './event-metrics.ts'
import type { SightingCounter } from '../intake/ingest.ts'
import type { Management } from '../management.ts'
import type { PeriodicJob } from '../jobs/periodic.ts'
import { SightingEvents } from './sighting-events.ts'
import type { ObservedCounter } from '../intake/sighting-keeper.ts'
import { type AnomalySettings, anomalousAgents, since } from './threats/rate-anomaly.ts'
import { isRobotsKnown, RobotsFiles, type RobotsSettings } from './threats/robots-files.ts'
import { RULES } from './threats/rules.ts'
import type { Reason } from './threats/threat.ts'
import { ThreatLog, type ThreatLogSettings, type ThreatOutcome } from './threats/threat-log.ts'

export interface ThreatSettings extends ThreatLogSettings {
  /** The reasons that cause events. */
  readonly reasons: ReadonlySet<Reason>
  readonly anomaly: AnomalySettings
  readonly robots: RobotsSettings
}

type Told = Pick<Management, 'store' | 'events' | 'newSignatures' | 'snapshot' | 'log' | 'nowMs'>

/** Everything that detects events, except changes through the API. */
export class EventSources {
  readonly #management: Told
  readonly #settings: ThreatSettings
  readonly #metrics: EventMetrics
  readonly #threats: ThreatLog
  readonly #robots: RobotsFiles
  readonly #sightings: SightingEvents

  constructor(management: Told, settings: ThreatSettings, metrics: EventMetrics) {
    this.#management = management
    this.#settings = settings
    this.#metrics = metrics
    const { store, events, log, nowMs } = management
    const knowledge = () => management.snapshot()?.knowledge ?? null
    this.#threats = new ThreatLog(store, settings)
    this.#robots = new RobotsFiles(settings.robots, knowledge, log)
    const rules = RULES.filter(({ reason }) => this.#isOn(reason))
    const rest = { rules, robots: this.#robots, metrics, knowledge, nowMs }
    this.#sightings = new SightingEvents({ store, log: events, threats: this.#threats, ...rest })
  }

  /** Must be the last counter. */
  get counter(): SightingCounter {
    return this.#sightings.counter
  }

  /** Call it after Sightings were stored. */
  stored(): void {
    this.#sightings.stored()
  }

  get observed(): ObservedCounter {
    return this.#management.newSignatures.observed
  }

  get jobs(): readonly PeriodicJob[] {
    return [
      { name: 'tell what has followed of threats', everyMs: 1_000, run: () => this.followUp() },
      ...(this.#isOn('rate_anomaly') ? [this.#comparing] : []),
      ...(this.#isOn('robots_violation')
        ? [{ name: 'read robots.txt', everyMs: 10_000, run: () => this.readRobots() }]
        : []),
    ]
  }

  get #comparing(): PeriodicJob {
    const name = 'compare agents with what they do'
    return { name, everyMs: 60_000, isOnce: true, run: () => this.compare() }
  }

  async followUp(): Promise<'done' | 'more'> {
    const { store, events: log, nowMs } = this.#management
    const atMs = nowMs()
    if (!(await this.#threats.hasEnded(atMs))) return 'done'
    const { events, more } = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      const followed = await this.#threats.followUp(atMs, queries)
      await log.add(followed.events, queries)
      return followed
    })
    this.#added({ events, found: new Map(), suppressed: new Map() })
    return more ? 'more' : 'done'
  }

  async compare(): Promise<'done'> {
    const { store, events: log, nowMs } = this.#management
    const atMs = nowMs()
    const found = await anomalousAgents(store, this.#settings.anomaly, atMs)
    if (found.length === 0) return 'done'
    const outcome = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      const keys = found.map(({ key }) => key)
      // Another process may have found the same threats, and this process found most of them a minute ago.
      const held = await store.threatWindows.held(keys, queries)
      const fresh = found.flatMap((threat) => {
        const window = held.get(threat.key)
        const rest = window === undefined ? threat : since(threat, window.untilMs)
        return rest ?? []
      })
      const added = await this.#threats.add(fresh, atMs, queries)
      await log.add(added.events, queries)
      return added
    })
    this.#added(outcome)
    return 'done'
  }

  async readRobots(): Promise<'done'> {
    await this.#robots.refresh(this.#management.nowMs())
    return 'done'
  }

  #added(outcome: ThreatOutcome): void {
    this.#metrics.count(outcome)
    if (outcome.events.length > 0) this.#management.events.added()
  }

  #isOn(reason: Reason): boolean {
    if (reason === 'robots_violation' && !isRobotsKnown(this.#settings.robots)) return false
    return this.#settings.reasons.has(reason)
  }
}
