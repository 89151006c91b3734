import { setTimeout as wait } from 'node:timers/promises'
import type { Store } from '../../store/store.ts'
import type { TaskRecord } from '../../store/work/task-record.ts'

/**
 * Reports the progress of tasks, whichever process works on them. One query per interval serves all watched
 * tasks; without watched tasks there is no query.
 */
export class TaskWatch {
  readonly #store: Pick<Store, 'tasks'>
  readonly #everyMs: number
  readonly #waiting = new Set<TaskWaiter>()
  #isLooking = false

  constructor(store: Pick<Store, 'tasks'>, everyMs = EVERY_MS) {
    this.#store = store
    this.#everyMs = everyMs
  }

  /** The number of pending waits. */
  get size(): number {
    return this.#waiting.size
  }

  /** Resolves when status or progress differ from `last`; `null`: the task is gone, or `stop` aborted. */
  changed(last: TaskRecord, stop: AbortSignal): Promise<TaskRecord | null> {
    if (stop.aborted) return Promise.resolve(null)
    return new Promise((resolve) => {
      const end = (record: TaskRecord | null) => {
        this.#waiting.delete(waiting)
        stop.removeEventListener('abort', gone)
        resolve(record)
      }
      const gone = () => end(null)
      const waiting: TaskWaiter = { last, end }
      stop.addEventListener('abort', gone)
      this.#waiting.add(waiting)
      if (!this.#isLooking) void this.#look()
    })
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    while (this.#waiting.size > 0) {
      await this.#tell()
      await wait(this.#everyMs, undefined, { ref: false })
    }
    this.#isLooking = false
  }

  async #tell(): Promise<void> {
    const asked = [...this.#waiting]
    const ids = [...new Set(asked.map(({ last }) => last.id))]
    // While the database is unavailable, no change can be observed.
    const records = await this.#store.tasks.some(ids).catch(() => null)
    if (records === null) return
    const byId = new Map(records.map((record) => [record.id, record]))
    for (const { last, end } of asked) {
      const record = byId.get(last.id) ?? null
      if (record === null || isOther(record, last)) end(record)
    }
  }
}

interface TaskWaiter {
  readonly last: TaskRecord
  end(record: TaskRecord | null): void
}

function isOther(record: TaskRecord, last: TaskRecord): boolean {
  return record.status !== last.status || record.completed !== last.completed
}

const EVERY_MS = 200
