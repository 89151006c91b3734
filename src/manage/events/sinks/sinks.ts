import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Log } from '../../../shared/log.ts'
import type { Store } from '../../../store/store.ts'
import type { EventLog } from '../event-log.ts'
import { shownEvent } from '../shown-event.ts'
import { cefOf } from './cef.ts'
import { FileSink } from './file-sink.ts'
import type { LineOf, Sink } from './sink.ts'
import { type SinkKind, SinkMetrics } from './sink-metrics.ts'
import { type RunnerSettings, SinkRunner } from './sink-runner.ts'
import { SyslogStreamSink } from './stream-sink.ts'
import { syslogPlace } from './syslog-place.ts'
import { UdpSink } from './udp-sink.ts'

type SinkPace = Pick<RunnerSettings, 'pollMs' | 'retryBaseMs'>
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
  readonly metrics: SinkMetrics
  readonly #settings: SinkSettings
  readonly #pace: SinkPace
  #runners: readonly SinkRunner[] = []

  /** `pace` overrides the timing in tests. */
  constructor(settings: SinkSettings, pace: SinkPace = {}) {
    this.#settings = settings
    this.#pace = pace
    const kinds: readonly SinkKind[] = ['file', 'syslog']
    this.metrics = new SinkMetrics(kinds.filter((kind) => settings[kind] !== null))
  }

  /** Resolves when each sink's starting position is known. */
  async start(links: SinkLinks): Promise<void> {
    const { file, syslog } = this.#settings
    // Only one process opens a SQLite file.
    const isAlone = links.store.kind === 'sqlite'
    const runner = (kind: SinkKind, sink: Sink, name: string, isShared: boolean) => {
      const holder = isShared ? randomUUID() : 'own'
      return new SinkRunner(sink, { ...this.#pace, name, holder, isShared }, links, this.metrics.of(kind))
    }
    const runners: SinkRunner[] = []
    if (file !== null) {
      const sink = new FileSink(file.file, lineOf(file.format, links.version))
      const where = isAlone ? '' : `${hostname()} `
      runners.push(runner('file', sink, `file ${where}${resolve(file.file)}`, false))
    }
    if (syslog !== null) {
      const place = syslogPlace(syslog.url, syslog.ca)
      const Kind = place.protocol === 'udp' ? UdpSink : SyslogStreamSink
      const sink = new Kind(place, lineOf(syslog.format, links.version))
      runners.push(runner('syslog', sink, `syslog ${syslog.url}`, !isAlone))
    }
    this.#runners = runners
    await Promise.all(runners.map((each) => each.start()))
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
