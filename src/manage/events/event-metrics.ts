import type { Metrics } from '../../shared/metrics.ts'
import type { NewEvent } from '../../store/events/events.ts'
import { EVENT_TYPES, type EventType } from '../../store/engine/tables/events.ts'
import type { ThreatOutcome } from './threats/threat-log.ts'
import { REASONS, type ThreatReason } from './threats/threat.ts'

/** Counts the events and threats that this process detected. */
export class EventMetrics {
  readonly #events = new Map<EventType, number>(EVENT_TYPES.map((type) => [type, 0]))
  readonly #threats = new Map<ThreatReason, number>(REASONS.map((reason) => [reason, 0]))
  readonly #suppressed = new Map<ThreatReason, number>(REASONS.map((reason) => [reason, 0]))

  count({ events, found, suppressed }: ThreatOutcome): void {
    this.countEvents(events)
    for (const [reason, count] of found) add(this.#threats, reason, count)
    for (const [reason, count] of suppressed) add(this.#suppressed, reason, count)
  }

  countEvents(events: readonly Pick<NewEvent, 'type'>[]): void {
    for (const { type } of events) add(this.#events, type, 1)
  }

  addTo(metrics: Metrics): void {
    metrics.counter('events_total', 'Events recorded for webhooks and sinks.', () =>
      samples('type', this.#events),
    )
    metrics.counter('threats_total', 'Requests with a threat, by reason.', () =>
      samples('reason', this.#threats),
    )
    const suppressed = 'Threats that were counted but not reported at once.'
    metrics.counter('threats_suppressed_total', suppressed, () => samples('reason', this.#suppressed))
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

function samples(label: string, counts: ReadonlyMap<string, number>) {
  return [...counts].map(([key, value]) => ({ labels: { [label]: key }, value }))
}
