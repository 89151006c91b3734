import { DurationHistogram, type Metrics, LabelledCounter } from '../../../shared/metrics.ts'
import type { DeliveryTold } from '../../../store/events/deliveries.ts'
import { POST_OUTCOMES, type PostOutcome } from './courier.ts'

/** Metrics of webhook deliveries. It exists before the database is open. */
export class DeliveryMetrics {
  readonly #attempts = new LabelledCounter({ outcome: POST_OUTCOMES })
  readonly #deliveries = new LabelledCounter({ outcome: ['delivered', 'failed'] })
  readonly #latencies = new DurationHistogram(LATENCY_BOUNDS_MS)
  /** As last counted in the database. */
  readonly counted = { pending: 0, oldestMs: null as number | null, disabled: 0 }

  attempted(outcome: PostOutcome): void {
    this.#attempts.add(outcome)
  }

  told({ outcome, atMs, delivery }: DeliveryTold): void {
    if (outcome === null) return
    this.#deliveries.add(outcome)
    if (outcome === 'delivered') this.#latencies.observe(Math.max(0, atMs - delivery.createdAtMs))
  }

  addTo(metrics: Metrics): void {
    const { counted } = this
    metrics.counter(
      'webhook_deliveries_total',
      'Finished deliveries to webhooks: accepted or given up.',
      () => this.#deliveries.samples(),
    )
    metrics.counter('webhook_attempts_total', 'Attempts to deliver to webhooks, by outcome.', () =>
      this.#attempts.samples(),
    )
    metrics.histogram(
      'webhook_latency_seconds',
      'The time from recording an event, or a request to redeliver it, to its acceptance by the webhook.',
      this.#latencies,
    )
    const gauge = (name: string, help: string, value: () => number) =>
      metrics.gauge(name, help, 'first', () => [{ labels: {}, value: value() }])
    gauge('webhook_lag_seconds', 'Approximate age of the oldest pending delivery.', () =>
      counted.oldestMs === null ? 0 : Math.max(0, Date.now() - counted.oldestMs) / 1000,
    )
    gauge('webhook_deliveries_pending', 'Approximate number of pending deliveries.', () => counted.pending)
    gauge('webhooks_disabled', 'Webhooks disabled because of their answers.', () => counted.disabled)
  }
}

const LATENCY_BOUNDS_MS = [50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000, 600_000, 3_600_000, 36_000_000]
