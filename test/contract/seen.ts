import { createLogTo } from '../../src/shared/log.ts'
import { Ingest, type IngestOptions } from '../../src/manage/intake/ingest.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import type { Sighting, SightingId } from '../../src/plane/sighting.ts'
import type { Store } from '../../src/store/store.ts'
import { sighting as plain } from './bus.ts'

/** As of a proxy: `ms` and `counter` as its clock and its counter make them. */
export function idOf(ms: number, counter: number, process = 'a'.repeat(12)): SightingId {
  const time = ms.toString(16).padStart(12, '0')
  const count = counter.toString(16).padStart(6, '0')
  const id = `${time.slice(0, 8)}-${time.slice(8)}-7${count.slice(0, 3)}-8${count.slice(3)}-${process}`
  return id as SightingId
}

/** The `number`th one of a proxy that sees a request each millisecond, its clock read every tenth of a second. */
export function seen(number: number, changes: Partial<Sighting> = {}): Sighting {
  const ms = START_MS + number
  const id = idOf(ms - (ms % 100), ms % 100)
  return { ...plain(number), app: 'default', id, seenAtMs: ms, path: '/', ...changes }
}

/** What takes them in, and what it has counted. */
export function ingestInto(
  store: Store,
  options: Partial<IngestOptions> = {},
): { readonly ingest: Ingest; readonly metrics: IngestMetrics } {
  const metrics = new IngestMetrics()
  const all = {
    retention: RETENTION,
    counters: [],
    events: null,
    waitsForDisk: true,
    stored: () => undefined,
    ...{ versionOf: () => null, nowMs: () => NOW_MS },
    ...options,
  }
  return { ingest: new Ingest(store, all, metrics, SILENT), metrics }
}

export const SILENT = createLogTo('silent', { write: () => undefined })
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000
export const RETENTION = { minutesMs: 2 * DAY_MS, hoursMs: 90 * DAY_MS, daysMs: 1825 * DAY_MS }
/** An afternoon, at no round time. */
export const NOW_MS = Date.UTC(2026, 10, 20, 15, 42, 17, 345)
export const START_MS = NOW_MS - 10 * MINUTE_MS
