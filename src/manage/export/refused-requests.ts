import type { Log } from '../../shared/log.ts'
import type { SinkCounts } from '../events/sinks/sink-metrics.ts'

/** Requests that a receiver refuses for good. A client can make many of them, so the log has a line a minute. */
export class RefusedRequests {
  readonly #log: Log
  readonly #counts: SinkCounts
  #loggedAtMs = Number.NEGATIVE_INFINITY

  constructor(log: Log, counts: SinkCounts) {
    this.#log = log
    this.#counts = counts
  }

  add(requests: number, why: string): void {
    if (requests === 0) return
    this.#counts.lost += requests
    if (performance.now() - this.#loggedAtMs < EVERY_MS) return
    this.#loggedAtMs = performance.now()
    this.#log.warn('a sink has refused requests for good', { requests, why })
  }
}

const EVERY_MS = 60_000
