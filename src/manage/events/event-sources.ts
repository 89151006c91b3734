import type { Queries } from '../../store/engine/database.ts'
import type { EventMetrics } from './event-metrics.ts'
import type { AfterCommit, SightingEvents } from '../intake/ingest.ts'
import type { EventsContext } from './context.ts'
import type { PeriodicJob } from '../jobs/periodic.ts'
import { sightingEvents } from './sighting-events.ts'
import type { ActiveCampaign } from '../intake/campaigns.ts'
import { CampaignThreat } from './threats/crawl-campaign.ts'
import { type AnomalySettings, anomalousAgents, since } from './threats/rate-anomaly.ts'
import { isRobotsKnown, RobotsFiles, type RobotsSettings } from './threats/robots-files.ts'
import { RULES } from './threats/rules.ts'
import type { ThreatReason } from './threats/threat.ts'
import { ThreatLog, type ThreatLogSettings, type ThreatOutcome } from './threats/threat-log.ts'

export interface ThreatSettings extends ThreatLogSettings {
  /** The reasons that cause events. */
  readonly reasons: ReadonlySet<ThreatReason>
  readonly anomaly: AnomalySettings
  readonly robots: RobotsSettings
}

/** What is known of the robots.txt that crawlers get. */
export interface KnownRobots {
  /** Whether proxies add what the policy allows. */
  readonly isPublished: boolean
  /** The app's own file for a host; `null`: unknown. */
  ownOf(host: string | null): string | null
}

type SourcesContext = Pick<EventsContext, 'store' | 'events' | 'snapshot' | 'log' | 'nowMs'>

/** Everything that detects events, except changes through the API. */
export class EventSources {
  readonly #management: SourcesContext
  readonly #settings: ThreatSettings
  readonly #metrics: EventMetrics
  readonly #threats: ThreatLog
  readonly #robots: RobotsFiles
  /** The events that Sightings cause. */
  readonly sightings: SightingEvents

  constructor(management: SourcesContext, settings: ThreatSettings, metrics: EventMetrics) {
    this.#management = management
    this.#settings = settings
    this.#metrics = metrics
    const { store, events, log, nowMs } = management
    const knowledge = () => management.snapshot()?.knowledge ?? null
    this.#threats = new ThreatLog(store, settings)
    this.#robots = new RobotsFiles(settings.robots, knowledge, log)
    const rules = RULES.filter(({ reason }) => this.#isOn(reason))
    const rest = { rules, robots: this.#robots, metrics, knowledge, nowMs }
    this.sightings = sightingEvents({ store, log: events, threats: this.#threats, ...rest })
  }

  /** What crawlers are told. */
  get robots(): KnownRobots {
    const { isPublished } = this.#settings.robots
    return { isPublished, ownOf: (host) => this.#robots.textOf(host) }
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
    const { store, nowMs } = this.#management
    const atMs = nowMs()
    if (!(await this.#threats.hasEnded(atMs))) return 'done'
    const { more, afterCommit } = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      const { events, more } = await this.#threats.followUp(atMs, queries)
      return { more, afterCommit: await this.#add({ events, found: NONE, suppressed: NONE }, queries) }
    })
    afterCommit()
    return more ? 'more' : 'done'
  }

  async compare(): Promise<'done'> {
    const { store, nowMs } = this.#management
    const atMs = nowMs()
    const found = await anomalousAgents(store, this.#settings.anomaly, atMs)
    if (found.length === 0) return 'done'
    const afterCommit = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      const keys = found.map(({ key }) => key)
      // Another process may have found the same threats, and this process found most of them a minute ago.
      const held = await store.threatWindows.held(keys, queries)
      const fresh = found.flatMap((threat) => {
        const window = held.get(threat.key)
        const rest = window === undefined ? threat : since(threat, window.untilMs)
        return rest ?? []
      })
      return this.#add(await this.#threats.add(fresh, atMs, queries), queries)
    })
    afterCommit()
    return 'done'
  }

  /** Reports campaigns, unless that is disabled. */
  async reportCampaigns(active: readonly ActiveCampaign[]): Promise<void> {
    if (!this.#isOn('crawl_campaign')) return
    const { store, nowMs } = this.#management
    const threats = active.map((each) => new CampaignThreat(each))
    const afterCommit = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      return this.#add(await this.#threats.add(threats, nowMs(), queries), queries)
    })
    afterCommit()
  }

  async readRobots(): Promise<'done'> {
    await this.#robots.refresh(this.#management.nowMs())
    return 'done'
  }

  async #add(outcome: ThreatOutcome, queries: Queries): Promise<AfterCommit> {
    const added = await this.#management.events.add(outcome.events, queries)
    return () => {
      this.#metrics.count(outcome)
      added()
    }
  }

  #isOn(reason: ThreatReason): boolean {
    if (reason === 'robots_violation' && !isRobotsKnown(this.#settings.robots)) return false
    return this.#settings.reasons.has(reason)
  }
}

const NONE: ReadonlyMap<ThreatReason, number> = new Map()
