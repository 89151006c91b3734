import { EventLog } from '../../src/manage/events/event-log.ts'
import { EventMetrics } from '../../src/manage/events/event-metrics.ts'
import { EventSources, type ThreatSettings } from '../../src/manage/events/event-sources.ts'
import type { Ingest } from '../../src/manage/intake/ingest.ts'
import { NewSignatures } from '../../src/manage/events/new-signatures.ts'
import { REASONS } from '../../src/manage/events/threats/threat.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import type { Store } from '../../src/store/store.ts'
import { ingestInto, NOW_MS, seen, SILENT } from '../contract/seen.ts'

/** What finds out events, as a management process has it, with a clock that is set by hand. */
export class Watching {
  nowMs = NOW_MS
  readonly store: Store
  readonly metrics = new EventMetrics()
  readonly log: EventLog
  readonly signatures: NewSignatures
  readonly sources: EventSources
  readonly ingest: Ingest

  constructor(store: Store, changes: Partial<ThreatSettings> = {}) {
    this.store = store
    const nowMs = () => this.nowMs
    this.log = new EventLog(store)
    const settings = { ...SETTINGS, ...changes }
    const { eventsPerMinute } = settings
    const telling = { store, log: this.log, metrics: this.metrics, eventsPerMinute, nowMs }
    this.signatures = new NewSignatures(telling)
    const management = { store, events: this.log, snapshot: () => null }
    this.sources = new EventSources({ ...management, log: SILENT, nowMs }, settings, this.metrics)
    this.ingest = ingestInto(store, { events: this.sources.sightings, nowMs }).ingest
  }

  /** All that others are told of, in its order. */
  async told(): Promise<readonly Told[]> {
    const events = await this.store.events.after(0, 1_000)
    return events.map(({ data, number: _number, id: _id, ...event }) => ({
      ...event,
      data: JSON.parse(data),
    }))
  }

  /** Of each what it is and for how many it stands. */
  async counts(): Promise<readonly string[]> {
    return (await this.told()).map(({ type, data }) =>
      `${data['reason'] ?? type} ${data['count'] ?? ''}`.trim(),
    )
  }

  async later(ms: number): Promise<void> {
    this.nowMs += ms
    while ((await this.sources.followUp()) === 'more');
  }
}

export interface Told {
  readonly type: string
  readonly subject: string
  readonly agent: string | null
  readonly category: string | null
  readonly severity: string | null
  readonly confidence: number | null
  readonly app: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** One that shows nothing, but for these. */
export function quiet(number: number, changes: Partial<Sighting> = {}): Sighting {
  return seen(number, { forged: [], ...changes })
}

export function blocked(number: number, changes: Partial<Sighting> = {}): Sighting {
  return quiet(number, { action: 'block', done: 'block', rule: 'no curl', ...changes })
}

export const SETTINGS: ThreatSettings = {
  ...{ windowMs: 300_000, eventsPerMinute: 30, reasons: new Set(REASONS) },
  ...{
    anomaly: { factor: 10, requestsMin: 300 },
    robots: { file: null, upstream: null, isPublished: false },
  },
}
