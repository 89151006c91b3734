import type { SightingFile } from '../../manage/intake/sighting-file.ts'
import type { KeyPair } from '../../proxy/tls/key-pair.ts'
import type { WorkerPool } from '../../proxy/worker/worker-pool.ts'
import { addProcessMetrics } from '../../proxy/worker/worker-metrics.ts'
import type { Metrics } from '../../shared/metrics.ts'

export function addCertificateMetrics(metrics: Metrics, inUse: () => readonly KeyPair[]): void {
  metrics.gauge('certificate_not_after_timestamp_seconds', 'When each certificate expires.', 'first', () =>
    inUse().map(({ name, keyType, notAfterMs }) => {
      return { labels: { certificate: name, key_type: keyType }, value: notAfterMs / 1000 }
    }),
  )
}

export function addPoolMetrics(metrics: Metrics, pool: WorkerPool): void {
  addProcessMetrics(metrics)
  metrics.gauge('workers_listening', 'Workers that accept connections.', 'sum', () => [
    { labels: {}, value: pool.counts.listening },
  ])
  metrics.counter('worker_restarts_total', 'Workers that died and were replaced.', () => [
    { labels: {}, value: pool.counts.restarts },
  ])
}

/** For a process without a database, which only counts sightings or passes them on. */
export function addReceivedMetrics(metrics: Metrics, count: () => number): void {
  metrics.counter('sightings_received_total', 'Sightings that workers have sent.', () => [
    { labels: {}, value: count() },
  ])
}

export function addSightingFileMetrics(metrics: Metrics, { counts }: SightingFile): void {
  metrics.counter('sightings_written_total', 'Sightings written to sightings.file.', () => [
    { labels: {}, value: counts.written },
  ])
  metrics.counter(
    'sightings_unwritten_total',
    'Sightings that could not be written to sightings.file.',
    () => [{ labels: {}, value: counts.dropped }],
  )
}
