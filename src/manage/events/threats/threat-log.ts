import type { Queries } from '../../../store/engine/database.ts'
import type { NewEvent } from '../../../store/events/events.ts'
import type { Store } from '../../../store/store.ts'
import type { ThreatWindow } from '../../../store/traffic/threat-windows.ts'
import { draftText, type EventDraft, eventOf, parseDraft } from '../event-draft.ts'
import { minuteOf, type Occurrence, Storms } from '../storms.ts'
import { withCount } from './threat-data.ts'
import { exampleOf, type Threat } from './threat-tally.ts'
import type { ThreatReason } from './threat.ts'

export interface ThreatLogSettings {
  /** For how long a reported threat is only counted and not reported again. */
  readonly windowMs: number
  /** The maximum number of separate events per reason, app and minute. */
  readonly eventsPerMinute: number
}

/** The result of adding threats in a transaction. */
export interface ThreatOutcome {
  readonly events: readonly NewEvent[]
  /** Requests by reason: all of them, and those that were only counted. */
  readonly found: ReadonlyMap<ThreatReason, number>
  readonly suppressed: ReadonlyMap<ThreatReason, number>
}

/**
 * Decides which threats are reported and when. The first threat of a key is reported at once. Later ones
 * within its window are counted and reported when the window ends. The excess over the limit per minute
 * becomes one event. The state is in the database, so that all processes agree and may stop at any time. The
 * caller has to hold the lock of Sightings.
 */
export class ThreatLog {
  readonly #store: Store
  readonly #settings: ThreatLogSettings

  constructor(store: Store, settings: ThreatLogSettings) {
    this.#store = store
    this.#settings = settings
  }

  async add(threats: readonly Threat[], nowMs: number, queries: Queries): Promise<ThreatOutcome> {
    const found = sumsOf(threats)
    const windows = await this.#store.threatWindows.held(
      threats.map(({ key }) => key),
      queries,
    )
    const known = threats.filter(({ key }) => windows.has(key))
    const fresh = threats.filter(({ key }) => !windows.has(key))
    await this.#store.threatWindows.put(
      known.map((threat) => counting(windows.get(threat.key)!, threat)),
      queries,
    )
    const { admitted, events } = await this.#tell(fresh, nowMs, queries)
    return { events, found, suppressed: sumsOf(threats.filter((threat) => !admitted.has(threat))) }
  }

  /** Whether `followUp` would find work. This query runs outside of a transaction. */
  async hasEnded(nowMs: number): Promise<boolean> {
    const { threatWindows, eventStorms } = this.#store
    if ((await threatWindows.ended(nowMs, 1)).length > 0) return true
    return (await eventStorms.over(minuteOf(nowMs))).length > 0
  }

  /** Reports the windows and minutes that have ended, a slice at a time; `more`: there are more. */
  async followUp(
    nowMs: number,
    queries: Queries,
  ): Promise<{ readonly events: readonly NewEvent[]; readonly more: boolean }> {
    const { threatWindows, eventStorms } = this.#store
    const { windowMs, eventsPerMinute } = this.#settings
    const ended = await threatWindows.ended(nowMs, ENDED_AT_ONCE, queries)
    const over = await eventStorms.over(minuteOf(nowMs), queries)
    const topics = [...ended, ...over].map(({ topic }) => topic)
    const storms = await Storms.open(eventStorms, topics, eventsPerMinute, nowMs, queries)
    const [told, gone]: [ThreatWindow[], ThreatWindow[]] = [[], []]
    const events: NewEvent[] = []
    for (const window of ended) {
      if (window.count === 0) gone.push(window)
      else if (storms.admit(window.topic)) {
        told.push(window)
        events.push(eventOf(withCount(parseDraft(window.event), window), nowMs))
      } else {
        gone.push(window)
        const draft = withCount(parseDraft(window.event), window)
        if (storms.add(window.topic, occurrenceIn(draft, window))) storms.describe(window.topic, draft)
      }
    }
    await threatWindows.put(
      told.map((window) => ({ ...window, count: 0, sinceMs: nowMs, endsAtMs: nowMs + windowMs })),
      queries,
    )
    await threatWindows.remove(
      gone.map(({ key }) => key),
      queries,
    )
    await storms.save(queries)
    return { events: [...storms.over, ...events], more: ended.length === ENDED_AT_ONCE }
  }

  async #tell(fresh: readonly Threat[], nowMs: number, queries: Queries) {
    const { windowMs, eventsPerMinute } = this.#settings
    const topics = fresh.map(({ topic }) => topic)
    const storms = await Storms.open(this.#store.eventStorms, topics, eventsPerMinute, nowMs, queries)
    const admitted = new Set<Threat>()
    const firsts: Threat[] = []
    for (const threat of fresh) {
      if (storms.admit(threat.topic)) admitted.add(threat)
      else if (storms.add(threat.topic, threat)) firsts.push(threat)
    }
    const ids = new Set([...admitted, ...firsts].flatMap(({ software }) => software))
    const names = await this.#store.agentsSeen.names([...ids], queries)
    for (const first of firsts) storms.describe(first.topic, first.describe(names))
    const drafts = [...admitted].map((threat) => ({ threat, draft: threat.describe(names) }))
    await this.#store.threatWindows.put(
      drafts.map(({ threat, draft }) => opened(threat, draft, nowMs, windowMs)),
      queries,
    )
    await storms.save(queries)
    return { admitted, events: [...storms.over, ...drafts.map(({ draft }) => eventOf(draft, nowMs))] }
  }
}

function counting(window: ThreatWindow, { count, sinceMs, untilMs }: Threat): ThreatWindow {
  return {
    ...window,
    count: window.count + count,
    sinceMs: window.count === 0 ? sinceMs : Math.min(window.sinceMs, sinceMs),
    untilMs: Math.max(window.untilMs, untilMs),
  }
}

function opened(
  { key, topic, untilMs }: Threat,
  draft: EventDraft,
  nowMs: number,
  windowMs: number,
): ThreatWindow {
  return {
    key,
    topic,
    endsAtMs: nowMs + windowMs,
    count: 0,
    sinceMs: nowMs,
    untilMs,
    event: draftText(draft),
  }
}

/** The count of a window that becomes part of a summary event. */
function occurrenceIn(draft: EventDraft, window: ThreatWindow): Occurrence {
  const { agent, category, confidence, app, data } = draft
  const { request, detection } = data as {
    readonly request: { readonly address: string | null }
    readonly detection: { readonly fingerprints: { readonly ja4: string } }
  }
  const { count, sinceMs, untilMs } = window
  const fingerprint = detection.fingerprints.ja4 || null
  const { address } = request
  const occurrence = { count, sinceMs, untilMs, address, fingerprint, agent, category, confidence, app }
  return { ...occurrence, example: exampleOf(occurrence) }
}

function sumsOf(threats: readonly Threat[]): ReadonlyMap<ThreatReason, number> {
  const sums = new Map<ThreatReason, number>()
  for (const { reason, count } of threats) sums.set(reason, (sums.get(reason) ?? 0) + count)
  return sums
}

const ENDED_AT_ONCE = 128
