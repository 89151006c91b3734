import { type FileHandle, open, rename } from 'node:fs/promises'
import type { Log } from '../../shared/log.ts'
import type { Sighting } from '../../plane/sighting.ts'

export interface SightingFileSettings {
  readonly file: string
  /** When it is full it becomes `FILE.1`, in the place of the one before, and a new one begins. */
  readonly bytesMax: number
}

/**
 * Appends Sightings to a file, a line of JSON each. Whoever gives them never waits: what the disk cannot take in time is
 * dropped, and counted. Only the user it runs as can read it, as it holds addresses of people.
 */
export class SightingFile {
  readonly counts = { written: 0, dropped: 0 }
  readonly #settings: SightingFileSettings
  readonly #log: Log
  #handle: FileHandle | null = null
  #bytes = 0
  #waiting: Sighting[] = []
  #writing: Promise<void> | null = null
  /** The disk's errors are said once, until it takes something again. */
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

  /** Resolves when all that was given is in the file, or is lost. */
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
    // Counted first: half of it may be there when writing fails.
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

  /** The next batch opens it anew: the disk may be there again, or the folder. */
  async #failed(error: Error): Promise<void> {
    const handle = this.#handle
    this.#handle = null
    await handle?.close().catch(() => undefined)
    if (this.#isFailing) return
    this.#isFailing = true
    this.#log.error('sightings cannot be written and are dropped', { file: this.#settings.file, error })
  }
}

/** Some 20 MB, and two seconds of what all workers can send at their fastest. */
const WAITING_MAX = 32_768
/** Serialised in about a millisecond. */
const BATCH_MAX = 512
const ONLY_OURS = 0o600
