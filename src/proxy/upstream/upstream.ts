import { DurationHistogram } from '../../shared/metrics.ts'
import { Beat } from '../connection/beat.ts'
import { HealthCheck } from './health-check.ts'
import { Uploads } from './uploads.ts'
import { Dialer, parseUpstreamUrl, type UpstreamAddress, type UpstreamTls } from './upstream-dial.ts'
import { Reconnect } from './reconnect.ts'
import type { UnhealthyTarget } from './upstream-log.ts'
import { H2Pool } from './upstream-h2.ts'
import { type HealthSettings, TargetHealth } from './upstream-health.ts'
import { H1Pool, type Pool, type PoolCounters, type PoolCounts, type PoolSettings } from './upstream-pool.ts'
import type { UpstreamFailure } from './upstream-stream.ts'

/** A named group of targets that serve the same app. For times, 0 means no limit. */
export interface UpstreamSettings extends PoolSettings {
  readonly name: string
  /** In the form of `parseUpstreamUrl`. One or more. */
  readonly urls: readonly string[]
  /** How many other targets or connections a request may try after the first. */
  readonly retries: number
  /** The Host that the app sees: the client's or the target's. */
  readonly host: 'preserve' | 'upstream'
  readonly tls: UpstreamTls
  /** `null`: judged only by the requests it gets. */
  readonly health: UpstreamHealthSettings | null
}

export interface UpstreamHealthSettings extends HealthSettings {
  /** The path of the active check. `null`: no check. */
  readonly path: string | null
  readonly intervalMs: number
  readonly timeoutMs: number
}

/** Counters for the metrics. */
export interface UpstreamCounters extends PoolCounters {
  answered: number
  clientGone: number
  brokenOff: number
  readonly failed: Record<UpstreamFailure, number>
  retries: number
  targetsTakenOut: number
}

/** The state of one target. */
export interface TargetStatus extends PoolCounts {
  readonly url: string
  readonly isHealthy: boolean
}

export function upstreamCounters(): UpstreamCounters {
  return {
    connectionsOpened: 0,
    connectionsReused: 0,
    waits: 0,
    answered: 0,
    clientGone: 0,
    brokenOff: 0,
    failed: {
      refused: 0,
      unreachable: 0,
      tls: 0,
      'connect-timeout': 0,
      'head-timeout': 0,
      'idle-timeout': 0,
      reset: 0,
      'bad-response': 0,
      'bad-request': 0,
      overloaded: 0,
      closing: 0,
    },
    retries: 0,
    targetsTakenOut: 0,
  }
}

/** One server of a group. */
export interface UpstreamTarget {
  readonly address: UpstreamAddress
  readonly pool: Pool
  readonly uploads: Uploads
  readonly health: TargetHealth
  /** `null`: `health.path` is not set. */
  readonly check: HealthCheck | null
  /** `null`: active checks detect its recovery. */
  readonly reconnect: Reconnect | null
}

/**
 * Gives each request the next healthy target. The caller of `pick` must report the result once: `succeeded`,
 * `failed` or `abstained`.
 */
export class UpstreamGroup {
  readonly name: string
  readonly retries: number
  readonly settings: UpstreamSettings
  readonly counters: UpstreamCounters
  /** From asking a target to the head of the answer. */
  readonly headDurations = new DurationHistogram()
  readonly #beat = new Beat()
  readonly #targets: readonly UpstreamTarget[]
  #turn = 0
  #underway = 0
  #isClosed = false
  #drained: (() => void) | null = null

  constructor(settings: UpstreamSettings, counters: UpstreamCounters) {
    this.name = settings.name
    this.retries = settings.retries
    this.settings = settings
    this.counters = counters
    this.#targets = settings.urls.map((url) => this.#target(parseUpstreamUrl(url, settings.tls), settings))
  }

  /** Whether a target is healthy, as far as known. */
  get isHealthy(): boolean {
    return this.#targets.some(({ health }) => health.isHealthy)
  }

  /** The host of its first URL. */
  get authority(): string {
    return this.#targets[0]!.address.authority
  }

  /** Whether requests should be sent here, as far as known. */
  isWorthTrying(nowMs: number): boolean {
    return this.#targets.some(({ health }) => health.isWorthTrying(nowMs))
  }

  /** The targets that are out. */
  get unhealthy(): UnhealthyTarget[] {
    return this.#targets
      .filter(({ health }) => !health.isHealthy)
      .map(({ address, health }) => ({
        upstream: this.name,
        target: address.url,
        failure: health.lastFailure ?? 'check',
      }))
  }

  get status(): TargetStatus[] {
    return this.#targets.map(({ address, pool, uploads, health }) => {
      const { connections, idle, waiting } = pool.counts
      const { isHealthy } = health
      return { url: address.url, isHealthy, connections, idle, waiting: waiting + uploads.waiting }
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * The next target for a request that has tried these. `null` if no other target may do better. If all are
   * out, the next in turn is tried anyway: a wrong guess must not keep a healthy app from serving.
   */
  pick(tried: readonly UpstreamTarget[]): UpstreamTarget | null {
    const target = this.#pickAmong(tried)
    target?.health.tried()
    return target
  }

  succeeded(target: UpstreamTarget): void {
    target.health.succeeded()
  }

  /** A single target still gets every request: see `pick`. */
  failed(target: UpstreamTarget, failure: UpstreamFailure): void {
    if (!target.health.failed(performance.now(), Math.random(), failure)) return
    this.counters.targetsTakenOut++
    target.reconnect?.start()
  }

  abstained(target: UpstreamTarget): void {
    target.health.abstained()
  }

  /** Called for each request. `ended` must follow. */
  began(): void {
    this.#underway++
  }

  ended(): void {
    this.#underway--
    if (this.#underway === 0) this.#drained?.()
  }

  /** Lets current requests finish. Connections close when they become idle. */
  drain(): Promise<void> {
    for (const { pool, check, reconnect } of this.#targets) {
      check?.close()
      reconnect?.close()
      pool.drain()
    }
    return new Promise((resolve) => {
      this.#drained = resolve
      if (this.#underway === 0) resolve()
    })
  }

  /** Closes everything. Current requests fail. */
  close(): void {
    this.#isClosed = true
    for (const { pool, uploads, check, reconnect } of this.#targets) {
      check?.close()
      reconnect?.close()
      uploads.close()
      pool.close()
    }
  }

  #target(address: UpstreamAddress, settings: UpstreamSettings): UpstreamTarget {
    const dialer = new Dialer(address)
    const ownHost = settings.host === 'upstream' ? address.authority : null
    const KindOfPool = address.protocol === 'h2' ? H2Pool : H1Pool
    const pool = new KindOfPool(dialer, this.#beat, settings, ownHost, this.counters)
    const uploads = new Uploads(pool, this.#beat, settings, this.counters)
    const health = new TargetHealth(settings.health ?? PASSIVE_ONLY)
    const check = this.#check(pool, health, settings.health)
    return {
      address,
      pool,
      uploads,
      health,
      check,
      reconnect: check === null ? new Reconnect(dialer, health) : null,
    }
  }

  #check(pool: Pool, health: TargetHealth, settings: UpstreamHealthSettings | null): HealthCheck | null {
    if (settings === null || settings.path === null) return null
    const { path, intervalMs, timeoutMs } = settings
    return new HealthCheck(pool, { path, intervalMs, timeoutMs }, (isWell) => {
      if (health.checked(isWell) && !isWell) this.counters.targetsTakenOut++
    })
  }

  #pickAmong(tried: readonly UpstreamTarget[]): UpstreamTarget | null {
    const count = this.#targets.length
    if (count === 1) return tried.length === 0 ? this.#targets[0]! : null
    const nowMs = performance.now()
    const from = this.#turn++ % count
    let busy: UpstreamTarget | null = null
    for (let i = 0; i < count; i++) {
      const target = this.#targets[(from + i) % count]!
      if (tried.includes(target) || !target.health.mayTry(nowMs)) continue
      if (!target.pool.isSaturated) return target
      busy ??= target
    }
    if (busy !== null || tried.length > 0) return busy
    return this.#targets[from]!
  }
}

const PASSIVE_ONLY: HealthSettings = { unhealthyAfter: 3, healthyAfter: 1 }
