import type { Metrics } from '../../../shared/metrics.ts'

/** The first two receive events, the others requests. */
export type SinkKind = 'file' | 'syslog' | 'parquet' | 'nats' | 'otlp'

/** The state of one sink. */
export interface SinkCounts {
  sent: number
  failures: number
  /** The time of the oldest record that the sink has not received; `null`: it has received all. */
  oldestAtMs: number | null
  /** Of requests: how many wait, and how many the sink will not receive: they were deleted, or refused for good. */
  waiting: number
  lost: number
}

/** Metrics of the sinks. It exists before the database is open. */
export class SinkMetrics {
  readonly #counts: ReadonlyMap<SinkKind, SinkCounts>

  /** `kinds`: the configured sinks. */
  constructor(kinds: readonly SinkKind[]) {
    this.#counts = new Map(kinds.map((kind) => [kind, newCounts()]))
  }

  of(kind: SinkKind): SinkCounts {
    return this.#counts.get(kind)!
  }

  addTo(metrics: Metrics): void {
    if (this.#counts.size === 0) return
    const samples = (value: (counts: SinkCounts) => number, of: (kind: SinkKind) => boolean) => () =>
      [...this.#counts]
        .filter(([sink]) => of(sink))
        .map(([sink, counts]) => ({ labels: { sink }, value: value(counts) }))
    const all = () => true
    const [ofEvents, ofRequests] = [isOfEvents, (kind: SinkKind) => !isOfEvents(kind)]
    const kinds = [...this.#counts.keys()]
    if (kinds.some(ofEvents))
      metrics.counter(
        'sink_events_total',
        'Events delivered to a sink, some of them twice.',
        samples(({ sent }) => sent, ofEvents),
      )
    metrics.counter(
      'sink_failures_total',
      'Failed deliveries to a sink.',
      samples(({ failures }) => failures, all),
    )
    const lag = 'The age of the oldest event or request that waits for a sink; 0: none waits.'
    metrics.gauge('sink_lag_seconds', lag, 'max', samples(lagOf, all))
    if (!kinds.some(ofRequests)) return
    metrics.counter(
      'sink_requests_total',
      'Requests delivered to a sink, some of them twice.',
      samples(({ sent }) => sent, ofRequests),
    )
    metrics.counter(
      'sink_requests_lost_total',
      'Requests that a sink has not received: the database has deleted them, or the receiver refuses them for good.',
      samples(({ lost }) => lost, ofRequests),
    )
    const waiting = 'Requests that wait for a sink.'
    metrics.gauge(
      'sink_requests_waiting',
      waiting,
      'max',
      samples(({ waiting }) => waiting, ofRequests),
    )
  }
}

export function newCounts(): SinkCounts {
  return { sent: 0, failures: 0, oldestAtMs: null, waiting: 0, lost: 0 }
}

function isOfEvents(kind: SinkKind): boolean {
  return kind === 'file' || kind === 'syslog'
}

function lagOf({ oldestAtMs }: SinkCounts): number {
  return oldestAtMs === null ? 0 : Math.max(0, Date.now() - oldestAtMs) / 1_000
}
