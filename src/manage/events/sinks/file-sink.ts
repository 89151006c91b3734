import { type FileHandle, open, stat } from 'node:fs/promises'
import type { EventRecord } from '../../../store/events/events.ts'
import type { LineOf, Sink } from './sink.ts'

/**
 * Appends events to a file, one per line. If the file is moved or removed, a new one is created. Only the
 * user of this process can read it, because it contains people's addresses.
 */
export class FileSink implements Sink {
  readonly confirmMs = 0
  readonly #file: string
  readonly #lineOf: LineOf
  #handle: FileHandle | null = null
  #isRegular = false

  constructor(file: string, lineOf: LineOf) {
    this.#file = file
    this.#lineOf = lineOf
  }

  /** Resolves when the events are on disk. */
  async write(events: readonly EventRecord[]): Promise<void> {
    try {
      if (this.#handle !== null && (await this.#isMoved(this.#handle))) await this.close()
      this.#handle ??= await this.#open()
      await this.#handle.appendFile(events.map((event) => `${this.#lineOf(event)}\n`).join(''))
      if (this.#isRegular) await this.#handle.datasync()
    } catch (error) {
      // A partial line may have been written. The next open ends that line.
      await this.close()
      throw error
    }
  }

  broken(): null {
    return null
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = null
    await handle?.close().catch(() => undefined)
  }

  async #isMoved(handle: FileHandle): Promise<boolean> {
    const [ours, there] = await Promise.all([handle.stat(), stat(this.#file).catch(() => null)])
    return there === null || there.ino !== ours.ino || there.dev !== ours.dev
  }

  async #open(): Promise<FileHandle> {
    const handle = await open(this.#file, 'a', ONLY_OURS)
    try {
      const found = await handle.stat()
      const { size } = found
      this.#isRegular = found.isFile()
      if (this.#isRegular && size > 0 && !(await endsALine(this.#file, size))) await handle.appendFile('\n')
      return handle
    } catch (error) {
      await handle.close()
      throw error
    }
  }
}

/** A process that was killed may have left a partial line. */
async function endsALine(file: string, size: number): Promise<boolean> {
  const handle = await open(file, 'r')
  try {
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1)
    return buffer[0] === END_OF_LINE
  } finally {
    await handle.close()
  }
}

const END_OF_LINE = 0x0a
const ONLY_OURS = 0o600
