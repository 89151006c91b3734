import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import type { Sink } from '../events/sinks/sink.ts'
import type { SinkKind, SinkMetrics } from '../events/sinks/sink-metrics.ts'
import { SinkRunner } from '../events/sinks/sink-runner.ts'
import type { SinkPace } from '../events/sinks/sinks.ts'
import type { NumberedSighting } from '../../store/traffic/sightings.ts'
import type { FilePlace } from './file-place.ts'
import { FolderPlace } from './folder-place.ts'
import type { NatsSinkSettings } from './nats-sink.ts'
import { type OtlpLogSettings, OtlpLogSink } from './otlp-log-sink.ts'
import { ParquetPieces } from './parquet-pieces.ts'
import { ParquetSink } from './parquet-sink.ts'
import { SightingSource } from './sighting-source.ts'
import { S3Place, type S3Settings } from './s3-place.ts'

/** The destinations of individual requests; `null`: not configured. */
export interface RequestSinkSettings {
  readonly parquet: ParquetSettings | null
  readonly nats: NatsSinkSettings | null
  readonly otlp: OtlpLogSettings | null
  /** Only requests to these apps. Empty: all. */
  readonly apps: readonly string[]
}

export interface ParquetSettings {
  readonly place: { readonly folder: string } | { readonly s3: Omit<S3Settings, 'draftFolder'> }
  readonly everyMs: number
  readonly rowsMax: number
  /** For how long the days of files are kept. `null` or missing: whatever their age. */
  readonly keptMs?: number | null
}

interface RequestSinkLinks {
  readonly store: Pick<Store, 'sightings' | 'eventPositions' | 'kind'>
  readonly log: Log
  nowMs(): number
}

/** All configured sinks of requests. If several processes share the database, one at a time sends to each. */
export class RequestSinks {
  readonly #settings: RequestSinkSettings
  readonly #metrics: SinkMetrics
  readonly #dataFolder: string
  readonly #pace: SinkPace
  #runners: readonly Runner[] = []
  /** From which files are deleted. */
  #forgetting: FilePlace | null = null

  constructor(settings: RequestSinkSettings, metrics: SinkMetrics, dataFolder: string, pace: SinkPace = {}) {
    this.#settings = settings
    this.#metrics = metrics
    this.#dataFolder = dataFolder
    this.#pace = pace
  }

  /** Resolves when each sink's starting position is known. */
  async start(links: RequestSinkLinks): Promise<void> {
    const { parquet, nats, otlp } = this.#settings
    const runners: Runner[] = []
    if (parquet !== null) runners.push(this.#parquetRunner(parquet, links))
    if (nats !== null) {
      const { NatsSink } = await import('./nats-sink.ts')
      const sink = new NatsSink(nats, links.log, this.#metrics.of('nats'))
      runners.push(this.#streamRunner('nats', { sink, name: `nats ${nats.subject}` }, links))
    }
    if (otlp !== null) {
      const sink = new OtlpLogSink(otlp, links.log, this.#metrics.of('otlp'))
      runners.push(this.#streamRunner('otlp', { sink, name: `otlp ${otlp.endpoint}` }, links))
    }
    this.#runners = runners
    await Promise.all(runners.map((each) => each.start()))
  }

  /** Deletes files of requests that are too old. */
  async forget(nowMs: number): Promise<void> {
    const { place, keptMs = null } = this.#settings.parquet ?? {}
    if (place === undefined || keptMs === null) return
    const files = this.#filesAt(place)
    this.#forgetting = files
    try {
      await files.forget(nowMs - keptMs)
    } finally {
      await files.close()
    }
  }

  /** A backup was restored. */
  restored(): void {
    for (const runner of this.#runners) runner.restored()
  }

  /** Requests that were not sent by then are sent after the next start. */
  async close(): Promise<void> {
    await Promise.all([...this.#runners, this.#forgetting].map((each) => each?.close()))
  }

  #parquetRunner({ place, everyMs, rowsMax }: ParquetSettings, links: RequestSinkLinks): Runner {
    const { apps } = this.#settings
    const where = 'folder' in place ? resolve(place.folder) : `s3://${place.s3.bucket}/${place.s3.prefix}`
    const settings = this.#runnerSettings(`parquet ${where}`, links)
    const counts = this.#metrics.of('parquet')
    const files = this.#filesAt(place)
    const { store, log, nowMs } = links
    const source = new ParquetPieces({ everyMs, rowsMax }, { store, log, counts, holder: settings, nowMs })
    const sink = new ParquetSink({ store, place: files, apps, counts })
    return new SinkRunner({ sink, source }, settings, links, counts)
  }

  #filesAt(place: ParquetSettings['place']): FilePlace {
    return 'folder' in place
      ? new FolderPlace(place.folder)
      : new S3Place({ ...place.s3, draftFolder: join(this.#dataFolder, 'parquet') })
  }

  /** Requests one by one. */
  #streamRunner(
    kind: SinkKind,
    { sink, name }: { readonly sink: Sink<NumberedSighting>; readonly name: string },
    links: RequestSinkLinks,
  ): Runner {
    const { apps } = this.#settings
    const counts = this.#metrics.of(kind)
    const source = new SightingSource({ store: links.store, log: links.log, counts, apps })
    const settings = { ...this.#runnerSettings(name, links), atOnce: AT_ONCE }
    return new SinkRunner({ sink, source }, settings, links, counts)
  }

  #runnerSettings(name: string, { store }: RequestSinkLinks) {
    // Only one process opens a SQLite file.
    const isShared = store.kind !== 'sqlite'
    return { ...this.#pace, name, holder: isShared ? randomUUID() : 'own', isShared }
  }
}

type Runner = Pick<SinkRunner<never>, 'start' | 'restored' | 'close'>

export function sinkKinds(sinks: Readonly<Partial<Record<SinkKind, unknown>>>): readonly SinkKind[] {
  return KINDS.filter((kind) => (sinks[kind] ?? null) !== null)
}

/** Some hundred kilobytes. */
const AT_ONCE = 500
const KINDS: readonly SinkKind[] = ['file', 'syslog', 'parquet', 'nats', 'otlp']
