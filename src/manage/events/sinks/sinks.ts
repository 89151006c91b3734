import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Log } from '../../../shared/log.ts'
import type { Store } from '../../../store/store.ts'
import { isAmong } from '../event-filter.ts'
import type { EventLog } from '../event-log.ts'
import { shownEvent } from '../shown-event.ts'
import { cefOf } from './cef.ts'
import { FileSink } from './file-sink.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import type { LineOf, Sink, SinkSource } from './sink.ts'
import type { SinkKind, SinkMetrics } from './sink-metrics.ts'
import { type RunnerSettings, SinkRunner } from './sink-runner.ts'
import { SyslogStreamSink } from './stream-sink.ts'
import { syslogPlace } from './syslog-place.ts'
import { UdpSink } from './udp-sink.ts'

/** Overrides the timing in tests. */
export type SinkPace = Pick<RunnerSettings, 'pollMs' | 'retryBaseMs'>
type SinkFormat = 'json' | 'cef'

/** The destinations of events; `null`: not configured. */
export interface SinkSettings {
  readonly file: { readonly file: string; readonly format: SinkFormat } | null
  readonly syslog: {
    readonly url: string
    readonly format: SinkFormat
    /** PEM certificates that are trusted instead of the system's. */
    readonly ca: string | null
  } | null
  /** Only events about these apps. Empty or missing: all events. */
  readonly apps?: readonly string[]
}

/** Where a sink of this process sends to. */
interface SinkPlace {
  readonly kind: 'file' | 'syslog'
  /** A file or a URL. */
  readonly place: string
  /** Of its position in the store. */
  readonly name: string
}

interface SinkLinks {
  readonly store: Pick<Store, 'events' | 'eventPositions' | 'kind'>
  readonly events: Pick<EventLog, 'onAdded'>
  readonly log: Log
  readonly version: string
  nowMs(): number
}

/** All configured sinks. Each process writes to its own file; only one process at a time sends to syslog. */
export class Sinks {
  readonly #settings: SinkSettings
  readonly #metrics: SinkMetrics
  readonly #pace: SinkPace
  #runners: readonly SinkRunner<EventRecord>[] = []
  #places: readonly SinkPlace[] = []

  constructor(settings: SinkSettings, metrics: SinkMetrics, pace: SinkPace = {}) {
    this.#settings = settings
    this.#metrics = metrics
    this.#pace = pace
  }

  /** Empty before the start. */
  get places(): readonly SinkPlace[] {
    return this.#places
  }

  /** Resolves when each sink's starting position is known. */
  async start(links: SinkLinks): Promise<void> {
    const { file, syslog, apps = [] } = this.#settings
    // Only one process opens a SQLite file.
    const isAlone = links.store.kind === 'sqlite'
    const source = eventSource(links, apps)
    const runner = (kind: SinkKind, sink: Sink, name: string, isShared: boolean) => {
      const holder = isShared ? randomUUID() : 'own'
      const settings = { ...this.#pace, name, holder, isShared }
      return new SinkRunner({ sink, source }, settings, links, this.#metrics.of(kind))
    }
    const runners: SinkRunner<EventRecord>[] = []
    const places: SinkPlace[] = []
    if (file !== null) {
      const sink = new FileSink(file.file, lineOf(file.format, links.version))
      const where = isAlone ? '' : `${hostname()} `
      const [place, name] = [resolve(file.file), `file ${where}${resolve(file.file)}`]
      places.push({ kind: 'file', place, name })
      runners.push(runner('file', sink, name, false))
    }
    if (syslog !== null) {
      const place = syslogPlace(syslog.url, syslog.ca)
      const Kind = place.protocol === 'udp' ? UdpSink : SyslogStreamSink
      const sink = new Kind(place, lineOf(syslog.format, links.version))
      const name = `syslog ${syslog.url}`
      places.push({ kind: 'syslog', place: syslog.url, name })
      runners.push(runner('syslog', sink, name, !isAlone))
    }
    this.#runners = runners
    await Promise.all(runners.map((each) => each.start()))
    this.#places = places
  }

  /** A backup was restored. */
  restored(): void {
    for (const runner of this.#runners) runner.restored()
  }

  /** Events that were not sent by then are sent after the next start. */
  async close(): Promise<void> {
    await Promise.all(this.#runners.map((runner) => runner.close()))
  }
}

export function lineOf(format: SinkFormat, version: string): LineOf {
  return format === 'cef'
    ? (event) => cefOf(event, version)
    : (event) => JSON.stringify(shownEvent(event, 'full'))
}

export function eventSource(
  { store, events }: Pick<SinkLinks, 'store' | 'events'>,
  apps: readonly string[],
): SinkSource<EventRecord> {
  return {
    what: 'events',
    kept: () => store.events.kept(),
    after: (number, limit) => store.events.after(number, limit),
    numberOf: ({ number }) => number,
    atMsOf: ({ atMs }) => atMs,
    isWanted: ({ app }) => isAmong(app, apps),
    sizeOf: () => 1,
    onAdded: (listener) => events.onAdded(listener),
  }
}
