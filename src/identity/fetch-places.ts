import { LRUCache } from 'lru-cache'

/**
 * How many fetches may be under way, in all and at one host, and how many one host sees in a minute: whoever names
 * documents makes us ask others for them.
 */
export class FetchPlaces {
  readonly #running = new Map<string, number>()
  #total = 0
  readonly #waiting = new Set<Waiting>()
  readonly #minutes = new LRUCache<string, Minute>({ max: HOSTS_MAX })
  readonly #perMinuteMax: number
  #minute: Minute = { startMs: Number.NEGATIVE_INFINITY, fetches: 0 }

  /** Of all hosts together. */
  constructor(perMinuteMax = Number.POSITIVE_INFINITY) {
    this.#perMinuteMax = perMinuteMax
  }

  /** Resolves when there is room, with how to give it back; `null`: there will be none in time. */
  async take(host: string, nowMs: number, signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted || this.#isOften(host, nowMs)) return null
    if (this.#hasRoom(host)) this.#occupy(host)
    else if (!(await this.#wait(host, signal))) return null
    return () => this.#give(host)
  }

  #hasRoom(host: string): boolean {
    return this.#total < TOTAL_MAX && (this.#running.get(host) ?? 0) < HOST_MAX
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
      this.#occupy(waiting.host) // before anybody else does
      return waiting.go(true)
    }
  }

  async #wait(host: string, signal: AbortSignal): Promise<boolean> {
    if (this.#waiting.size >= WAITING_MAX) return false
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
    const minute = currentMinute(this.#minutes.get(host), nowMs)
    this.#minutes.set(host, minute)
    if (++minute.fetches > HOST_PER_MINUTE) return true
    this.#minute = currentMinute(this.#minute, nowMs)
    return ++this.#minute.fetches > this.#perMinuteMax
  }
}

function currentMinute(known: Minute | undefined, nowMs: number): Minute {
  const isCurrent = known !== undefined && Math.abs(nowMs - known.startMs) < MINUTE_MS
  return isCurrent ? known : { startMs: nowMs, fetches: 0 }
}

interface Waiting {
  readonly host: string
  go(mayGo: boolean): void
}

interface Minute {
  readonly startMs: number
  fetches: number
}

const TOTAL_MAX = 16
const HOST_MAX = 2
const WAITING_MAX = 64
const HOST_PER_MINUTE = 60
const HOSTS_MAX = 10_000
const MINUTE_MS = 60_000
