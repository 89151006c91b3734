import { LateCache } from '../../shared/late-cache.ts'

export interface FetchLimits {
  /** Fetches in progress. */
  readonly totalMax: number
  readonly hostMax: number
  readonly waitingMax: number
  readonly totalPerMinute: number
  readonly hostPerMinute: number
}

/**
 * Limits fetches in progress, in total and per host, and fetches per minute, because clients choose the
 * documents that Gatehouse fetches.
 */
export class FetchPlaces {
  readonly #limits: FetchLimits
  readonly #running = new Map<string, number>()
  #total = 0
  readonly #waiting = new Set<Waiting>()
  readonly #minutes = new LateCache<Minute>({ max: HOSTS_MAX })
  #minute: Minute = { startMs: Number.NEGATIVE_INFINITY, fetches: 0 }

  /** Limits that are not given default to those of documents. */
  constructor(limits: Partial<FetchLimits> = {}) {
    this.#limits = { ...OF_DOCUMENTS, ...limits }
  }

  /** Resolves with a release function when there is room; `null`: no room in time. */
  async take(host: string, nowMs: number, signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted || this.#isOften(host, nowMs)) return null
    if (this.#hasRoom(host)) this.#occupy(host)
    else if (!(await this.#wait(host, signal))) return null
    return () => this.#give(host)
  }

  #hasRoom(host: string): boolean {
    return this.#total < this.#limits.totalMax && (this.#running.get(host) ?? 0) < this.#limits.hostMax
  }

  #occupy(host: string): void {
    this.#running.set(host, (this.#running.get(host) ?? 0) + 1)
    this.#total++
  }

  #give(host: string): void {
    const left = this.#running.get(host)! - 1
    if (left === 0) this.#running.delete(host)
    else this.#running.set(host, left)
    this.#total--
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.host)) continue
      this.#waiting.delete(waiting)
      this.#occupy(waiting.host) // at once: otherwise another caller could take it
      return waiting.go(true)
    }
  }

  async #wait(host: string, signal: AbortSignal): Promise<boolean> {
    if (this.#waiting.size >= this.#limits.waitingMax) return false
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting = { host, go: resolve }
    const leave = () => this.#waiting.delete(waiting) && resolve(false)
    signal.addEventListener('abort', leave)
    this.#waiting.add(waiting)
    const mayGo = await promise
    signal.removeEventListener('abort', leave)
    return mayGo
  }

  #isOften(host: string, nowMs: number): boolean {
    const minute = current(this.#minutes.get(host), nowMs)
    this.#minutes.set(host, minute)
    // A fetch refused for one host does not count against the total.
    if (++minute.fetches > this.#limits.hostPerMinute) return true
    this.#minute = current(this.#minute, nowMs)
    return ++this.#minute.fetches > this.#limits.totalPerMinute
  }
}

function current(minute: Minute | undefined, nowMs: number): Minute {
  const isCurrent = minute !== undefined && Math.abs(nowMs - minute.startMs) < MINUTE_MS
  return isCurrent ? minute : { startMs: nowMs, fetches: 0 }
}

interface Waiting {
  readonly host: string
  go(mayGo: boolean): void
}

interface Minute {
  readonly startMs: number
  fetches: number
}

const OF_DOCUMENTS: FetchLimits = {
  totalMax: 16,
  hostMax: 2,
  waitingMax: 64,
  hostPerMinute: 60,
  totalPerMinute: Number.POSITIVE_INFINITY,
}
const HOSTS_MAX = 10_000
const MINUTE_MS = 60_000
