import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '../../shared/log.ts'

/** Background work: deleting old rows, or writing what can wait. */
export interface PeriodicJob {
  /** In words, for the log. */
  readonly name: string
  readonly everyMs: number
  /** If several processes share a database, only the leader runs this job. */
  readonly isOnce?: true
  /** Runs one short slice; `more`: there is more to do, after a pause for other work. */
  run(nowMs: number): Promise<'done' | 'more'>
}

/** Runs each job at its interval and never twice at once. The next interval retries a failed run. */
export class Periodic {
  readonly #log: Log
  readonly #isLeading: () => boolean
  readonly #stop = new AbortController()
  #loops: readonly Promise<void>[] = []

  constructor(log: Log, isLeading: () => boolean = () => true) {
    this.#log = log
    this.#isLeading = isLeading
  }

  start(jobs: readonly PeriodicJob[]): void {
    this.#loops = [...this.#loops, ...jobs.map((job) => this.#loop(job))]
  }

  /** Resolves when no work is in progress. */
  async close(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#loops)
  }

  async #loop(job: PeriodicJob): Promise<void> {
    // A random delay, so that jobs and processes do not run in step.
    await this.#pause(job.everyMs * Math.random())
    let failure = ''
    while (!this.#stop.signal.aborted) {
      try {
        await this.#slices(job)
        failure = ''
      } catch (error) {
        const { message } = error as Error
        if (message !== failure)
          this.#log.warn('a periodic job failed; it is tried again', { job: job.name, error: error as Error })
        failure = message
      }
      await this.#pause(job.everyMs)
    }
  }

  async #slices(job: PeriodicJob): Promise<void> {
    while (this.#isDue(job) && (await job.run(Date.now())) === 'more') await this.#pause(PAUSE_MS)
  }

  #isDue({ isOnce }: PeriodicJob): boolean {
    return !this.#stop.signal.aborted && (isOnce !== true || this.#isLeading())
  }

  #pause(delayMs: number): Promise<void> {
    return wait(delayMs, undefined, { signal: this.#stop.signal, ref: false }).catch(() => undefined)
  }
}

/** A job that deletes old rows, one slice at a time until a slice is not full. */
export function forgetting(
  what: string,
  everyMs: number,
  forget: (nowMs: number, rowsMax: number) => Promise<number>,
  slice = SLICE_ROWS,
): PeriodicJob {
  const run = async (nowMs: number) => ((await forget(nowMs, slice)) < slice ? 'done' : 'more')
  return { name: `forget ${what}`, everyMs, isOnce: true, run }
}

/** Several times the duration of a slice. */
const PAUSE_MS = 100
/** A slice takes SQLite a few milliseconds. */
const SLICE_ROWS = 500
