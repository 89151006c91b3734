import type { Log } from '../../shared/log.ts'
import type { TargetFailure } from './upstream-health.ts'

/** An upstream target that is unreachable or failing for a worker. */
export interface UnhealthyTarget {
  readonly upstream: string
  /** The URL of the target. */
  readonly target: string
  readonly failure: TargetFailure
}

/**
 * Logs once that a target is unhealthy and once that it is healthy again, for all workers together: from the
 * first worker that reports it to the last one that stops.
 */
export class UpstreamLog {
  readonly #log: Log
  /** The last report of each worker, by its number. */
  readonly #said = new Map<number, readonly UnhealthyTarget[]>()
  /** When each target became unhealthy, by upstream and target. Bounded by the configuration. */
  readonly #sinceMs = new Map<string, number>()

  constructor(log: Log) {
    this.#log = log
  }

  heard(worker: number, unhealthy: readonly UnhealthyTarget[]): void {
    const before = this.#said.get(worker) ?? []
    // The usual case.
    if (before.length === 0 && unhealthy.length === 0) return
    this.#said.set(worker, unhealthy)
    for (const target of unhealthy) this.#unhealthy(target)
    for (const target of before) this.#maybeHealthy(target)
  }

  #unhealthy({ upstream, target, failure }: UnhealthyTarget): void {
    const key = keyOf(upstream, target)
    if (this.#sinceMs.has(key)) return
    this.#sinceMs.set(key, performance.now())
    this.#log.warn('an upstream target is unhealthy', { upstream, target, failure, fix: FIX })
  }

  #maybeHealthy({ upstream, target }: UnhealthyTarget): void {
    const key = keyOf(upstream, target)
    for (const said of this.#said.values())
      if (said.some((each) => keyOf(each.upstream, each.target) === key)) return
    const sinceMs = this.#sinceMs.get(key)
    if (sinceMs === undefined) return
    this.#sinceMs.delete(key)
    const afterS = Math.round((performance.now() - sinceMs) / 1_000)
    this.#log.info('an upstream target is healthy again', { upstream, target, afterS })
  }
}

function keyOf(upstream: string, target: string): string {
  return `${upstream} ${target}`
}

const FIX = 'start the app or correct proxy.upstreams; "gatehouse doctor" tries to connect'
