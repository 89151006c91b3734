import { type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'

export interface FileWatchTimes {
  /** From the first sign of a change to the call: what belongs together is written by then. */
  readonly settleMs?: number
  /** How often to look without any sign. */
  readonly pollMs?: number
}

/**
 * Calls when any of some files may have changed, which is for the caller to find out. The folders are watched, not the
 * files: an editor puts a new file in the place of the old one, and Kubernetes turns a link beside it (`..data`) to
 * another folder. Where no sign comes at all (a network volume, a link into elsewhere) the poll makes up for it.
 */
export class FileWatch {
  readonly #changed: () => void
  readonly #folders: readonly string[]
  readonly #settleMs: number
  readonly #poll: NodeJS.Timeout
  readonly #watchers = new Map<string, FSWatcher>()
  #settling: NodeJS.Timeout | null = null

  constructor(files: readonly string[], changed: () => void, times: FileWatchTimes = {}) {
    const { settleMs = SETTLE_MS, pollMs = POLL_MS } = times
    this.#changed = changed
    this.#folders = [...new Set(files.map((file) => dirname(file)))]
    this.#settleMs = settleMs
    this.#watchAll()
    this.#poll = setInterval(() => this.#pollNow(), pollMs).unref()
  }

  close(): void {
    clearInterval(this.#poll)
    if (this.#settling !== null) clearTimeout(this.#settling)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  #pollNow(): void {
    // A folder that went and came back is another one, of which the old watcher knows nothing.
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
    this.#watchAll()
    this.#changed()
  }

  #watchAll(): void {
    for (const folder of this.#folders) {
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#sign())
        watcher.on('error', () => this.#unwatch(folder, watcher))
        this.#watchers.set(folder, watcher)
      } catch {
        // It does not exist, or the system has no watches left: the poll goes on.
      }
    }
  }

  #unwatch(folder: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.#watchers.get(folder) === watcher) this.#watchers.delete(folder)
    this.#sign()
  }

  /** The first sign sets the time: a folder where something is always going on must not put it off for ever. */
  #sign(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = null
      this.#changed()
    }, this.#settleMs).unref()
  }
}

const SETTLE_MS = 300
const POLL_MS = 30_000
