import { open } from 'node:fs/promises'
import type { KeyLog } from '../capture/key-log.ts'
import { Fault } from '../shared/fault.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** A key log file that another program may still write. Each `refresh` reads what was appended. */
export class KeyLogFile {
  readonly #path: string
  readonly #keys: KeyLog
  #read = 0

  constructor(path: string, keys: KeyLog) {
    this.#path = path
    this.#keys = keys
  }

  async refresh(): Promise<void> {
    try {
      await this.#readOn()
    } catch (error) {
      throw new Fault('UNREADABLE', `--keylog ${this.#path}: ${unreadable(error).message}`, { cause: error })
    }
  }

  async #readOn(): Promise<void> {
    const buffer = Buffer.allocUnsafe(64 * 1024)
    await using handle = await open(this.#path, 'r')
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, this.#read)
      if (bytesRead === 0) return
      this.#read += bytesRead
      this.#keys.add(buffer.toString('latin1', 0, bytesRead))
    }
  }
}
