import { createHash, type Hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault } from '../../shared/fault.ts'
import type { Store } from '../../store/store.ts'
import type { SightingPlace } from '../../store/traffic/sightings.ts'
import { isAmong } from '../events/event-filter.ts'
import type { Sink } from '../events/sinks/sink.ts'
import type { SinkCounts } from '../events/sinks/sink-metrics.ts'
import type { DraftFile, FilePlace } from './file-place.ts'
import { ParquetFile } from './parquet-file.ts'
import type { SightingPiece } from './parquet-pieces.ts'
import { REQUEST_COLUMNS, WEIGHT } from './request-columns.ts'
import { requestRow } from './request-row.ts'

interface ParquetLinks {
  readonly store: Pick<Store, 'sightings'>
  readonly place: FilePlace
  /** Only requests to these apps. Empty: all. */
  readonly apps: readonly string[]
  readonly counts: SinkCounts
  readonly fileBytesMax?: number
}

/**
 * Writes requests to Parquet files, in a folder for each app, day and hour: `app=shop/date=2026-11-28/hour=13`. The name of a
 * file is made of the ids of its requests. So files that are written again replace equal ones.
 */
export class ParquetSink implements Sink<SightingPiece> {
  readonly confirmMs = 0
  readonly #links: ParquetLinks
  #closing = new AbortController()
  /** The folders of this piece that have all their files. */
  #done: { readonly last: number; readonly folders: Set<string> } = { last: 0, folders: new Set() }

  constructor(links: ParquetLinks) {
    this.#links = links
  }

  async write(pieces: readonly SightingPiece[]): Promise<void> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController()
    for (const piece of pieces) await this.#writePiece(piece)
  }

  broken(): null {
    return null
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#links.place.close()
  }

  async #writePiece({ after, last }: SightingPiece): Promise<void> {
    const { store, apps } = this.#links
    const all = await store.sightings.placesAfter(after, last, Number.MAX_SAFE_INTEGER)
    const wanted = all.filter(({ app }) => isAmong(app, apps))
    if (this.#done.last !== last) this.#done = { last, folders: new Set() }
    const { folders } = this.#done
    for (const [folder, places] of Map.groupBy(wanted, folderOf)) {
      if (folders.has(folder)) continue
      await this.#writeFolder(folder, places)
      folders.add(folder)
    }
  }

  async #writeFolder(folder: string, places: readonly SightingPlace[]): Promise<void> {
    const { store, counts, fileBytesMax = FILE_BYTES_MAX } = this.#links
    let file: OpenFile | null = null
    let requests = 0
    try {
      for (let at = 0; at < places.length; at += ROWS) {
        const part = places.slice(at, at + ROWS)
        const sightings = await store.sightings.numbered(part.map(({ number }) => number))
        if (sightings.length === 0) continue
        file ??= await this.#begin(part[0]!.number)
        for (const { id } of sightings) file.ids.update(id)
        await file.draft.append(file.parquet.add(sightings.map((each) => requestRow(each, () => null))))
        requests += sightings.length
        if (file.parquet.length >= fileBytesMax) {
          await this.#finish(folder, file)
          file = null
        }
        // Other work of this process goes on meanwhile.
        await nextTurn()
        if (this.#closing.signal.aborted) throw new Fault('SINK_AWAY', 'this process is ending')
      }
      if (file !== null) await this.#finish(folder, file)
      file = null
      counts.sent += requests
    } finally {
      await file?.draft.drop().catch(() => undefined)
    }
  }

  async #begin(first: number): Promise<OpenFile> {
    const draft = await this.#links.place.begin()
    return { first, draft, parquet: new ParquetFile(COLUMNS), ids: createHash('sha256') }
  }

  async #finish(folder: string, { first, draft, parquet, ids }: OpenFile): Promise<void> {
    try {
      await draft.append(parquet.end())
      await draft.finish(
        `${folder}/${String(first).padStart(12, '0')}-${ids.digest('hex').slice(0, 16)}.parquet`,
      )
    } catch (error) {
      await draft.drop().catch(() => undefined)
      throw error
    }
  }
}

interface OpenFile {
  /** The number of its first request. */
  readonly first: number
  readonly draft: DraftFile
  readonly parquet: ParquetFile
  readonly ids: Hash
}

function folderOf({ app, seenAtMs }: SightingPlace): string {
  const time = new Date(seenAtMs).toISOString()
  return `app=${app}/date=${time.slice(0, 10)}/hour=${time.slice(11, 13)}`
}

/** The folder says the app. Names in the catalogue may change, so that a file would not be the same again. */
const COLUMNS = [
  ...REQUEST_COLUMNS.filter(({ name }) => !['app', 'agent_name', 'software_name'].includes(name)),
  WEIGHT,
]
/** Of a row group. Takes some fifty milliseconds. */
const ROWS = 4_096
/** A file is complete when it is larger than this. */
const FILE_BYTES_MAX = 64 * 1024 * 1024
