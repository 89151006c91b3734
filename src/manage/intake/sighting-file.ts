import { type FileHandle, open, rename } from 'node:fs/promises'
import type { Log } from '../../shared/log.ts'
import type { Sighting } from '../../plane/sighting.ts'

export interface SightingFileSettings {
  readonly file: string
  /** A full file is renamed to `FILE.1`, which replaces the previous one, and a new file is started. */
  readonly bytesMax: number
}

/**
 * Appends Sightings to a file, one JSON object per line. `append` never waits: Sightings that the disk cannot
 * take in time are dropped and counted. Only the user of this process can read the file, because it contains
 * people's addresses.
 */
export class SightingFile {
  readonly counts = { written: 0, dropped: 0 }
  readonly #settings: SightingFileSettings
  readonly #log: Log
  #handle: FileHandle | null = null
  #bytes = 0
  #waiting: Sighting[] = []
  #writing: Promise<void> | null = null
  /** Disk errors are logged once, until a write succeeds. */
  #isFailing = false

  constructor(settings: SightingFileSettings, log: Log) {
    this.#settings = settings
    this.#log = log
  }

  append(batch: readonly Sighting[]): void {
    const room = WAITING_MAX - this.#waiting.length
    for (const sighting of batch.slice(0, room)) this.#waiting.push(sighting)
    this.counts.dropped += Math.max(batch.length - room, 0)
    if (this.#waiting.length > 0) this.#writing ??= this.#writeAll()
  }

  /** Resolves when everything that was appended is written or lost. */
  async close(): Promise<void> {
    while (this.#writing !== null) await this.#writing
    await this.#handle?.close().catch(() => undefined)
    this.#handle = null
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX)
      try {
        await this.#write(Buffer.from(batch.map((each) => `${JSON.stringify(each)}\n`).join('')))
        this.counts.written += batch.length
        this.#isFailing = false
      } catch (error) {
        this.counts.dropped += batch.length
        await this.#failed(error as Error)
      }
    }
    this.#writing = null
  }

  async #write(bytes: Buffer): Promise<void> {
    const { file, bytesMax } = this.#settings
    if (this.#handle !== null && this.#bytes > 0 && this.#bytes + bytes.length > bytesMax) {
      const full = this.#handle
      this.#handle = null
      await full.close()
      await rename(file, `${file}.1`)
    }
    this.#handle ??= await this.#open()
    // Counted before the write, because a write that fails may still write a part.
    this.#bytes += bytes.length
    await this.#handle.appendFile(bytes)
  }

  async #open(): Promise<FileHandle> {
    const { file, bytesMax } = this.#settings
    const handle = await open(file, 'a', ONLY_OURS)
    this.#bytes = (await handle.stat()).size
    if (this.#bytes < bytesMax) return handle
    await handle.close()
    await rename(file, `${file}.1`)
    this.#bytes = 0
    return open(file, 'a', ONLY_OURS)
  }

  /** The next batch opens the file again: the disk or the folder may be back by then. */
  async #failed(error: Error): Promise<void> {
    const handle = this.#handle
    this.#handle = null
    await handle?.close().catch(() => undefined)
    if (this.#isFailing) return
    this.#isFailing = true
    this.#log.error('sightings cannot be written and are dropped', { file: this.#settings.file, error })
  }
}

/** About 20 MB, or two seconds of all workers at their maximum rate. */
const WAITING_MAX = 32_768
/** Serializing this many takes about 1 ms. */
const BATCH_MAX = 512
const ONLY_OURS = 0o600
