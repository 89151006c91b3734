import { type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'

interface FileWatchTimes {
  /** The delay from the first file event to the call, so that related files are all written by then. */
  readonly settleMs?: number
  /** The polling interval, for changes without an event. */
  readonly pollMs?: number
}

/**
 * Calls back when any of the given files may have changed. The caller checks whether one did. Watches
 * folders instead of files: an editor replaces the file with a new one, and Kubernetes switches a
 * link beside it (`..data`) to another folder. Polling covers places without file events (a network
 * volume, a link to another folder).
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
    // The watcher of a folder that was deleted and created again reports nothing, so all are replaced.
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
        // The folder does not exist, or the system has no watches left. Polling continues.
      }
    }
  }

  #unwatch(folder: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.#watchers.get(folder) === watcher) this.#watchers.delete(folder)
    this.#sign()
  }

  /** Later events do not restart the timer. A folder with constant activity would delay the call forever. */
  #sign(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = null
      this.#changed()
    }, this.#settleMs).unref()
  }
}

const SETTLE_MS = 300
const POLL_MS = 30_000
