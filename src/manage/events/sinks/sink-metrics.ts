import type { Metrics } from '../../../shared/metrics.ts'

export type SinkKind = 'file' | 'syslog'

/** The state of one sink. */
export interface SinkCounts {
  sent: number
  failures: number
  /** The time of the oldest event that the sink has not received; `null`: it has received all. */
  oldestAtMs: number | null
}

/** Metrics of the sinks. It exists before the database is open. */
export class SinkMetrics {
  readonly #counts: ReadonlyMap<SinkKind, SinkCounts>

  /** `kinds`: the configured sinks. */
  constructor(kinds: readonly SinkKind[]) {
    this.#counts = new Map(kinds.map((kind) => [kind, { sent: 0, failures: 0, oldestAtMs: null }]))
  }

  of(kind: SinkKind): SinkCounts {
    return this.#counts.get(kind)!
  }

  addTo(metrics: Metrics): void {
    if (this.#counts.size === 0) return
    const samples = (value: (counts: SinkCounts) => number) => () =>
      [...this.#counts].map(([sink, counts]) => ({ labels: { sink }, value: value(counts) }))
    metrics.counter(
      'sink_events_total',
      'Events delivered to a sink, some of them twice.',
      samples(({ sent }) => sent),
    )
    metrics.counter(
      'sink_failures_total',
      'Failed deliveries to a sink.',
      samples(({ failures }) => failures),
    )
    const lag = 'The age of the oldest event that waits for a sink; 0: none waits.'
    metrics.gauge('sink_lag_seconds', lag, 'max', samples(lagOf))
  }
}

function lagOf({ oldestAtMs }: SinkCounts): number {
  return oldestAtMs === null ? 0 : Math.max(0, Date.now() - oldestAtMs) / 1_000
}
