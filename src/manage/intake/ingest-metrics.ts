import { CountsByApp } from '../../apps/counts-by-app.ts'
import { DurationHistogram, type Metrics } from '../../shared/metrics.ts'

/** Metrics of the Sightings that the management plane receives. It exists before the database is open. */
export class IngestMetrics {
  readonly counts = { stored: 0, duplicates: 0, refused: 0, failures: 0 }
  readonly onlyCounted = new CountsByApp()
  readonly lost = new CountsByApp()
  readonly durations = new DurationHistogram()
  readonly retention = { done: 0, failed: 0 }
  /** By table, as last counted. */
  readonly rows = new Map<string, number>()

  addTo(metrics: Metrics): void {
    const { counts, onlyCounted, lost } = this
    const count = (name: string, help: string, value: () => number) =>
      metrics.counter(name, help, () => [{ labels: {}, value: value() }])
    const received =
      'Sightings received by the management plane, without duplicates: stored, only counted, and refused.'
    count('sightings_received_total', received, () => counts.stored + onlyCounted.total + counts.refused)
    count('sightings_stored_total', 'Sightings in the database, and in statistics.', () => counts.stored)
    const only = 'Sightings in statistics only, by app: they came faster than they could be stored.'
    metrics.counter('sightings_only_counted_total', only, () => onlyCounted.samples)
    const beyond = 'Sightings that are lost, by app: they came faster than they could be counted.'
    metrics.counter('sightings_lost_total', beyond, () => lost.samples)
    const duplicates = 'Sightings that arrived again and were not counted again.'
    count('sightings_duplicate_total', duplicates, () => counts.duplicates)
    const refused = 'Invalid Sightings, which were dropped.'
    count('sightings_refused_total', refused, () => counts.refused)
    const failures = 'Groups of Sightings that the database could not store; the proxies keep them.'
    count('ingest_failures_total', failures, () => counts.failures)
    metrics.histogram('ingest_duration_seconds', 'The time to store a group of Sightings.', this.durations)
    metrics.gauge('store_rows', 'Approximate number of rows in tables that grow with traffic.', 'sum', () =>
      [...this.rows].map(([table, value]) => ({ labels: { table }, value })),
    )
    metrics.counter('retention_runs_total', 'Removals of old rows.', () =>
      Object.entries(this.retention).map(([outcome, value]) => ({ labels: { outcome }, value })),
    )
  }
}
