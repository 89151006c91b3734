import { DurationHistogram, type Metrics, LabelledCounter } from '../shared/metrics.ts'

/** Metrics of the webhook. */
export class InjectMetrics {
  readonly #reviews = new LabelledCounter({
    outcome: ['patched', 'unchanged', 'refused', 'malformed', 'failed'],
  })
  readonly #durations = new DurationHistogram()
  readonly #looks = new LabelledCounter({ outcome: ['done', 'failed'] })
  readonly #steps = new LabelledCounter({ step: ['all', 'announce', 'promote', 'leaf', 'forget'] })
  #notAfterMs: Readonly<Record<string, number>> = {}

  reviewed(outcome: string, durationMs: number): void {
    this.#reviews.add(outcome)
    this.#durations.observe(durationMs)
  }

  /** One poll of the Secret with the self-made certificate. */
  looked(outcome: 'done' | 'failed'): void {
    this.#looks.add(outcome)
  }

  stepped(step: string): void {
    this.#steps.add(step)
  }

  /** Expiry times by certificate: `leaf`, `ca`. */
  certificates(notAfterMs: Readonly<Record<string, number>>): void {
    this.#notAfterMs = notAfterMs
  }

  addTo(metrics: Metrics): void {
    metrics.counter('inject_reviews_total', 'Admission reviews, by outcome.', () => this.#reviews.samples())
    metrics.histogram(
      'inject_review_duration_seconds',
      'The time from the head of the request to the answer.',
      this.#durations,
    )
    metrics.counter(
      'inject_certificate_looks_total',
      'Checks of the self-made certificate, by outcome.',
      () => this.#looks.samples(),
    )
    metrics.counter('inject_certificate_steps_total', 'Renewals of it by this replica.', () =>
      this.#steps.samples(),
    )
    metrics.gauge('inject_certificate_not_after_timestamp_seconds', 'When it expires.', 'min', () =>
      Object.entries(this.#notAfterMs).map(([certificate, ms]) => ({
        labels: { certificate },
        value: ms / 1000,
      })),
    )
  }
}
