import type { Metrics } from '../../shared/metrics.ts'

export const PAYMENT_OUTCOMES = ['paid', 'refused', 'pending', 'unavailable'] as const

/** The outcomes of payments at this process. */
export class PaymentMetrics {
  readonly outcomes: Record<(typeof PAYMENT_OUTCOMES)[number], number> = {
    paid: 0,
    refused: 0,
    pending: 0,
    unavailable: 0,
  }
  /** Answers of the facilitator or the license server that were missing, late or made no sense. */
  facilitatorFailures = 0

  addTo(metrics: Metrics): void {
    metrics.counter('payments_total', 'Requests with a payment, by outcome.', () =>
      PAYMENT_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: this.outcomes[outcome] })),
    )
    metrics.counter(
      'payment_facilitator_failures_total',
      'Answers of the facilitator or the license server that were missing, late or made no sense.',
      () => [{ labels: {}, value: this.facilitatorFailures }],
    )
  }
}
